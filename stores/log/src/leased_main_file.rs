//! The turn of a writer that has joined others: while it lasts, the writer has the main file for itself.

use std::sync::Arc;

use h5live_model::{Error, ObjectId, ObjectScope, PublishLevel, Result, Store};
use rustc_hash::FxHashSet;

use crate::multi_writer_files::{MainFileLease, MainFileUse, MultiWriterFiles};
use crate::subfile_opener::into_model_error;

/// The main file, open for changes.
#[derive(Debug)]
pub struct LeasedMainFile {
    main: Arc<dyn Store>,
    lease: Box<dyn MainFileLease>,
    /// Objects that were made without a link. The store beneath forgets them at the end of a session, so the turn lasts
    /// until they have links.
    unlinked: FxHashSet<ObjectId>,
}

/// What a change of the main file is made with.
#[derive(Debug)]
pub struct MainFileChangeContext<'a> {
    /// The main file.
    pub main: &'a dyn Store,
    /// The objects without a link that the turn has to wait for; `None` if there are no turns.
    unlinked: Option<&'a mut FxHashSet<ObjectId>>,
    changed: ChangedObjects,
}

/// Objects that are not what they were before a change of the main file. New ones do not count: nobody has them open.
/// Groups do not count for their links either: a store that follows a file reads links anew.
#[derive(Debug)]
pub enum ChangedObjects {
    /// These.
    Listed(Vec<ObjectId>),
    /// Any.
    Any,
}

impl ChangedObjects {
    /// Has a store that follows the main file take up the change.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn refresh(&self, follower: &dyn Store) -> Result<()> {
        match self {
            ChangedObjects::Listed(objects) => {
                objects.iter().try_for_each(|id| match follower.refresh(ObjectScope::Objects(&[*id])) {
                    // Another writer has deleted it since.
                    Err(Error::NoObject(_)) => Ok(()),
                    refreshed => refreshed,
                })
            }
            ChangedObjects::Any => follower.refresh(ObjectScope::All),
        }
    }
}

impl<'a> MainFileChangeContext<'a> {
    /// A change of a main file that the session has for itself all the time.
    pub fn exclusive(main: &'a dyn Store) -> Self {
        MainFileChangeContext::new(main, None)
    }

    fn new(main: &'a dyn Store, unlinked: Option<&'a mut FxHashSet<ObjectId>>) -> Self {
        MainFileChangeContext { main, unlinked, changed: ChangedObjects::Listed(Vec::new()) }
    }

    /// Notes that an object is changed.
    pub fn add_changed_object(&mut self, id: ObjectId) {
        if let ChangedObjects::Listed(objects) = &mut self.changed {
            objects.push(id);
        }
    }

    /// Notes that objects may be gone.
    pub fn mark_possible_removal(&mut self) {
        self.changed = ChangedObjects::Any;
    }

    /// Notes that an object was made without a link.
    pub fn track_unlinked_object(&mut self, id: ObjectId) {
        if let Some(unlinked) = &mut self.unlinked {
            unlinked.insert(id);
        }
    }

    /// Notes that an object has a link, or is gone.
    pub fn untrack_unlinked_object(&mut self, id: ObjectId) {
        if let Some(unlinked) = &mut self.unlinked {
            unlinked.remove(&id);
        }
    }
}

impl LeasedMainFile {
    /// Waits for the turn.
    ///
    /// # Errors
    /// If another writer does not end its turn; errors of the store beneath.
    pub fn acquire(files: &dyn MultiWriterFiles) -> Result<Self> {
        let mut lease = files.lease().map_err(into_model_error)?;
        let main = lease.open_main_for_writing(MainFileUse::Turn).map_err(into_model_error)?;
        Ok(LeasedMainFile { main, lease, unlinked: FxHashSet::default() })
    }

    /// Makes a change. Returns what came of it, and the objects that it changed.
    pub fn change<T>(
        &mut self,
        change: impl FnOnce(&mut MainFileChangeContext<'_>) -> Result<T>,
    ) -> (Result<T>, ChangedObjects) {
        let mut on = MainFileChangeContext::new(&*self.main, Some(&mut self.unlinked));
        let result = change(&mut on);
        let changed = if result.is_ok() { on.changed } else { ChangedObjects::Any };
        (result, changed)
    }

    /// Publishes what was changed, and ends the turn unless there are objects without a link.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn publish_and_try_release(self) -> Result<Option<Self>> {
        if self.unlinked.is_empty() {
            return self.lease.close_main_and_release().map(|()| None).map_err(into_model_error);
        }
        self.main.writer()?.commit(ObjectScope::All, PublishLevel::Visible)?;
        Ok(Some(self))
    }
}
