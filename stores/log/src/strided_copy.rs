//! Runs of bytes that are copied from one place to another.

use std::ops::Range;

/// Runs of equal length at equal distances: where they are, and where they go (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedCopy {
    /// Where the first one begins.
    pub from: u64,
    /// From one to the next where they are.
    pub from_stride: u64,
    /// Where the first one goes in the buffer.
    pub to: u64,
    /// From one to the next in the buffer; not less than the length if there are several.
    pub to_stride: u64,
    /// Bytes of each.
    pub run_len: u64,
    /// How many there are; at least one.
    pub count: u64,
}

impl StridedCopy {
    /// Behind the last run where they are.
    pub fn source_end(&self) -> u64 {
        self.from + (self.count - 1) * self.from_stride + self.run_len
    }

    /// The runs from number `first` on, so many.
    pub fn part(&self, first: u64, count: u64) -> Self {
        StridedCopy { from: self.from + first * self.from_stride, to: self.to + first * self.to_stride, count, ..*self }
    }

    /// Cuts the runs into such as are at most `max_gap` bytes from each other where they are, and have at most `max_len`
    /// bytes with what is between them, unless it is a single run.
    pub fn cut_by_gaps(self, max_gap: u64, max_len: u64) -> impl Iterator<Item = StridedCopy> {
        let is_near = self.from_stride >= self.run_len && self.from_stride - self.run_len <= max_gap;
        let at_once = if is_near { (max_len / self.from_stride.max(1)).max(1) } else { 1 };
        (0..self.count).step_by(at_once as usize).map(move |n| self.part(n, at_once.min(self.count - n)))
    }

    /// Calls `each` with what of the runs goes to a range of the buffer.
    pub fn for_each_in_buffer_range(&self, range: &Range<u64>, mut each: impl FnMut(StridedCopy)) {
        let stride = if self.count > 1 { self.to_stride.max(1) } else { self.run_len.max(1) };
        // The first run that ends in the range or behind it, and the first one that begins behind it.
        let mut first = range.start.checked_sub(self.to + self.run_len).map_or(0, |before| before / stride + 1);
        let mut end = range.end.saturating_sub(self.to).div_ceil(stride).min(self.count);
        let mut cut = |number: u64| {
            let run = self.part(number, 1);
            let (start, end) = (run.to.max(range.start), (run.to + run.run_len).min(range.end));
            if start < end {
                each(StridedCopy { from: run.from + (start - run.to), to: start, run_len: end - start, ..run });
            }
        };
        if first < end && self.to + first * stride < range.start {
            cut(first);
            first += 1;
        }
        if first < end && self.to + (end - 1) * stride + self.run_len > range.end {
            end -= 1;
            cut(end);
        }
        if first < end {
            each(self.part(first, end - first));
        }
    }
}

/// Copies runs between buffers that begin with the first of them.
pub fn copy_runs_ignoring_starts(from: &[u8], to: &mut [u8], runs: &StridedCopy) {
    let (len, count) = (runs.run_len as usize, runs.count as usize);
    let strides = (runs.from_stride as usize, runs.to_stride as usize);
    match len {
        0 => {}
        _ if count == 1 => to[..len].copy_from_slice(&from[..len]),
        1 => copy_elements::<1>(from, to, strides, count),
        2 => copy_elements::<2>(from, to, strides, count),
        4 => copy_elements::<4>(from, to, strides, count),
        8 => copy_elements::<8>(from, to, strides, count),
        16 => copy_elements::<16>(from, to, strides, count),
        _ => {
            let pairs = from.chunks(strides.0).zip(to.chunks_mut(strides.1)).take(count);
            pairs.for_each(|(from, to)| to[..len].copy_from_slice(&from[..len]));
        }
    }
}

/// Copies elements whose size the compiler knows.
fn copy_elements<const N: usize>(from: &[u8], to: &mut [u8], (from_stride, to_stride): (usize, usize), count: usize) {
    let (mut at, mut place) = (0, 0);
    for _ in 0..count {
        let from = from.get(at..).and_then(|rest| rest.first_chunk::<N>());
        let to = to.get_mut(place..).and_then(|rest| rest.first_chunk_mut::<N>());
        let (Some(from), Some(to)) = (from, to) else { return };
        *to = *from;
        (at, place) = (at + from_stride, place + to_stride);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_of_a_buffer_get_what_all_of_it_gets(
            (to, len, gap, count) in (0u64..50, 1u64..20, 0u64..20, 1u64..8),
            cuts in prop::collection::vec(0u64..400, 0..6),
        ) {
            let runs = StridedCopy { from: 7, from_stride: len + 3, to, to_stride: len + gap, run_len: len, count };
            let from: Vec<u8> = (0..300).map(|at| at as u8 | 1).collect();
            let mut whole = vec![0; 400];
            copy_runs_ignoring_starts(&from[7..], &mut whole[to as usize..], &runs);
            let mut cuts = [cuts, vec![0, 400]].concat();
            cuts.sort_unstable();
            let mut parts = vec![0; 400];
            for range in cuts.windows(2).map(|cut| cut[0]..cut[1]) {
                let part = &mut parts[range.start as usize..range.end as usize];
                runs.for_each_in_buffer_range(&range, |runs| {
                    copy_runs_ignoring_starts(&from[runs.from as usize..], &mut part[(runs.to - range.start) as usize..], &runs);
                });
            }
            prop_assert_eq!(parts, whole);
        }
    }
}
