//! Which elements of a chunk lie in the extent: readers can see those.

use std::ops::Range;

use h5live_cache::ReplacedBytesVisibility;
use h5live_model::{ChunkCoord, DatasetSpec};
use smallvec::SmallVec;

/// Whether readers can see the present bytes of this part of a stored chunk, if the file may be followed.
pub(super) fn visibility_of(
    spec: &DatasetSpec,
    may_be_followed: bool,
    coord: &ChunkCoord,
    bytes: Range<u64>,
) -> ReplacedBytesVisibility {
    let size = u64::from(spec.datatype.size()).max(1);
    let (Some(chunk), true) = (spec.chunk_dims_or_extent(), may_be_followed) else {
        // One element.
        return if may_be_followed { ReplacedBytesVisibility::Visible } else { ReplacedBytesVisibility::NoFollowers };
    };
    let begins = coord.scaled().iter().zip(chunk).map(|(at, side)| at.saturating_mul(*side));
    let inside = spec.dataspace.dims().iter().zip(begins).map(|(end, begin)| end.saturating_sub(begin));
    match overlaps_extent(bytes.start / size..bytes.end.div_ceil(size), chunk, inside) {
        true => ReplacedBytesVisibility::Visible,
        false => ReplacedBytesVisibility::BeyondExtent,
    }
}

/// Whether one of these elements of a chunk, numbered in row-major order, lies in the extent. `chunk` are the sides of
/// the chunk, and `inside` tells how far the extent reaches from the chunk's beginning, along each dimension.
#[inline]
fn overlaps_extent(elements: Range<u64>, chunk: &[u64], inside: impl Iterator<Item = u64> + Clone) -> bool {
    // Nearly always all of them lie beyond the extent along the first dimension.
    let row: u64 = chunk.iter().skip(1).fold(1, |row, side| row.saturating_mul(*side));
    if inside.clone().next().is_some_and(|rows| elements.start / row.max(1) >= rows) {
        return false;
    }
    let ends: SmallVec<[u64; 4]> = inside.zip(chunk).map(|(inside, side)| inside.min(*side)).collect();
    if elements.is_empty() || ends.len() != chunk.len() || ends.contains(&0) {
        return false;
    }
    // The coordinates of the first of them, from the last dimension on.
    let mut at: SmallVec<[u64; 4]> = SmallVec::new();
    let mut rest = elements.start;
    for side in chunk.iter().rev() {
        at.push(rest % side);
        rest /= side;
    }
    at.reverse();
    if rest > 0 {
        return false;
    }
    // The first one in the extent from there on.
    if let Some(out) = at.iter().zip(&ends).position(|(at, end)| at >= end) {
        at.iter_mut().skip(out).for_each(|at| *at = 0);
        let carried = (0..out).rev().find(|dim| {
            at[*dim] += 1;
            let fits = at[*dim] < ends[*dim];
            if !fits {
                at[*dim] = 0;
            }
            fits
        });
        if carried.is_none() {
            return false;
        }
    }
    let number =
        at.iter().zip(chunk).fold(0_u64, |number, (at, side)| number.saturating_mul(*side).saturating_add(*at));
    number < elements.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_inside_if_all_its_coordinates_are() {
        let shapes: [(&[u64], &[u64]); 6] = [
            (&[6], &[4]),
            (&[6], &[9]),
            (&[4, 3], &[2, 2]),
            (&[3, 2, 4], &[2, 5, 3]),
            (&[2, 3], &[2, 0]),
            (&[1], &[1]),
        ];
        for (chunk, inside) in shapes {
            let all: u64 = chunk.iter().product();
            let is_inside = |number: u64| {
                let mut rest = number;
                chunk.iter().zip(inside).rev().all(|(side, inside)| {
                    let at = rest % side;
                    rest /= side;
                    at < *inside
                })
            };
            for (start, end) in (0..all).flat_map(|start| (start..=all).map(move |end| (start, end))) {
                let found = overlaps_extent(start..end, chunk, inside.iter().copied());
                assert_eq!(found, (start..end).any(is_inside), "{start}..{end} of {chunk:?}, {inside:?}");
            }
        }
    }
}
