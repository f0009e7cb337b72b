//! The log datasets of a file: where the bytes of the log are.
//!
//! A position in the log is a number of bytes from the first entry on, through all log datasets. What a log dataset has
//! behind its end belongs to no position: an entry lies in one log dataset.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use h5live_model::{
    AllocationTime, ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype,
    FileBackedBytes, Fill, FillTime, FillValue, Layout, Link, LinkTarget, Name, NewObject, ObjectId, ObjectScope,
    PublishLevel, Shape, Sign, Store, StoreWriter, StoredChunk,
};

use crate::anchor::{i64_scalar_attribute, read_i64_attribute};
use crate::error::{LogError, Result};
use crate::names;
use crate::position::LogPosition;

const OF_LOG: &str = "a log dataset";
/// A log dataset is mapped when so many pieces of it were asked for: a few are read sooner by calls.
const MIN_MAPPED_PIECES: usize = 64;

/// One log dataset.
#[derive(Debug)]
struct LogDataset {
    id: ObjectId,
    chunks: Arc<dyn ChunkStore>,
    /// The position of its first byte.
    first: u64,
    /// Bytes of entries in it, published or not.
    used: u64,
    /// Those of them that are published, as this session knows.
    published: u64,
    /// Bytes that it has room for.
    size: u64,
    /// Where its bytes are. They stay there.
    stored: OnceLock<StoredChunk>,
    mapped: MappedEntries,
}

/// The published bytes of a log dataset in memory. Nobody changes them.
#[derive(Debug, Default)]
struct MappedEntries {
    /// Once it is worth while; `None` in it if the store beneath has no such bytes.
    bytes: OnceLock<Option<FileBackedBytes>>,
    /// Pieces that were asked for.
    pieces: AtomicUsize,
    /// Whether the file has lost some of them.
    is_cut: AtomicBool,
}

/// Where a data log is.
#[derive(Debug, Clone, Copy)]
pub struct DataLogPlace {
    /// Its first byte in the file.
    pub file_start: u64,
    /// One past its last one.
    pub file_end: u64,
    /// The position of the first byte in the log.
    pub log_start: u64,
}

/// The log datasets, in the order of the log.
#[derive(Debug)]
pub struct LogDatasets {
    log_group: ObjectId,
    list: Vec<LogDataset>,
}

/// The target of a hard link.
pub fn hard_target(link: Option<Link>) -> Option<ObjectId> {
    match link?.target {
        LinkTarget::Hard(id) => Some(id),
        _ => None,
    }
}

fn is_whole(bytes: &Option<FileBackedBytes>) -> bool {
    bytes.as_ref().is_none_or(FileBackedBytes::has_not_been_truncated)
}

/// Writes entries into a log dataset, from `log_dataset_offset` on (bytes). Nobody was led to these bytes.
///
/// # Errors
/// Errors of the store.
pub fn write_entries(chunks: &dyn ChunkStore, log_dataset_offset: u64, bytes: &[u8]) -> Result<()> {
    let writes =
        [ChunkWrite::ByteRange { coord: &ChunkCoord::origin(1), byte_offset: log_dataset_offset, bytes, unseen: true }];
    chunks.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })
}

fn log_name(number: usize) -> Name {
    Name::from(format!("log_{number}"))
}

fn log_spec(size: u64) -> DatasetSpec {
    DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[size])),
        fill: Fill { allocation: AllocationTime::Early, time: FillTime::Never, value: FillValue::Undefined },
        ..DatasetSpec::default()
    }
}

impl LogDataset {
    fn open(store: &dyn Store, id: ObjectId, name: &Name) -> Result<Self> {
        let chunks = store.dataset(id)?;
        let spec = chunks.spec()?;
        if spec.layout != Layout::Contiguous || spec.datatype.size() != 1 {
            return Err(LogError::LogDatasetRearranged(name.to_string()).into());
        }
        let size = spec.dataspace.element_count().unwrap_or(0);
        let first = read_i64_attribute(store, id, names::START_POSITION, OF_LOG)?;
        let first =
            first.ok_or_else(|| LogError::MissingPart(format!("attribute {:?} of {OF_LOG}", names::START_POSITION)))?;
        Ok(LogDataset {
            id,
            chunks,
            first: first.cast_unsigned(),
            used: 0,
            published: 0,
            size,
            stored: OnceLock::new(),
            mapped: MappedEntries::default(),
        })
    }

    /// Where its entries end, as its attribute says; 0 as long as it has none.
    fn read_end(&self, store: &dyn Store) -> Result<u64> {
        Ok(read_i64_attribute(store, self.id, names::PUBLISHED_END, OF_LOG)?.unwrap_or(0).cast_unsigned())
    }

