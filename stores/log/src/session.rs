//! A session on a file with a log.

mod joined;
mod open_request;
mod published;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use h5live_model::{
    AllocationLimit, DatasetSpec, Error, FilterEngine, Mode, Name, ObjectId, ObjectScope, PublishLevel, SessionInfo,
    Store, StoreErrorKind, StoreWriter,
};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::anchor::AnchorDataset;
use crate::entry::DimVec;
use crate::error::{LogError, Result};
use crate::layout::LogLayout;
use crate::leased_main_file::{ChangedObjects, LeasedMainFile, MainFileChangeContext};
use crate::log_file::{self, LogFile};
use crate::log_state::LogState;
use crate::log_vol_root_attribute::LogVolRootAttribute;
use crate::multi_writer_files::{AppendLock, MultiWriterFiles};
use crate::mutant::LogMutant;
use crate::names;
use crate::options::Log;
use crate::subfile_opener::SubfileOpener;

pub use open_request::LogOpenRequest;

/// The name of this kind of store.
pub const CONNECTOR: &str = "log";

/// How many times what the log has a new log dataset has room for, at most.
const MAX_LOG_GROWTH: u64 = 8;
/// Room that a log dataset has for the ends of some batches, beside the elements that are expected (bytes).
const BATCH_ENDS_BYTES: u64 = 4 << 10;

/// A file, and objects of it that say what is new.
pub type WatchedFile = (Arc<dyn Store>, Vec<ObjectId>);

/// What all handles of a session share.
#[derive(Debug)]
pub struct LogSession {
    /// The main file. A session that has joined others only reads it; it changes the main file by [`LogSession::change_main_file`].
    pub inner: Arc<dyn Store>,
    /// The subfiles, and what writers agree by; `None` if the main file is one whose location is not known.
    files: Option<Arc<dyn MultiWriterFiles>>,
    /// Whether the session writes beside others, into a subfile of its own.
    has_joined: bool,
    /// The turn of a session that has joined, while it lasts longer than one change.
    turn: Mutex<Option<LeasedMainFile>>,
    /// Whether the session has changed the main file since the last durable commit.
    has_changed_main: AtomicBool,
    /// Changes after which objects may be gone from the main file, if the session has joined others.
    removals: AtomicU64,
    pub info: SessionInfo,
    pub layout: LogLayout,
    pub options: Log,
    pub filter_engine: Arc<dyn FilterEngine>,
    pub max_allocation: AllocationLimit,
    mutant: LogMutant,
    state: RwLock<LogState>,
    /// Held while entries are staged, and while a batch is ended and published. It is taken before `state`.
    staging: Mutex<()>,
    /// Datasets whose anchors do not say their extent, by their numbers, and the anchors.
    changed_extents: Mutex<FxHashMap<u64, ObjectId>>,
    /// The numbers of datasets that this session has made, if it has joined others.
    made: Mutex<FxHashSet<u64>>,
    /// Anchors that were made since the last commit, and the numbers of their datasets: they are seen after the entries so
    /// far. As all tables of anchors by their addresses, it may have some that are gone ([`LogSession::is_anchor_of`]).
    new_anchors: Mutex<Vec<(u64, ObjectId)>>,
    /// Numbers of datasets that were made so far.
    dataset_count: Mutex<u64>,
    /// Held to read while the main file is changed, and to write when the session begins to end. It is taken before
    /// `staging`.
    changing: RwLock<()>,
    /// Held from a commit that has failed until one succeeds, if rows have their places already: no other writer gets these.
    kept_places: Mutex<Option<Box<dyn AppendLock>>>,
    /// Held while objects are removed, and while anchors are changed of which nobody knows yet whether they are there.
    removing: Mutex<()>,
    /// Held by the call that ends the session.
    closing: Mutex<()>,
    /// Nothing is changed any more.
    is_closed: AtomicBool,
}

