//! What is removed when a signal ends this process.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// What is to be done when a signal ends this process.
enum AtEnd {
    Remove(PathBuf),
    Act(u64, Box<dyn Fn() + Send>),
}

static LEFT: Mutex<Vec<AtEnd>> = Mutex::new(Vec::new());

fn left() -> std::sync::MutexGuard<'static, Vec<AtEnd>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a file or folder when a signal ends this process.
pub fn remove_on_signal(path: &Path) {
    left().push(AtEnd::Remove(path.to_owned()));
    heed_signals();
}

/// The file or folder is gone, or stays.
pub fn cancel_remove_on_signal(path: &Path) {
    left().retain(|left| !matches!(left, AtEnd::Remove(left) if left == path));
}

/// Something that is done when a signal ends this process, unless this is dropped before. While it is being done, the drop
/// waits: so the process does not end by itself meanwhile.
pub struct SignalActionGuard(u64);

/// Does something when a signal ends this process. A second signal does not wait for it.
pub fn on_termination_signal(act: impl Fn() + Send + 'static) -> SignalActionGuard {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    left().push(AtEnd::Act(number, Box::new(act)));
    heed_signals();
    SignalActionGuard(number)
}

impl Drop for SignalActionGuard {
    fn drop(&mut self) {
        left().retain(|left| !matches!(left, AtEnd::Act(number, _) if *number == self.0));
    }
}

impl fmt::Debug for SignalActionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SignalActionGuard").field(&self.0).finish()
    }
}

fn heed_signals() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let signals = without_ignored_signals(&[SIGINT, SIGTERM, SIGHUP]);
        let is_ending = Arc::new(AtomicBool::new(false));
        // From the second signal on, each ends the process at once, for the first one may wait for a server.
        for signal in &signals {
            let _ = flag::register_conditional_default(*signal, is_ending.clone());
        }
        // Without it signals end the process at once, and the next command removes what is left.
        if let Ok(signals) = Signals::new(signals) {
            let _ = thread::Builder::new().name("signals".to_owned()).spawn(move || watch(signals, &is_ending));
        }
    });
}

fn watch(mut signals: Signals, is_ending: &AtomicBool) {
    for signal in signals.forever() {
        is_ending.store(true, Ordering::SeqCst);
        let left = left();
        for each in &*left {
            match each {
                AtEnd::Remove(path) if path.is_dir() => drop(fs::remove_dir_all(path)),
                AtEnd::Remove(path) => drop(fs::remove_file(path)),
                AtEnd::Act(_, act) => act(),
            }
        }
        // As if nobody had waited for it. Nothing more is made meanwhile, for the list is held.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        drop(left);
    }
}

/// Those of the signals that this process was not told to ignore by its parent, as `nohup` does.
pub fn without_ignored_signals(signals: &[i32]) -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = |signal: i32| ignored.checked_shr(signal.unsigned_abs().saturating_sub(1)).unwrap_or(0) & 1 == 1;
    signals.iter().copied().filter(|signal| !is_ignored(*signal)).collect()
}