    /// Takes up where its entries end.
    fn set_end(&mut self, end: u64, attribute: &'static str) -> Result<()> {
        let has_positions = self.first.checked_add(end).is_some_and(|end| end < LogPosition::MAX_LOG_BYTES);
        if end > self.size || end < self.published || !has_positions {
            return Err(LogError::InvalidAttribute { attribute, of: OF_LOG }.into());
        }
        (self.used, self.published) = (end, end);
        Ok(())
    }

    fn stored_chunk(&self) -> Result<&StoredChunk> {
        if let Some(stored) = self.stored.get() {
            return Ok(stored);
        }
        let found = self.chunks.locate(&ChunkCoord::origin(1))?;
        let found = found.ok_or_else(|| LogError::MissingPart("storage for its entries".to_owned()))?;
        Ok(self.stored.get_or_init(|| found))
    }

    /// Its published bytes in memory, if they are there and that is worth while.
    fn mapped_bytes(&self) -> Option<&FileBackedBytes> {
        let MappedEntries { bytes, pieces, is_cut } = &self.mapped;
        if is_cut.load(Relaxed) || pieces.load(Relaxed) < MIN_MAPPED_PIECES {
            pieces.fetch_add(1, Relaxed);
            return None;
        }
        // What cannot be mapped is read by calls, which say what is wrong.
        let map = || self.chunks.map(self.stored_chunk().ok()?, self.published).ok().flatten();
        bytes.get_or_init(map).as_ref()
    }
}

impl LogDatasets {
    /// The log datasets of a file whose group of the log is `log_group`.
    ///
    /// # Errors
    /// If the file is damaged; errors of the store beneath.
    pub fn open(store: &dyn Store, log_group: ObjectId) -> Result<Self> {
        // Links are there before they are counted.
        let count = read_i64_attribute(store, log_group, names::LOG_DATASET_COUNT, names::OF_GROUP)?;
        let count = count.ok_or_else(|| LogError::MissingPart("number of log datasets".to_owned()))?.cast_unsigned();
        let mut datasets = LogDatasets { log_group, list: Vec::new() };
        datasets.catch_up(store)?;
        for number in datasets.list.len() as u64 + 1..=count {
            // One without entries was made by a writer that died, or is about to publish some.
            if store.link(log_group, &log_name(number as usize))?.is_none() {
                return Err(LogError::MissingPart(format!("log dataset \"log_{number}\" of {count}")).into());
            }
        }
        Ok(datasets)
    }

    /// None yet, in a file that has another layout.
    pub fn empty() -> Self {
        LogDatasets { log_group: ObjectId(0), list: Vec::new() }
    }

    /// Adds a dataset of bytes, all of which are used. Returns where it is.
    ///
    /// # Errors
    /// If it is not one run of bytes; errors of the store beneath.
    pub fn add_full_dataset(&mut self, store: &dyn Store, id: ObjectId) -> Result<DataLogPlace> {
        let chunks = store.dataset(id)?;
        let (spec, first) = (chunks.spec()?, self.used_end());
        let size = spec.dataspace.element_count().filter(|_| spec.datatype.size() == 1).unwrap_or(0);
        let (stored, mapped) = (OnceLock::new(), MappedEntries::default());
        let dataset = LogDataset { id, chunks, first, used: size, published: size, size, stored, mapped };
        let begin =
            dataset.stored_chunk()?.file_offset.ok_or_else(|| LogError::MissingPart("place of its data".to_owned()))?;
        self.list.push(dataset);
        Ok(DataLogPlace { file_start: begin, file_end: begin.saturating_add(size), log_start: first })
    }

    /// The group of the log, and the log dataset in which entries are published next: what a follower watches.
    pub fn watched_objects(&self) -> Vec<ObjectId> {
        self.list.last().map(|last| last.id).into_iter().chain([self.log_group]).collect()
    }

    /// How many log datasets there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// For each log dataset, the bytes of entries in it, and the bytes that it has room for.
    pub fn used_bytes_and_capacities(&self) -> Vec<(u64, u64)> {
        self.list.iter().map(|dataset| (dataset.used, dataset.size)).collect()
    }

    /// The position behind the last entry.
    pub fn used_end(&self) -> u64 {
        self.list.last().map_or(0, |last| last.first + last.used)
    }

    /// Takes up what the writer has published since. Says whether that is something.
    ///
    /// Where the entries of a log dataset end is said by its attribute, or, if there is a next one, by where that one
    /// begins. A log dataset counts from the moment when it, or a later one, has published entries. So all entries of a
    /// batch are seen at once, in how many log datasets they may be.
    ///
    /// # Errors
    /// As [`LogDatasets::open`].
    pub fn catch_up(&mut self, store: &dyn Store) -> Result<bool> {
        let before = self.used_end();
        for next in self.newly_published(store)? {
            if let Some(last) = self.list.last_mut() {
                last.chunks.refresh()?;
                last.set_end(next.first.saturating_sub(last.first), names::START_POSITION)?;
            }
            if next.first != self.used_end() {
                return Err(LogError::InvalidAttribute { attribute: names::START_POSITION, of: OF_LOG }.into());
            }
            self.list.push(next);
        }
        if let Some(last) = self.list.last_mut() {
            last.chunks.refresh()?;
            let end = last.read_end(store)?;
            last.set_end(end, names::PUBLISHED_END)?;
        }
        Ok(self.used_end() != before)
    }

