//! Files: sessions on a store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use h5live_model::memory::MemoryStore;
use h5live_model::{
    Datatype, ElementForms, FileSpace, Liveness, Location, ObjectId, ResolvedLocation, Session, Stats, Store,
    StoreWriter,
};
use parking_lot::Mutex;

use crate::dataset::{ChunkCache, DatasetCore, StagedDatasets};
use crate::dataset_cache::DatasetCache;
use crate::error::ErrorKind;
use crate::linked_files::LinkedFiles;
use crate::path;
use crate::publish::Publisher;
use crate::types::Heap;
use crate::{Attribute, Dataset, DatasetBuilder, Error, Group, H5Type, Object, Options, Result, Walk};

/// An open file. Clones share one session; the last one that is dropped closes it.
///
/// ```
/// use h5live::File;
///
/// let file = File::in_memory();
/// let frames = file.new_dataset::<u16>().unlimited_rows(&[2, 3]).deflate(4).create("detector/frames")?;
/// frames.append(&[1, 2, 3, 4, 5, 6])?;
/// frames.append(&[7, 8, 9, 10, 11, 12])?;
/// file.flush()?;
/// assert_eq!(frames.shape()?, [2, 2, 3]);
/// assert_eq!(frames.read_slice::<f64>((1, .., 0..2))?, [7.0, 8.0, 10.0, 11.0]);
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Clone)]
pub struct File {
    shared: Arc<FileShared>,
}

pub(crate) struct FileShared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) name: String,
    pub(crate) options: Options,
    pub(crate) cache: ChunkCache,
    /// Where the file is, if it was opened at a location.
    pub(crate) location: Option<ResolvedLocation>,
    pub(crate) linked_files: Arc<LinkedFiles>,
    /// Files to which this one led. They stay open as long as it does.
    pub(crate) kept_open: Mutex<Vec<File>>,
    pub(crate) publisher: Publisher,
    /// Looks at what a writer has published since.
    pub(crate) refreshes: AtomicU64,
    /// Whether the file was brought into order when its writer was found to be dead, or need not be.
    is_recovered: AtomicBool,
    dataset_cache: Mutex<DatasetCache>,
    staged: StagedDatasets,
}

impl File {
    /// Creates a file for writing, and replaces an existing one.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn create(location: impl Into<Location>) -> Result<File> {
        File::options().create().open(location)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(location: impl Into<Location>) -> Result<File> {
        File::options().open(location)
    }

    /// Opens a file for reading, also if it is being written or its writer has died (see [`Options::recover`]). A file
    /// whose writer is dead is repaired first, if this process may write it. A file whose writer lives is followed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("run.h5");
    /// let writer = h5live::File::create(&path)?;
    /// writer.new_dataset::<f64>().unlimited_rows(&[]).create("log")?.append(&[0.5])?;
    /// writer.start_swmr()?;
    /// let reader = h5live::File::open_or_recover(&path)?;
    /// assert!(reader.is_live()?);
    /// assert_eq!(reader.dataset("log")?.read::<f64>()?, [0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Options::open`]: also if a process writes the file that lets nobody follow.
    pub fn open_or_recover(location: impl Into<Location>) -> Result<File> {
        File::options().recover(true).open(location)
    }

    /// Options for opening a file.
    pub fn options() -> Options {
        Options::default()
    }

    /// A new file in memory.
    pub fn in_memory() -> File {
        File::new(Arc::new(MemoryStore::new()), "memory".into(), Options::default())
    }

    /// A file in a store that was opened before, called `name` in messages. The mode is that of the store's session.
    /// Options of how a store is opened are refused.
    ///
    /// # Errors
    /// [`ErrorKind::UnusedOption`] that names the option, and if the publication counter cannot be made.
    pub fn with_store(store: Arc<dyn Store>, name: &str, options: Options) -> Result<File> {
        if let Some(option) = options.unused_by(store.session()) {
            return Err(Error::new(name, None, ErrorKind::UnusedOption(option)));
        }
        let file = File::new(store, name.into(), options);
        file.begin_counting()?;
        Ok(file)
    }

    pub(crate) fn new(store: Arc<dyn Store>, name: String, options: Options) -> File {
        let session = store.session();
        let connector = options.connectors.connector(session.connector).cloned();
        let location = connector.zip(session.location.clone());
        let location = location.map(|(connector, location)| ResolvedLocation::new(connector, location));
        File::from_parts(store, name, options, location, Arc::default())
    }

