//! Finding and reading the superblock of a file.

use h5live_cache::Storage;
use h5live_format::{Addr, StatusFlags, Superblock};

use crate::{Error, Result};

/// Whether the superblock says that the file is open for writing. Before version 3 other programs say that without
/// heeding it; that it can be followed only h5live says.
pub fn is_marked_open_for_writing(superblock: &Superblock) -> bool {
    let (status, old) = (superblock.status, superblock.version < 3);
    status.contains(StatusFlags::SWMR) || !old && status.contains(StatusFlags::WRITE)
}

/// Reads the superblock at `at` (bytes from the start of `storage`).
///
/// # Errors
/// [`Error::NotHdf5`] if there is none; [`Error::Superblock`] if it is damaged; errors of the storage.
pub fn read_superblock(storage: &dyn Storage, at: u64) -> Result<Superblock> {
    let mut bytes = vec![0; Superblock::MAX_SIZE];
    let len = storage.read_at(&mut bytes, at).map_err(Error::io("read the superblock"))?;
    bytes.truncate(len);
    parse_superblock(&bytes)
}

/// Decodes the superblock at the beginning of `bytes`.
pub(crate) fn parse_superblock(bytes: &[u8]) -> Result<Superblock> {
    if !bytes.starts_with(&Superblock::SIGNATURE) {
        return Err(Error::NotHdf5);
    }
    Superblock::decode(bytes).map_err(Error::Superblock)
}

/// Finds the superblock at one of the addresses where one may be. Returns its address (bytes from the start of the
/// file) and the superblock, whose base address and end of file are then those that this address implies.
///
/// # Errors
/// As [`read_superblock`]; [`Error::OnionFile`].
pub fn locate_and_rebase_superblock(storage: &dyn Storage) -> Result<(u64, Superblock)> {
    let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
    for at in Superblock::possible_offsets(len) {
        match read_superblock(storage, at) {
            Err(Error::NotHdf5) => {}
            found => {
                let mut superblock = found?;
                // A program that adds or removes a user block moves everything, not only the superblock.
                let stated = superblock.base.get().unwrap_or(at);
                let end = superblock.end_of_file.get().unwrap_or(0);
                superblock.end_of_file = Addr::new(end.saturating_sub(stated).saturating_add(at));
                superblock.base = Addr::new(at);
                return Ok((at, superblock));
            }
        }
    }
    let mut start = [0; 8];
    let read = storage.read_at(&mut start, 0).map_err(Error::io("read the start of the file"))?;
    if is_onion(&start[..read]) { Err(Error::OnionFile) } else { Err(Error::NotHdf5) }
}

/// What the onion driver of HDF5 puts into a file that it makes, in place of an HDF5 file.
const ONION_PLACEHOLDER: &[u8] = b"ONIONEOF";
/// The begin of a file with revisions.
const ONION_HISTORY: &[u8] = b"OHDH";

/// Whether a file that begins so is one of HDF5's onion driver.
pub fn is_onion(start: &[u8]) -> bool {
    [ONION_PLACEHOLDER, ONION_HISTORY].iter().any(|begin| start.starts_with(begin))
}

/// Refuses a file that is shorter than its superblock says.
///
/// # Errors
/// [`Error::Truncated`]; errors of the storage.
pub fn check_file_len(storage: &dyn Storage, superblock: &Superblock) -> Result<()> {
    let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
    let stated = superblock.end_of_file.get().unwrap_or(0);
    if len < stated { Err(Error::Truncated { len, stated }) } else { Ok(()) }
}
