//! The logs of a session: what is published, what is staged, and the index of both.

mod appended;
mod published;

use h5live_model::{AllocationLimit, DatasetSpec, ObjectId, PublishLevel, Store};
#[cfg(feature = "mutants")]
use h5live_model::{ObjectScope, StoreWriter};
use rustc_hash::FxHashMap;

use crate::background_write::{BackgroundWriter, PendingWrite};
use crate::encode::UnstagedEntry;
use crate::entry::{DimVec, EntryChange, EntryHead};
use crate::entry_box_index::EntryBoxIndex;
use crate::entry_writer::{EntryWriter, StagedEntryLengths};
use crate::error::{LogError, Result};
use crate::index_table::{self, IndexTableEncoder, IndexTableRow, UNENDED_BATCH_ORDER};
use crate::log_datasets::LogDatasets;
use crate::log_file::{LogBatch, LogFile};
use crate::logged_dataset::LoggedDataset;
use crate::mutant::LogMutant;
use crate::parallel::available_threads;
use crate::position::LogPosition;
use crate::row_shift::AppendedRows;

/// Points of one entry. The head of an entry stays far below [`crate::entry::MAX_HEAD_BYTES`].
const MAX_POINTS: usize = 4096;

/// Fewer bytes of entries are written at once: to hand them to another thread takes longer.
const MIN_BACKGROUND_BYTES: usize = 128 << 10;

/// Checks that an entry of a dataset has as many dimensions as those before.
fn check_rank(number: u64, found: usize, rank: usize) -> Result<()> {
    if found == rank {
        return Ok(());
    }
    Err(LogError::EntryDatasetMismatch { dataset: number, rule: "has another number of dimensions" }.into())
}

/// Points of one dataset that were written one after the other, and wait to become one entry.
#[derive(Debug)]
struct PointRun {
    dataset: u64,
    rank: usize,
    coords: Vec<u64>,
    data: Vec<u8>,
}

/// The logs of a session.
#[derive(Debug)]
pub struct LogState {
    /// The files that have logs, each at its number.
    files: Vec<LogFile>,
    /// The number of the file to which this session appends.
    own: usize,
    /// Whether the logs of all files were read, and not only that of the own one.
    knows_others: bool,
    /// Batches that were read, and do not count yet.
    waiting: Vec<LogBatch>,
    /// The numbers of datasets, and what the logs have of each.
    datasets: FxHashMap<u64, LoggedDataset>,
    /// Entries that are not in a log dataset yet. They follow the last one that is.
    staged: Vec<u8>,
    /// Entries in a log dataset that are still to be written there.
    background: BackgroundWriter,
    points: Option<PointRun>,
    /// The datasets with entries of the batch that is gathered.
    not_ended: Vec<u64>,
    /// What the batch that is gathered appends to datasets, if the session has joined others.
    appended: FxHashMap<u64, AppendedRows>,
    /// Entries since the last commit, staged or in a log dataset.
    unpublished: u64,
    /// How entries are written to the own file.
    format: EntryWriter,
    /// Entries, and bytes of their data, beside those that only the index tables have.
    entries: u64,
    data_bytes: u64,
    mutant: LogMutant,
}

impl LogState {
    /// The logs with what is published in them. What index tables cover is read from there when it is needed.
    ///
    /// # Errors
    /// If a log is damaged; errors of the stores beneath.
    pub fn open(main: LogFile, limit: AllocationLimit, mutant: LogMutant) -> Result<Self> {
        let mut state = LogState::with_unread_main(main, mutant);
        state.knows_others = true;
        state.read_batches(0, limit)?;
        state.apply_all_waiting()?;
        Ok(state)
    }

    /// The logs of a session that joins others. What others have published is read when the state catches up.
    pub fn with_unread_main(main: LogFile, mutant: LogMutant) -> Self {
        LogState {
            files: vec![main],
            own: 0,
            knows_others: false,
            waiting: Vec::new(),
            datasets: FxHashMap::default(),
            staged: Vec::new(),
            background: BackgroundWriter::default(),
            points: None,
            not_ended: Vec::new(),
            appended: FxHashMap::default(),
            unpublished: 0,
            format: EntryWriter::H5live,
            entries: 0,
            data_bytes: 0,
            mutant,
        }
    }

