//! The log of a session: what is published, what is staged, and the index of both.

use std::borrow::Cow;

use h5live_model::{AllocationLimit, DatasetSpec, ObjectId, Store};
use rustc_hash::FxHashMap;

use crate::entry::{self, ALIGNMENT, Dims, EntryBounds, EntryChange, EntryHead, FRAME_BYTES};
use crate::entry_index::EntryIndex;
use crate::error::{LogError, Result};
use crate::index_table::{self, SavedTable};
use crate::log_datasets::LogDatasets;

/// Bytes that a scan of the log reads at once.
const SCAN_BYTES: u64 = 1 << 20;
/// Points of one entry. The head of an entry stays far below [`entry::MAX_HEAD_BYTES`].
const MAX_POINTS: usize = 4096;

/// What the log has of one dataset.
#[derive(Debug)]
pub struct LoggedDataset {
    /// Which entries have its elements: those before `indexed`.
    pub index: EntryIndex,
    /// The extent that entries have set (`[rank]`, elements); `None` if none has.
    pub extent: Option<Dims>,
    /// All its entries, as in a table. The index is made when the dataset is read.
    table: Vec<u8>,
    /// Bytes of the table that are in the index.
    indexed: usize,
    /// Bytes of an element, as far as an entry has told it.
    element_size: u64,
}

impl LoggedDataset {
    /// Adds an entry whose data is at a position of the log.
    fn push(&mut self, head: &EntryHead, rank: usize, at: u64) {
        self.note_extent(head);
        index_table::push_entry(&mut self.table, head, rank, at);
    }

    fn note_extent(&mut self, head: &EntryHead) {
        match &head.change {
            EntryChange::Grow(dims) => match &mut self.extent {
                Some(extent) => extent.iter_mut().zip(dims).for_each(|(now, dim)| *now = (*now).max(*dim)),
                none => *none = Some(dims.clone()),
            },
            EntryChange::Shrink(dims) => self.extent = Some(dims.clone()),
            EntryChange::Block { count, .. } if head.filter == 0 => {
                let elements = count.iter().fold(1, |n: u64, count| n.saturating_mul(*count));
                self.element_size = head.data_len / elements.max(1);
            }
            EntryChange::Block { .. } | EntryChange::Points(_) => {}
        }
    }

    /// Puts all entries into the index.
    fn prepare(&mut self) -> Result<()> {
        let LoggedDataset { index, table, indexed, .. } = self;
        index_table::for_each_entry(&table[*indexed..], |head, _, at| {
            index.push(&head, at);
            Ok(())
        })?;
        *indexed = table.len();
        index.prepare();
        Ok(())
    }
}

/// Points of one dataset that were written one after the other, and wait to become one entry.
#[derive(Debug)]
struct PointRun {
    dataset: u64,
    rank: usize,
    coords: Vec<u64>,
    data: Vec<u8>,
}

/// The log of a session.
#[derive(Debug)]
pub struct LogState {
    /// The log datasets.
    pub log: LogDatasets,
    /// The index table of the file. Entries behind it are read from the log.
    saved: Option<SavedTable>,
    /// The numbers of datasets, and what the log has of each.
    datasets: FxHashMap<u64, LoggedDataset>,
    /// Entries that are not in a log dataset yet. They follow the last one that is.
    staged: Vec<u8>,
    points: Option<PointRun>,
    /// The position up to which entries are in the index.
    indexed: u64,
    /// The number of the batch that is gathered.
    batch: u64,
    /// Bytes of entries since the last commit, staged or in a log dataset.
    unpublished: u64,
    /// Entries, and bytes of their data, beside those that only the index table has.
    entries: u64,
    data_bytes: u64,
}

impl LogState {
    /// The log with what is published in it. What `saved` covers is read from there when it is needed.
    ///
    /// # Errors
    /// If the log is damaged; errors of the store beneath.
    pub fn open(log: LogDatasets, saved: Option<SavedTable>, limit: AllocationLimit) -> Result<Self> {
        let covers = saved.as_ref().map_or(0, |saved| saved.covers);
        if covers > log.end() {
            return Err(LogError::Table { source: entry::EntryError::Field("more than the log") }.into());
        }
        let mut state = LogState {
            log,
            saved,
            datasets: FxHashMap::default(),
            staged: Vec::new(),
            points: None,
            indexed: covers,
            batch: 1,
            unpublished: 0,
            entries: 0,
            data_bytes: 0,
        };
        state.index_published(limit)?;
        Ok(state)
    }

    /// A log whose datasets are indexed already.
    pub fn with_indexes(log: LogDatasets, indexes: FxHashMap<u64, EntryIndex>) -> Self {
        let datasets = indexes.into_iter().map(|(number, index)| {
            (number, LoggedDataset { index, extent: None, table: Vec::new(), indexed: 0, element_size: 0 })
        });
        let (datasets, indexed) = (datasets.collect(), log.end());
        LogState {
            log,
            saved: None,
            datasets,
            staged: Vec::new(),
            points: None,
            indexed,
            batch: 1,
            unpublished: 0,
            entries: 0,
            data_bytes: 0,
        }
    }

