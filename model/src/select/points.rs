//! Single elements, in the order given.

use std::cmp::Ordering;

use super::{Dims, Run, strides};
use crate::{ChunkCoord, ChunkGrid};

/// The positions of the points, chunk by chunk, within a chunk as given.
pub(super) fn by_chunk(points: &[Dims], grid: &ChunkGrid) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| scaled(&points[*a], grid).cmp(scaled(&points[*b], grid)));
    order
}

pub(super) fn chunks<'a>(
    points: &'a [Dims],
    order: &'a [usize],
    grid: &'a ChunkGrid,
) -> impl Iterator<Item = ChunkCoord> + 'a {
    order
        .chunk_by(|a, b| scaled(&points[*a], grid).eq(scaled(&points[*b], grid)))
        .filter_map(|same| same.first())
        .map(|first| grid.chunk_of(&points[*first]))
}

pub(super) fn for_each_run(
    points: &[Dims],
    order: &[usize],
    grid: &ChunkGrid,
    chunk: &ChunkCoord,
    each: &mut dyn FnMut(Run),
) {
    let compare = |i: usize| scaled(&points[i], grid).cmp(chunk.scaled().iter().copied());
    let first = order.partition_point(|i| compare(*i) == Ordering::Less);
    for i in order[first..].iter().take_while(|i| compare(**i) == Ordering::Equal) {
        run(points, *i, grid, each);
    }
}

/// The run of one point.
pub(super) fn run(points: &[Dims], i: usize, grid: &ChunkGrid, each: &mut dyn FnMut(Run)) {
    let within = points[i].iter().zip(grid.dims()).map(|(at, size)| at % size);
    let at = within.zip(&strides(grid.dims())).map(|(at, stride)| at * stride).sum();
    each(Run { at, place: i as u64, len: 1 });
}

fn scaled<'a>(point: &'a [u64], grid: &'a ChunkGrid) -> impl Iterator<Item = u64> + 'a {
    point.iter().zip(grid.dims()).map(|(at, size)| at / size)
}