    /// A log whose datasets are indexed already, and whose entries are written in this format.
    ///
    /// # Errors
    /// As [`LogState::open`].
    pub fn with_box_indexes(
        file: LogFile,
        indexes: FxHashMap<u64, EntryBoxIndex>,
        format: EntryWriter,
    ) -> Result<Self> {
        let mut state = LogState::open(file, AllocationLimit::default(), LogMutant::None)?;
        state.format = format;
        for (entries, bytes) in indexes.values().map(EntryBoxIndex::data_entry_count_and_bytes) {
            state.entries += entries;
            state.data_bytes = state.data_bytes.saturating_add(bytes);
        }
        state.datasets =
            indexes.into_iter().map(|(number, index)| (number, LoggedDataset::with_box_index(index))).collect();
        Ok(state)
    }

    /// Whether what others have published was ever read.
    pub fn has_read_all_files(&self) -> bool {
        self.knows_others
    }

    /// The files that have logs, each at its number.
    pub fn files(&self) -> &[LogFile] {
        &self.files
    }

    /// The group of the log in the main file.
    pub fn main_log_group(&self) -> ObjectId {
        self.files.first().map_or(ObjectId(0), |main| main.log_group)
    }

    /// The file to which the session appends.
    pub fn own_file(&self) -> &LogFile {
        &self.files[self.own]
    }

    /// The file to which the session appends, to be changed.
    pub fn own_file_mut(&mut self) -> &mut LogFile {
        &mut self.files[self.own]
    }

    /// The highest order of a batch.
    pub fn last_batch_order(&self) -> u64 {
        self.files.iter().map(|file| file.last_batch_order).max().unwrap_or(0)
    }

    /// Adds an entry. Says whether it is the first one of its dataset whose batch has not ended.
    fn push(&mut self, rank: usize, row: IndexTableRow) -> Result<bool> {
        self.entries += 1;
        self.data_bytes += row.head.data_len;
        Ok(self.dataset_mut(row.head.dataset, rank)?.push(row))
    }

    /// What is known of a dataset, with what the index tables have of it.
    fn dataset_mut(&mut self, number: u64, rank: usize) -> Result<&mut LoggedDataset> {
        if !self.datasets.contains_key(&number) {
            let mut dataset = LoggedDataset::new(rank);
            for file in &self.files {
                file.for_each_table_entry(number, &mut |found, row| {
                    check_rank(number, found, rank)?;
                    dataset.push(row);
                    Ok(())
                })?;
            }
            self.datasets.insert(number, dataset);
        }
        let missing = || LogError::MissingPart(format!("entry of dataset {number}"));
        let dataset = self.datasets.get_mut(&number).ok_or_else(missing)?;
        check_rank(number, rank, dataset.index.rank())?;
        Ok(dataset)
    }

    /// Has what the index tables know of a dataset in memory.
    ///
    /// # Errors
    /// If a table is damaged; errors of the stores beneath.
    pub fn load_table_entries(&mut self, dataset: u64, rank: usize) -> Result<()> {
        self.dataset_mut(dataset, rank).map(drop)
    }

