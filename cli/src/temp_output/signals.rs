//! Files that are removed when a signal ends this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The files to remove.
static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn left() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a file or folder when a signal ends this process.
pub fn remove_at_end(path: &Path) {
    static WATCH: Once = Once::new();
    left().push(path.to_owned());
    WATCH.call_once(|| {
        // Without it signals end the process at once, and the next command removes what is left.
        if let Ok(signals) = Signals::new(heeded(&[SIGINT, SIGTERM, SIGHUP])) {
            let _ = thread::Builder::new().name("signals".to_owned()).spawn(|| watch(signals));
        }
    });
}

/// The file or folder is gone, or stays.
pub fn is_removed(path: &Path) {
    left().retain(|left| left != path);
}

fn watch(mut signals: Signals) {
    for signal in signals.forever() {
        let left = left();
        for path in &*left {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        // As if nobody had waited for it. Nothing more is made meanwhile, for the list is held.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        drop(left);
    }
}

/// Those of the signals that this process was not told to ignore by its parent, as `nohup` does.
pub fn heeded(signals: &[i32]) -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = |signal: i32| ignored.checked_shr(signal.unsigned_abs().saturating_sub(1)).unwrap_or(0) & 1 == 1;
    signals.iter().copied().filter(|signal| !is_ignored(*signal)).collect()
}
