//! The state of a file, and the repair of a file whose writer has died.
//!
//! A writer that opens such a file does the same by itself. A separate repair is useful if other programs refuse the
//! file as it is.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use h5live_cache::{Clock, FileStorage, ReusePolicy};
use h5live_format::StatusFlags;

use crate::bootstrap::{has_write_flags, locate_superblock};
use crate::error::OpenConflict;
use crate::locking::{LockHandle, WriterPresence};
use crate::{Diagnosis, Error, FileCondition, LockPolicy, Mode, OpenOptions, Repair, Result, RetryPolicy};

/// Finds out what state the file at `path` is in, without changing it.
///
/// # Errors
/// [`Error::Io`]; [`Error::NotHdf5`] and [`Error::Superblock`] if it is no HDF5 file.
pub fn diagnose(path: &Path) -> Result<Diagnosis> {
    let lock = Arc::new(LockHandle::open(path, LockPolicy::Off).map_err(Error::io("open the file"))?);
    let storage = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
    let length = std::fs::metadata(path).map_err(Error::io("ask for the length of the file"))?.len();
    let patience = RetryPolicy::default().of_session(Clock::default(), lock.clone());
    let (_, superblock) = patience.retry(|| locate_superblock(&storage))?;
    let live = superblock.status.contains(StatusFlags::SWMR);
    let marked = has_write_flags(&superblock);
    let condition = match lock.writer() {
        WriterPresence::Alive(holders) => FileCondition::OpenForWriting { live, holders },
        WriterPresence::None if marked => FileCondition::Abandoned { live },
        WriterPresence::Unknown if marked => FileCondition::Unknown { live },
        _ => FileCondition::Closed,
    };
    let announced = superblock.end_of_file.get().unwrap_or(0);
    Ok(Diagnosis { condition, superblock: superblock.version, length, announced })
}

/// Repairs the file at `path`. Afterwards the file is as if its writer had closed it: the announced end is where it
/// ends, data that was never published is cut off, and its flags name no writer. Files of libhdf5 are treated alike;
/// others use `h5clear` for them. Changes of the dead writer that belong together are counted again, and agree
/// afterwards. Nothing else in the file changes. A file that needs no repair is left alone.
///
/// # Errors
/// [`Error::InUse`] if a process reads or writes the file, or if it is not known whether one writes it and `options` do
/// not say to take over; [`Error::Truncated`] if structures are missing; errors of opening and closing.
pub fn repair(path: &Path, options: &OpenOptions) -> Result<Repair> {
    let before = diagnose(path)?;
    match &before.condition {
        FileCondition::OpenForWriting { live, holders } => {
            let reason = if *live { OpenConflict::SwmrWriter } else { OpenConflict::Writer };
            return Err(Error::InUse { reason, holders: holders.clone() });
        }
        FileCondition::Closed if !before.needs_repair() => return Ok(Repair { after: before.clone(), before }),
        _ => {}
    }
    let session = OpenOptions { mode: Mode::Write, ..options.clone() }.open_for_repair(path)?;
    if before.condition == (FileCondition::Abandoned { live: true }) {
        // Followers of the writer may have read pointers a moment ago to space that is cut off now.
        std::thread::sleep(ReusePolicy::MIN_GRACE + ReusePolicy::MIN_GRACE / 8);
    }
    session.close()?;
    Ok(Repair { before, after: diagnose(path)? })
}
