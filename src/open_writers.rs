//! The files that this process has open for writing. Where a link or a virtual dataset leads to one of them, it is used as
//! it is: nobody else can open it, unless it is live.

use std::process;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::file_shared::{FileShared, StoreKey};

/// So long the list is waited for: a thread that is not in a forked child may have had it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Files that are no more are looked for when there are so many.
const MIN_FILES_TO_SWEEP: usize = 16;

struct OpenWriter {
    key: StoreKey,
    /// The process that opened it. A forked child must not use what its parent writes.
    process: u32,
    file: Weak<FileShared>,
}

static OPEN_WRITERS: Mutex<Vec<OpenWriter>> = Mutex::new(Vec::new());

/// Takes in a file that was opened for writing.
pub(crate) fn add(key: StoreKey, file: &Arc<FileShared>) {
    let Some(mut writers) = OPEN_WRITERS.try_lock_for(MAX_WAIT) else { return };
    if writers.len() >= MIN_FILES_TO_SWEEP && writers.len().is_power_of_two() {
        writers.retain(|writer| writer.file.strong_count() > 0);
    }
    writers.retain(|writer| writer.key != key);
    writers.push(OpenWriter { key, process: process::id(), file: Arc::downgrade(file) });
}

/// The file of this key that this process has open for writing.
pub(crate) fn find(key: &StoreKey) -> Option<Arc<FileShared>> {
    let writers = OPEN_WRITERS.try_lock_for(MAX_WAIT)?;
    let of_process = |writer: &&OpenWriter| writer.key == *key && writer.process == process::id();
    writers.iter().find(of_process)?.file.upgrade()
}
