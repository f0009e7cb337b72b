//! Boxes of elements: what two of them share, run by run.

use smallvec::SmallVec;

use crate::entry::DimVec;

/// A box of elements: its first one, and one past its last one (`[rank]` each).
#[derive(Debug, Clone, Copy)]
pub struct BoxRange<'a> {
    /// The first element.
    pub start: &'a [u64],
    /// One past the last one.
    pub end: &'a [u64],
}

/// A run of elements that two boxes share: how many there are, and where they are in each (elements, row-major).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntersectionRun {
    /// Where it begins in the first box.
    pub offset_in_first: u64,
    /// Where it begins in the second box.
    pub offset_in_second: u64,
    /// Elements.
    pub len: u64,
}

impl BoxRange<'_> {
    fn side(&self, dim: usize) -> u64 {
        self.end[dim].saturating_sub(self.start[dim])
    }

    /// The number of elements; `None` if it does not fit 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        (0..self.start.len()).try_fold(1u64, |n, dim| n.checked_mul(self.side(dim)))
    }

    /// How far apart neighbours along each dimension are (elements). Saturates.
    pub fn strides(&self) -> DimVec {
        let mut strides = DimVec::from_elem(1, self.start.len());
        for dim in (1..strides.len()).rev() {
            strides[dim - 1] = strides[dim].saturating_mul(self.side(dim));
        }
        strides
    }

    /// Cuts the box along its first dimension with more than one element, into slabs of at most so many bytes, or of one
    /// row if a row has more. Each has its first element, one past its last one, and how many bytes it has. The whole box
    /// has `total_bytes`.
    pub fn slabs(&self, total_bytes: u64, max_slab_bytes: u64) -> impl Iterator<Item = (DimVec, DimVec, u64)> {
        let (start, end) = (DimVec::from_slice(self.start), DimVec::from_slice(self.end));
        let cut = (0..start.len()).find(|dim| self.side(*dim) > 1).filter(|_| total_bytes > max_slab_bytes);
        let rows = cut.map_or(1, |dim| self.side(dim));
        let row_bytes = total_bytes / rows;
        let step = (max_slab_bytes / row_bytes.max(1)).max(1);
        (0..rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)).map(move |first| {
            let (mut low, mut high, slab_rows) = (start.clone(), end.clone(), step.min(rows - first));
            if let Some(dim) = cut {
                low[dim] += first;
                high[dim] = low[dim] + slab_rows;
            }
            (low, high, slab_rows * row_bytes)
        })
    }

    /// Whether this box and another one share an element.
    pub fn intersects(&self, other: &BoxRange<'_>) -> bool {
        let sides = self.start.iter().zip(self.end).zip(other.start.iter().zip(other.end));
        sides.into_iter().all(|((a, b), (start, end))| a.max(start) < b.min(end))
    }

    /// Whether all elements of another box are in this one.
    pub fn contains(&self, other: &BoxRange<'_>) -> bool {
        let sides = self.start.iter().zip(self.end).zip(other.start.iter().zip(other.end));
        sides.into_iter().all(|((a, b), (start, end))| a <= start && b >= end)
    }

    /// The elements that this box and another one share; `None` if there are none.
    pub fn intersection(&self, other: &BoxRange<'_>) -> Option<IntersectionRuns> {
        if !self.intersects(other) {
            return None;
        }
        let mut first = IntersectionRun { offset_in_first: 0, offset_in_second: 0, len: 1 };
        let (mut counts, mut strides) = (DimVec::new(), SmallVec::<[(u64, u64); 4]>::new());
        // Dimensions are part of the run as long as both boxes have all of those behind them.
        let (mut is_run, mut stride) = (true, (1u64, 1u64));
        for dim in (0..self.start.len()).rev() {
            let (low, sides) = (self.start[dim].max(other.start[dim]), (self.side(dim), other.side(dim)));
            let count = self.end[dim].min(other.end[dim]) - low;
            let (ours, theirs) = (low - self.start[dim], low - other.start[dim]);
            first.offset_in_first = first.offset_in_first.saturating_add(ours.saturating_mul(stride.0));
            first.offset_in_second = first.offset_in_second.saturating_add(theirs.saturating_mul(stride.1));
            if is_run {
                first.len = first.len.saturating_mul(count);
                is_run = sides == (count, count);
            } else {
                counts.push(count);
                strides.push(stride);
            }
            stride = (stride.0.saturating_mul(sides.0), stride.1.saturating_mul(sides.1));
        }
        counts.reverse();
        strides.reverse();
        Some(IntersectionRuns { first, counts, strides })
    }
}

