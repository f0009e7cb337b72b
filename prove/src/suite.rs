//! What is explored: workloads, and how readers look at each.

mod cases;
mod changes;

use std::sync::Arc;

use h5live_checker::schedule::{Bounds, Counterexample, Explored, PAGE, Tearing, Verdict, View, explore, shortest};

pub use self::cases::CASES;
use crate::{Follower, Look, Setup, Workload, announced, attributes, links, ordered, passing, strings};

/// Records a writer that breaks the flush dependencies of some kinds.
pub type Record = fn(Setup) -> Workload;

/// A workload by name.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Records it, with the flush dependencies of some kinds broken.
    pub record: Record,
    /// Who reads meanwhile.
    pub readers: &'static [Reader],
    /// Passes over the whole, every write being seen whole.
    pub passes: usize,
    /// What readers see when writes are torn, and in how many passes.
    pub torn: Option<(Record, usize)>,
    /// What readers see when a writer may die between two pages of a write, and in how many passes.
    pub cut: Option<(Record, usize)>,
}

impl Case {
    /// Whether there is something to be looked for after a crash.
    pub fn may_crash(&self) -> bool {
        !matches!(self.readers, [Reader::Announced])
    }
}

/// A reader by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Of rows.
    Rows(Look),
    /// Of attributes.
    Attributes,
    /// Of links, and what they lead to.
    Links,
    /// Of rows of variable length.
    Strings,
    /// Of datasets that come and go.
    Passing,
    /// Of the extents of two datasets, of which one is published before the other.
    Ordered,
    /// Of what the superblock announces, and of where chunks are.
    Announced,
}

impl Reader {
    /// Calls `run` with this reader of a workload.
    pub fn with<R>(
        self,
        workload: &Workload,
        passes: usize,
        run: impl FnOnce(&(dyn Fn(&Arc<View>) -> Verdict + Sync)) -> R,
    ) -> R {
        match self {
            Reader::Rows(look) => {
                let follower = Follower::new(workload, look, passes);
                run(&|view: &Arc<View>| follower.run(view))
            }
            Reader::Attributes => run(&attributes(&workload.trace, passes)),
            Reader::Links => run(&links(&workload.trace, passes)),
            Reader::Ordered => run(&ordered(passes)),
            Reader::Passing => run(&passing(passes)),
            Reader::Strings => run(&strings(&workload.trace, passes)),
            Reader::Announced => run(&|view: &Arc<View>| announced(view, passes)),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Reader::Rows(Look::Rows) => "rows",
            Reader::Rows(Look::IndexFirst) => "index first",
            Reader::Rows(Look::Beyond) => "beyond the extent",
            Reader::Attributes => "attributes",
            Reader::Links => "links",
            Reader::Strings => "texts",
            Reader::Ordered => "order",
            Reader::Passing => "coming and going",
            Reader::Announced => "announced end",
        }
    }

    /// Explores all schedules of this reader.
    pub fn explore(self, workload: &Workload, passes: usize, bounds: &Bounds) -> Explored {
        let bounds = &Bounds { start: workload.start, ..bounds.clone() };
        self.with(workload, passes, |reader| explore(&workload.trace, bounds, &reader))
    }

    /// Looks for the shortest counterexample.
    pub fn shortest(self, workload: &Workload, passes: usize, bounds: &Bounds) -> (Option<Counterexample>, Explored) {
        let bounds = &Bounds { start: workload.start, ..bounds.clone() };
        self.with(workload, passes, |reader| shortest(&workload.trace, bounds, &reader))
    }
}

/// Writes cut off between two pages, by the death of the writer if need be.
pub fn page_tears() -> Tearing {
    Tearing { lasting: true, ..Tearing::at(PAGE as u32) }
}

/// Writes seen in part, cut at multiples of 8 bytes.
pub fn small_tears() -> Tearing {
    Tearing::at(8)
}
