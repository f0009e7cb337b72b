//! The state of a file: closed, being written, or left by a writer that died.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use h5live_cache::{Clock, FileStorage};
use h5live_model::{FileDiagnosis, FileOpenState};

use crate::access::refuse_directory_or_pipe;
use crate::locking::{LockHandle, LockPolicy, WriterPresence};
use crate::superblock::{is_marked_open_for_writing, locate_and_rebase_superblock};
use crate::{Error, Result, RetryPolicy};

/// Finds out what state the file at `path` is in, without changing it.
///
/// # Errors
/// [`Error::Io`]; [`Error::NotHdf5`] and [`Error::Superblock`] if it is no HDF5 file.
pub fn diagnose_open_state(path: &Path) -> Result<FileDiagnosis> {
    refuse_directory_or_pipe(path)?;
    let lock = Arc::new(LockHandle::open(path, LockPolicy::Off).map_err(Error::io("open the file"))?);
    let storage = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
    let length = std::fs::metadata(path).map_err(Error::io("ask for the length of the file"))?.len();
    let retry = RetryPolicy::default().for_session(Clock::default(), lock.clone());
    let (_, superblock) = retry.retry(|| locate_and_rebase_superblock(&storage))?;
    let live = superblock.status.allows_concurrent_readers();
    let marked = is_marked_open_for_writing(&superblock);
    let condition = match lock.find_writer() {
        WriterPresence::Alive(holders) => FileOpenState::OpenForWriting { live, holders },
        WriterPresence::None if marked => FileOpenState::Abandoned { live },
        WriterPresence::Unknown if marked => FileOpenState::OpenOrAbandoned { live },
        _ => FileOpenState::Closed,
    };
    let announced = superblock.end_of_file.get().unwrap_or(0);
    let readers = match &condition {
        FileOpenState::OpenForWriting { holders, .. } => {
            lock.other_openers().into_iter().filter(|opener| !holders.contains(opener)).collect()
        }
        _ => lock.other_openers(),
    };
    Ok(FileDiagnosis {
        open_state: condition,
        superblock_version: Some(superblock.version),
        length,
        announced_length: announced,
        other_readers: readers,
    })
}
