//! Single elements.

use std::cmp::Ordering;

use super::{ElementRun, SelectDims, row_major_strides};
use crate::{ChunkCoord, ChunkGrid};

/// A point among all of a selection, sorted by chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChunkPoint {
    /// The number of the chunk: in the order of their coordinates.
    chunk: u64,
    /// From the start of the chunk (elements, row-major).
    at: u64,
    /// The number of the point in the order given.
    place: usize,
}

/// The points of an extent, chunk by chunk, within a chunk as they lie there; those at one place in the order given.
pub(super) fn sort_by_chunk(points: &[SelectDims], grid: &ChunkGrid, extent: &[u64]) -> Vec<ChunkPoint> {
    let dims = grid.chunk_dims();
    let (counts, within) = (grid.chunk_counts(extent), row_major_strides(dims));
    let (counts, within) = (&counts[..], &within[..]);
    let countable = counts.iter().try_fold(1u64, |n, count| n.checked_mul(*count)).is_some();
    let point = |(place, point): (usize, &SelectDims)| {
        let (mut chunk, mut at) = (0, 0);
        for (((index, dim), count), stride) in point.iter().zip(dims).zip(counts).zip(within) {
            let scaled = index / dim;
            at += (index - scaled * dim) * stride;
            chunk = if countable { chunk * count + scaled } else { 0 };
        }
        ChunkPoint { chunk, at, place }
    };
    let mut order: Vec<ChunkPoint> = points.iter().enumerate().map(point).collect();
    if !countable {
        let mut chunks: Vec<ChunkCoord> = points.iter().map(|point| grid.chunk_of(point)).collect();
        chunks.sort_unstable();
        chunks.dedup();
        for point in &mut order {
            point.chunk = chunks.partition_point(|chunk| *chunk < grid.chunk_of(&points[point.place])) as u64;
        }
    }
    order.sort_unstable();
    order
}

pub(super) fn chunks_of_points<'a>(
    points: &'a [SelectDims],
    order: &'a [ChunkPoint],
    grid: &'a ChunkGrid,
) -> impl Iterator<Item = ChunkCoord> + 'a {
    order
        .chunk_by(|a, b| a.chunk == b.chunk)
        .filter_map(|same| same.first())
        .map(|first| grid.chunk_of(&points[first.place]))
}

pub(super) fn for_each_run(
    points: &[SelectDims],
    order: &[ChunkPoint],
    grid: &ChunkGrid,
    chunk: &ChunkCoord,
    each: &mut dyn FnMut(ElementRun),
) {
    let compare = |point: &ChunkPoint| scaled_coord(&points[point.place], grid).cmp(chunk.scaled().iter().copied());
    let rest = &order[order.partition_point(|point| compare(point) == Ordering::Less)..];
    let Some(first) = rest.first().filter(|point| compare(point) == Ordering::Equal) else { return };
    for point in rest.iter().take_while(|point| point.chunk == first.chunk) {
        each(ElementRun { offset_in_chunk: point.at, offset_in_selection: point.place as u64, len: 1 });
    }
}

/// The run of one point.
pub(super) fn emit_run(points: &[SelectDims], i: usize, grid: &ChunkGrid, each: &mut dyn FnMut(ElementRun)) {
    let within = points[i].iter().zip(grid.chunk_dims()).map(|(at, size)| at % size);
    let at = within.zip(&row_major_strides(grid.chunk_dims())).map(|(at, stride)| at * stride).sum();
    each(ElementRun { offset_in_chunk: at, offset_in_selection: i as u64, len: 1 });
}

fn scaled_coord<'a>(point: &'a [u64], grid: &'a ChunkGrid) -> impl Iterator<Item = u64> + 'a {
    point.iter().zip(grid.chunk_dims()).map(|(at, size)| at / size)
}