    /// A file in a store. Its mode is that of the store's session; the mode in the options does not count.
    pub(crate) fn from_parts(
        store: Arc<dyn Store>,
        name: String,
        options: Options,
        location: Option<ResolvedLocation>,
        family: Arc<LinkedFiles>,
    ) -> File {
        let options = options.mode(store.session().mode);
        let cache = ChunkCache::new(options.chunk_cache);
        let (others, datasets, staged, publisher, refreshes, is_recovered) = Default::default();
        let shared = Arc::new(FileShared {
            store,
            name,
            options,
            cache,
            location,
            linked_files: family,
            kept_open: others,
            publisher,
            refreshes,
            is_recovered,
            dataset_cache: datasets,
            staged,
        });
        if let Some(location) = &shared.location {
            shared.linked_files.add(location, &shared);
        }
        shared.begin_publishing();
        File { shared }
    }

    pub(crate) fn from_shared(shared: Arc<FileShared>) -> File {
        File { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<FileShared> {
        &self.shared
    }

    /// The store under the file, for what the other methods do not say: names that are no text, objects by identity.
    pub fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// What changes the store under the file, for what the other methods do not say.
    ///
    /// # Errors
    /// [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly),
    /// [`model::Error::Closed`](h5live_model::Error::Closed).
    pub fn writer(&self) -> h5live_model::Result<&dyn StoreWriter> {
        self.store().writer()
    }

    pub(crate) fn heap(&self) -> Heap<'_> {
        Heap(self.store())
    }

    /// A type as elements of this file have it.
    pub(crate) fn stored_type(&self, datatype: &Datatype) -> Datatype {
        datatype.with_forms(ElementForms::default(), self.session().forms)
    }

    pub(crate) fn error(&self, object: Option<&str>, kind: impl Into<ErrorKind>) -> Error {
        Error::new(&self.shared.name, object, kind)
    }

    /// The shared state of a dataset.
    pub(crate) fn core(&self, id: ObjectId) -> Result<Arc<DatasetCore>, ErrorKind> {
        let found = self.shared.dataset_cache.lock().get(id);
        if let Some(core) = found {
            if !core.is_deleted() {
                return Ok(core);
            }
            // Its staged elements are gone, too; another dataset may have its identity now.
            let _gone = self.shared.dataset_cache.lock().remove(id);
        }
        // Not under the lock, because it reads. A second thread takes the state that the first one made.
        let core = Arc::new(DatasetCore::open(
            self.shared.store.dataset(id)?,
            &self.session().capabilities,
            &self.shared.options,
            self.shared.staged.clone(),
        )?);
        let (core, _gone) = self.shared.dataset_cache.lock().add(id, core);
        Ok(core)
    }

    /// The name under which the file was opened.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The session on the store, with its capabilities.
    pub fn session(&self) -> &Session {
        self.store().session()
    }

    /// How an HDF5 file allocates its space. The defaults, if the file is not one.
    pub fn file_space(&self) -> FileSpace {
        FileSpace::from_settings(&self.session().settings)
    }

    /// Bytes of an address in an HDF5 file. 8, if the file is not one.
    pub fn offset_size(&self) -> u32 {
        self.session().settings.get("offset_size").and_then(|size| size.parse().ok()).unwrap_or(8)
    }

    /// The root group.
    pub fn root(&self) -> Group {
        Group::new(self.clone(), self.session().root, "/".into())
    }

    /// The object at a path.
    ///
    /// # Errors
    /// As [`Group::object`].
    pub fn object(&self, path: &str) -> Result<Object> {
        self.root().object(path)
    }

    /// The group at a path.
    ///
    /// # Errors
    /// As [`Group::group`].
    pub fn group(&self, path: &str) -> Result<Group> {
        self.root().group(path)
    }

    /// The dataset at a path.
    ///
    /// # Errors
    /// As [`Group::dataset`].
    pub fn dataset(&self, path: &str) -> Result<Dataset> {
        let found = path::find(self, self.session().root, "/", path)?;
        Dataset::open(found.file, found.id, found.path)
    }

    /// An attribute of the root group.
    ///
    /// # Errors
    /// As [`Group::attribute`].
    pub fn attribute(&self, name: &str) -> Result<Attribute> {
        self.root().attribute(name)
    }

    /// A walk over everything in the file, each object once.
    pub fn walk(&self) -> Walk {
        self.root().walk()
    }

    /// Makes a group, and the groups above it that are not there.
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub fn create_group(&self, path: &str) -> Result<Group> {
        self.root().create_group(path)
    }

    /// A description of a new dataset of elements of type `T`.
    pub fn new_dataset<T: H5Type>(&self) -> DatasetBuilder {
        DatasetBuilder::new(self.root(), T::datatype())
    }

    /// Lets other processes read the file while this one goes on writing. Flushes everything that was written so far.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file, or something in it, cannot be read while it is being written.
    pub fn start_swmr(&self) -> Result<()> {
        self.shared.publisher.take_deferred()?;
        let _only = self.shared.publisher.lock();
        self.shared.write_out()?;
        self.store().writer().and_then(|writer| writer.start_swmr()).map_err(|error| self.error(None, error))
    }

    /// Whether another process may be changing the file, as far as anybody can tell. If its writer has died, and
    /// [`Options::recover`] says so, the file is brought into order.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if that cannot be found out; if the file was deleted, replaced or cut while it was being
    /// written, [`Error::file_change`] says so.
    pub fn is_live(&self) -> Result<bool> {
        let live = self.store().liveness().map_err(|error| self.error(None, error))? != Liveness::AtRest;
        let FileShared { options, location, is_recovered, .. } = &*self.shared;
        if !live
            && options.recover
            && options.mode == crate::Mode::SwmrRead
            && let Some(location) = location
            && !is_recovered.swap(true, Ordering::AcqRel)
        {
            crate::recovery::recover(location, options);
        }
        Ok(live)
    }

    /// Statistics of this session: reads and writes, hits of the caches, torn reads that were repeated, flushes and
    /// their time.
    ///
    /// ```
    /// # let file = h5live::File::in_memory();
    /// # let log = file.new_dataset::<f64>().unlimited_rows(&[]).create("log")?;
    /// let before = file.stats();
    /// log.refresh()?;
    /// assert_eq!(file.stats().refreshes, before.refreshes + 1);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let mut stats = self.store().stats();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        stats.refreshes = count(&self.shared.refreshes);
        stats.chunk_hits = count(&self.shared.cache.hits);
        stats.chunk_misses = count(&self.shared.cache.misses);
        stats
    }