    /// Takes up what the writer has published since. Says whether that is something.
    ///
    /// # Errors
    /// As [`LogState::open`].
    pub fn catch_up(&mut self, store: &dyn Store, limit: AllocationLimit) -> Result<bool> {
        let has_more = self.log.catch_up(store)?;
        if has_more {
            self.index_published(limit)?;
        }
        Ok(has_more)
    }

    /// Puts entries of log datasets into the index, from where it ends on.
    fn index_published(&mut self, limit: AllocationLimit) -> Result<()> {
        let mut window = Vec::new();
        let mut first = self.indexed;
        while self.indexed < self.log.end() {
            let at = self.indexed;
            let damaged = |source| LogError::Entry { at, source };
            self.fill_window(&mut window, &mut first, FRAME_BYTES as u64, limit)?;
            let bounds = entry::decode_frame(&window[(at - first) as usize..]).map_err(damaged)?;
            self.fill_window(&mut window, &mut first, bounds.head_len as u64, limit)?;
            let (head, rank) = entry::decode_head(&window[(at - first) as usize..]).map_err(damaged)?;
            if bounds.len > self.log.bytes_behind(at) {
                return Err(damaged(entry::EntryError::Truncated).into());
            }
            self.batch = self.batch.max(head.batch.saturating_add(1));
            self.add_to_index(&head, rank, at + bounds.head_len as u64)?;
            self.indexed += bounds.len;
        }
        Ok(())
    }

    /// Makes the window have `len` bytes of the log from the end of the index on.
    fn fill_window(&self, window: &mut Vec<u8>, first: &mut u64, len: u64, limit: AllocationLimit) -> Result<()> {
        let at = self.indexed;
        if at >= *first && at + len <= *first + window.len() as u64 {
            return Ok(());
        }
        let behind = self.log.bytes_behind(at);
        if behind < len {
            return Err(LogError::Entry { at, source: entry::EntryError::Truncated }.into());
        }
        let bytes = behind.min(SCAN_BYTES.max(len));
        window.clear();
        window.resize(limit.check(bytes)?, 0);
        *first = at;
        self.log.read(at, window)
    }

    fn add_to_index(&mut self, head: &EntryHead, rank: usize, at: u64) -> Result<()> {
        self.entries += 1;
        self.data_bytes += head.data_len;
        self.dataset_mut(head.dataset, rank)?.push(head, rank, at);
        Ok(())
    }

    fn dataset_mut(&mut self, number: u64, rank: usize) -> Result<&mut LoggedDataset> {
        if !self.datasets.contains_key(&number) {
            let saved = self.saved_entries(number)?;
            let index = EntryIndex::new(rank);
            let mut dataset = LoggedDataset { index, extent: None, table: saved, indexed: 0, element_size: 0 };
            let mut heads = Vec::new();
            index_table::for_each_entry(&dataset.table, |head, rank, _| {
                heads.push((head, rank));
                Ok(())
            })?;
            if heads.iter().any(|(_, found)| *found != rank) {
                return Err(LogError::Misfit { dataset: number, rule: "has another number of dimensions" }.into());
            }
            heads.iter().for_each(|(head, _)| dataset.note_extent(head));
            self.datasets.insert(number, dataset);
        }
        let missing = || LogError::Missing(format!("entry of dataset {number}"));
        let dataset = self.datasets.get_mut(&number).ok_or_else(missing)?;
        if dataset.index.rank() != rank {
            return Err(LogError::Misfit { dataset: number, rule: "has another number of dimensions" }.into());
        }
        Ok(dataset)
    }

    /// The entries of a dataset in the table of the file.
    fn saved_entries(&self, number: u64) -> Result<Vec<u8>> {
        let Some(saved) = &self.saved else { return Ok(Vec::new()) };
        saved.entries_of(number, |place| self.log.position_of(place))
    }

    /// Has what the file's table knows of a dataset in memory.
    ///
    /// # Errors
    /// If the table is damaged; errors of the store beneath.
    pub fn load(&mut self, number: u64, rank: usize) -> Result<()> {
        self.dataset_mut(number, rank).map(drop)
    }

