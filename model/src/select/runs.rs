//! Runs of elements: what a selection takes of a chunk, and where it goes.

use std::ops::Range;

/// Elements that are next to each other in a chunk and in the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementRun {
    /// From the start of the chunk (elements, row-major).
    pub at: u64,
    /// From the start of the destination (elements).
    pub dest: u64,
    /// Number of elements.
    pub len: u64,
}

/// Runs of the same length, equally far apart in a chunk, and in the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedRun {
    /// The first of them.
    pub run: ElementRun,
    /// Number of runs.
    pub count: u64,
    /// From the start of one to that of the next in the chunk (elements). Not less than a run has.
    pub at_stride: u64,
    /// The same in the destination.
    pub dest_stride: u64,
}

impl From<ElementRun> for StridedRun {
    fn from(run: ElementRun) -> Self {
        StridedRun { run, count: 1, at_stride: run.len, dest_stride: run.len }
    }
}

impl StridedRun {
    /// The places of all elements in the destination, if they follow each other there.
    pub fn contiguous_dest_range(&self) -> Option<Range<u64>> {
        let is_one_run = self.count == 1 || self.dest_stride == self.run.len;
        is_one_run.then(|| self.run.dest..self.run.dest + self.count * self.run.len)
    }

    /// The runs, in order.
    pub fn runs(self) -> impl Iterator<Item = ElementRun> {
        let StridedRun { run, count, at_stride, dest_stride: place_stride } = self;
        (0..count).map(move |n| ElementRun { at: run.at + n * at_stride, dest: run.dest + n * place_stride, ..run })
    }
}
