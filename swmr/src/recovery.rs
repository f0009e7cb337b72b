//! What state a file is in, and bringing one into order whose writer died.
//!
//! A writer that opens such a file does the same by itself; to do it without writing anything is for those who want
//! programs to open the file that refuse it as it is.

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

/// Brings the file at `path` into the state in which a writer that closes it leaves it: the end that it announces is
/// where it ends, what was never published is cut off, and nobody is said to write. Files of libhdf5 are treated alike,
/// for which others use `h5clear`. What the dead writer was about to change together is counted anew, and agrees
/// afterwards; else nothing in the file is changed. A file that is in order is left alone.
///
/// # Errors
/// [`Error::InUse`] if a process reads or writes the file, or if whether one writes it cannot be told and `options` do
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
        // Those who followed the writer may have been led a moment ago to what is cut off now.
        std::thread::sleep(ReusePolicy::MIN_GRACE + ReusePolicy::MIN_GRACE / 8);
    }
    session.close()?;
    Ok(Repair { before, after: diagnose(path)? })
}
