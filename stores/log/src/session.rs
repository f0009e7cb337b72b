//! A session on a file with a log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live_model::{
    AllocationLimit, Capabilities, DatasetSpec, Durability, Encoding, Error, Features, Limits, LinkTarget, Mode, Name,
    NewObject, ObjectId, ObjectSpec, Parts, Publish, Reads, Scope, Session, Staging, Store, StoreWriter, Unfilter,
    Unit,
};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustc_hash::FxHashMap;

use crate::anchor::{Anchor, integer, read_integer, shape_attribute};
use crate::entry::Dims;
use crate::error::{LogError, Result};
use crate::index_table::SavedTable;
use crate::log_datasets::{LogDatasets, hard_target};
use crate::log_state::LogState;
use crate::log_vol::{self, LogVolLog};
use crate::names::{self, Naming};
use crate::options::Log;

/// The name of this kind of store.
pub const CONNECTOR: &str = "log";

/// What a session on a log can do, over a store that can do `inner`.
pub fn capabilities(inner: &Capabilities) -> Capabilities {
    Capabilities {
        features: inner.features.without(Features::MAPS),
        parts: Parts::Blocks,
        staging: Staging::Store,
        encoding: Encoding::Store,
        reads: Reads::Blocks,
        commit: Unit::Object,
        view: Unit::Object,
        durability: Durability::OnRequest,
        live: inner.live,
        limits: Limits::NONE,
    }
}

/// What all handles of a session share.
#[derive(Debug)]
pub struct LogSession {
    pub inner: Arc<dyn Store>,
    pub described: Session,
    pub naming: Naming,
    pub options: Log,
    pub unfilter: Arc<dyn Unfilter>,
    pub max_allocation: AllocationLimit,
    group: ObjectId,
    state: RwLock<LogState>,
    /// Datasets whose anchors do not say their extent, by their numbers, and the anchors.
    changed_extents: Mutex<FxHashMap<u64, ObjectId>>,
    /// Anchors that were made since the last commit: they are seen after the entries so far.
    new_anchors: Mutex<Vec<ObjectId>>,
    /// Numbers of datasets that were made so far.
    dataset_count: Mutex<u64>,
    is_closed: AtomicBool,
}

