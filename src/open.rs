//! The stores that are built in. No other file of this crate names one.

use std::sync::{Arc, OnceLock};

#[cfg(feature = "kv")]
use h5live_kv::KvConnector;
#[cfg(feature = "kv")]
pub use h5live_kv::{Kv, SyncPolicy};
#[cfg(feature = "log")]
use h5live_log::LogConnector;
#[cfg(feature = "log")]
pub use h5live_log::{EntryFilter, Log, LogLayout};
use h5live_model::memory::MemoryConnector;
use h5live_model::{ConnectorRegistry, Location, OpenError, OpenRequest, ResolvedLocation, Store};
use h5live_native::NativeConnector;
pub use h5live_native::{Locking, Native};

/// The connectors that are built in. Native files come first: they are what a path is that nothing else claims.
pub(crate) fn built_in() -> Arc<ConnectorRegistry> {
    static BUILT_IN: OnceLock<Arc<ConnectorRegistry>> = OnceLock::new();
    let registry = || Arc::new(with_features(ConnectorRegistry::new(NativeConnector).with(MemoryConnector::new())));
    BUILT_IN.get_or_init(registry).clone()
}

/// Adds the connectors that features bring.
fn with_features(registry: ConnectorRegistry) -> ConnectorRegistry {
    #[cfg(feature = "log")]
    let registry = registry.with(LogConnector::new(NativeConnector));
    #[cfg(not(feature = "log"))]
    let registry = registry.with_missing("log", "log");
    #[cfg(feature = "kv")]
    let registry = registry.with(KvConnector);
    #[cfg(not(feature = "kv"))]
    let registry = registry.with_missing("kv", "kv");
    registry
}

/// Where a native file is whose bytes are in memory.
pub(crate) fn image_location() -> ResolvedLocation {
    ResolvedLocation::new(Arc::new(NativeConnector), Location::Path("memory".into()))
}

/// Opens a native file whose bytes are in memory.
pub(crate) fn open_image_store(bytes: Vec<u8>, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
    NativeConnector::open_image(bytes, how)
}
