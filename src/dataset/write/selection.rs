//! Writes of a selection: it is cut by chunks, and each chunk is stored or staged.

use h5live_model::{Block, BoundSelection, ChunkBatch, ChunkGrid, ChunkWrite};

use super::chunk_writer::{ChunkWriter, dest_range};
use crate::dataset::core::CHUNKS_PER_BATCH;
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::zeroed_buffer;
use crate::dataset::stage::MAX_STAGED_PART_BYTES;
use crate::dataset::store::{DatasetWriter, PartWrites, RowsToStore, store_rows};
use crate::dataset::transfer::{ElementSource, RawSink};
use crate::dims::CoreDims;

/// Overwrites the elements of a selection: all of them, or none if some value does not fit.
pub(crate) fn write_selection(
    writer: &DatasetWriter<'_>,
    selected: &BoundSelection,
    source: &impl ElementSource,
) -> Result<(), DatasetError> {
    if selected.element_count() == 0 {
        return Ok(());
    }
    source.check()?;
    store_rows(writer.core, RowsToStore::All)?;
    let Some((grid, bytes)) = writer.view.grid()? else { return Ok(()) };
    check_selection(writer, selected, &grid)?;
    if writer.core.store.part_writes == PartWrites::Blocks && try_write_block(writer, selected, &grid, source)? {
        return Ok(());
    }
    let cut = &selected.split_by_chunks(&grid);
    if let Some((coord, run)) = cut.single_chunk_run()
        && writer.core.filters.is_empty()
        && run.len as usize * writer.view.size == bytes
        && let Some(direct) = source.direct_bytes(dest_range(run))
    {
        writer.store_encoded(&coord, 0, direct)?;
        writer.core.stage.lock().chunks.take_chunk(&coord);
        return Ok(());
    }
    if writer.core.store.part_writes == PartWrites::Never {
        writer.core.check_allocation(bytes)?;
    }
    let chunk = ChunkWriter { writer, cut, grid: &grid, bytes, source };
    let mut batch = Vec::new();
    for coord in chunk.cut.chunks() {
        if chunk.is_covered(&coord) {
            batch.push(coord);
            if batch.len() == CHUNKS_PER_BATCH {
                chunk.store_batch(&batch)?;
                batch.clear();
            }
        } else {
            chunk.write_part(&coord).map_err(|failure| failure.with_chunk(&coord))?;
        }
    }
    chunk.store_batch(&batch)?;
    if writer.core.stage.is_staged_by_store || writer.core.has_too_much_staged() {
        writer.store_all_chunks(&grid, bytes)?;
    }
    Ok(())
}

/// Overwrites the elements of a selection by new ones, and gives up the variable-length data of the old ones.
pub(super) fn overwrite_selection(
    writer: &DatasetWriter<'_>,
    selected: &BoundSelection,
    source: &impl ElementSource,
) -> Result<(), DatasetError> {
    if writer.core.blobs.cannot_reclaim(&writer.view.spec.datatype) {
        return write_selection(writer, selected, source);
    }
    let elements = usize::try_from(selected.element_count()).unwrap_or(usize::MAX);
    let mut bytes = zeroed_buffer(elements.saturating_mul(writer.view.size))?;
    writer.reader().read(selected, RawSink { bytes: &mut bytes, size: writer.view.size })?;
    let old = writer.blobs_in(&bytes);
    write_selection(writer, selected, source)?;
    writer.give_up(old)
}

/// Refuses elements that the store could not take when they are written out.
fn check_selection(
    writer: &DatasetWriter<'_>,
    selected: &BoundSelection,
    grid: &ChunkGrid,
) -> Result<(), DatasetError> {
    let whole = check_chunk_before(writer, &writer.view.extent, grid);
    match whole.err().and_then(|_| selected.bounds()) {
        Some((_, end)) => check_chunk_before(writer, &end, grid),
        None => Ok(()),
    }
}

/// Refuses the chunk of the last element before `end` (`[rank]`, elements) if the store can never take it.
pub(super) fn check_chunk_before(
    writer: &DatasetWriter<'_>,
    end: &[u64],
    grid: &ChunkGrid,
) -> Result<(), DatasetError> {
    let coord = grid.chunk_of(&end.iter().map(|end| end.saturating_sub(1)).collect::<CoreDims>());
    writer.core.chunks.check_chunk_storable(&coord).map_err(|error| DatasetError::in_chunk(&coord, error))
}

/// Hands a box of one chunk to the store, where the caller has its elements. Returns `false` if they are no such box.
fn try_write_block(
    writer: &DatasetWriter<'_>,
    selected: &BoundSelection,
    grid: &ChunkGrid,
    source: &impl ElementSource,
) -> Result<bool, DatasetError> {
    let elements = usize::try_from(selected.element_count()).unwrap_or(usize::MAX);
    if elements.saturating_mul(writer.view.size) > MAX_STAGED_PART_BYTES {
        return Ok(false);
    }
    let Some((coord, Block { start, count })) = selected.single_chunk_block(grid) else { return Ok(false) };
    let Some(bytes) = source.direct_bytes(0..elements) else { return Ok(false) };
    let writes = [ChunkWrite::ElementBlock { coord: &coord, start: &start, count: &count, bytes }];
    let written = writer.core.chunks.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() });
    written.map_err(|error| DatasetError::in_chunk(&coord, error))?;
    writer.core.count_change();
    Ok(true)
}
