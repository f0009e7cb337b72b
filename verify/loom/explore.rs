//! How loom explores a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Explores all schedules; or, if `preemptions` is given, those with at most so many switches that a thread did not
/// ask for.
pub fn explore(name: &str, preemptions: impl Into<Option<usize>>, program: impl Fn() + Send + Sync + 'static) {
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let mut model = loom::model::Builder::new();
    let bound = preemptions.into();
    model.preemption_bound = bound;
    model.max_branches = 100_000;
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        program();
    });
    let runs = runs.load(Relaxed);
    match bound {
        None => println!("{name}: {runs} executions, all there are"),
        Some(bound) => println!("{name}: {runs} executions, all with at most {bound} preemptions"),
    }
    assert!(runs > 1, "there was nothing to explore");
}
