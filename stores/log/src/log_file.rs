//! One file that has a log: the main file, or the subfile of a writer that has joined.

use std::sync::{Arc, OnceLock};

use h5live_model::{AllocationLimit, LinkTarget, Name, NewObject, ObjectId, ObjectSpec, Store};

use crate::anchor::{i64_scalar_attribute, read_i64_attribute};
use crate::entry::{self, EntryChange, EntryError, EntryHead, FRAME_BYTES};
use crate::error::{LogError, Result, with_subfile_number};
use crate::index_table::{IndexTableRow, SavedIndexTable, UNENDED_BATCH_ORDER};
use crate::log_datasets::{LogDatasets, hard_target};
use crate::names;
use crate::position::LogPosition;
use crate::row_shift::shift_entry;

/// Bytes that a scan of the log reads at once.
const SCAN_BYTES: u64 = 1 << 20;

/// A file with a log.
#[derive(Debug)]
pub struct LogFile {
    /// Its number: 0 for the main file.
    pub number: u32,
    /// The open file.
    pub store: Arc<dyn Store>,
    /// The group of the log.
    pub log_group: ObjectId,
    /// The log datasets.
    pub log: LogDatasets,
    /// The index table of the file. Entries behind it are read from the log.
    saved: Option<SavedIndexTable>,
    /// Up to where entries are known (bytes).
    pub next_entry_offset: u64,
    /// The number of the batch that comes next.
    pub next_batch_number: u64,
    /// The highest order of a batch in this log.
    pub last_batch_order: u64,
    /// The number that the entries of a main file have, when one was read.
    main_number: OnceLock<u32>,
}

/// A batch that was read from a log.
#[derive(Debug, Default)]
pub struct LogBatch {
    /// Its entries: the rank of the dataset, and the row of the index table that the entry has.
    pub ranks_and_entries: Vec<(usize, IndexTableRow)>,
    /// Where it stands among the batches of all writers.
    pub order: u64,
}

/// The group of the log of an open file; `None` if it has none.
///
/// # Errors
/// Errors of the store.
pub fn log_group(store: &dyn Store) -> Result<Option<ObjectId>> {
    Ok(hard_target(store.link(store.session().root, &Name::from(names::LOG_GROUP))?))
}

/// Whether the root group says that the file has a log.
///
/// # Errors
/// Errors of the store.
pub fn has_log_mark(store: &dyn Store) -> Result<bool> {
    Ok(store.attribute(store.session().root, &Name::from(names::LOG_MARK))?.is_some())
}

/// The group of the log of an open file that has a log.
///
/// # Errors
/// If there is none; errors of the store.
pub fn existing_log_group(store: &dyn Store) -> Result<ObjectId> {
    let missing = || LogError::MissingPart(format!("group {:?}", names::LOG_GROUP));
    Ok(log_group(store)?.ok_or_else(missing)?)
}

/// A number that the group of the log has.
///
/// # Errors
/// If there is none; errors of the store.
pub fn log_group_attribute(store: &dyn Store, group: ObjectId, name: &'static str) -> Result<u64> {
    let found = read_i64_attribute(store, group, name, names::OF_GROUP)?;
    let missing = || LogError::MissingPart(format!("attribute {name:?} of {}", names::OF_GROUP));
    Ok(found.ok_or_else(missing)?.cast_unsigned())
}

/// Makes the group of the log in a file that has none.
///
/// # Errors
/// Errors of the store.
pub fn create_log_group(store: &dyn Store) -> Result<ObjectId> {
    let writer = store.writer()?;
    let group = writer.create(&NewObject::unlinked(&ObjectSpec::group()))?;
    let counters = [
        (names::LAYOUT_VERSION, crate::LAYOUT_VERSION),
        (names::CREATED_DATASET_COUNT, 0),
        (names::LOG_DATASET_COUNT, 0),
    ];
    for (name, value) in counters {
        writer.set_attribute(group, &i64_scalar_attribute(name, value))?;
    }
    writer.add_link(store.session().root, &Name::from(names::LOG_GROUP), &LinkTarget::Hard(group))?;
    mark_as_log(store)?;
    Ok(group)
}

/// Has the root group of a file with a log say so. Files of earlier versions do not.
///
/// # Errors
/// Errors of the store.
pub fn mark_as_log(store: &dyn Store) -> Result<()> {
    if has_log_mark(store)? {
        return Ok(());
    }
    store.writer()?.set_attribute(store.session().root, &i64_scalar_attribute(names::LOG_MARK, crate::LAYOUT_VERSION))
}

