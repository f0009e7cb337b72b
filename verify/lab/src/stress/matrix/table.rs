//! The table of what came of each cell.

use std::fmt;

use serde_json::{Value, json};

use h5live_cli::counted::counted;
use h5live_cli::live::message::{Violation, WorkCounts};
use h5live_cli::live::writer_and_readers::WriterAndReaders;

use super::cell::{MatrixCell, name};

/// Violations of a cell that are shown before the rest is only counted.
const MAX_SHOWN_VIOLATIONS: usize = 5;

/// The results of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixRow {
    /// The cell.
    pub cell: MatrixCell,
    /// The results.
    pub outcome: CellOutcome,
}

/// The results of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum CellOutcome {
    /// There is no such dataset, and why.
    Impossible(&'static str),
    /// It was tried.
    Tested {
        /// The work of the writer: elements and flushes.
        written: WorkCounts,
        /// The work of all readers of h5live together: elements.
        read: WorkCounts,
        /// Their violations.
        violations: Vec<Violation>,
        /// The work of another program, if there was one.
        peer: Option<WorkCounts>,
        /// Its violations.
        peer_violations: Vec<Violation>,
    },
}

impl CellOutcome {
    /// The results of a process group after its end.
    pub fn tried(troupe: WriterAndReaders, alone: bool) -> CellOutcome {
        let mut read = WorkCounts::default();
        for work in troupe.reader_logs.iter().filter_map(|story| story.work) {
            read.new_rows += work.new_rows;
            read.reread_rows += work.reread_rows;
            read.refreshes_or_flushes += work.refreshes_or_flushes;
            read.opens += work.opens;
        }
        let peer = if alone { None } else { troupe.peer_log.work };
        let written = troupe.writer_work.unwrap_or_default();
        let (violations, peer_violations) = (troupe.violations, troupe.peer_violations);
        CellOutcome::Tested { written, read, violations, peer, peer_violations }
    }
}

impl MatrixRow {
    /// Whether nothing was found that must not be.
    pub fn is_clean(&self) -> bool {
        match &self.outcome {
            CellOutcome::Tested { violations, peer_violations, .. } => {
                violations.is_empty() && peer_violations.is_empty()
            }
            _ => true,
        }
    }

    /// The row for programs.
    pub fn json(&self) -> Value {
        let MatrixCell { index, work, filter, kind } = self.cell;
        let mut row = json!({
            "index": name(index),
            "work": name(work),
            "filter": name(filter),
            "type": name(kind),
        });
        let list = |violations: &[Violation]| -> Vec<Value> {
            violations.iter().map(|v| json!({ "invariant": v.invariant.code(), "detail": v.detail })).collect()
        };
        let more = match &self.outcome {
            CellOutcome::Impossible(why) => json!({ "no": why }),
            CellOutcome::Tested { written, read, violations, peer, peer_violations } => json!({
                "written": written.new_rows,
                "flushes": written.refreshes_or_flushes,
                "read": read.new_rows + read.reread_rows,
                "looks": read.refreshes_or_flushes,
                "violations": list(violations),
                "peer_read": peer.map(|work| work.new_rows + work.reread_rows),
                "peer_looks": peer.map(|work| work.refreshes_or_flushes),
                "peer_cannot": self.cell.libhdf5_unsupported(),
                "peer_errors": list(peer_violations),
            }),
        };
        if let (Value::Object(row), Value::Object(more)) = (&mut row, more) {
            row.extend(more);
        }
        row
    }
}

/// The head of the table.
pub fn head() -> String {
    let cell = "index             work        filter     type";
    format!(
        "{cell}   {:>10} {:>8} {:>12} {:>10}  {:>12} {:>6}",
        "written", "flushes", "read", "violations", "by peer", "errors"
    )
}

impl fmt::Display for MatrixRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatrixCell { index, work, filter, kind } = self.cell;
        write!(f, "{:<17} {:<11} {:<10} {:<5}", name(index), name(work), name(filter), name(kind))?;
        match &self.outcome {
            CellOutcome::Impossible(why) => write!(f, "   - {why}"),
            CellOutcome::Tested { written, read, violations, peer, peer_violations } => {
                let elements = read.new_rows + read.reread_rows;
                write!(f, "  {:>10} {:>8} {elements:>12}", written.new_rows, written.refreshes_or_flushes)?;
                write!(f, " {:>10}", violations.len())?;
                match (peer, self.cell.libhdf5_unsupported()) {
                    (Some(work), _) => {
                        write!(f, "  {:>12} {:>6}", work.new_rows + work.reread_rows, peer_violations.len())?
                    }
                    (None, Some(_)) => write!(f, "  {:>12}", "cannot")?,
                    (None, None) => write!(f, "  {:>12} {:>6}", "-", peer_violations.len())?,
                }
                for (who, violations) in [("", violations), ("the peer: ", peer_violations)] {
                    for violation in violations.iter().take(MAX_SHOWN_VIOLATIONS) {
                        write!(f, "\n    {who}{}: {}", violation.invariant.code(), violation.detail)?;
                    }
                    if violations.len() > MAX_SHOWN_VIOLATIONS {
                        write!(f, "\n    {who}... and {} more", violations.len() - MAX_SHOWN_VIOLATIONS)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// All rows in one line.
pub fn sum(rows: &[MatrixRow]) -> String {
    let (mut tried, mut nonsense, mut violations, mut errors) = (0, 0, 0, 0);
    for row in rows {
        match &row.outcome {
            CellOutcome::Impossible(_) => nonsense += 1,
            CellOutcome::Tested { violations: ours, peer_violations: theirs, .. } => {
                tried += 1;
                violations += ours.len();
                errors += theirs.len();
            }
        }
    }
    let (cells, violations, errors) =
        (counted(tried, "cell"), counted(violations, "violation"), counted(errors, "error"));
    format!("{cells}: {violations}, {errors} of the peer; without sense: {nonsense}")
}
