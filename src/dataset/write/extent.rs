//! The extent of a dataset: larger ones are staged, smaller ones take effect at once.

use std::collections::HashSet;

use h5live_model::{ChunkBatch, ChunkCoord, ChunkGrid, Layout, Selection};

use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::StagedChunk;
use crate::dataset::store::{DatasetWriter, RowsToStore, store_rows};
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::superseded_blobs::StoredBlob;

pub(super) fn check_extent(view: &SpecSnapshot, dims: &[u64]) -> Result<(), ErrorKind> {
    let max = view.spec.dataspace.max_dims();
    let fits = dims.len() == max.len() && dims.iter().zip(max).all(|(dim, max)| dim <= max);
    if fits { Ok(()) } else { Err(ErrorKind::InvalidExtent { dims: dims.into(), max: max.into() }) }
}

/// Changes the extent. Elements that come to be are fill values; those outside are gone.
pub(super) fn resize_extent(writer: &mut DatasetWriter<'_>, dims: &[u64]) -> Result<(), DatasetError> {
    check_extent(&writer.view, dims)?;
    if !matches!(writer.view.spec.layout, Layout::Chunked(_)) {
        return Ok(writer.core.chunks.set_extent(dims)?);
    }
    let Some((grid, bytes)) = writer.view.grid()? else { return Ok(writer.core.chunks.set_extent(dims)?) };
    store_rows(writer.core, RowsToStore::All)?;
    if writer.view.extent.iter().zip(dims).all(|(old, new)| old <= new) {
        restage_edges(writer, dims)?;
        return grow_extent(writer, dims);
    }
    let kept: Vec<u64> = writer.view.extent.iter().zip(dims).map(|(old, new)| *old.min(new)).collect();
    if kept != dims {
        // A smaller extent is published at once, a larger one by the next flush, with the elements written until
        // then.
        resize_extent(writer, &kept)?;
        return resize_extent(writer, dims);
    }
    writer.store_staged()?;
    let counts = grid.chunk_counts(dims);
    let (mut changed, mut left_out) = (Vec::new(), Vec::new());
    writer.core.chunks.for_each_chunk(&mut |stored| {
        if grid.chunk_exceeds_extent(&stored.coord, dims) {
            left_out.push(stored.coord.clone());
        }
        let inside = stored.coord.scaled().iter().zip(&counts).all(|(at, n)| at < n);
        if inside
            && (grid.chunk_exceeds_extent(&stored.coord, dims) || writer.view.is_unfiltered_edge(&grid, &stored.coord))
        {
            changed.push(stored.coord);
        }
        true
    })?;
    if !changed.is_empty() {
        writer.core.check_allocation(bytes)?;
    }
    let mut old = HashSet::new();
    for coord in left_out {
        old.extend(blobs_outside(writer, &grid, bytes, &coord, dims).map_err(|failure| failure.with_chunk(&coord))?);
    }
    // The extent comes first. Then nobody can see the cleared and dropped elements any more.
    writer.core.chunks.set_extent(dims)?;
    let smaller = SpecSnapshot { extent: dims.into(), ..writer.view.clone() };
    for coord in changed {
        let clear = || -> Result<(), DatasetError> {
            let old = writer.reader().read_chunk(&grid, bytes, &coord)?;
            let cleared = fill_outside_extent(&smaller, &grid, &coord, &old);
            writer.store_chunk(&smaller, &grid, &coord, &cleared)
        };
        clear().map_err(|failure| failure.with_chunk(&coord))?;
    }
    writer.core.store.growing.forget_all();
    writer.core.stage.lock().clear();
    writer.core.count_change();
    writer.cache.forget_dataset(writer.core.cache_id());
    writer.view.extent = dims.into();
    writer.give_up(old)
}

/// Makes the extent larger: it is staged, unless the store gathers what it is told.
pub(super) fn grow_extent(writer: &DatasetWriter<'_>, dims: &[u64]) -> Result<(), DatasetError> {
    if !writer.core.stage.is_staged_by_store {
        writer.core.stage.lock().extent = Some(CoreDims::from_slice(dims));
        return Ok(());
    }
    let mut earlier = writer.core.publish.order.predecessors();
    loop {
        earlier.retain(|core| !core.is_deleted());
        let after: Vec<_> = earlier.iter().map(|core| core.chunks.id()).collect();
        let batch = ChunkBatch { extent: Some(dims), publish_after: &after, ..ChunkBatch::default() };
        match writer.core.chunks.write(&batch) {
            // Another thread has deleted one of them meanwhile.
            Err(_) if earlier.iter().any(|core| core.is_deleted()) => {}
            written => return Ok(written?),
        }
    }
}

/// Stages the chunks that were stored without filters because they reached over the extent, and will no more.
pub(super) fn restage_edges(writer: &DatasetWriter<'_>, dims: &[u64]) -> Result<(), DatasetError> {
    if !writer.view.spec.unfiltered_partial_chunks || writer.core.filters.is_empty() {
        return Ok(());
    }
    let Some((grid, bytes)) = writer.view.grid()? else { return Ok(()) };
    let mut promoted = Vec::new();
    writer.core.chunks.for_each_chunk(&mut |stored| {
        if writer.view.is_unfiltered_edge(&grid, &stored.coord) && !grid.chunk_exceeds_extent(&stored.coord, dims) {
            promoted.push(stored.coord);
        }
        true
    })?;
    for coord in promoted {
        let whole = writer.reader().read_chunk(&grid, bytes, &coord).map_err(|failure| failure.with_chunk(&coord))?;
        writer.core.stage.lock().chunks.stage_chunk(&coord, StagedChunk::whole(whole, true));
    }
    Ok(())
}

/// The variable-length elements of a chunk that lie outside of an extent.
fn blobs_outside(
    writer: &DatasetWriter<'_>,
    grid: &ChunkGrid,
    chunk_bytes: usize,
    coord: &ChunkCoord,
    dims: &[u64],
) -> Result<HashSet<StoredBlob>, DatasetError> {
    if writer.core.blobs.cannot_reclaim(&writer.view.spec.datatype) {
        return Ok(HashSet::new());
    }
    let bytes = writer.reader().read_chunk(grid, chunk_bytes, coord)?;
    let smaller = SpecSnapshot { extent: dims.into(), ..writer.view.clone() };
    let mut outside = writer.blobs_in(&bytes);
    for kept in writer.blobs_in(&fill_outside_extent(&smaller, grid, coord, &bytes)) {
        outside.remove(&kept);
    }
    Ok(outside)
}

/// A chunk with fill values outside the extent.
fn fill_outside_extent(view: &SpecSnapshot, grid: &ChunkGrid, coord: &ChunkCoord, bytes: &[u8]) -> Vec<u8> {
    let mut cleared = vec![0; bytes.len()];
    view.spec.fill_into(0, &mut cleared);
    if let Ok(inside) = Selection::All.bind(&view.extent) {
        inside.split_by_chunks(grid).for_each_run(coord, |run| {
            let range = run.offset_in_chunk as usize * view.size..(run.offset_in_chunk + run.len) as usize * view.size;
            cleared[range.clone()].copy_from_slice(&bytes[range]);
        });
    }
    cleared
}
