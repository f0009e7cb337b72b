//! The repair of a file whose writer has died.
//!
//! A writer that opens such a file does the same by itself. A separate repair is useful if other programs refuse the
//! file as it is.

use std::path::Path;

use h5live_cache::ReusePolicy;
use h5live_model::{FileOpenState, RepairReport};
use h5live_swmr::{Error as SwmrError, OpenConflict, diagnose_open_state};

use crate::{Mode, OpenOptions, Result};

/// Repairs the file at `path`. Afterwards the file is as if its writer had closed it: the announced end is where it
/// ends, data that was never published is cut off, and its flags name no writer. Files of libhdf5 are treated alike;
/// others use `h5clear` for them. Changes of the dead writer that belong together are counted again, and agree
/// afterwards. Nothing else in the file changes. A file that needs no repair is left alone.
///
/// # Errors
/// [`SwmrError::InUse`] if a process reads or writes the file, or if it is not known whether one writes it and `options` do
/// not say to take over; [`SwmrError::Truncated`] if structures are missing, or if a file was cut short that its writer had
/// closed; errors of opening and closing.
pub fn repair(path: &Path, options: &OpenOptions) -> Result<RepairReport> {
    let before = diagnose_open_state(path)?;
    match &before.open_state {
        FileOpenState::OpenForWriting { live, holders } => {
            let reason = if *live { OpenConflict::SwmrWriter } else { OpenConflict::Writer };
            return Err(SwmrError::InUse { reason, holders: holders.clone() }.into());
        }
        FileOpenState::Closed if !before.needs_repair() => {
            return Ok(RepairReport { after: before.clone(), before, unrepaired: Vec::new() });
        }
        // Only the end tells of the loss. An older superblock does not say whether its writer has closed the file.
        FileOpenState::Closed if before.superblock_version >= Some(3) && before.announced_length > before.length => {
            return Err(SwmrError::Truncated { len: before.length, stated: before.announced_length }.into());
        }
        _ => {}
    }
    let session = OpenOptions { mode: Mode::Write, ..options.clone() }.open_for_repair(path)?;
    if let FileOpenState::Abandoned { live: true } | FileOpenState::OpenOrAbandoned { live: true } = before.open_state {
        // Followers of the writer may have read pointers a moment ago to space that is cut off now.
        std::thread::sleep(ReusePolicy::MIN_GRACE + ReusePolicy::MIN_GRACE / 8);
    }
    session.close()?;
    Ok(RepairReport { before, after: diagnose_open_state(path)?, unrepaired: Vec::new() })
}
