//! Writing out and publishing what is staged, in the order in which the rows of datasets are to be seen.

use std::sync::Arc;

use h5live_model::{ChunkBatch, ChunkWrite, PublishLevel};
use typed_arena::Arena;

use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::store::{ChunkForms, ChunkStoreForm, DatasetWriter, RowsToStore, store_rows};
use crate::file_shared::FileShared;

/// A dataset that is being written out. Nothing is appended to it while those are written out whose rows were appended
/// before.
struct WriteOut<'a> {
    core: &'a DatasetCore,
    writer: DatasetWriter<'a>,
    earlier: Vec<Arc<DatasetCore>>,
    /// How many of the earlier ones have been looked at.
    looked_at: usize,
}

impl<'a> WriteOut<'a> {
    fn begin(core: &'a DatasetCore, shared: &'a FileShared) -> Result<Self, DatasetError> {
        let writer = DatasetWriter::begin(core, &*shared.store, &shared.cache)?;
        Ok(WriteOut { core, writer, earlier: core.publish.order.predecessors(), looked_at: 0 })
    }

    /// The next dataset that is to be written out before this one.
    fn next_earlier(&mut self) -> Option<Arc<DatasetCore>> {
        let rest = &self.earlier[self.looked_at..];
        let skipped = rest.iter().position(|core| core.has_staged() && !core.is_deleted())?;
        self.looked_at += skipped + 1;
        rest.get(skipped).cloned()
    }

    /// All earlier ones have been written out.
    fn finish(self, shared: &FileShared) -> Result<(), DatasetError> {
        self.core.come_after_earlier(&self.earlier)?;
        self.core.publish.restart_row_count();
        self.writer.store_staged()?;
        self.writer.remove_superseded()?;
        shared.keep_stored_rows(self.core.chunks.id(), self.core.stored_row_count()?);
        Ok(())
    }
}

impl DatasetCore {
    /// Stores everything staged, and publishes it: appended rows by one batch, if nothing else is staged.
    pub(super) fn publish_staged(&self, shared: &FileShared) -> Result<(), DatasetError> {
        if self.try_publish_rows()? {
            return Ok(());
        }
        self.write_out(shared)?;
        self.chunks.publish(PublishLevel::Visible)?;
        self.publish.raise_published_end(self.stored_row_count()?);
        Ok(())
    }

    /// Publishes the staged rows by one batch. Returns whether it could: only appended rows are staged, and no other
    /// dataset must be published before them.
    fn try_publish_rows(&self) -> Result<bool, DatasetError> {
        // Nothing is appended meanwhile.
        let _alone = self.stage.lock_writer();
        if self.publish.order.has_earlier() {
            return Ok(false);
        }
        let stored = match store_rows(self, RowsToStore::AllWithExtent(Some(PublishLevel::Visible)))? {
            None => publish_growing_chunk(self)?,
            stored => stored,
        };
        self.stage.update_staged_budget();
        let Some(rows) = stored else { return Ok(false) };
        self.publish.raise_published_end(rows);
        self.publish.restart_row_count();
        Ok(true)
    }

    /// Stores everything staged, and tells the store the extent. First it does so for the datasets whose rows are seen
    /// before those of this one: of each, the way leads down to those without others before them.
    pub(crate) fn write_out(&self, shared: &FileShared) -> Result<(), DatasetError> {
        if !self.has_staged() {
            return Ok(());
        }
        let cores = Arena::with_capacity(0);
        let mut begun = vec![WriteOut::begin(self, shared)?];
        while let Some(last) = begun.last_mut() {
            let (core, step) = match last.next_earlier() {
                Some(earlier) => {
                    let core: &DatasetCore = cores.alloc(earlier);
                    (core, WriteOut::begin(core, shared).map(|next| begun.push(next)))
                }
                None => {
                    let core = last.core;
                    (core, begun.pop().map_or(Ok(()), |done| done.finish(shared)))
                }
            };
            // Another thread may delete an earlier one meanwhile.
            if begun.is_empty() { step? } else { core.ok_if_deleted(step)? }
        }
        Ok(())
    }

    /// Writes out the datasets whose rows are seen before those of this one, and makes the store keep that order.
    pub(crate) fn write_out_earlier(&self, shared: &FileShared) -> Result<(), DatasetError> {
        let earlier = self.publish.order.predecessors();
        for core in &earlier {
            core.ok_if_deleted(core.write_out(shared))?;
        }
        self.come_after_earlier(&earlier)
    }

    /// Makes the store keep the order of what was written out of the datasets `earlier`, and of this one from now on.
    fn come_after_earlier(&self, earlier: &[Arc<DatasetCore>]) -> Result<(), DatasetError> {
        for core in earlier.iter().filter(|core| !core.is_deleted()) {
            core.ok_if_deleted(self.chunks.add_publish_dependencies(&[core.chunks.id()]))?;
        }
        Ok(())
    }

    /// As [`DatasetCore::write_out`]. Drops the staged elements of a deleted dataset.
    pub(crate) fn write_out_if_exists(&self, shared: &FileShared) -> Result<(), DatasetError> {
        self.stage.unregister();
        if !self.has_staged() || self.is_deleted() {
            return Ok(());
        }
        let written = self.ok_if_deleted(self.write_out(shared));
        if written.is_err() {
            self.register_staged();
        }
        written
    }

    /// Puts the chunks through their filters that are not full, and are stored without.
    pub(crate) fn filter_growing_chunks(&self, shared: &FileShared) -> Result<(), DatasetError> {
        DatasetWriter::begin(self, &*shared.store, &shared.cache)?.filter_growing_chunks()
    }
}

/// Publishes rows that were appended to one growing chunk, by one batch. Returns where the rows end then; `None` if
/// something else is staged. The caller holds the writer's lock.
fn publish_growing_chunk(core: &DatasetCore) -> Result<Option<u64>, DatasetError> {
    if core.filters.is_empty() || !core.chunks.prefers_unfiltered_until_full() {
        return Ok(None);
    }
    let (coord, staged, extent) = {
        let stage = core.stage.lock();
        let mut dirty = stage.chunks.iter().filter(|(_, staged)| staged.is_dirty);
        match (dirty.next(), dirty.next(), &stage.extent) {
            (Some((coord, staged)), None, Some(extent)) if !stage.has_rows() => {
                (coord.clone(), staged.clone(), extent.clone())
            }
            _ => return Ok(None),
        }
    };
    let view = core.spec_snapshot()?;
    let Some((grid, _)) = view.grid()? else { return Ok(None) };
    let forms = ChunkForms { core, view: &view, grid: &grid };
    let ChunkStoreForm::UnfilteredTail(range) = forms.form_of(&coord, &staged)? else { return Ok(None) };
    let Some(bytes) = staged.bytes.get(range.clone()) else { return Ok(None) };
    let writes = [ChunkWrite::ByteRange { coord: &coord, byte_offset: range.start as u64, bytes, unseen: false }];
    let batch =
        ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish: Some(PublishLevel::Visible) };
    core.chunks.write(&batch).map_err(|error| DatasetError::in_chunk(&coord, error))?;
    forms.note_stored(&coord, None);
    let mut stage = core.stage.lock();
    stage.mark_stored(&coord, true);
    stage.extent = None;
    drop(stage);
    Ok(Some(extent.first().copied().unwrap_or(0)))
}
