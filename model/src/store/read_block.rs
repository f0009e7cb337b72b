//! Reading a box of elements of a chunk where stores read runs of bytes.

use crate::select::row_major_strides;
use crate::{ChunkStore, DatasetSpec, Error, Result, StoredChunk};

/// Checks what [`ChunkStore::read_block`] is asked for, and returns the sides of a chunk (`[rank]`, elements) and the
/// bytes of an element.
///
/// # Errors
/// [`Error::Invalid`] if the box does not lie in a chunk, or has another number of bytes; [`Error::Unsupported`] for a
/// dataset with filters.
pub fn check_block_in_chunk(
    spec: &DatasetSpec,
    start: &[u64],
    count: &[u64],
    buffer_bytes: usize,
) -> Result<(Vec<u64>, u64)> {
    let outside = || Error::Invalid(format!("no chunk has the block of {count:?} elements at {start:?}"));
    let grid = spec.grid_or_single_chunk().ok_or_else(outside)?;
    let (sides, size) = (grid.chunk_dims(), u64::from(spec.datatype.size()));
    let fits = |((start, count), side): ((&u64, &u64), &u64)| start.checked_add(*count).is_some_and(|end| end <= *side);
    if start.len() != sides.len() || count.len() != sides.len() || !start.iter().zip(count).zip(sides).all(fits) {
        return Err(outside());
    }
    let wanted = count.iter().try_fold(size, |bytes, count| bytes.checked_mul(*count));
    if wanted != Some(buffer_bytes as u64) {
        return Err(Error::Invalid(format!(
            "{buffer_bytes} bytes are not the block of {count:?} elements of {size} bytes"
        )));
    }
    Ok((sides.to_vec(), size))
}

/// [`ChunkStore::read_block`] for a store that reads runs of bytes: one after the other.
///
/// # Errors
/// As [`ChunkStore::read_block`].
pub fn read_block_by_runs(
    chunks: &dyn ChunkStore,
    chunk: &StoredChunk,
    (start, count): (&[u64], &[u64]),
    into: &mut [u8],
) -> Result<()> {
    let spec = chunks.spec()?;
    let (sides, size) = check_block_in_chunk(&spec, start, count, into.len())?;
    if into.is_empty() {
        return Ok(());
    }
    // Dimensions from `inner` on are one run: the block has all of those behind it.
    let is_whole = |dim: usize| count[dim] == sides[dim];
    let inner = (0..sides.len()).rev().find(|dim| !is_whole(*dim)).unwrap_or(0);
    let strides = row_major_strides(&sides);
    let run_bytes = count.iter().skip(inner).product::<u64>() * size;
    let first: u64 = start.iter().zip(&strides).map(|(start, stride)| start * stride).sum();
    for (number, run) in into.chunks_exact_mut(run_bytes as usize).enumerate() {
        // The position of the run, as the digits of its number.
        let (mut number, mut at) = (number as u64, first);
        for dim in (0..inner).rev() {
            at += number % count[dim] * strides[dim];
            number /= count[dim];
        }
        chunks.read(chunk, at * size, run)?;
    }
    Ok(())
}
