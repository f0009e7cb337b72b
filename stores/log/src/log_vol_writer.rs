//! Writing the log of a file in Log VOL's layout.
//!
//! Data is in data logs (`_ld_N`), and what it is in metadata logs (`_md_N`). An entry names the byte of the file where
//! its data is, so it is made when its data has a place. What the counters of the root group do not count is not
//! published.

use std::sync::Arc;

use h5live_model::{
    AllocationTime, BitfieldType, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Datatype, Error, Fill,
    FillTime, FillValue, LinkTarget, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Store,
};

use crate::entry::{DimVec, EntryChange, EntryHead};
use crate::error::{LogError, Result};
use crate::log_datasets::hard_target;
use crate::log_file::LogFile;
use crate::log_vol_entry::{encode_entry, encode_metadata_log};
use crate::log_vol_root_attribute::{LogVolRootAttribute, list_dataspace};
use crate::names;

/// Bytes of entries in one metadata log, about: a reader has all of it in memory.
const METADATA_LOG_BYTES: usize = 16 << 20;

/// An entry whose data has no place in the file yet.
#[derive(Debug)]
struct StagedEntry {
    dataset: u64,
    start: DimVec,
    count: DimVec,
    /// The position of its data in the log.
    at: u64,
    /// Bytes of its data.
    data_len: u64,
}

/// What the writer of such a file has that its readers do not see yet.
#[derive(Debug)]
pub struct LogVolWriter {
    /// What the file counts, as of the last publication.
    published: LogVolRootAttribute,
    /// What there is: logs that are made, published or not.
    made: LogVolRootAttribute,
    /// The logs that were made since the last publication.
    new_logs: Vec<ObjectId>,
    staged: Vec<StagedEntry>,
    /// Entries whose data has a place, and that are in no metadata log.
    entries: Vec<u8>,
    /// Where the data of the last data log ends in the file (bytes).
    data_end: u64,
}

/// A dataset of bytes, as Log VOL makes it for a log.
fn log_spec(bytes: usize) -> DatasetSpec {
    DatasetSpec {
        datatype: Datatype::Bitfield(BitfieldType { size: 1, precision: 8, ..BitfieldType::default() }),
        dataspace: list_dataspace(bytes),
        fill: Fill { allocation: AllocationTime::Early, time: FillTime::IfSet, value: FillValue::Default },
        ..DatasetSpec::default()
    }
}

/// A log that has no link yet.
struct UnlinkedLog {
    id: ObjectId,
    chunks: Arc<dyn ChunkStore>,
    /// Where it begins in the file.
    begin: u64,
}

impl UnlinkedLog {
    fn new(store: &dyn Store, bytes: usize) -> Result<Self> {
        let id = store.writer()?.create(&NewObject::unlinked(&log_spec(bytes).into()))?;
        let chunks = store.dataset(id)?;
        let begin = chunks.locate(&ChunkCoord::origin(1))?.and_then(|chunk| chunk.file_offset);
        let begin = begin.ok_or_else(|| LogError::MissingPart("place of its data".to_owned()))?;
        Ok(UnlinkedLog { id, chunks, begin })
    }

    /// One that begins at byte `after` of the file, or behind it.
    ///
    /// Log VOL reads overlapping entries in the order of their places. So later data must not go to freed space before
    /// earlier data. What is allocated there is held until a place behind `after` is found, and then given back.
    fn behind(store: &dyn Store, bytes: usize, after: u64) -> Result<Self> {
        let mut held = Vec::new();
        let found = loop {
            match UnlinkedLog::new(store, bytes)? {
                log if log.begin >= after => break log,
                log => held.push(log.id),
            }
        };
        held.into_iter().try_for_each(|id| store.writer()?.discard(id))?;
        Ok(found)
    }

    /// Writes all of it, and links it as `_kind_number`. What a writer that died has left there is unlinked.
    fn write(self, store: &dyn Store, group: ObjectId, name: &str, bytes: &[u8]) -> Result<ObjectId> {
        let writes = [ChunkWrite::ByteRange { coord: &ChunkCoord::origin(1), byte_offset: 0, bytes, unseen: true }];
        self.chunks.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })?;
        let (writer, name) = (store.writer()?, Name::from(name));
        if store.link(group, &name)?.is_some() {
            writer.remove_link(group, &name)?;
        }
        writer.add_link(group, &name, &LinkTarget::Hard(self.id))?;
        Ok(self.id)
    }
}

/// The number behind one; an error if it does not fit four bytes.
fn next(number: i32, of: &'static str) -> Result<i32> {
    number.checked_add(1).ok_or(Error::Unsupported(of))
}

