//! Where the bytes of a log come from.

use crate::entry_box_index::EntryDataLocation;
use crate::error::Result;

/// Bytes of the log with a checksum.
#[derive(Debug, Clone, Copy)]
pub struct ChecksummedRange {
    /// Where they begin.
    pub position_bits: u64,
    /// How many there are.
    pub len: u64,
    /// Their CRC-32C.
    pub crc: u32,
}

/// Where bytes of the log come from.
pub trait LogSource: Sync {
    /// Reads bytes of the log from `position_bits` on.
    ///
    /// # Errors
    /// If the log has no such bytes; errors of the store beneath.
    fn read(&self, position_bits: u64, into: &mut [u8]) -> Result<()>;

    /// Reads the data of an entry, and undoes its filter.
    ///
    /// # Errors
    /// As [`LogSource::read`]; if the data is damaged, or has another length.
    fn read_decoded(&self, location: &EntryDataLocation, into: &mut [u8]) -> Result<()>;

    /// Whether so many bytes from `position_bits` on can be copied from memory, and it is worth while.
    fn try_map(&self, position_bits: u64, len: u64) -> bool;

    /// Copies bytes of the log from memory; `false` if they are not there.
    fn copy_mapped(&self, position_bits: u64, into: &mut [u8]) -> bool;

    /// Whether all that was copied from memory were bytes of the log: nobody has cut the file. If not, nothing is in
    /// memory from then on.
    fn check_or_disable_mappings(&self) -> bool;

    /// How many bytes from `position_bits` on can be read by one call.
    fn contiguous_bytes_at(&self, position_bits: u64) -> u64;

    /// What is wrong with the bytes at `position_bits`, whose checksum does not fit.
    fn checksum_error(&self, position_bits: u64) -> h5live_model::Error;
}
