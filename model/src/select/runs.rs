//! Runs of elements: what a selection takes of a chunk, and where it goes.

use std::ops::Range;

/// Elements that are next to each other in a chunk and in the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementRun {
    /// From the start of the chunk (elements, row-major).
    pub offset_in_chunk: u64,
    /// From the start of the destination (elements).
    pub offset_in_selection: u64,
    /// Number of elements.
    pub len: u64,
}

/// Runs of the same length, equally far apart in a chunk, and in the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedRuns {
    /// The first of them.
    pub first_run: ElementRun,
    /// Number of runs.
    pub count: u64,
    /// From the start of one to that of the next in the chunk (elements). Not less than a run has.
    pub stride_in_chunk: u64,
    /// The same in the destination.
    pub stride_in_selection: u64,
}

impl From<ElementRun> for StridedRuns {
    fn from(run: ElementRun) -> Self {
        StridedRuns { first_run: run, count: 1, stride_in_chunk: run.len, stride_in_selection: run.len }
    }
}

impl StridedRuns {
    /// The places of all elements in the destination, if they follow each other there.
    pub fn contiguous_selection_range(&self) -> Option<Range<u64>> {
        let is_one_run = self.count == 1 || self.stride_in_selection == self.first_run.len;
        is_one_run.then(|| {
            self.first_run.offset_in_selection..self.first_run.offset_in_selection + self.count * self.first_run.len
        })
    }

    /// The runs, in order.
    pub fn runs(self) -> impl Iterator<Item = ElementRun> {
        let StridedRuns { first_run: run, count, stride_in_chunk: at_stride, stride_in_selection: place_stride } = self;
        (0..count).map(move |n| ElementRun {
            offset_in_chunk: run.offset_in_chunk + n * at_stride,
            offset_in_selection: run.offset_in_selection + n * place_stride,
            ..run
        })
    }
}