/// Makes the log in a file that has none.
///
/// # Errors
/// Errors of the store.
pub fn create_log_vol_log(store: &dyn Store) -> Result<()> {
    let (writer, root) = (store.writer()?, store.session().root);
    writer.set_attribute(root, &LogVolRootAttribute::NEW.attribute())?;
    writer.create(&NewObject::linked(root, &Name::from(names::LOG_GROUP), &ObjectSpec::group())).map(drop)
}

/// The group of the log of a file; `ObjectId(0)` if it is in subfiles.
///
/// # Errors
/// Errors of the store.
pub fn log_vol_group_or_zero(store: &dyn Store) -> Result<ObjectId> {
    let link = store.link(store.session().root, &Name::from(names::LOG_GROUP))?;
    Ok(hard_target(link).unwrap_or(ObjectId(0)))
}

impl LogVolWriter {
    /// The writer of a file that has these counters, and whose data ends at this byte.
    pub fn new(published: LogVolRootAttribute, data_end_in_file: u64) -> Self {
        LogVolWriter {
            published,
            made: published,
            new_logs: Vec::new(),
            staged: Vec::new(),
            entries: Vec::new(),
            data_end: data_end_in_file,
        }
    }

    /// Notes an entry whose data is staged at a position of the log. Says whether it has data: growth is in anchors.
    pub fn stage_if_block(&mut self, head: &EntryHead, log_offset: u64) -> bool {
        let EntryChange::Block { start, count } = &head.change else { return false };
        let (start, count) = (start.clone(), count.clone());
        self.staged.push(StagedEntry { dataset: head.dataset, start, count, at: log_offset, data_len: head.data_len });
        true
    }

    /// Writes the data that is staged into a data log of its own. It is not published yet.
    ///
    /// # Errors
    /// Errors of the store. The data may be given again.
    pub fn write_data_log(&mut self, file: &mut LogFile, bytes: &[u8]) -> Result<()> {
        let number = self.made.data_log_count;
        let after = next(number, "more than 2^31 - 1 flushes into a log of Log VOL's layout")?;
        let log = UnlinkedLog::behind(&*file.store, bytes.len(), self.data_end)?;
        let id = log.write(&*file.store, file.log_group, &format!("_ld_{number}"), bytes)?;
        let place = file.log.add_full_dataset(&*file.store, id)?;
        (self.made.data_log_count, self.data_end) = (after, place.file_end);
        self.new_logs.push(id);
        for StagedEntry { dataset, start, count, at, data_len } in self.staged.drain(..) {
            let begin = place.file_start + (at - place.log_start);
            let dataset = i32::try_from(dataset).unwrap_or(i32::MAX);
            encode_entry(dataset, (&start, &count), begin..begin + data_len, &mut self.entries);
        }
        if self.entries.len() >= METADATA_LOG_BYTES { self.write_entries(file) } else { Ok(()) }
    }

    /// Writes the entries whose data has a place into a metadata log of their own.
    fn write_entries(&mut self, file: &LogFile) -> Result<()> {
        let number = self.made.metadata_log_count;
        let after = next(number, "more than 2^31 - 1 flushes into a log of Log VOL's layout")?;
        let bytes = encode_metadata_log(&self.entries);
        let log = UnlinkedLog::new(&*file.store, bytes.len())?;
        let id = log.write(&*file.store, file.log_group, &format!("_md_{number}"), &bytes)?;
        self.made.metadata_log_count = after;
        self.new_logs.push(id);
        self.entries.clear();
        Ok(())
    }

    /// Publishes all entries. Their data is in data logs.
    ///
    /// # Errors
    /// Errors of the store. Nothing is published then, and this may be called again.
    pub fn publish(&mut self, file: &LogFile, publish: PublishLevel) -> Result<()> {
        if !self.entries.is_empty() {
            self.write_entries(file)?;
        }
        if self.new_logs.is_empty() {
            return Ok(());
        }
        let (writer, root) = (file.store.writer()?, file.store.session().root);
        self.new_logs.push(file.log_group);
        writer.commit(ObjectScope::Objects(&self.new_logs), publish)?;
        writer.set_attribute(root, &self.made.attribute())?;
        writer.commit(ObjectScope::Objects(&[root]), publish)?;
        self.published = self.made;
        self.new_logs.clear();
        Ok(())
    }

    /// Has the file say how many datasets were made.
    ///
    /// # Errors
    /// If they are too many for the layout; errors of the store.
    pub fn set_created_dataset_count(&mut self, store: &dyn Store, count: u64) -> Result<()> {
        let too_many = || Error::Unsupported("more than 2^31 - 1 datasets in Log VOL's layout");
        let datasets = i32::try_from(count).map_err(|_| too_many())?;
        let mut counters = self.published;
        counters.created_dataset_count = datasets;
        store.writer()?.set_attribute(store.session().root, &counters.attribute())?;
        (self.published, self.made.created_dataset_count) = (counters, datasets);
        Ok(())
    }
}