    /// The log datasets behind the last one that is known, up to the last one that has published entries. The first log
    /// dataset of all always counts.
    fn newly_published(&self, store: &dyn Store) -> Result<Vec<LogDataset>> {
        let (mut found, mut published) = (Vec::new(), usize::from(self.list.is_empty()));
        let name_of_next = |found: &[LogDataset]| log_name(self.list.len() + found.len() + 1);
        while let Some(id) = hard_target(store.link(self.log_group, &name_of_next(&found))?) {
            let next = LogDataset::open(store, id, &name_of_next(&found))?;
            if next.read_end(store)? > 0 {
                published = found.len() + 1;
            }
            found.push(next);
        }
        found.truncate(published);
        Ok(found)
    }

    /// Writes entries behind the last one; they are not published yet. `new_log_dataset_size` is how many bytes a new log dataset has
    /// room for, if one is needed.
    ///
    /// # Errors
    /// Errors of the store beneath. The entries may be given again.
    pub fn append(&mut self, store: &dyn Store, bytes: &[u8], new_log_dataset_size: u64) -> Result<()> {
        let last = self.with_room(store, bytes.len() as u64, new_log_dataset_size)?;
        write_entries(&*last.chunks, last.used, bytes)?;
        last.used += bytes.len() as u64;
        Ok(())
    }

    /// As [`LogDatasets::append`], of so many bytes that somebody else writes: to the log dataset that is returned, from
    /// the offset in it that is returned.
    ///
    /// # Errors
    /// As [`LogDatasets::append`].
    pub fn reserve_append(
        &mut self,
        store: &dyn Store,
        len: u64,
        new_log_dataset_size: u64,
    ) -> Result<(Arc<dyn ChunkStore>, u64)> {
        let last = self.with_room(store, len, new_log_dataset_size)?;
        let offset = last.used;
        last.used += len;
        Ok((last.chunks.clone(), offset))
    }

    /// The last log dataset, if it has room for so many bytes, or else a new one.
    fn with_room(&mut self, store: &dyn Store, len: u64, room: u64) -> Result<&mut LogDataset> {
        if self.list.last().is_none_or(|last| last.size - last.used < len) {
            self.add(store, room.max(len))?;
        }
        self.list.last_mut().ok_or_else(|| LogError::MissingPart("log dataset".to_owned()).into())
    }

    fn add(&mut self, store: &dyn Store, size: u64) -> Result<()> {
        let (writer, number) = (store.writer()?, self.list.len() + 1);
        if store.link(self.log_group, &log_name(number))?.is_some() {
            // A writer has made it, and died before it published entries in it.
            writer.remove_link(self.log_group, &log_name(number))?;
        }
        let id = writer.create(&NewObject::unlinked(&log_spec(size).into()))?;
        writer.set_attribute(id, &i64_scalar_attribute(names::START_POSITION, self.used_end().cast_signed()))?;
        writer.set_attribute(id, &i64_scalar_attribute(names::PUBLISHED_END, 0))?;
        writer.add_link(self.log_group, &log_name(number), &LinkTarget::Hard(id))?;
        writer.commit(ObjectScope::Objects(&[self.log_group]), PublishLevel::Visible)?;
        writer.set_attribute(self.log_group, &i64_scalar_attribute(names::LOG_DATASET_COUNT, number as i64))?;
        // What comes later is seen after the entries in it, and so after its link.
        writer.commit(ObjectScope::Objects(&[self.log_group]), PublishLevel::Visible)?;
        self.list.push(LogDataset::open(store, id, &log_name(number))?);
        Ok(())
    }

