//! The stores that are built in. No other file of this crate names one.

use std::sync::{Arc, OnceLock};

#[cfg(feature = "hsds")]
pub use h5live_hsds::Hsds;
#[cfg(feature = "hsds-clouds")]
pub use h5live_hsds::HsdsCloud;
#[cfg(feature = "hsds-clouds")]
use h5live_hsds::HsdsCloudConnector;
#[cfg(feature = "hsds")]
use h5live_hsds::HsdsFolderConnector;
#[cfg(feature = "kv")]
pub use h5live_kv::Kv;
#[cfg(feature = "kv-slatedb")]
pub use h5live_kv::KvSlate;
#[cfg(feature = "kv")]
use h5live_kv::LmdbConnector;
#[cfg(feature = "kv-slatedb")]
use h5live_kv::SlateConnector;
#[cfg(any(feature = "kv", feature = "kv-slatedb"))]
pub use h5live_kv::SyncPolicy;
#[cfg(feature = "log")]
use h5live_log::LogConnector;
#[cfg(feature = "log")]
pub use h5live_log::{EntryFilter, Log, LogLayout};
use h5live_map_table::MapTableStore;
use h5live_model::memory::MemoryConnector;
use h5live_model::{
    Capabilities, Connector, ConnectorRegistry, Location, OpenError, OpenRequest, ResolvedLocation, Store,
    StoreFeatures,
};
use h5live_native::NativeConnector;
pub use h5live_native::{AllowedReaders, Locking, Native};
#[cfg(any(feature = "hsds-clouds", feature = "remote"))]
pub use h5live_objects::ObjectOptions;
#[cfg(feature = "remote")]
pub use h5live_remote::Remote;
#[cfg(feature = "remote")]
use h5live_remote::RemoteConnector;
#[cfg(feature = "served")]
pub use h5live_served::Served;
#[cfg(feature = "served")]
use h5live_served::ServedConnector;

/// The connectors that are built in. Native files come first: they are what a path is that nothing else claims.
pub(crate) fn built_in() -> Arc<ConnectorRegistry> {
    static BUILT_IN: OnceLock<Arc<ConnectorRegistry>> = OnceLock::new();
    let registry =
        || Arc::new(with_features(ConnectorRegistry::new(NativeConnector).with_connector(MemoryConnector::new())));
    BUILT_IN.get_or_init(registry).clone()
}

/// Adds the connectors that features bring.
fn with_features(registry: ConnectorRegistry) -> ConnectorRegistry {
    #[cfg(feature = "log")]
    let registry = registry.with_connector(LogConnector::new(NativeConnector));
    #[cfg(not(feature = "log"))]
    let registry = registry.with_missing_cargo_feature("log", "log");
    #[cfg(feature = "hsds")]
    let registry = registry.with_connector(HsdsFolderConnector::default());
    #[cfg(not(feature = "hsds"))]
    let registry = registry.with_missing_cargo_feature("hsds", "hsds");
    #[cfg(feature = "hsds-clouds")]
    let registry = registry.with_connector(HsdsCloudConnector::default());
    #[cfg(not(feature = "hsds-clouds"))]
    let registry = ["hsds+s3", "hsds+gs", "hsds+az"]
        .into_iter()
        .fold(registry, |registry, scheme| registry.with_missing_cargo_feature(scheme, "hsds-clouds"));
    #[cfg(feature = "kv")]
    let registry = registry.with_connector(LmdbConnector);
    #[cfg(not(feature = "kv"))]
    let registry = registry.with_missing_cargo_feature("kv", "kv");
    #[cfg(feature = "kv-slatedb")]
    let registry = registry.with_connector(SlateConnector);
    #[cfg(not(feature = "kv-slatedb"))]
    let registry = ["kv+s3", "kv+gs", "kv+az", "kv+file"]
        .into_iter()
        .fold(registry, |registry, scheme| registry.with_missing_cargo_feature(scheme, "kv-slatedb"));
    #[cfg(feature = "remote")]
    let registry = registry.with_connector(RemoteConnector);
    #[cfg(not(feature = "remote"))]
    let registry = ["s3", "gs", "az", "http", "https"]
        .into_iter()
        .fold(registry, |registry, scheme| registry.with_missing_cargo_feature(scheme, "remote"));
    #[cfg(feature = "served")]
    let registry = registry.with_connector(ServedConnector);
    #[cfg(not(feature = "served"))]
    let registry = ["h5live+http", "h5live+https"]
        .into_iter()
        .fold(registry, |registry, scheme| registry.with_missing_cargo_feature(scheme, "served"));
    registry
}

/// The session with maps: as it is if the store has maps, or with tables in their place if it is one that can hold those.
pub(crate) fn with_maps(store: Arc<dyn Store>) -> Arc<dyn Store> {
    match store.maps().is_none() && holds_map_tables(store.session().connector) {
        true => Arc::new(MapTableStore::over(store)),
        false => store,
    }
}

/// Whether maps are held as tables in the stores of a connector.
fn holds_map_tables(connector: &str) -> bool {
    #[cfg(feature = "remote")]
    if connector == RemoteConnector.name() {
        return true;
    }
    connector == NativeConnector.name()
}

/// What a [`File`](crate::File) in a store of this connector can do at most: what the store can do, and maps where h5live
/// holds them as tables.
pub fn max_file_capabilities(connector: &dyn Connector) -> Capabilities {
    let mut capabilities = connector.capabilities();
    if holds_map_tables(connector.name()) {
        capabilities.features = capabilities.features.with(StoreFeatures::MAPS);
    }
    capabilities
}

/// The names of the connectors whose stores hold maps.
pub(crate) fn connectors_with_maps(registry: &ConnectorRegistry) -> Vec<&'static str> {
    let holds = |connector: &&dyn Connector| max_file_capabilities(*connector).features.has(StoreFeatures::MAPS);
    registry.connectors().filter(holds).map(|connector| connector.name()).collect()
}

/// Where a native file is whose bytes are in memory.
pub(crate) fn image_location() -> ResolvedLocation {
    ResolvedLocation::new(Arc::new(NativeConnector), Location::Path("memory".into()))
}

/// Opens a native file whose bytes are in memory.
pub(crate) fn open_image_store(bytes: Vec<u8>, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
    NativeConnector::open_image(bytes, how)
}
