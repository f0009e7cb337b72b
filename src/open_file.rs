//! From options and a location to an open file.

use std::sync::Arc;

use h5live_model::memory::MemoryStore;
use h5live_model::{Location, Mode, ResolvedLocation, Store};

use crate::dataset::{ChunkCache, StagedDatasets, StagedList};
use crate::error::ErrorKind;
use crate::file_shared::{FileShared, LinkedFiles};
use crate::memory_budget::MemoryBudget;
use crate::options::open_error;
use crate::recovery::{self, WriterState};
use crate::{Error, File, FileWaiter, Options, Result, open};

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

    /// A file in a store that was opened before, called `shown_name` in messages. The mode is that of the store's session.
    /// Options of how a store is opened are refused.
    ///
    /// # Errors
    /// [`ErrorKind::UnusedOption`] that names the option, and if the publication counter cannot be made.
    pub fn with_store(store: Arc<dyn Store>, shown_name: &str, options: Options) -> Result<File> {
        if let Some(option) = options.option_unused_by(store.session()) {
            return Err(Error::new(shown_name, None, ErrorKind::UnusedOption(option)));
        }
        let file = File::new(store, shown_name.into(), options);
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
        let store = open::with_maps(store);
        let options = options.mode(store.session().mode).within_memory();
        let budget = MemoryBudget::get_or_create_if_limited(options.memory);
        let cache = match &budget {
            Some(budget) => budget.shared_chunk_cache_for_file(options.chunk_cache_bytes),
            None => ChunkCache::new(options.chunk_cache_bytes),
        };
        let staged = StagedDatasets::new(StagedList::new(budget));
        let (others, datasets, stored_rows, publisher, refreshes, is_recovered) = Default::default();
        let shared = Arc::new(FileShared {
            store,
            name,
            options,
            cache,
            location,
            linked_files: family,
            kept_open: others,
            written_files: Default::default(),
            new_groups: Default::default(),
            changes: Default::default(),
            publisher,
            handle_gate: Default::default(),
            refreshes,
            is_recovered,
            found_live: Default::default(),
            dataset_cache: datasets,
            staged,
            blobs: Default::default(),
            stored_rows,
        });
        if let Some(location) = &shared.location {
            shared.linked_files.add(location, &shared);
        }
        shared.begin_publishing();
        File::from_shared(shared)
    }
}

impl Options {
    /// Opens the file at a location: a path, or a text that is a path or a URL such as `mem:scratch`
    /// ([`Location::from_text`] has the rule).
    ///
    /// # Errors
    /// [`ErrorKind::Open`](crate::ErrorKind::Open) that names the file and the reason.
    pub fn open(&self, location: impl Into<Location>) -> Result<File> {
        let location = location.into();
        if let Some(timeout) = self.wait_timeout {
            let mut waiter = FileWaiter::new(self.clone(), location.clone())?;
            if let Some(file) = waiter.wait_for(timeout, |file| Ok(file.clone()))? {
                return Ok(file);
            }
        }
        let at = self.resolve_location(&location)?;
        let checked = self.refuse_native_options(&**at.connector());
        checked.map_err(|error| open_error(at.location(), error.into()))?;
        self.open_linked(at, Arc::default())
    }

    /// Opens a file whose bytes are in memory. Changes stay in memory.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_image(&self, bytes: Vec<u8>) -> Result<File> {
        let name = "memory";
        let store = self.with_request(&open::image_location(), |how| open::open_image_store(bytes, how));
        let store = store.map_err(|error| Error::new(name, None, error))?;
        let file = File::new(store, name.into(), self.clone());
        file.begin_counting()?;
        Ok(file)
    }

    pub(crate) fn open_linked(&self, at: ResolvedLocation, family: Arc<LinkedFiles>) -> Result<File> {
        if self.recover && !self.mode.writes() && recovery::try_recover(&at, self) == WriterState::Live {
            return self.clone().swmr_read().open_without_recovery(at, family);
        }
        self.open_without_recovery(at, family)
    }

    fn open_without_recovery(&self, at: ResolvedLocation, family: Arc<LinkedFiles>) -> Result<File> {
        let mut store = self.open_store(&at)?;
        let mut at = at;
        if store.session().mode == Mode::SwmrRead {
            // It may have become a store of another kind between the look at its path and now: its writer was making it.
            let now = self.resolve_location(at.location())?;
            if now.connector().name() != at.connector().name() {
                drop(store);
                store = self.open_store(&now)?;
                at = now;
            }
        }
        let options = self.with_common_settings(&at).map_err(|error| open_error(at.location(), error))?;
        let name = at.location().to_string();
        let file = File::from_parts(store, name, options, Some(at), family);
        file.begin_counting()?;
        Ok(file)
    }

    fn open_store(&self, at: &ResolvedLocation) -> Result<Arc<dyn Store>> {
        self.with_request(at, |how| at.open(how)).map_err(|error| open_error(at.location(), error))
    }
}
