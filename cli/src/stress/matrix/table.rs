//! The table of what came of each cell.

use std::fmt;

use serde_json::{Value, json};

use crate::live::message::{Violation, Work};
use crate::live::troupe::Troupe;

use super::cell::{Cell, name};

/// Violations of a cell that are shown before the rest is only counted.
const SHOWN: usize = 5;

/// What came of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The cell.
    pub cell: Cell,
    /// What came of it.
    pub told: Told,
}

/// What came of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// There is no such dataset, and why.
    Nonsense(&'static str),
    /// It was tried.
    Tried {
        /// What the writer did: elements and flushes.
        written: Work,
        /// What readers of h5live did together: elements.
        read: Work,
        /// What they met that must never be.
        violations: Vec<Violation>,
        /// What another program did, if there was one.
        peer: Option<Work>,
        /// What it met that must not be.
        peer_violations: Vec<Violation>,
    },
}

impl Told {
    /// What a troupe has to tell after its end.
    pub fn tried(troupe: Troupe, alone: bool) -> Told {
        let mut read = Work::default();
        for work in troupe.stories.iter().filter_map(|story| story.work) {
            read.rows += work.rows;
            read.rereads += work.rereads;
            read.refreshes += work.refreshes;
            read.opens += work.opens;
        }
        let peer = if alone { None } else { troupe.peer.work };
        let written = troupe.written.unwrap_or_default();
        let (violations, peer_violations) = (troupe.violations, troupe.peer_violations);
        Told::Tried { written, read, violations, peer, peer_violations }
    }
}

impl Row {
    /// Whether nothing was found that must not be.
    pub fn is_clean(&self) -> bool {
        match &self.told {
            Told::Tried { violations, peer_violations, .. } => violations.is_empty() && peer_violations.is_empty(),
            _ => true,
        }
    }

    /// The row for programs.
    pub fn json(&self) -> Value {
        let Cell { index, work, filter, kind } = self.cell;
        let mut row = json!({
            "index": name(index),
            "work": name(work),
            "filter": name(filter),
            "type": name(kind),
        });
        let list = |violations: &[Violation]| -> Vec<Value> {
            violations.iter().map(|v| json!({ "invariant": v.invariant.name(), "detail": v.detail })).collect()
        };
        let more = match &self.told {
            Told::Nonsense(why) => json!({ "no": why }),
            Told::Tried { written, read, violations, peer, peer_violations } => json!({
                "written": written.rows,
                "flushes": written.refreshes,
                "read": read.rows + read.rereads,
                "looks": read.refreshes,
                "violations": list(violations),
                "peer_read": peer.map(|work| work.rows + work.rereads),
                "peer_looks": peer.map(|work| work.refreshes),
                "peer_cannot": self.cell.beyond_libhdf5(),
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

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { index, work, filter, kind } = self.cell;
        write!(f, "{:<17} {:<11} {:<10} {:<5}", name(index), name(work), name(filter), name(kind))?;
        match &self.told {
            Told::Nonsense(why) => write!(f, "   - {why}"),
            Told::Tried { written, read, violations, peer, peer_violations } => {
                let elements = read.rows + read.rereads;
                write!(f, "  {:>10} {:>8} {elements:>12}", written.rows, written.refreshes)?;
                write!(f, " {:>10}", violations.len())?;
                match (peer, self.cell.beyond_libhdf5()) {
                    (Some(work), _) => write!(f, "  {:>12} {:>6}", work.rows + work.rereads, peer_violations.len())?,
                    (None, Some(_)) => write!(f, "  {:>12}", "cannot")?,
                    (None, None) => write!(f, "  {:>12} {:>6}", "-", peer_violations.len())?,
                }
                for (who, violations) in [("", violations), ("the peer: ", peer_violations)] {
                    for violation in violations.iter().take(SHOWN) {
                        write!(f, "\n    {who}{}: {}", violation.invariant.name(), violation.detail)?;
                    }
                    if violations.len() > SHOWN {
                        write!(f, "\n    {who}... and {} more", violations.len() - SHOWN)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// All rows in one line.
pub fn sum(rows: &[Row]) -> String {
    let (mut tried, mut nonsense, mut violations, mut errors) = (0, 0, 0, 0);
    for row in rows {
        match &row.told {
            Told::Nonsense(_) => nonsense += 1,
            Told::Tried { violations: ours, peer_violations: theirs, .. } => {
                tried += 1;
                violations += ours.len();
                errors += theirs.len();
            }
        }
    }
    format!("{tried} cells: {violations} violations, {errors} errors of the peer; {nonsense} make no sense")
}
