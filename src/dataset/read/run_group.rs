//! Elements at equal distances, and the bytes of an unfiltered chunk that are read for them.

use std::ops::Range;

use h5live_model::{ElementRun, StridedRuns};
use smallvec::SmallVec;

use crate::convert::ConvertError;
use crate::dataset::transfer::ElementSink;
use crate::types::ConversionContext;

/// Runs of an unfiltered chunk that are closer together than this are read as one (bytes).
pub(super) const MAX_READ_GAP_BYTES: usize = 4 << 10;
/// The longest such read (bytes).
const MAX_GROUP_READ_BYTES: usize = 1 << 20;
/// Elements that are gathered before they are converted (bytes).
const MAX_GATHER_BYTES: usize = 4 << 10;

/// Runs that are read together.
pub(super) struct RunGroup {
    runs: SmallVec<[StridedRuns; 8]>,
    /// Bytes of an element.
    size: usize,
    /// Most bytes between two runs.
    gap: usize,
    /// From the first to the last (bytes from the start of the chunk).
    bytes: Range<usize>,
}

impl RunGroup {
    /// A group of no runs. Those that come may be `gap` bytes apart.
    pub(crate) fn new(size: usize, gap: usize) -> Self {
        RunGroup { runs: SmallVec::new(), size, gap, bytes: 0..0 }
    }

    /// The bytes that are read for the runs (counted from the start of the chunk).
    pub(crate) fn bytes(&self) -> Range<usize> {
        self.bytes.clone()
    }