impl LogFile {
    /// The log of a file, whose group of the log is `group`. With `reads_table`, what the index table has is read from
    /// there when it is needed, at most `limit` bytes at once.
    ///
    /// # Errors
    /// If the log is damaged, or the skip list is over the limit; errors of the store.
    pub fn open(
        number: u32,
        store: Arc<dyn Store>,
        group: ObjectId,
        reads_table: bool,
        limit: AllocationLimit,
    ) -> Result<Self> {
        LogFile::open_unnamed(number, store, group, reads_table.then_some(limit))
            .map_err(|error| with_subfile_number(number, error))
    }

    /// As [`LogFile::open`], with errors that do not say which file it is. The table is read with a limit, if it is.
    fn open_unnamed(
        number: u32,
        store: Arc<dyn Store>,
        group: ObjectId,
        table: Option<AllocationLimit>,
    ) -> Result<Self> {
        match log_group_attribute(&*store, group, names::LAYOUT_VERSION)?.cast_signed() {
            crate::LAYOUT_VERSION => {}
            other => return Err(LogError::UnknownLayoutVersion(other).into()),
        }
        let log = LogDatasets::open(&*store, group)?;
        let saved = table.map_or(Ok(None), |limit| SavedIndexTable::open(&*store, group, limit))?;
        let (covers, last_order) = saved.as_ref().map_or((0, 0), |saved| (saved.indexed_bytes, saved.last_batch_order));
        if covers > log.used_end() {
            return Err(LogError::DamagedIndexTable { source: EntryError::InvalidField("more than the log") }.into());
        }
        Ok(LogFile {
            number,
            store,
            log_group: group,
            log,
            saved,
            next_entry_offset: covers,
            next_batch_number: 1,
            last_batch_order: last_order,
            main_number: OnceLock::new(),
        })
    }

    /// A file whose log is indexed already. `group` is that of the log.
    pub fn with_log_already_read(store: Arc<dyn Store>, group: ObjectId, log: LogDatasets) -> Self {
        let indexed = log.used_end();
        LogFile {
            number: 0,
            store,
            log_group: group,
            log,
            saved: None,
            next_entry_offset: indexed,
            next_batch_number: 1,
            last_batch_order: 0,
            main_number: OnceLock::new(),
        }
    }

    /// The position of an offset in this log.
    pub fn position(&self, offset: u64) -> LogPosition {
        LogPosition::new(self.number, offset)
    }

    /// Up to where the index table has the log (bytes); `None` if there is no table.
    pub fn table_indexed_bytes(&self) -> Option<u64> {
        self.saved.as_ref().map(|saved| saved.indexed_bytes)
    }

    /// Reads from the index table that the file has now.
    ///
    /// # Errors
    /// As [`LogFile::open`].
    pub fn reopen_table(&mut self, limit: AllocationLimit) -> Result<()> {
        self.saved = SavedIndexTable::open(&*self.store, self.log_group, limit)?;
        Ok(())
    }

    /// Calls `each` with the entries of a dataset in the index table: the rank and the row of each.
    ///
    /// # Errors
    /// If the table is damaged; errors of the store and those of `each`.
    pub fn for_each_table_entry(
        &self,
        dataset: u64,
        each: &mut dyn FnMut(usize, IndexTableRow) -> Result<()>,
    ) -> Result<()> {
        let Some(saved) = &self.saved else { return Ok(()) };
        let position = |place| self.log.log_offset_of(place).map(|offset| self.position(offset));
        let read = saved.for_each_rank_and_row(dataset, position, &mut |rank, row| {
            self.check_number(&row.head, row.data_at)?;
            each(rank, row)
        });
        read.map_err(|error| with_subfile_number(self.number, error))
    }

    /// Takes up which entries the writer has published since. Says whether there are any that were not read.
    ///
    /// # Errors
    /// If the log is damaged; errors of the store.
    pub fn detect_unread_entries(&mut self) -> Result<bool> {
        let caught_up = self.log.catch_up(&*self.store);
        caught_up.map_err(|error| with_subfile_number(self.number, error))?;
        Ok(self.next_entry_offset < self.log.used_end())
    }