    /// Writes the index table and the skip list of the own file, if its log has more than the ones of the file. All
    /// entries are in log datasets. There is none if the numbers of datasets are so high that the list is over the limit:
    /// they are damaged.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn save_index_table(&mut self, created_dataset_count: u64, limit: AllocationLimit) -> Result<()> {
        let own = self.own_file();
        // A subfile by itself does not know how many there are.
        let count = self.datasets.keys().map(|number| number.saturating_add(1)).fold(created_dataset_count, u64::max);
        let is_bounded = limit.check(index_table::skip_list_bytes(count)).is_ok();
        let is_covered = own.table_indexed_bytes().unwrap_or(0) == own.log.used_end();
        if !self.format.supports_index_table() || is_covered || !is_bounded {
            return Ok(());
        }
        let place = |at: LogPosition| own.log.log_dataset_and_offset_of(at.offset());
        let new = IndexTableEncoder {
            indexed_bytes: own.log.used_end(),
            last_batch_order: own.last_batch_order,
            log_dataset_and_offset_of: &place,
        };
        index_table::save_index_table(&*own.store, own.log_group, &new, count, |number, table| {
            let Some(dataset) = self.dataset(number) else {
                let mut count = 0;
                own.for_each_table_entry(number, &mut |rank, row| {
                    count += 1;
                    new.encode_row(table, rank, &row)
                })?;
                return Ok(count);
            };
            let (rank, mut rows) = (dataset.index.rank(), dataset.rows_of_file(own.number));
            rows.try_fold(0, |count, row| new.encode_row(table, rank, row).map(|()| count + 1))
        })?;
        // The one that was read before is gone.
        self.own_file_mut().reopen_table(limit)
    }

    /// What a mutant does: writes a table that covers entries that are still staged.
    ///
    /// # Errors
    /// Errors of the store beneath.
    #[cfg(feature = "mutants")]
    pub fn mutant_save_index_table_early(&self, dataset_count: u64) -> Result<()> {
        let own = self.own_file();
        let new = IndexTableEncoder {
            indexed_bytes: own.next_entry_offset,
            last_batch_order: own.last_batch_order,
            log_dataset_and_offset_of: &|at| Some((1, at.offset())),
        };
        index_table::save_index_table(&*own.store, own.log_group, &new, dataset_count, |number, table| {
            let mut rows = self.dataset(number).into_iter().flat_map(|dataset| dataset.rows_of_file(own.number));
            rows.try_fold(0, |count, row| new.encode_row(table, 1, row).map(|()| count + 1))
        })
    }

    /// What a mutant does: publishes an end that is behind what is still staged.
    ///
    /// # Errors
    /// Errors of the store beneath.
    #[cfg(feature = "mutants")]
    pub fn mutant_publish_early(&mut self, writer: &dyn StoreWriter) -> Result<()> {
        let staged = self.staged.len() as u64;
        self.own_file_mut().log.mutant_stage_end_past_entries(writer, staged)?;
        writer.commit(ObjectScope::All, PublishLevel::Visible)
    }

    /// What the logs have of a dataset; `None` if they have nothing.
    pub fn dataset(&self, number: u64) -> Option<&LoggedDataset> {
        self.datasets.get(&number)
    }

    /// Makes everything of a dataset findable, and fast to find.
    ///
    /// # Errors
    /// If a table is damaged; errors of the stores beneath.
    pub fn update_index(&mut self, dataset: u64, rank: usize) -> Result<()> {
        self.end_points()?;
        self.dataset_mut(dataset, rank)?.update_index();
        Ok(())
    }

    /// Whether [`LogState::update_index`] has something to do.
    pub fn needs_index_update(&self, number: u64) -> bool {
        self.points.is_some() || !self.dataset(number).is_some_and(LoggedDataset::is_index_current)
    }

    /// Stages an entry.
    ///
    /// # Errors
    /// If the rank is not the one that the log knows.
    pub fn stage_entry(&mut self, dataset: u64, rank: usize, entry: UnstagedEntry<'_>) -> Result<()> {
        self.end_points()?;
        self.append_dataset_entry(dataset, rank, entry)
    }

    /// Stages one element.
    ///
    /// # Errors
    /// As [`LogState::stage_entry`].
    pub fn stage_point(&mut self, dataset: u64, at: &[u64], element: &[u8]) -> Result<()> {
        let is_continued = |run: &PointRun| run.dataset == dataset && run.coords.len() < MAX_POINTS * run.rank.max(1);
        if at.is_empty() || !self.points.as_ref().is_some_and(is_continued) {
            self.end_points()?;
        }
        if at.is_empty() || !self.format.supports_all_entry_kinds() {
            let change = EntryChange::Block { start: DimVec::from_slice(at), count: DimVec::from_elem(1, at.len()) };
            return self.append_dataset_entry(dataset, at.len(), UnstagedEntry::plain(change, element));
        }
        let new = || PointRun { dataset, rank: at.len(), coords: Vec::new(), data: Vec::new() };
        let run = self.points.get_or_insert_with(new);
        run.coords.extend_from_slice(at);
        run.data.extend_from_slice(element);
        Ok(())
    }

    /// Makes the points that wait an entry.
    fn end_points(&mut self) -> Result<()> {
        let Some(PointRun { dataset, rank, coords, data }) = self.points.take() else { return Ok(()) };
        self.append_dataset_entry(dataset, rank, UnstagedEntry::plain(EntryChange::PointCoords(coords), &data))
    }

    fn append_dataset_entry(&mut self, dataset: u64, rank: usize, entry: UnstagedEntry<'_>) -> Result<()> {
        let (head, at) = self.append_entry(dataset, rank, entry);
        if self.push(rank, IndexTableRow { head, batch_order: UNENDED_BATCH_ORDER, data_at: at })? {
            self.not_ended.push(dataset);
        }
        Ok(())
    }

    /// Adds an entry to what is staged. Returns its head and where its data is.
    fn append_entry(&mut self, dataset: u64, rank: usize, entry: UnstagedEntry<'_>) -> (EntryHead, LogPosition) {
        let own = &mut self.files[self.own];
        let UnstagedEntry { change, filter_id: filter, data } = entry;
        let (data_len, data_crc) = (data.len() as u64, crc32c::crc32c(&data));
        let head = EntryHead {
            batch_number: own.next_batch_number,
            file: own.number,
            dataset,
            change,
            filter_id: filter,
            data_len,
            data_crc,
        };
        let StagedEntryLengths { head_len: before_data, len } =
            self.format.stage(&head, &data, rank, own.next_entry_offset, &mut self.staged);
        let at = own.position(own.next_entry_offset + before_data);
        own.next_entry_offset += len;
        self.unpublished += 1;
        (head, at)
    }

    /// Ends the batch that is gathered. `batch_order` is where it stands among those of all writers.
    ///
    /// # Errors
    /// As [`LogState::stage_entry`].
    pub fn end_batch_with_order(&mut self, batch_order: u64) -> Result<()> {
        self.end_points()?;
        let shifts = self.place_appended()?;
        if self.format.supports_all_entry_kinds() {
            self.append_entry(0, 0, UnstagedEntry::plain(EntryChange::EndOfBatch { order: batch_order, shifts }, &[]));
        }
        for number in self.not_ended.drain(..) {
            if let Some(dataset) = self.datasets.get_mut(&number) {
                dataset.assign_batch_order(batch_order);
            }
        }
        let own = self.own_file_mut();
        own.last_batch_order = own.last_batch_order.max(batch_order);
        own.next_batch_number = own.next_batch_number.saturating_add(1);
        Ok(())
    }

    /// Bytes that are staged.
    pub fn staged_bytes(&self) -> usize {
        self.staged.len() + self.points.as_ref().map_or(0, |run| run.data.len() + 8 * run.coords.len())
    }

    /// Whether there are entries that are not published.
    pub fn is_dirty(&self) -> bool {
        self.unpublished > 0 || self.points.is_some()
    }

    /// Moves what is staged to the log datasets. It is not published yet. `new_log_dataset_size` is how many bytes a new log dataset
    /// has room for.
    ///
    /// # Errors
    /// Errors of the store beneath; everything stays staged then.
    pub fn write_staged(&mut self, new_log_dataset_size: impl FnOnce(&Self) -> u64) -> Result<()> {
        self.end_points()?;
        self.background.finish_write()?;
        if self.staged.is_empty() {
            return Ok(());
        }
        let room = new_log_dataset_size(self);
        self.format.append(&mut self.files[self.own], &self.staged, room)?;
        self.staged.clear();
        Ok(())
    }

    /// As [`LogState::write_staged`]. Another thread writes what is much, while the next entries are staged. At most one
    /// such write is under way, and its bytes are in memory.
    ///
    /// # Errors
    /// As [`LogState::write_staged`], also those of the write before.
    pub fn begin_write_staged(&mut self, new_log_dataset_size: impl FnOnce(&Self) -> u64) -> Result<()> {
        if self.staged.len() < MIN_BACKGROUND_BYTES
            || !self.format.supports_all_entry_kinds()
            || available_threads() < 2
        {
            return self.write_staged(new_log_dataset_size);
        }
        self.end_points()?;
        self.background.finish_write()?;
        let room = new_log_dataset_size(self);
        let own = &mut self.files[self.own];
        let at = own.log.used_end();
        let (chunks, offset) = own.log.reserve_append(&*own.store, self.staged.len() as u64, room)?;
        let bytes = std::mem::replace(&mut self.staged, self.background.take_spare_buffer()).into();
        self.background.begin_write(PendingWrite {
            log_dataset: chunks,
            log_dataset_offset: offset,
            log_offset: at,
            bytes,
        });
        Ok(())
    }

    /// Has the next commit of the store beneath publish all entries, or publishes them already. None is staged.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn publish_by_next_commit(&mut self, publish: PublishLevel) -> Result<()> {
        self.format.publish_by_next_commit(&mut self.files[self.own], publish)
    }

    /// Has a main file say how many datasets were made.
    ///
    /// # Errors
    /// If they are too many for the layout; errors of the store beneath.
    pub fn set_created_dataset_count(&mut self, main: &dyn Store, count: u64) -> Result<()> {
        let group = self.main_log_group();
        self.format.write_created_dataset_count(main, group, count)
    }

    /// The last commit has published everything.
    pub fn mark_published(&mut self) {
        self.own_file_mut().log.mark_published();
        self.unpublished = 0;
    }

    /// Notes how many elements a dataset has. What no entry has of them yet, new log datasets have room for.
    ///
    /// # Errors
    /// As [`LogState::load_table_entries`].
    pub fn set_expected_element_count(&mut self, dataset: u64, rank: usize, elements: u64) -> Result<()> {
        self.dataset_mut(dataset, rank)?.expected_element_count = elements;
        Ok(())
    }

    /// Bytes that the log will have for what no entry has yet of the datasets that the session writes; saturates.
    pub fn expected_remaining_bytes(&self) -> u64 {
        self.datasets.values().map(LoggedDataset::expected_remaining_bytes).fold(0, u64::saturating_add)
    }

    /// How many entries were read or made, beside those that only the index tables have.
    pub fn entry_count_outside_tables(&self) -> u64 {
        self.entries
    }

    /// Bytes of data of all entries.
    pub fn data_bytes_outside_tables(&self) -> u64 {
        self.data_bytes
    }

    /// How many bytes from a position on can be read at once.
    pub fn contiguous_bytes_at(&self, at: LogPosition) -> u64 {
        let Some(file) = self.files.get(at.file() as usize) else { return 0 };
        match at.offset() < file.log.used_end() {
            true => file.log.contiguous_bytes_at(at.offset()),
            // What is staged is in memory as a whole.
            false => file.next_entry_offset.saturating_sub(at.offset()),
        }
    }

    /// Reads bytes of a log from a position on, staged or not.
    ///
    /// # Errors
    /// If the log has no such bytes; errors of the store beneath.
    pub fn read(&self, at: LogPosition, into: &mut [u8]) -> Result<()> {
        let outside = || LogError::EntryDatasetMismatch { dataset: u64::MAX, rule: "leads outside of the log" };
        let number = at.file() as usize;
        let file = self.files.get(number).ok_or_else(outside)?;
        let staged = at.offset().checked_sub(file.log.used_end()).filter(|_| number == self.own);
        let Some(offset) = staged else {
            let read = |at: u64, into: &mut [u8]| file.read(at, into);
            return if number == self.own {
                self.background.read(at.offset(), into, read)
            } else {
                read(at.offset(), into)
            };
        };
        let bytes = usize::try_from(offset).ok().and_then(|from| self.staged.get(from..)?.get(..into.len()));
        into.copy_from_slice(bytes.ok_or_else(outside)?);
        Ok(())
    }

    /// The log datasets of the file of a position.
    fn log_of(&self, at: LogPosition) -> Option<&LogDatasets> {
        self.files.get(at.file() as usize).map(|file| &file.log)
    }

    /// Whether so many bytes from a position on can be copied from memory ([`LogState::copy_mapped`]).
    pub fn try_map(&self, at: LogPosition, len: u64) -> bool {
        self.log_of(at).is_some_and(|log| log.try_map(at.offset(), len))
    }

    /// Copies bytes of a log from memory; `false` if they are not there. That all of them are the file's,
    /// [`LogState::is_mapping_intact`] says afterwards.
    pub fn copy_mapped(&self, at: LogPosition, into: &mut [u8]) -> bool {
        self.log_of(at).is_some_and(|log| log.copy_mapped(at.offset(), into))
    }

    /// Whether the files have had all bytes that were copied from memory. What they have lost is read by calls from then
    /// on.
    pub fn is_mapping_intact(&self) -> bool {
        self.files.iter().filter(|file| !file.log.check_or_disable_mappings()).count() == 0
    }

    /// Has nothing of the logs in memory any more.
    pub fn unmap(&mut self) {
        self.files.iter_mut().for_each(|file| file.log.reset_mappings());
    }

    /// The extent of a dataset: what entries have set, or what its anchor says.
    pub fn extent_of(&self, number: u64, spec: &DatasetSpec) -> DimVec {
        let logged = self.dataset(number).and_then(|dataset| dataset.extent.clone());
        logged.unwrap_or_else(|| DimVec::from_slice(spec.dataspace.dims()))
    }
}
