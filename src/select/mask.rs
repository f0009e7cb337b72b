//! Masks: the elements for which a truth value is set.

use h5live_model::{Block, Selection, SelectionError};

use crate::dims::CoreDims;

/// Most boxes that a mask is made of. A mask of more pieces is a list of points.
const MAX_MASK_BLOCKS: usize = 1 << 14;

/// The elements of an extent (`[rank]`, elements) whose values in row-major order are set.
pub(super) fn selection(mask: &[bool], extent: &[u64]) -> Result<Selection, SelectionError> {
    let elements = extent.iter().try_fold(1u64, |n, dim| n.checked_mul(*dim));
    if elements != Some(mask.len() as u64) {
        return Err(SelectionError::MaskShapeMismatch { mask: vec![mask.len() as u64], extent: extent.to_vec() });
    }
    let Some(row) = extent.last() else {
        return Ok(if mask == [true] { Selection::All } else { Selection::None });
    };
    let selected = mask.iter().filter(|is_set| **is_set).count();
    let mut blocks = Vec::new();
    for run in runs(mask, *row as usize).take(MAX_MASK_BLOCKS + 1) {
        let mut count = CoreDims::from_elem(1, extent.len());
        count[extent.len() - 1] = run.len() as u64;
        blocks.push(Block { start: coordinates(run.start as u64, extent), count });
    }
    if blocks.len() <= MAX_MASK_BLOCKS && blocks.len() < selected {
        return Ok(Selection::Blocks(blocks));
    }
    let set = mask.iter().enumerate().filter(|(_, is_set)| **is_set);
    let mut points = Vec::with_capacity(selected);
    points.extend(set.map(|(at, _)| coordinates(at as u64, extent)));
    Ok(Selection::Points(points))
}

/// The runs of values that are set, none of which goes on in the next row (of `row` values).
fn runs(mask: &[bool], row: usize) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let rows = mask.chunks(row.max(1)).enumerate();
    rows.flat_map(move |(n, values)| {
        let mut at = n * row;
        values.chunk_by(|a, b| a == b).filter_map(move |run| {
            at += run.len();
            run[0].then(|| at - run.len()..at)
        })
    })
}

/// The coordinates (`[rank]`) of the element that is at `at` in row-major order.
fn coordinates(mut at: u64, extent: &[u64]) -> CoreDims {
    let mut coordinates = CoreDims::from_elem(0, extent.len());
    for (coordinate, dim) in coordinates.iter_mut().zip(extent).rev() {
        (*coordinate, at) = (at % dim, at / dim);
    }
    coordinates
}
