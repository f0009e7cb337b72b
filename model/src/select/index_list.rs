//! A list of indices of one dimension, in any order.

use std::ops::Range;

/// Indices, ascending, and where the destination has each of them. An index that was given several times is there as
/// often, in the order given.
#[derive(Debug)]
pub(super) struct IndexList {
    indices: Vec<u64>,
    /// The position of each index in the list as it was given.
    places: Vec<u64>,
    /// Where the next run begins, for each run: indices that follow each other by one, and whose places do, too.
    run_ends: Vec<u64>,
}

impl IndexList {
    /// The list of these indices.
    pub(super) fn new(given: &[u64]) -> Self {
        let mut sorted: Vec<(u64, u64)> = given.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let is_next = |a: &(u64, u64), b: &(u64, u64)| a.0 + 1 == b.0 && a.1 + 1 == b.1;
        let runs = sorted.chunk_by(is_next).map(|run| run.len() as u64);
        let run_ends = runs.scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        let run_ends = run_ends.collect();
        let (indices, places) = sorted.into_iter().unzip();
        IndexList { indices, places, run_ends }
    }

    /// The index at position `p` of the ascending ones.
    pub(super) fn index_at(&self, p: u64) -> u64 {
        self.indices[p as usize]
    }

    /// The position in the list as it was given.
    pub(super) fn place_of(&self, p: u64) -> u64 {
        self.places[p as usize]
    }

    /// The number of indices below `index`.
    pub(super) fn count_before(&self, index: u64) -> u64 {
        self.indices.partition_point(|at| *at < index) as u64
    }

    /// The number of positions from `p` to the end of its run.
    pub(super) fn left_in_run(&self, p: u64) -> u64 {
        let run = self.run_ends.partition_point(|end| *end <= p);
        self.run_ends.get(run).map_or(0, |end| end - p)
    }

    /// The number of indices at some positions, each counted once.
    pub(super) fn distinct_in(&self, positions: Range<u64>) -> u64 {
        let indices = self.indices.get(positions.start as usize..positions.end as usize).unwrap_or_default();
        indices.chunk_by(|a, b| a == b).count() as u64
    }
}
