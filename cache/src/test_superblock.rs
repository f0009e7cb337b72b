//! A superblock for tests.

use h5live_format::{Addr, EncodeError};

use crate::SuperblockEncoder;

/// Writes the end of file at address 0, in eight bytes, and nothing else.
#[derive(Debug)]
pub(crate) struct EofOnlySuperblock;

impl SuperblockEncoder for EofOnlySuperblock {
    fn encode_with_eof(&self, end: u64) -> Result<(Addr, Vec<u8>), EncodeError> {
        Ok((Addr::new(0), end.to_le_bytes().to_vec()))
    }
}
