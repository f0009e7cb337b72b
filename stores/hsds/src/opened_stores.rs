//! Handles on sessions that connectors have opened.

use std::sync::Arc;

use h5live_model::Store;
use parking_lot::Mutex;

use crate::store::HsdsStore;

/// Keeps a handle on the last session that some connectors have opened: for what only these stores can do, as
/// [`HsdsStore::link_chunks`]. [`HsdsConnector::keeping`](crate::HsdsConnector::keeping) makes such a connector.
#[derive(Debug, Clone, Default)]
pub struct OpenedStores(Arc<Mutex<Option<HsdsStore>>>);

impl OpenedStores {
    /// The session.
    pub fn last(&self) -> Option<HsdsStore> {
        self.0.lock().clone()
    }
}

/// A session that was opened, of which a handle is kept if somebody wants one.
pub(crate) fn kept(by: Option<&OpenedStores>, store: HsdsStore) -> Arc<dyn Store> {
    if let Some(by) = by {
        *by.0.lock() = Some(store.clone());
    }
    Arc::new(store)
}