/// Whether a group has what the group of a log has. Any part of it will do: that the rest is missing is damage.
fn is_group_of_log(inner: &dyn Store, group: ObjectId) -> Result<bool> {
    const ATTRIBUTES: [&str; 2] = [names::LAYOUT_VERSION, names::LOG_DATASET_COUNT];
    const LINKS: [&str; 4] = ["log_1", "index_table", "_ld_0", "_md_0"];
    for name in ATTRIBUTES {
        if inner.attribute(group, &Name::from(name))?.is_some() {
            return Ok(true);
        }
    }
    for name in LINKS {
        if inner.link(group, &Name::from(name))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl LogSession {
    /// Whether a file has a log, or has had one.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn has_log_group_or_mark(inner: &dyn Store) -> Result<bool> {
        Ok(log_file::log_group(inner)?.is_some() || log_file::has_log_mark(inner)?)
    }

    /// Whether a file is one with a log: the root group says so, or the group of the log has what a log has, or the root
    /// group has what Log VOL writes there. A file without a log may have a group or an attribute of such a name.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn is_log_file(inner: &dyn Store) -> Result<bool> {
        let group = log_file::log_group(inner)?;
        if log_file::has_log_mark(inner)? || group.map_or(Ok(false), |group| is_group_of_log(inner, group))? {
            return Ok(true);
        }
        match LogVolRootAttribute::read(inner) {
            // A main file with subfiles has no group of the log.
            Ok(counters) => Ok(counters.is_some_and(|counters| group.is_some() || counters.subfile_count() > 0)),
            Err(_) => Ok(group.is_some()),
        }
    }

    /// Opens the log of a file in the layout of this program, or makes one if the file has none and the session can write.
    /// `files` are its subfiles.
    ///
    /// # Errors
    /// If the log is damaged, or there is none and the session only reads; if a writer that has joined is at work, and
    /// this session is not for that; errors of the stores beneath.
    pub fn open_or_create_h5live(
        inner: Arc<dyn Store>,
        files: Option<Arc<dyn MultiWriterFiles>>,
        how: LogOpenRequest,
    ) -> Result<Self> {
        let mode = inner.session().mode;
        let group = match log_file::log_group(&*inner)? {
            Some(group) => group,
            None if mode.writes() && !log_file::has_log_mark(&*inner)? => log_file::create_log_group(&*inner)?,
            None => log_file::existing_log_group(&*inner)?,
        };
        // A follower reads the log itself: the writer may replace the table.
        let reads_table = mode != Mode::SwmrRead && !how.options.rebuild_index;
        let main = LogFile::open(0, inner.clone(), group, reads_table, how.max_allocation)?;
        let mut state = LogState::open(main, how.max_allocation, how.mutant)?;
        // Who writes alone has the main file for itself, so nobody joins meanwhile.
        let subfile_mode = if mode.writes() { Mode::Read } else { mode };
        let mut subfiles = SubfileOpener { files: files.as_deref(), mode: subfile_mode, reads_table, own_file: None };
        subfiles.add_unopened_subfiles(&*inner, group, &mut state, how.max_allocation)?;
        state.apply_all_waiting()?;
        if mode.writes() {
            log_file::mark_as_log(&*inner)?;
        }
        let session = LogSession::new(inner, files, state, how)?;
        // Writers may have published in the files that were opened first, before they did so in the later ones.
        session.catch_up()?;
        Ok(session)
    }

    /// The session that has these files open.
    fn new(
        inner: Arc<dyn Store>,
        files: Option<Arc<dyn MultiWriterFiles>>,
        state: LogState,
        how: LogOpenRequest,
    ) -> Result<Self> {
        let dataset_count =
            log_file::log_group_attribute(&*inner, state.main_log_group(), names::CREATED_DATASET_COUNT)?;
        let mut session = LogSession::of_state(inner, LogLayout::H5live, state, dataset_count, how);
        session.files = files;
        Ok(session)
    }

    /// The session of a log that is open already, and has no subfiles. So many datasets were made in it.
    pub fn of_state(
        inner: Arc<dyn Store>,
        layout: LogLayout,
        state: LogState,
        created_dataset_count: u64,
        how: LogOpenRequest,
    ) -> Self {
        let session = inner.session();
        let capabilities = layout.capabilities(&session.capabilities);
        let mut described = SessionInfo::new(CONNECTOR, session.mode, session.root, capabilities);
        described.vlen_and_reference_sizes = session.vlen_and_reference_sizes;
        let LogOpenRequest { options, filter_engine: unfilter, max_allocation, mutant } = how;
        LogSession {
            info: described,
            layout,
            options,
            filter_engine: unfilter,
            max_allocation,
            mutant,
            files: None,
            has_joined: false,
            turn: Mutex::default(),
            has_changed_main: AtomicBool::new(false),
            removals: AtomicU64::new(0),
            state: RwLock::new(state),
            staging: Mutex::default(),
            changed_extents: Mutex::default(),
            made: Mutex::default(),
            new_anchors: Mutex::default(),
            dataset_count: Mutex::new(created_dataset_count),
            changing: RwLock::default(),
            kept_places: Mutex::default(),
            removing: Mutex::default(),
            closing: Mutex::default(),
            is_closed: AtomicBool::new(false),
            inner,
        }
    }

    /// The anchor at `id`; `None` if the object is none.
    ///
    /// # Errors
    /// If its attributes contradict each other; errors of the store beneath.
    pub fn read_anchor_dataset(&self, id: ObjectId) -> Result<Option<AnchorDataset>> {
        self.layout.read_anchor_dataset(&*self.inner, id)
    }

    /// Whether a group may have links that are the log's own.
    pub fn may_have_internal_links(&self, id: ObjectId) -> bool {
        id == self.info.root || self.layout.reserves_all_underscore_names()
    }

    /// The name of a link of a group as it is stored.
    pub fn stored_link_name(&self, group: ObjectId, name: &Name) -> Name {
        if self.may_have_internal_links(group) { self.layout.stored_name(name) } else { name.clone() }
    }

    /// Refuses everything after the session was closed.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// How many datasets were made so far.
    pub fn created_dataset_count(&self) -> u64 {
        *self.dataset_count.lock()
    }

    /// Whether the session writes beside others, into a subfile of its own.
    pub fn is_joined_writer(&self) -> bool {
        self.has_joined
    }

    /// Changes the main file. A session that has joined others has it for itself only while `change` runs; then what
    /// was changed is published.
    ///
    /// # Errors
    /// Those of `change`; if another writer does not end its turn; errors of the store beneath.
    pub fn change_main_file<T>(&self, change: impl FnOnce(&mut MainFileChangeContext<'_>) -> Result<T>) -> Result<T> {
        let _changing = self.changing.read();
        self.check_open()?;
        let Some(files) = self.files.as_ref().filter(|_| self.has_joined) else {
            return change(&mut MainFileChangeContext::exclusive(&*self.inner));
        };
        let mut turn = self.turn.lock();
        let mut begun = turn.take().map_or_else(|| LeasedMainFile::acquire(&**files), Ok)?;
        let (result, changed) = begun.change(change);
        self.has_changed_main.store(true, Ordering::Release);
        *turn = begun.publish_and_try_release()?;
        if matches!(changed, ChangedObjects::Any) {
            self.removals.fetch_add(1, Ordering::AcqRel);
        }
        changed.refresh(&*self.inner)?;
        result
    }

    /// How many changes there were after which objects may be gone. It stays 0 in a session that has not joined others:
    /// there the store beneath knows what it has deleted.
    pub fn possible_removal_count(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Whether the session writes.
    pub fn writes(&self) -> bool {
        self.info.mode.writes()
    }

    /// The log, to look at.
    pub fn state(&self) -> RwLockReadGuard<'_, LogState> {
        self.state.read()
    }

    /// The log, with everything of a dataset that was written so far findable.
    ///
    /// # Errors
    /// As staging an entry.
    pub fn state_with_updated_index(&self, dataset: u64, rank: usize) -> Result<RwLockReadGuard<'_, LogState>> {
        let state = self.state.read();
        let knows_others = state.has_read_all_files();
        if knows_others && !state.needs_index_update(dataset) {
            return Ok(state);
        }
        drop(state);
        if !knows_others {
            self.catch_up()?;
        }
        self.state.write().update_index(dataset, rank)?;
        Ok(self.state.read())
    }

    /// Changes the log, and moves what is staged to the file if it is more than the budget.
    ///
    /// # Errors
    /// Those of `change`; errors of the store beneath.
    pub fn change_state(&self, change: impl FnOnce(&mut LogState) -> Result<()>) -> Result<()> {
        let _staging = self.staging.lock();
        // Who comes after the session has begun to end is told so.
        self.check_open()?;
        let mut state = self.state.write();
        change(&mut state)?;
        if state.staged_bytes() as u64 > self.options.staging {
            state.begin_write_staged(|state| self.log_dataset_room(state))?;
        }
        Ok(())
    }

    /// How many bytes the next log dataset has room for: what is staged, and the rest of the elements if they are written
    /// like those so far. That is at most [`MAX_LOG_GROWTH`] times what there is: most of a large dataset may never be
    /// written. It is at least a quarter of the log, so that a log that grows on has few log datasets.
    fn log_dataset_room(&self, state: &LogState) -> u64 {
        let (staged, end) = (state.staged_bytes() as u64, state.own_file().log.used_end());
        let expected = staged.saturating_add(state.expected_remaining_bytes());
        let room = expected.min(end.saturating_add(staged).saturating_mul(MAX_LOG_GROWTH)).max(end / 4);
        room.saturating_add(BATCH_ENDS_BYTES).max(self.options.min_log_size).min(self.options.max_log_size.max(1))
    }

    /// The number of a new dataset. `main` is the main file, to be changed.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn take_next_dataset_number(&self, main: &dyn Store) -> Result<u64> {
        let mut state = self.state.write();
        let mut count = self.dataset_count.lock();
        let group = state.main_log_group();
        let number = if self.has_joined {
            log_file::log_group_attribute(main, group, names::CREATED_DATASET_COUNT)?
        } else {
            *count
        };
        let next = number.cast_signed().checked_add(1).filter(|next| *next > 0);
        let next =
            next.ok_or(LogError::InvalidAttribute { attribute: names::CREATED_DATASET_COUNT, of: names::OF_GROUP })?;
        state.set_created_dataset_count(main, next.cast_unsigned())?;
        *count = next.cast_unsigned();
        if self.has_joined {
            self.made.lock().insert(number);
        }
        Ok(number)
    }

    /// The extent of a dataset: what entries have set, or what its anchor says.
    ///
    /// # Errors
    /// If the index table is damaged; errors of the store beneath.
    pub fn extent_of(&self, number: u64, spec: &DatasetSpec) -> Result<DimVec> {
        if self.state.read().dataset(number).is_none() {
            self.state.write().load_table_entries(number, spec.dataspace.rank())?;
        }
        Ok(self.state.read().extent_of(number, spec))
    }

    /// Notes that the anchor of a dataset was made.
    pub fn track_new_anchor(&self, dataset: u64, id: ObjectId) {
        if !self.has_joined {
            self.new_anchors.lock().push((dataset, id));
        }
    }

    /// Whether the anchor of a dataset is still at an address. If it was deleted, there may be another object, or the
    /// middle of something.
    fn is_anchor_of(&self, main: &dyn Store, number: u64, at: ObjectId) -> Result<bool> {
        match self.layout.read_anchor_dataset(main, at) {
            Ok(found) => Ok(found.is_some_and(|anchor| anchor.number == number)),
            Err(Error::Store(error)) if matches!(error.kind, StoreErrorKind::Io) => Err(Error::Store(error)),
            Err(error @ Error::Closed) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Has an anchor that a commit has found stay there until the guard is dropped.
    pub fn lock_removals(&self) -> MutexGuard<'_, ()> {
        self.removing.lock()
    }

    /// Has anchors that were made since the last commit be seen after the entries so far.
    fn order_new_anchors(&self) -> Result<()> {
        let mut anchors = self.new_anchors.lock();
        for (number, at) in anchors.iter().filter(|_| !self.mutant.violates(LogMutant::AnchorBeforeEntries)) {
            let _there = self.removing.lock();
            if self.is_anchor_of(&*self.inner, *number, *at)? {
                self.state.read().own_file().log.add_flush_dependency(&*self.inner.dataset(*at)?)?;
            }
        }
        anchors.clear();
        Ok(())
    }

    /// What to watch to learn of new entries, file by file, and how many log datasets there are.
    pub fn files_and_log_dataset_count(&self) -> (Vec<WatchedFile>, usize) {
        if self.layout == LogLayout::LogVol {
            return (vec![(self.inner.clone(), Vec::new())], 0);
        }
        let state = self.state.read();
        let others = state.files().iter().filter(|file| !(self.has_joined && file.number == state.own_file().number));
        let watched = others.map(|file| (file.store.clone(), file.log.watched_objects())).collect();
        (watched, state.files().iter().map(|file| file.log.count()).sum())
    }

    /// The files that have logs.
    pub fn stores(&self) -> Vec<Arc<dyn Store>> {
        self.state.read().files().iter().map(|file| file.store.clone()).collect()
    }

    /// The files that have logs to which others may append. The main file counts, unless this session keeps it live.
    pub fn stores_for_liveness(&self) -> Vec<Arc<dyn Store>> {
        let state = self.state.read();
        let is_own = |number: u32| self.has_joined && (number == 0 || number == state.own_file().number);
        state.files().iter().filter(|file| !is_own(file.number)).map(|file| file.store.clone()).collect()
    }

    /// The number of the file to which the session appends, and the file.
    pub fn own_file(&self) -> (u32, Arc<dyn Store>) {
        let state = self.state.read();
        (state.own_file().number, state.own_file().store.clone())
    }

    /// Whether something was changed that is not committed.
    pub fn is_dirty(&self) -> bool {
        let state = self.state.read();
        state.is_dirty() || state.own_file().store.writer().is_ok_and(StoreWriter::is_dirty)
    }

    /// Publishes everything. Entries are seen all at once, and before the objects that were made since the last time.
    ///
    /// # Errors
    /// As [`StoreWriter::commit`].
    pub fn commit(&self, publish: PublishLevel) -> Result<()> {
        self.check_open()?;
        self.commit_entries(publish)?;
        if publish == PublishLevel::Durable && self.has_changed_main.swap(false, Ordering::AcqRel) {
            let sync = |on: &mut MainFileChangeContext<'_>| on.main.writer()?.commit(ObjectScope::All, publish);
            self.change_main_file(sync).inspect_err(|_| self.has_changed_main.store(true, Ordering::Release))?;
            self.has_changed_main.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Those who stage entries wait until the batch is published. An entry that is made of what was read after the order of
    /// the batch was taken belongs into a later batch. And the end of the log that is published is behind all that was
    /// appended. Those who read wait only while the state changes: not for other processes, and not for the disk.
    fn commit_entries(&self, publish: PublishLevel) -> Result<()> {
        let _staging = self.staging.lock();
        let own = self.own_file().1;
        let writer = own.writer()?;
        if !self.state.read().is_dirty() {
            self.new_anchors.lock().clear();
            return writer.commit(ObjectScope::All, publish);
        }
        let had_places = self.kept_places.lock().is_some();
        let appends = self.lock_appends()?;
        let published = self.publish_batch(writer, publish);
        // They may be published by the next commit, or be published though this one has failed.
        if published.is_err() && (had_places || !self.state.read().has_appended_rows()) {
            *self.kept_places.lock() = appends;
        }
        published
    }

    fn publish_batch(&self, writer: &dyn StoreWriter, publish: PublishLevel) -> Result<()> {
        self.stage_batch(publish)?;
        self.order_new_anchors()?;
        if !self.layout.has_extents_in_entries() {
            self.update_anchors(&*self.own_file().1)?;
        }
        writer.commit(ObjectScope::All, publish)?;
        self.state.write().mark_published();
        Ok(())
    }

    /// Ends the batch that is gathered, and moves it to the file. The next commit of the file publishes it, if that has not
    /// been done yet.
    fn stage_batch(&self, publish: PublishLevel) -> Result<()> {
        let (order, mut state) = self.next_order()?;
        state.end_batch_with_order(order)?;
        #[cfg(feature = "mutants")]
        if self.mutant.violates(LogMutant::EndBeforeEntries) {
            let own = state.own_file().store.clone();
            state.mutant_publish_early(own.writer()?)?;
        }
        state.write_staged(|state| self.log_dataset_room(state))?;
        state.publish_by_next_commit(publish)
    }

    /// Commits, brings the attributes of anchors up to date, and ends the session. It has ended in any case, also after an
    /// error: what was committed before is in the file. A second call does nothing.
    ///
    /// # Errors
    /// As [`StoreWriter::commit`].
    pub fn close(&self) -> Result<()> {
        let _closing = self.closing.lock();
        {
            let (_changing, _staging) = (self.changing.write(), self.staging.lock());
            if self.is_closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
        }
        let ended = if self.has_joined { self.leave() } else { self.end() };
        // A file that is mapped stays open, and locked.
        self.state.write().unmap();
        let closed = self.stores().iter().map(|store| store.close()).fold(ended, Result::and);
        // What was not published until now never is.
        self.kept_places.lock().take();
        closed
    }

    /// Writes all that is to be in the file when a session has ended that has it for itself.
    fn end(&self) -> Result<()> {
        if !self.writes() {
            return Ok(());
        }
        #[cfg(feature = "mutants")]
        if self.mutant.violates(LogMutant::TableBeforeEntries) {
            self.mutant_save_table_early()?;
        }
        self.commit_entries(PublishLevel::Visible)?;
        // Not before: if the entries cannot be written, anchors do not say that they are there.
        self.update_anchors(&*self.inner)?;
        self.save_table()
    }

    /// Writes the index table of the own file, if there is need.
    fn save_table(&self) -> Result<()> {
        let dataset_count = *self.dataset_count.lock();
        self.state.write().save_index_table(dataset_count, self.max_allocation)?;
        self.commit_entries(PublishLevel::Visible)
    }

    /// What a mutant does: the table has entries that are not in a log dataset yet.
    #[cfg(feature = "mutants")]
    fn mutant_save_table_early(&self) -> Result<()> {
        let own = self.own_file().1;
        self.state.read().mutant_save_index_table_early(*self.dataset_count.lock())?;
        own.writer()?.commit(ObjectScope::All, PublishLevel::Visible)
    }

    /// Notes that the extent of a dataset is not what its anchor says.
    pub fn track_changed_extent(&self, dataset: u64, anchor: ObjectId) {
        self.changed_extents.lock().insert(dataset, anchor);
    }

    /// Has the anchors of a main file say the extents of their datasets.
    fn update_anchors(&self, main: &dyn Store) -> Result<()> {
        let (state, writer) = (self.state.read(), main.writer()?);
        let mut changed = self.changed_extents.lock();
        for (number, at) in &*changed {
            let Some(dims) = state.dataset(*number).and_then(|dataset| dataset.extent.as_ref()) else { continue };
            let _there = self.removing.lock();
            if self.is_anchor_of(main, *number, *at)? {
                writer.set_attribute(*at, &self.layout.dims_attribute(dims))?;
            }
        }
        changed.clear();
        Ok(())
    }
}

impl Drop for LogSession {
    /// Commits, if nobody has closed the session. Errors are lost: who wants to know them closes it.
    fn drop(&mut self) {
        let _ = self.close();
    }
}