    /// Reads bytes of the log from an offset on.
    ///
    /// # Errors
    /// If the log has no such bytes; errors of the store.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.log.read(offset, into).map_err(|error| with_subfile_number(self.number, error))
    }

    /// Whether the file is open as a main file, and is a subfile, as its entries say that were read.
    pub fn is_subfile_opened_as_main(&self) -> bool {
        self.number == 0 && self.main_number.get().is_some_and(|number| *number > 0)
    }

    /// Checks that an entry was written into this file, and not into another one that is here by mistake. A subfile may be
    /// opened by itself: as a main file, whose entries all have the number of the subfile.
    fn check_number(&self, head: &EntryHead, at: LogPosition) -> Result<()> {
        let is_main = self.number == 0;
        let number = if is_main { *self.main_number.get_or_init(|| head.file) } else { self.number };
        match head.file == number {
            true => Ok(()),
            false => {
                Err(LogError::DamagedEntry { at, source: EntryError::InvalidField("it was written into another file") }
                    .into())
            }
        }
    }

    /// Reads the batches that are published and not known, in order, and hands each to `each`.
    ///
    /// # Errors
    /// If the log is damaged; those of `each`; errors of the store.
    pub fn read_new_batches(
        &mut self,
        limit: AllocationLimit,
        mut each: impl FnMut(LogBatch) -> Result<()>,
    ) -> Result<()> {
        let (mut window, mut first) = (Vec::new(), self.next_entry_offset);
        let mut batch = LogBatch::default();
        let mut at = self.next_entry_offset;
        while at < self.log.used_end() {
            let damaged = |source| LogError::DamagedEntry { at: self.position(at), source };
            self.fill_window(at, (&mut window, &mut first), FRAME_BYTES as u64, limit)?;
            let bounds = entry::decode_frame(&window[(at - first) as usize..]).map_err(damaged)?;
            self.fill_window(at, (&mut window, &mut first), bounds.head_len as u64, limit)?;
            let (head, rank) = entry::decode_head_and_rank(&window[(at - first) as usize..]).map_err(damaged)?;
            if bounds.len > self.log.contiguous_bytes_at(at) {
                return Err(damaged(EntryError::Truncated).into());
            }
            let data = self.position(at + bounds.head_len as u64);
            at += bounds.len;
            self.check_number(&head, data)?;
            if let EntryChange::EndOfBatch { order, shifts } = &head.change {
                let order = *order;
                // Each batch of a writer has a higher order than the one before.
                if order <= self.last_batch_order || order == UNENDED_BATCH_ORDER {
                    return Err(
                        LogError::DamagedEntry { at: data, source: EntryError::InvalidField("its order") }.into()
                    );
                }
                batch.ranks_and_entries.iter_mut().for_each(|(_, row)| shift_entry(shifts, &mut row.head));
                self.end_batch(at, &head, order, &mut batch);
                each(std::mem::take(&mut batch))?;
            } else {
                batch.ranks_and_entries.push((rank, IndexTableRow { head, batch_order: 0, data_at: data }));
            }
        }
        match batch.ranks_and_entries.is_empty() {
            true => Ok(()),
            false => Err(LogError::DamagedEntry { at: self.position(at), source: EntryError::NoEndOfBatch }.into()),
        }
    }

    fn end_batch(&mut self, at: u64, head: &EntryHead, order: u64, batch: &mut LogBatch) {
        self.next_entry_offset = at;
        self.next_batch_number = self.next_batch_number.max(head.batch_number.saturating_add(1));
        self.last_batch_order = self.last_batch_order.max(order);
        batch.order = order;
        batch.ranks_and_entries.iter_mut().for_each(|(_, row)| row.batch_order = order);
    }

    /// Makes the window have `len` bytes of the log from `at` on. It begins at `first`.
    fn fill_window(
        &self,
        at: u64,
        (window, first): (&mut Vec<u8>, &mut u64),
        len: u64,
        limit: AllocationLimit,
    ) -> Result<()> {
        if at >= *first && at + len <= *first + window.len() as u64 {
            return Ok(());
        }
        let behind = self.log.contiguous_bytes_at(at);
        if behind < len {
            return Err(LogError::DamagedEntry { at: self.position(at), source: EntryError::Truncated }.into());
        }
        let bytes = behind.min(SCAN_BYTES.max(len));
        window.clear();
        window.resize(limit.check(bytes)?, 0);
        *first = at;
        self.read(at, window)
    }
}