    /// Flushes, and ends the session for every clone. A second call does nothing.
    ///
    /// # Errors
    /// As [`File::flush`].
    pub fn close(&self) -> Result<()> {
        let counted = self.shared.publish_final();
        self.shared.close().and(counted)
    }
}

impl FileShared {
    /// The datasets that were opened.
    pub(crate) fn dataset_cache(&self) -> parking_lot::MutexGuard<'_, DatasetCache> {
        self.dataset_cache.lock()
    }

    /// The dataset of this identity, if it was opened.
    fn cached_core(&self, id: ObjectId) -> Option<Arc<DatasetCore>> {
        self.dataset_cache.lock().get(id)
    }

    /// Calls `each` for the datasets with staged elements, until it fails. The rest stay in the list.
    pub(crate) fn for_each_staged<E>(&self, mut each: impl FnMut(&DatasetCore) -> Result<(), E>) -> Result<(), E> {
        let mut listed = std::mem::take(&mut *self.staged.lock()).into_iter();
        let done = listed.try_for_each(|id| self.cached_core(id).map_or(Ok(()), |core| each(&core)));
        self.staged.lock().extend(listed);
        done
    }

    /// Whether something is staged that the store does not have.
    pub(crate) fn has_staged(&self) -> bool {
        let listed = self.staged.lock().clone();
        listed.into_iter().filter_map(|id| self.cached_core(id)).any(|core| core.has_staged())
    }

    fn close(&self) -> Result<()> {
        let close = || self.store.close().map_err(|error| Error::new(&self.name, None, error));
        if !self.publisher.close() {
            return close();
        }
        let _only = self.publisher.lock();
        let written = self.write_out();
        self.dataset_cache.lock().clear();
        self.kept_open.lock().clear();
        self.publisher.take_deferred().and(written).and(close())
    }
}

impl Drop for FileShared {
    /// Closes the file without reporting errors. Call [`File::close`] to get them.
    fn drop(&mut self) {
        let _ = self.close();
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.shared.name).finish()
    }
}