    /// The run, if there is just one.
    pub(super) fn single(&self) -> Option<ElementRun> {
        match self.runs[..] {
            [StridedRuns { first_run: run, count: 1, .. }] => Some(run),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// Adds runs if they are near enough to those that are here. They lie nowhere before them.
    pub(super) fn try_push(&mut self, runs: StridedRuns) -> bool {
        let bytes = byte_range_of_runs(&runs, self.size);
        let is_near = !self.is_empty()
            && bytes.start >= self.bytes.end
            && bytes.start - self.bytes.end <= self.gap
            && bytes.end - self.bytes.start <= MAX_GROUP_READ_BYTES;
        if is_near {
            self.bytes.end = bytes.end;
            self.runs.push(runs);
        }
        is_near
    }

    /// Adds the first runs.
    pub(super) fn push(&mut self, runs: StridedRuns) {
        self.bytes = byte_range_of_runs(&runs, self.size);
        self.runs.push(runs);
    }

    /// Puts the elements of the runs into their places. `bytes` were read for them; `base` is the first place.
    pub(super) fn put_elements<S: ElementSink>(
        &self,
        bytes: &[u8],
        base: usize,
        sink: &mut S,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        self.runs.iter().try_for_each(|runs| {
            let from = runs.first_run.offset_in_chunk as usize * self.size - self.bytes.start;
            put_runs(runs, &bytes[from..], self.size, base, sink, context)
        })
    }
}

/// Runs cut into such as can be read at once, or into single ones if they are far apart.
pub(super) fn split_distant(runs: StridedRuns, size: usize, gap: usize) -> impl Iterator<Item = StridedRuns> {
    let (len, stride) = (runs.first_run.len as usize * size, (runs.stride_in_chunk as usize).saturating_mul(size));
    let max_count = match stride - len <= gap {
        true => MAX_GROUP_READ_BYTES.saturating_sub(len) / stride + 1,
        false => 1,
    };
    split_evenly(runs, max_count as u64)
}

/// Runs cut into groups of so many.
pub(super) fn split_evenly(runs: StridedRuns, max_count: u64) -> impl Iterator<Item = StridedRuns> {
    (0..runs.count).step_by(max_count as usize).map(move |n| {
        let run = ElementRun {
            offset_in_chunk: runs.first_run.offset_in_chunk + n * runs.stride_in_chunk,
            offset_in_selection: runs.first_run.offset_in_selection + n * runs.stride_in_selection,
            ..runs.first_run
        };
        StridedRuns { first_run: run, count: (runs.count - n).min(max_count), ..runs }
    })
}

/// From the first to the last of runs (bytes from the start of the chunk).
#[inline]
fn byte_range_of_runs(runs: &StridedRuns, size: usize) -> Range<usize> {
    let last = (runs.count - 1) * runs.stride_in_chunk + runs.first_run.len;
    let start = runs.first_run.offset_in_chunk as usize * size;
    start..start + last as usize * size
}

/// Puts the elements of runs into their places. `bytes` begin with the first run; `base` is the first place.
pub(super) fn put_runs<S: ElementSink>(
    runs: &StridedRuns,
    bytes: &[u8],
    size: usize,
    base: usize,
    sink: &mut S,
    context: ConversionContext<'_>,
) -> Result<(), ConvertError> {
    let place = runs.first_run.offset_in_selection as usize - base;
    let (len, count) = (runs.first_run.len as usize, runs.count as usize);
    if count == 1 {
        return sink.put_elements(place..place + len, &bytes[..len * size], context);
    }
    let (from_stride, place_stride) = (runs.stride_in_chunk as usize * size, runs.stride_in_selection as usize);
    let places = place..place + (count - 1) * place_stride + len;
    if let Some(direct) = sink.direct_bytes_mut(places) {
        copy_strided(bytes, from_stride, direct, place_stride * size, len * size, count);
        return Ok(());
    }
    let max_group = MAX_GATHER_BYTES / (len * size);
    if max_group < 2 || place_stride != len {
        return (0..count).try_for_each(|n| {
            let (from, place) = (n * from_stride, place + n * place_stride);
            sink.put_elements(place..place + len, &bytes[from..from + len * size], context)
        });
    }
    let mut gathered = [0; MAX_GATHER_BYTES];
    (0..count).step_by(max_group).try_for_each(|n| {
        let count = max_group.min(count - n);
        let gathered = &mut gathered[..count * len * size];
        copy_strided(&bytes[n * from_stride..], from_stride, gathered, len * size, len * size, count);
        sink.put_elements(place + n * len..place + (n + count) * len, gathered, context)
    })
}

/// Copies `count` times `len` bytes, from places that are `from_stride` apart to such that are `to_stride` apart.
fn copy_strided(from: &[u8], from_stride: usize, to: &mut [u8], to_stride: usize, len: usize, count: usize) {
    match len {
        1 => copy_elements::<1>(from, from_stride, to, to_stride, count),
        2 => copy_elements::<2>(from, from_stride, to, to_stride, count),
        4 => copy_elements::<4>(from, from_stride, to, to_stride, count),
        8 => copy_elements::<8>(from, from_stride, to, to_stride, count),
        _ => {
            let pairs = from.chunks(from_stride).zip(to.chunks_mut(to_stride)).take(count);
            pairs.for_each(|(from, to)| to[..len].copy_from_slice(&from[..len]));
        }
    }
}

fn copy_elements<const N: usize>(from: &[u8], from_stride: usize, to: &mut [u8], to_stride: usize, count: usize) {
    let Some(before) = count.checked_sub(1) else { return };
    // Behind all but the last come more bytes, so that nothing is checked for each.
    let places = from.chunks_exact(from_stride).filter_map(|from| from.first_chunk::<N>()).take(before);
    if to_stride == N {
        to.as_chunks_mut().0.iter_mut().zip(places).for_each(|(to, from)| *to = *from);
    } else {
        let to = to.chunks_exact_mut(to_stride).filter_map(|to| to.first_chunk_mut::<N>());
        to.zip(places).for_each(|(to, from)| *to = *from);
    }
    let last = from.get(before * from_stride..).and_then(|from| from.first_chunk::<N>());
    let place = to.get_mut(before * to_stride..).and_then(|to| to.first_chunk_mut::<N>());
    if let (Some(from), Some(place)) = (last, place) {
        *place = *from;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn copies_what_one_element_after_the_other_would(
            (len, count) in (1usize..12, 1usize..40),
            (from_gap, to_gap) in (0usize..9, 0usize..9),
        ) {
            let (from_stride, to_stride) = (len + from_gap, len + to_gap);
            let from: Vec<u8> = (0..(count - 1) * from_stride + len).map(|i| i as u8 | 1).collect();
            let mut copied = vec![0; (count - 1) * to_stride + len];
            let mut want = copied.clone();
            for n in 0..count {
                let element = &from[n * from_stride..n * from_stride + len];
                want[n * to_stride..n * to_stride + len].copy_from_slice(element);
            }
            copy_strided(&from, from_stride, &mut copied, to_stride, len, count);
            prop_assert_eq!(copied, want);
        }

        #[test]
        fn near_runs_are_all_runs_and_fit_one_read(
            (size, len, count) in (1usize..9, 1u64..2000, 1u64..2000),
            gap in prop_oneof![0u64..100, 0u64..5000],
        ) {
            let runs = StridedRuns { first_run: ElementRun { offset_in_chunk: 7, offset_in_selection: 3, len }, count, stride_in_chunk: len + gap, stride_in_selection: len + 1 };
            let pieces: Vec<StridedRuns> = split_distant(runs, size, MAX_READ_GAP_BYTES).collect();
            prop_assert!(pieces.iter().flat_map(|piece| piece.runs()).eq(runs.runs()));
            let is_near = gap as usize * size <= MAX_READ_GAP_BYTES;
            prop_assert!(pieces.iter().all(|piece| piece.count == 1 || is_near && byte_range_of_runs(piece, size).len() <= MAX_GROUP_READ_BYTES));
            prop_assert!(!is_near || byte_range_of_runs(&runs, size).len() > MAX_GROUP_READ_BYTES || pieces.len() == 1);
        }
    }
}
