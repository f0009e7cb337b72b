//! Handles on sessions that connectors have opened.

use std::sync::Arc;

use h5live_model::Store;
use parking_lot::Mutex;

use crate::store::HsdsStore;

/// Keeps a handle on the last session that some connectors have opened: for what only these stores can do, as
/// [`HsdsStore::link_chunks`]. [`HsdsFolderConnector::remembering_last_opened`](crate::HsdsFolderConnector::remembering_last_opened) makes such a connector.
#[derive(Debug, Clone, Default)]
pub struct LastOpenedStore {
    last: Arc<Mutex<Option<HsdsStore>>>,
    makes_drafts: bool,
}

impl LastOpenedStore {
    /// The connectors make new domains that nobody sees before [`HsdsStore::publish_domain`]. A session that ends before
    /// leaves nothing, or what was there before.
    #[must_use]
    pub fn create_as_drafts(mut self) -> Self {
        self.makes_drafts = true;
        self
    }

    /// Ends the session as [`HsdsStore::close_without_commit`] does, if there is one.
    ///
    /// # Errors
    /// As [`HsdsStore::close_without_commit`].
    pub fn close_without_commit(&self) -> h5live_model::Result<()> {
        self.last().map_or(Ok(()), |store| store.close_without_commit())
    }

    /// The session.
    pub fn last(&self) -> Option<HsdsStore> {
        self.last.lock().clone()
    }
}

/// Whether new domains are drafts.
pub(crate) fn makes_drafts(by: Option<&LastOpenedStore>) -> bool {
    by.is_some_and(|by| by.makes_drafts)
}

/// A session that was opened, of which a handle is kept if somebody wants one.
pub(crate) fn remember_opened(by: Option<&LastOpenedStore>, store: HsdsStore) -> Arc<dyn Store> {
    if let Some(by) = by {
        *by.last.lock() = Some(store.clone());
    }
    Arc::new(store)
}