impl LogSession {
    /// Whether a file has a log.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn has_log(inner: &dyn Store) -> Result<bool> {
        Ok(inner.link(inner.session().root, &Name::from(names::LOG_GROUP))?.is_some())
    }

    /// Opens the log of a file, or makes one if the file has none and the session can write.
    ///
    /// # Errors
    /// If the log is damaged, or there is none and the session only reads; errors of the store beneath.
    pub fn open(
        inner: Arc<dyn Store>,
        options: Log,
        unfilter: Arc<dyn Unfilter>,
        max_allocation: AllocationLimit,
    ) -> Result<Self> {
        let session = inner.session();
        let group = match hard_target(inner.link(session.root, &Name::from(names::LOG_GROUP))?) {
            Some(group) => group,
            None if session.mode.writes() => make_group(&*inner)?,
            None => return Err(LogError::Missing(format!("group {:?}", names::LOG_GROUP)).into()),
        };
        const OF: &str = "the group of the log";
        let number = |name: &'static str| {
            let found = read_integer(&*inner, group, name, OF)?;
            found.ok_or_else(|| Error::from(LogError::Missing(format!("attribute {name:?} of {OF}"))))
        };
        match number(names::LAYOUT_VERSION)? {
            crate::LAYOUT => {}
            other => return Err(LogError::Layout(other).into()),
        }
        let dataset_count = number(names::DATASET_COUNT)?.cast_unsigned();
        // A follower reads the log itself: the writer may replace the table.
        let reads_table = session.mode != Mode::SwmrRead && !options.rebuild_index;
        let saved = if reads_table { SavedTable::open(&*inner, group)? } else { None };
        let state = LogState::open(LogDatasets::open(&*inner, group)?, saved, max_allocation)?;
        let mut described = Session::new(CONNECTOR, session.mode, session.root, capabilities(&session.capabilities));
        described.forms = session.forms;
        Ok(LogSession {
            described,
            naming: Naming::Design,
            options,
            unfilter,
            max_allocation,
            group,
            state: RwLock::new(state),
            changed_extents: Mutex::default(),
            new_anchors: Mutex::default(),
            dataset_count: Mutex::new(dataset_count),
            is_closed: AtomicBool::new(false),
            inner,
        })
    }

    /// The log of a file of Log VOL, to be read. `files` have it: the file itself, or its subfiles.
    ///
    /// # Errors
    /// If the log is damaged; errors of the stores.
    pub fn open_log_vol(
        inner: Arc<dyn Store>,
        files: &[Arc<dyn Store>],
        unfilter: Arc<dyn Unfilter>,
        max_allocation: AllocationLimit,
    ) -> Result<Self> {
        let LogVolLog { data, datasets } = LogVolLog::open(&*inner, files)?;
        let session = inner.session();
        let mut described = Session::new(CONNECTOR, session.mode, session.root, capabilities(&session.capabilities));
        described.forms = session.forms;
        Ok(LogSession {
            described,
            naming: Naming::LogVol,
            options: Log::default(),
            unfilter,
            max_allocation,
            group: ObjectId(0),
            state: RwLock::new(LogState::with_indexes(data, datasets)),
            changed_extents: Mutex::default(),
            new_anchors: Mutex::default(),
            dataset_count: Mutex::default(),
            is_closed: AtomicBool::new(false),
            inner,
        })
    }

    /// The anchor at `id`; `None` if the object is none.
    ///
    /// # Errors
    /// If its attributes contradict each other; errors of the store beneath.
    pub fn read_anchor(&self, id: ObjectId) -> Result<Option<Anchor>> {
        match self.naming {
            Naming::Design => Anchor::read(&*self.inner, id),
            Naming::LogVol => {
                Ok(log_vol::read_anchor(&*self.inner, id)?.map(|(number, spec)| Anchor { id: number, spec }))
            }
        }
    }

    /// Whether a group may have links that are the log's own.
    pub fn has_own_links(&self, id: ObjectId) -> bool {
        id == self.described.root || self.naming == Naming::LogVol
    }

    /// The name of a link of a group as it is stored.
    pub fn stored_link_name(&self, group: ObjectId, name: &Name) -> Name {
        if self.has_own_links(group) { self.naming.stored_name(name) } else { name.clone() }
    }

    /// Refuses everything after the session was closed.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// How many datasets were made so far.
    pub fn dataset_count(&self) -> u64 {
        *self.dataset_count.lock()
    }

    /// The group of the log.
    pub fn group(&self) -> ObjectId {
        self.group
    }

    /// Whether the session writes.
    pub fn writes(&self) -> bool {
        self.described.mode.writes()
    }

    /// The log, to look at.
    pub fn state(&self) -> RwLockReadGuard<'_, LogState> {
        self.state.read()
    }

    /// The log, with everything of a dataset that was written so far findable.
    ///
    /// # Errors
    /// As staging an entry.
    pub fn state_for_reading(&self, dataset: u64, rank: usize) -> Result<RwLockReadGuard<'_, LogState>> {
        let state = self.state.read();
        if !state.needs_preparation(dataset) {
            return Ok(state);
        }
        drop(state);
        self.state.write().prepare(dataset, rank)?;
        Ok(self.state.read())
    }

    /// Changes the log, and moves what is staged to the file if it is more than the budget.
    ///
    /// # Errors
    /// Those of `change`; errors of the store beneath.
    pub fn change(&self, change: impl FnOnce(&mut LogState) -> Result<()>) -> Result<()> {
        let mut state = self.state.write();
        change(&mut state)?;
        if state.staged_bytes() as u64 > self.options.staging {
            state.write_staged(&*self.inner, |state| self.log_dataset_room(state))?;
        }
        Ok(())
    }

    /// How many bytes the next log dataset has room for: as much as all datasets take if the rest of their elements is
    /// written like those so far, within bounds.
    fn log_dataset_room(&self, state: &LogState) -> u64 {
        let missing = state.bytes_of_extents().saturating_sub(state.data_bytes());
        missing.max(state.log.end()).clamp(self.options.min_log_size, self.options.max_log_size.max(1))
    }

    /// The number of a new dataset.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn new_dataset_number(&self, writer: &dyn StoreWriter) -> Result<u64> {
        let mut count = self.dataset_count.lock();
        writer.set_attribute(self.group, &integer(names::DATASET_COUNT, count.cast_signed() + 1))?;
        *count += 1;
        Ok(*count - 1)
    }

    /// The extent of a dataset: what entries have set, or what its anchor says.
    ///
    /// # Errors
    /// If the index table is damaged; errors of the store beneath.
    pub fn extent_of(&self, number: u64, spec: &DatasetSpec) -> Result<Dims> {
        if self.state.read().dataset(number).is_none() {
            self.state.write().load(number, spec.dataspace.rank())?;
        }
        Ok(self.state.read().extent_of(number, spec))
    }

    /// Notes that an anchor was made.
    pub fn note_anchor(&self, id: ObjectId) {
        self.new_anchors.lock().push(id);
    }

    /// Takes up what the writer has published since.
    ///
    /// # Errors
    /// If the log is damaged; errors of the store beneath.
    pub fn catch_up(&self) -> Result<bool> {
        if self.writes() || self.described.mode == Mode::Read || self.naming == Naming::LogVol {
            return Ok(false);
        }
        self.inner.refresh(Scope::Objects(&[self.group]))?;
        self.state.write().catch_up(&*self.inner, self.max_allocation)
    }

    /// What to watch to learn of new entries, and how many log datasets there are.
    pub fn watched(&self) -> (Vec<ObjectId>, usize) {
        if self.naming == Naming::LogVol {
            return (Vec::new(), 0);
        }
        let state = self.state.read();
        (state.log.watched(), state.log.count())
    }

    /// Whether something was changed that is not committed.
    pub fn is_dirty(&self) -> bool {
        self.state.read().is_dirty() || self.inner.writer().is_ok_and(StoreWriter::is_dirty)
    }

    /// Publishes everything. Entries are seen all at once, and before the objects that were made since the last time.
    ///
    /// # Errors
    /// As [`StoreWriter::commit`].
    pub fn commit(&self, publish: Publish) -> Result<()> {
        self.check_open()?;
        let mut state = self.state.write();
        let writer = self.inner.writer()?;
        if !state.is_dirty() {
            self.new_anchors.lock().clear();
            return writer.commit(Scope::All, publish);
        }
        state.write_staged(&*self.inner, |state| self.log_dataset_room(state))?;
        state.log.stage_end(writer)?;
        for anchor in std::mem::take(&mut *self.new_anchors.lock()) {
            match self.inner.dataset(anchor) {
                Ok(anchor) => state.log.order_before(&*anchor)?,
                Err(Error::NoObject(_)) => {}
                Err(error) => return Err(error),
            }
        }
        writer.commit(Scope::All, publish)?;
        state.note_published();
        Ok(())
    }

    /// Commits, brings the attributes of anchors up to date, and ends the session. A second call does nothing.
    ///
    /// # Errors
    /// As [`StoreWriter::commit`].
    pub fn close(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.writes() {
            let writer = self.inner.writer()?;
            self.update_anchors(writer)?;
            self.commit(Publish::Visible)?;
            self.state.read().save_table(&*self.inner, self.group, *self.dataset_count.lock())?;
            self.commit(Publish::Visible)?;
        }
        self.is_closed.store(true, Ordering::Release);
        self.inner.close()
    }

    /// Notes that the extent of a dataset is not what its anchor says.
    pub fn note_extent(&self, number: u64, anchor: ObjectId) {
        self.changed_extents.lock().insert(number, anchor);
    }

    /// Has anchors say the extents of their datasets.
    fn update_anchors(&self, writer: &dyn StoreWriter) -> Result<()> {
        let state = self.state.read();
        for (number, anchor) in self.changed_extents.lock().drain() {
            let Some(dims) = state.dataset(number).and_then(|dataset| dataset.extent.as_ref()) else { continue };
            match writer.set_attribute(anchor, &shape_attribute(dims)) {
                // It was deleted since.
                Err(Error::NoObject(_)) => {}
                set => set?,
            }
        }
        Ok(())
    }
}

/// Makes the group of the log in a file that has none.
fn make_group(store: &dyn Store) -> Result<ObjectId> {
    let writer = store.writer()?;
    let group = writer.create(&NewObject::unlinked(&ObjectSpec::group()))?;
    let counters = [(names::LAYOUT_VERSION, crate::LAYOUT), (names::DATASET_COUNT, 0), (names::LOG_DATASET_COUNT, 0)];
    for (name, value) in counters {
        writer.set_attribute(group, &integer(name, value))?;
    }
    writer.add_link(store.session().root, &Name::from(names::LOG_GROUP), &LinkTarget::Hard(group))?;
    Ok(group)
}

impl Drop for LogSession {
    /// Commits, if nobody has closed the session. Errors are lost: who wants to know them closes it.
    fn drop(&mut self) {
        let _ = self.close();
    }
}
