//! The common options of all cells.

use std::time::Duration;

use super::cell::{ChangeKind, MatrixCell, name};

/// The common options of all cells.
#[derive(Debug, Clone, Copy)]
pub struct MatrixTerms {
    /// Processes that read.
    pub readers: usize,
    /// How long a cell takes.
    pub length: Duration,
    /// The seed from which all values follow.
    pub seed: u64,
    /// Flushes that the writer attempts in a second; where it is not said, what suits the cell.
    pub rate: Option<f64>,
    /// How long readers are stopped again and again.
    pub stall: Option<Duration>,
}

impl MatrixTerms {
    /// Flushes that the writer of a cell attempts in a second.
    pub fn rate(&self, cell: MatrixCell) -> f64 {
        self.rate.unwrap_or(match cell.work {
            ChangeKind::Grow => 100.0,
            ChangeKind::Links => 50.0,
            _ => 500.0,
        })
    }

    /// The time after which a reader opens the file again, because a late reader must see the right state, too.
    pub fn reopen(&self) -> Duration {
        (self.length / 3).min(Duration::from_secs(1)).max(self.stall.unwrap_or_default() * 2)
    }
}

/// The arguments of this program for its part in a cell.
pub fn arguments(role: &str, cell: MatrixCell, terms: &MatrixTerms, rate: f64) -> Vec<String> {
    let choices = ["--index", &name(cell.index), "--work", &name(cell.work), "--filter", &name(cell.filter)];
    let seconds = terms.length.as_secs_f64().to_string();
    let more = ["--type", &name(cell.kind), "--seed", &terms.seed.to_string(), "--rate", &rate.to_string()];
    let all = ["stress", role].into_iter().chain(choices).chain(more).chain(["--seconds", &seconds]);
    all.map(str::to_owned).collect()
}