/// What two boxes share.
#[derive(Debug)]
pub struct IntersectionRuns {
    /// The first run.
    first: IntersectionRun,
    /// How many runs there are along each of the dimensions before that of the runs.
    counts: DimVec,
    /// How far apart neighbours along these dimensions are in both boxes (elements).
    strides: SmallVec<[(u64, u64); 4]>,
}

impl IntersectionRuns {
    /// Runs of equal length that are one after the other along a dimension: the first one, how many there are, and how far
    /// apart neighbours are in both boxes (elements).
    pub fn strided_runs(&self) -> impl Iterator<Item = (IntersectionRun, u64, (u64, u64))> {
        let (count, stride) = match (self.counts.last(), self.strides.last()) {
            (Some(count), Some(stride)) => (*count, *stride),
            _ => (1, (self.first.len, self.first.len)),
        };
        let outer = self.counts.len().saturating_sub(1);
        let next = move |mut at: DimVec| {
            // As an odometer counts.
            let dim = (0..outer).rev().find(|dim| at[*dim] + 1 < self.counts[*dim])?;
            at[dim] += 1;
            at[dim + 1..].fill(0);
            Some(at)
        };
        std::iter::successors(Some(DimVec::from_elem(0, outer)), move |at| next(at.clone())).map(move |at| {
            let steps = || at.iter().zip(&self.strides);
            let first = self.first.offset_in_first + steps().map(|(at, (stride, _))| at * stride).sum::<u64>();
            let second = self.first.offset_in_second + steps().map(|(at, (_, stride))| at * stride).sum::<u64>();
            (IntersectionRun { offset_in_first: first, offset_in_second: second, len: self.first.len }, count, stride)
        })
    }

    /// Calls `each` with the runs, in order.
    pub fn for_each_run(&self, mut each: impl FnMut(IntersectionRun)) {
        for (run, count, (first, second)) in self.strided_runs() {
            (0..count).for_each(|n| {
                each(IntersectionRun {
                    offset_in_first: run.offset_in_first + n * first,
                    offset_in_second: run.offset_in_second + n * second,
                    ..run
                })
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The place of an element in a box.
    fn place(range: &BoxRange<'_>, at: &[u64]) -> u64 {
        (0..at.len()).fold(0, |place, dim| place * range.side(dim) + (at[dim] - range.start[dim]))
    }

    proptest! {
        #[test]
        fn the_runs_are_the_elements_that_both_have(
            rank in 0usize..4,
            numbers in prop::collection::vec(0u64..5, 12),
        ) {
            let part = |from: usize| &numbers[from..from + rank];
            let end = |start: &[u64], size: &[u64]| -> Vec<u64> { start.iter().zip(size).map(|(a, b)| a + b).collect() };
            let ends = [end(part(0), part(3)), end(part(6), part(9))];
            let ours = BoxRange { start: part(0), end: &ends[0] };
            let theirs = BoxRange { start: part(6), end: &ends[1] };
            let mut found = Vec::new();
            if let Some(shared) = ours.intersection(&theirs) {
                shared.for_each_run(|run| found.extend((0..run.len).map(|n| (run.offset_in_first + n, run.offset_in_second + n))));
            }
            let mut want = Vec::new();
            for number in 0..10u64.pow(rank as u32) {
                let at: Vec<u64> = (0..rank).rev().map(|dim| number / 10u64.pow(dim as u32) % 10).collect();
                let inside = |range: &BoxRange<'_>| (0..rank).all(|dim| (range.start[dim]..range.end[dim]).contains(&at[dim]));
                if inside(&ours) && inside(&theirs) {
                    want.push((place(&ours, &at), place(&theirs, &at)));
                }
            }
            prop_assert_eq!(found, want);
        }
    }
}
