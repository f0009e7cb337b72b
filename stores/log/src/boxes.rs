//! Boxes of elements: what two of them share, run by run.

use crate::entry::Dims;

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
pub struct SharedRun {
    /// Where it begins in the first box.
    pub first: u64,
    /// Where it begins in the second box.
    pub second: u64,
    /// Elements.
    pub len: u64,
}

impl BoxRange<'_> {
    fn side(&self, dim: usize) -> u64 {
        self.end[dim].saturating_sub(self.start[dim])
    }

    /// The number of elements; `None` if it does not fit 64 bits.
    pub fn elements(&self) -> Option<u64> {
        (0..self.start.len()).try_fold(1u64, |n, dim| n.checked_mul(self.side(dim)))
    }

    /// How far apart neighbours along each dimension are (elements). Saturates.
    fn strides(&self) -> Dims {
        let mut strides = Dims::from_elem(1, self.start.len());
        for dim in (1..strides.len()).rev() {
            strides[dim - 1] = strides[dim].saturating_mul(self.side(dim));
        }
        strides
    }

    /// Calls `each` with the runs of elements that this box and another one share, in order.
    pub fn for_each_shared(&self, other: &BoxRange<'_>, mut each: impl FnMut(SharedRun)) {
        let rank = self.start.len();
        let low: Dims = self.start.iter().zip(other.start).map(|(a, b)| *a.max(b)).collect();
        let high: Dims = self.end.iter().zip(other.end).map(|(a, b)| *a.min(b)).collect();
        if low.iter().zip(&high).any(|(low, high)| low >= high) {
            return;
        }
        // Dimensions from `inner` on are one run: both boxes have all of those behind it.
        let is_whole = |dim: usize| high[dim] - low[dim] == self.side(dim) && high[dim] - low[dim] == other.side(dim);
        let mut inner = rank.saturating_sub(1);
        while inner > 0 && is_whole(inner) {
            inner -= 1;
        }
        let len = (inner..rank).map(|dim| high[dim] - low[dim]).product();
        let (ours, theirs) = (self.strides(), other.strides());
        let mut at = low.clone();
        loop {
            let offset = |start: &[u64], strides: &[u64]| -> u64 {
                at.iter().zip(start).zip(strides).map(|((at, start), stride)| (at - start) * stride).sum()
            };
            each(SharedRun { first: offset(self.start, &ours), second: offset(other.start, &theirs), len });
            // The next one, as an odometer counts.
            let Some(dim) = (0..inner).rev().find(|dim| at[*dim] + 1 < high[*dim]) else { return };
            at[dim] += 1;
            at[dim + 1..inner].copy_from_slice(&low[dim + 1..inner]);
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
            ours.for_each_shared(&theirs, |run| {
                found.extend((0..run.len).map(|n| (run.first + n, run.second + n)));
            });
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