    /// Writes the table and the skip list, if the log has more than the ones of the file. All entries are in log
    /// datasets.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn save_table(&self, store: &dyn Store, group: ObjectId, dataset_count: u64) -> Result<()> {
        if self.saved.as_ref().map_or(0, |saved| saved.covers) == self.log.end() {
            return Ok(());
        }
        let entries = |number: u64| match self.dataset(number) {
            Some(dataset) => Ok(Cow::Borrowed(&dataset.table[..])),
            None => self.saved_entries(number).map(Cow::Owned),
        };
        let place = |at: u64| self.log.place_of(at);
        index_table::save(store, group, self.log.end(), (0..dataset_count).map(entries), place)
    }

    /// What the log has of a dataset; `None` if it has nothing.
    pub fn dataset(&self, number: u64) -> Option<&LoggedDataset> {
        self.datasets.get(&number)
    }

    /// Makes everything of a dataset findable, and fast to find.
    ///
    /// # Errors
    /// If the table is damaged; errors of the store beneath.
    pub fn prepare(&mut self, number: u64, rank: usize) -> Result<()> {
        self.end_points()?;
        self.dataset_mut(number, rank)?.prepare()
    }

    /// Whether [`LogState::prepare`] has something to do.
    pub fn needs_preparation(&self, number: u64) -> bool {
        let is_prepared =
            |dataset: &LoggedDataset| dataset.indexed == dataset.table.len() && !dataset.index.is_outdated();
        self.points.is_some() || !self.dataset(number).is_some_and(is_prepared)
    }

    /// Stages an entry.
    ///
    /// # Errors
    /// If the rank is not the one that the log knows.
    pub fn stage(&mut self, dataset: u64, rank: usize, change: EntryChange, data: &[u8]) -> Result<()> {
        self.end_points()?;
        self.stage_entry(dataset, rank, change, data)
    }

    /// Stages one element.
    ///
    /// # Errors
    /// As [`LogState::stage`].
    pub fn stage_point(&mut self, dataset: u64, at: &[u64], element: &[u8]) -> Result<()> {
        let is_continued = |run: &PointRun| run.dataset == dataset && run.coords.len() < MAX_POINTS * run.rank.max(1);
        if at.is_empty() || !self.points.as_ref().is_some_and(is_continued) {
            self.end_points()?;
        }
        if at.is_empty() {
            let change = EntryChange::Block { start: Dims::new(), count: Dims::new() };
            return self.stage_entry(dataset, 0, change, element);
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
        self.stage_entry(dataset, rank, EntryChange::Points(coords), &data)
    }

    fn stage_entry(&mut self, dataset: u64, rank: usize, change: EntryChange, data: &[u8]) -> Result<()> {
        let (data_len, data_crc) = (data.len() as u64, crc32c::crc32c(data));
        let head = EntryHead { batch: self.batch, writer: 0, dataset, change, filter: 0, data_len, data_crc };
        let EntryBounds { head_len, len } = head.bounds();
        self.add_to_index(&head, rank, self.indexed + head_len as u64)?;
        self.staged.reserve(len as usize);
        head.encode(rank, &mut self.staged);
        self.staged.extend_from_slice(data);
        self.staged.resize(self.staged.len().next_multiple_of(ALIGNMENT as usize), 0);
        self.indexed += len;
        self.unpublished += len;
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

    /// Moves what is staged to the log datasets. It is not published yet. `room` is how many bytes a new log dataset
    /// has room for.
    ///
    /// # Errors
    /// Errors of the store beneath; everything stays staged then.
    pub fn write_staged(&mut self, store: &dyn Store, room: impl FnOnce(&Self) -> u64) -> Result<()> {
        self.end_points()?;
        if self.staged.is_empty() {
            return Ok(());
        }
        let room = room(self);
        self.log.append(store, &self.staged, room)?;
        self.staged.clear();
        Ok(())
    }

    /// The last commit has published everything.
    pub fn note_published(&mut self) {
        self.log.note_published();
        self.unpublished = 0;
        self.batch += 1;
    }

    /// Bytes of all elements of all extents, as far as entries tell them; saturates.
    pub fn bytes_of_extents(&self) -> u64 {
        let bytes = |dataset: &LoggedDataset| {
            let dims = dataset.extent.as_deref().unwrap_or_default();
            dims.iter().fold(dataset.element_size, |n, dim| n.saturating_mul(*dim))
        };
        self.datasets.values().map(bytes).fold(0, u64::saturating_add)
    }

    /// How many entries were read or made, beside those that only the index table has.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of data of all entries.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Reads bytes of the log from a position on, staged or not.
    ///
    /// # Errors
    /// If the log has no such bytes; errors of the store beneath.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let Some(offset) = at.checked_sub(self.log.end()) else { return self.log.read(at, into) };
        let bytes = usize::try_from(offset).ok().and_then(|from| self.staged.get(from..)?.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(LogError::Misfit { dataset: u64::MAX, rule: "leads outside of the log" })?);
        Ok(())
    }

    /// The extent of a dataset: what entries have set, or what its anchor says.
    pub fn extent_of(&self, number: u64, spec: &DatasetSpec) -> Dims {
        let logged = self.dataset(number).and_then(|dataset| dataset.extent.clone());
        logged.unwrap_or_else(|| Dims::from_slice(spec.dataspace.dims()))
    }
}