    /// Has the next commit of the store beneath publish all entries that were appended. What says so lies in the last
    /// log dataset, and is seen after the entries in the ones before it.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn stage_published_end(&mut self, writer: &dyn StoreWriter) -> Result<()> {
        let is_waiting = |dataset: &&LogDataset| dataset.published < dataset.used;
        let waiting: Vec<_> = self.list.iter().rev().skip(1).take_while(is_waiting).map(|dataset| dataset.id).collect();
        let Some(last) = self.list.last() else { return Ok(()) };
        if !waiting.is_empty() {
            last.chunks.write(&ChunkBatch { publish_after: &waiting, ..ChunkBatch::default() })?;
        }
        writer.set_attribute(last.id, &i64_scalar_attribute(names::PUBLISHED_END, last.used.cast_signed()))
    }

    /// What a mutant does: has the next commit publish so many bytes more than there are, if the log dataset has room.
    ///
    /// # Errors
    /// Errors of the store beneath.
    #[cfg(feature = "mutants")]
    pub fn mutant_stage_end_past_entries(&mut self, writer: &dyn StoreWriter, bytes: u64) -> Result<()> {
        match self.list.last().filter(|last| last.size - last.used >= bytes) {
            Some(last) => writer
                .set_attribute(last.id, &i64_scalar_attribute(names::PUBLISHED_END, (last.used + bytes).cast_signed())),
            None => Ok(()),
        }
    }

    /// Has what is changed of a dataset of the store beneath be seen after what was appended so far.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn add_flush_dependency(&self, dependent: &dyn ChunkStore) -> Result<()> {
        match self.list.last() {
            Some(last) => dependent.write(&ChunkBatch { publish_after: &[last.id], ..ChunkBatch::default() }),
            None => Ok(()),
        }
    }

    /// The last commit has published all entries.
    pub fn mark_published(&mut self) {
        self.list.iter_mut().for_each(|dataset| dataset.published = dataset.used);
    }

    /// Reads bytes of the log from a position on. They lie in one log dataset.
    ///
    /// # Errors
    /// If the log has no such bytes; errors of the store beneath.
    pub fn read(&self, log_offset: u64, into: &mut [u8]) -> Result<()> {
        let outside = || LogError::EntryDatasetMismatch { dataset: u64::MAX, rule: "leads outside of the log" };
        let (dataset, offset) = self.find(log_offset, into.len() as u64).ok_or_else(outside)?;
        dataset.chunks.read(dataset.stored_chunk()?, offset, into)
    }

    /// The log dataset that has so many bytes from a position on, and where they begin in it.
    fn find(&self, at: u64, len: u64) -> Option<(&LogDataset, u64)> {
        let number = self.list.partition_point(|dataset| dataset.first + dataset.used <= at);
        let dataset = self.list.get(number)?;
        let offset = at.checked_sub(dataset.first)?;
        (len <= dataset.used - offset).then_some((dataset, offset))
    }

    /// Whether so many bytes from a position on can be copied from memory ([`LogDatasets::copy_mapped`]).
    pub fn try_map(&self, log_offset: u64, len: u64) -> bool {
        self.find(log_offset, len).is_some_and(|(dataset, _)| dataset.mapped_bytes().is_some())
    }

    /// Copies bytes of the log from memory; `false` if they are not there. That all of them are the file's,
    /// [`LogDatasets::check_or_disable_mappings`] says afterwards.
    pub fn copy_mapped(&self, log_offset: u64, into: &mut [u8]) -> bool {
        let Some((dataset, offset)) = self.find(log_offset, into.len() as u64) else { return false };
        let bytes = dataset.mapped.bytes.get().and_then(Option::as_ref);
        bytes.is_some_and(|bytes| usize::try_from(offset).is_ok_and(|offset| bytes.copy_to(offset, into)))
    }

    /// Whether the file has had all bytes that were copied from memory. If not, none is from then on.
    pub fn check_or_disable_mappings(&self) -> bool {
        let cut = |dataset: &&LogDataset| dataset.mapped.bytes.get().is_some_and(|bytes| !is_whole(bytes));
        self.list.iter().filter(cut).map(|dataset| dataset.mapped.is_cut.store(true, Relaxed)).count() == 0
    }

    /// Has nothing in memory any more.
    pub fn reset_mappings(&mut self) {
        self.list.iter_mut().for_each(|dataset| dataset.mapped = MappedEntries::default());
    }

    /// The number of the log dataset that has a position, from 1 on, and the offset in it.
    pub fn log_dataset_and_offset_of(&self, log_offset: u64) -> Option<(u64, u64)> {
        let number = self.list.partition_point(|dataset| dataset.first + dataset.used < log_offset);
        let dataset = self.list.get(number)?;
        Some((number as u64 + 1, log_offset.checked_sub(dataset.first)?))
    }

    /// The position of an offset in the log dataset with a number, from 1 on.
    pub fn log_offset_of(&self, (number, offset): (u64, u64)) -> Option<u64> {
        let dataset = self.list.get(usize::try_from(number.checked_sub(1)?).ok()?)?;
        dataset.first.checked_add(offset).filter(|_| offset <= dataset.used)
    }

    /// Bytes from a position on that a scan may look at at once: those of the same log dataset.
    pub fn contiguous_bytes_at(&self, log_offset: u64) -> u64 {
        let number = self.list.partition_point(|dataset| dataset.first + dataset.used <= log_offset);
        self.list.get(number).map_or(0, |dataset| dataset.first + dataset.used - log_offset)
    }
}
