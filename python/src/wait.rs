//! Waits, which last in short turns so that Ctrl-C interrupts them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// So long a wait lasts before signals are looked at.
pub(crate) const MAX_WAIT_BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

/// Counts the looks.
static LOOKS: AtomicU64 = AtomicU64::new(0);

/// Looks at signals, and raises what their handlers raise.
pub(crate) fn check_signals(py: Python<'_>) -> PyResult<()> {
    LOOKS.fetch_add(1, Ordering::Relaxed);
    py.check_signals()
}

/// How often waits of this process have looked at signals.
#[pyfunction]
pub(crate) fn signal_looks() -> u64 {
    LOOKS.load(Ordering::Relaxed)
}

/// When a wait of so many seconds ends; never without a number.
pub(crate) fn deadline(seconds: Option<f64>) -> Option<Instant> {
    let timeout = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// How long the next turn may take.
pub(crate) fn next_turn(until: Option<Instant>) -> Duration {
    let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
    left.min(MAX_WAIT_BETWEEN_SIGNALS)
}
