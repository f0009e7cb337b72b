//! Appended rows: into the append buffer if they are few, to the store if they are many, or as chunks.

use h5live_model::{DatasetSpec, Selection};
use parking_lot::MutexGuard;

use super::extent::{check_extent, grow_extent, restage_edges};
use super::selection::{check_chunk_before, write_selection};
use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::{AppendBuffer, MAX_BUFFERED_APPEND_BYTES, StagedData};
use crate::dataset::store::{DatasetWriter, PartWrites, RowsToStore, make_room, store_direct, store_rows};
use crate::dataset::transfer::ElementSource;
use crate::dims::CoreDims;
use crate::error::ErrorKind;

/// Appends rows, as `stored` gives them, if they come right after rows that were appended before. Returns `false`
/// if not, and nothing was done.
pub(super) fn try_append_next_rows<'a>(
    core: &DatasetCore,
    stored: impl FnOnce(&DatasetSpec) -> Option<&'a [u8]>,
) -> Result<bool, DatasetError> {
    let _alone = core.stage.lock_writer();
    core.stage.check_not_closing()?;
    let stage = core.stage.lock();
    if stage.rows.is_none() {
        return Ok(false);
    }
    let spec = core.chunks.spec()?;
    let Some(rows) = stored(&spec) else { return Ok(false) };
    let done = try_stage_or_store(core, stage, spec.dataspace.dims(), rows);
    core.register_staged();
    done
}

/// Buffers rows if they are short, and stores them if not; `stored_extent` is the extent that the store knows. Returns
/// `false` if they do not come after the buffered ones, and nothing was done. The caller holds the writer's lock.
fn try_stage_or_store<'a>(
    core: &'a DatasetCore,
    mut stage: MutexGuard<'a, StagedData>,
    stored_extent: &[u64],
    rows: &[u8],
) -> Result<bool, DatasetError> {
    let Some((buffer, count)) = stage.buffer_for(stored_extent, rows.len()) else { return Ok(false) };
    let limit = buffer.buffer_limit_bytes(core.stage.allowed_bytes());
    let is_direct = rows.len() > limit.min(MAX_BUFFERED_APPEND_BYTES);
    if is_direct || buffer.bytes().len() + rows.len() > limit {
        drop(stage);
        make_room(core, if is_direct { 0 } else { limit - rows.len() })?;
        if is_direct {
            store_direct(core, rows)?;
        }
        stage = core.stage.lock();
    }
    Ok(stage.try_append_rows(count, (!is_direct).then_some(rows)))
}

/// Rows to append.
pub(crate) struct RowAppend {
    /// The dimension along which they are.
    axis: usize,
    /// Elements in all.
    values: u64,
    /// The extent with them.
    extent: CoreDims,
}

impl RowAppend {
    /// The rows that `values` elements in all make.
    pub(super) fn plan(view: &SpecSnapshot, values: usize) -> Result<RowAppend, ErrorKind> {
        let axis = append_axis(view)?;
        let row = elements_per_row_along(view, axis);
        let values = values as u64;
        if row == 0 || !values.is_multiple_of(row) {
            return Err(ErrorKind::NotWholeRows { row, values });
        }
        let mut extent = CoreDims::from_slice(&view.extent);
        extent[axis] = extent[axis].saturating_add(values / row);
        check_extent(view, &extent)?;
        Ok(RowAppend { axis, values, extent })
    }

    /// Appends the rows, whose elements `source` has.
    pub(super) fn append(
        self,
        writer: &mut DatasetWriter<'_>,
        source: &impl ElementSource,
    ) -> Result<(), DatasetError> {
        let RowAppend { axis, values, extent } = self;
        if let Some((grid, _)) = writer.view.grid()? {
            check_chunk_before(writer, &extent, &grid)?;
        }
        restage_edges(writer, &extent)?;
        if try_buffer_rows(writer, axis, values as usize, source)? {
            return Ok(());
        }
        store_rows(writer.core, RowsToStore::All)?;
        let before = std::mem::replace(&mut writer.view.extent, extent);
        let (mut start, mut count) = (CoreDims::from_elem(0, before.len()), before.clone());
        start[axis] = before[axis];
        count[axis] = writer.view.extent[axis] - before[axis];
        write_selection(writer, &Selection::block(&start, &count).bind(&writer.view.extent)?, source)?;
        let is_staged = writer.core.stage.lock().chunks.total_bytes() > 0;
        grow_extent(writer, &writer.view.extent)?;
        let Some((grid, bytes)) = writer.view.grid()?.filter(|_| is_staged) else { return Ok(()) };
        let side = grid.chunk_dims()[axis];
        let full = before[axis] / side..writer.view.extent[axis] / side;
        if full.is_empty() {
            return Ok(());
        }
        writer.store_staged_chunks(&grid, bytes, |coord| full.contains(&coord.scaled()[axis]))
    }
}

/// Has the buffer take new rows of a dataset without filters. Returns `false` if they are long and have to be
/// converted, or do not follow each other in the chunks.
fn try_buffer_rows(
    writer: &DatasetWriter<'_>,
    axis: usize,
    values: usize,
    source: &impl ElementSource,
) -> Result<bool, DatasetError> {
    let len = values.saturating_mul(writer.view.size);
    if axis != 0 || writer.core.store.part_writes != PartWrites::Runs || writer.core.stage.is_staged_by_store {
        return Ok(false);
    }
    let direct = source.direct_bytes(0..values);
    if len > MAX_BUFFERED_APPEND_BYTES && direct.is_none() {
        return Ok(false);
    }
    let Some(buffer) = AppendBuffer::new(&writer.view) else { return Ok(false) };
    if !writer.core.stage.lock().rows.as_ref().is_some_and(|rows| rows.is_continued_by(&buffer)) {
        store_rows(writer.core, RowsToStore::All)?;
        writer.core.stage.lock().rows = Some(buffer);
    }
    if let Some((grid, bytes)) = writer.view.grid()? {
        writer.store_staged_chunks(&grid, bytes, |_| true)?;
    }
    let mut memory = Vec::new();
    let bytes = match direct {
        Some(bytes) => bytes,
        None => {
            memory.resize(len, 0);
            source.get_elements(0..values, &mut memory)?;
            &memory
        }
    };
    try_stage_or_store(writer.core, writer.core.stage.lock(), &writer.view.extent, bytes)
}

/// The dimension along which rows are appended: the first one if it can grow, or else the unlimited one.
fn append_axis(view: &SpecSnapshot) -> Result<usize, ErrorKind> {
    let max = view.spec.dataspace.max_dims();
    if max.first().zip(view.extent.first()).is_some_and(|(max, now)| max > now) {
        return Ok(0);
    }
    max.iter().position(|max| *max == h5live_model::UNLIMITED).ok_or(ErrorKind::CannotGrow)
}

/// Elements of a row: of one step along the dimension along which the dataset grows.
pub(super) fn elements_per_row(view: &SpecSnapshot) -> Result<u64, ErrorKind> {
    append_axis(view).map(|axis| elements_per_row_along(view, axis))
}

fn elements_per_row_along(view: &SpecSnapshot, axis: usize) -> u64 {
    let (before, after) = view.extent.split_at(axis);
    before.iter().chain(&after[1..]).try_fold(1u64, |n, dim| n.checked_mul(*dim)).unwrap_or(0)
}
