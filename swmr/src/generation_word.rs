//! The word by which a live file without checksums shows its generation.

use h5live_cache::Storage;
use h5live_format::{Addr, GenerationWord, StatusFlags, Superblock};

use crate::{Error, Result};

/// Whether readers of a live file go by generations, as its superblock says.
pub(crate) fn has_generations(superblock: &Superblock) -> bool {
    superblock.version < 3 && superblock.status.contains(StatusFlags::SWMR)
}

/// The end that the superblock announces, from the base address on.
pub(crate) fn announced_end(superblock: &Superblock) -> Option<Addr> {
    superblock.end_of_file.get()?.checked_sub(superblock.base.get()?).map(Addr::new)
}

/// The generation that a file shows, and the end that it announces; `None` if it shows none. `storage` begins at the
/// base address.
///
/// # Errors
/// Those of the storage.
pub fn read_generation_and_eof(
    storage: &dyn Storage,
    superblock: &Superblock,
) -> Result<Option<(GenerationWord, Addr)>> {
    let Some((place, end)) = announced_end(superblock).and_then(|end| GenerationWord::word_addr(end).zip(Some(end)))
    else {
        return Ok(None);
    };
    let mut bytes = [0; GenerationWord::SIZE];
    let found = storage.read_at(&mut bytes, place.get().unwrap_or(u64::MAX));
    let found = found.map_err(Error::io("read behind the end of the file"))?;
    Ok(bytes.get(..found).and_then(GenerationWord::from_bytes).map(|generation| (generation, end)))
}
