//! The connector of key-value stores in folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_model::{
    Capabilities, Connector, ConnectorOptions, DurabilitySupport, LinkedStoreRole, Location, LocationWatch,
    Maintenance, Name, OpenError, OpenRequest, PathProbe, Store, StoreIdentity, TrustOrigin, Url, path_from_bytes,
};
use h5live_swmr::linked_file_candidates;

use crate::engine::{LmdbEngine, LmdbOptions, LongKeyEngine};
use crate::folder_watch::LmdbFolderWatch;
use crate::open_session::{KvSessionOptions, open_session_on};
use crate::options::Kv;
use crate::session::{CONNECTOR, KvSession, capabilities};
use crate::store::KvStore;

/// Opens key-value stores in folders: `kv:run`.
#[derive(Debug, Clone, Default)]
pub struct LmdbConnector;

/// The folder of a store.
///
/// # Errors
/// [`OpenError::InvalidLocation`] if the location names none.
pub(crate) fn folder(at: &Location) -> Result<PathBuf, OpenError> {
    let Location::Url(url) = at else { return Ok(at.as_path().map(Path::to_owned).unwrap_or_default()) };
    let missing = || OpenError::InvalidLocation("a key-value store has a folder: kv:run is one".to_owned());
    url.hier_part_as_path()?.ok_or_else(missing)
}

impl LmdbConnector {
    /// The folder of the store at a location.
    ///
    /// # Errors
    /// [`OpenError::InvalidLocation`] if the location names none.
    pub fn folder(at: &Location) -> Result<PathBuf, OpenError> {
        folder(at)
    }

    /// The engine of the store at a location.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(crate) fn open_engine(at: &Location, how: &OpenRequest<'_>) -> Result<LongKeyEngine<LmdbEngine>, OpenError> {
        let Kv { map_size, max_readers, sync, .. } = *how.downcast_options::<Kv>()?;
        let engine = LmdbEngine::open(
            &folder(at)?,
            how.mode,
            &LmdbOptions { map_size, max_readers, sync, ..LmdbOptions::default() },
        );
        engine.map(LongKeyEngine::new).map_err(|error| OpenError::Store(error.into()))
    }

    /// A session on the store at a location.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(crate) fn open_session(at: &Location, how: &OpenRequest<'_>) -> Result<KvSession, OpenError> {
        LmdbConnector::session_on(LmdbConnector::open_engine(at, how)?, at, how)
    }

    /// A session on an engine that is open.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(crate) fn session_on(
        engine: LongKeyEngine<LmdbEngine>,
        at: &Location,
        how: &OpenRequest<'_>,
    ) -> Result<KvSession, OpenError> {
        let options = how.downcast_options::<Kv>()?;
        let choices = KvSessionOptions {
            durability: options.sync.durability(),
            max_uncommitted_bytes: options.max_uncommitted,
            checksum_new_container: options.checksums,
        };
        open_session_on(Box::new(engine), at, how, choices)
    }
}

impl Connector for LmdbConnector {
    fn name(&self) -> &'static str {
        CONNECTOR
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[CONNECTOR]
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(DurabilitySupport::OnRequest)
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(Kv::default())
    }

    fn claims(&self, probe: &PathProbe<'_>) -> bool {
        probe.is_dir() && LmdbEngine::has_store(probe.path())
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(KvStore::new(LmdbConnector::open_session(at, how)?)))
    }

    /// Beside the store that names it, as native files have it. A folder is taken for a store of this kind.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, role: LinkedStoreRole) -> Vec<Location> {
        let base = base.and_then(|base| folder(base).ok());
        let paths =
            linked_file_candidates(base.as_deref().and_then(Path::parent), &path_from_bytes(name.as_bytes()), role);
        let located = |path: PathBuf| {
            let store = path.is_dir().then(|| Some(Url::literal(CONNECTOR, path.to_str()?).into())).flatten();
            store.unwrap_or(Location::Path(path))
        };
        paths.into_iter().map(located).collect()
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn trust_origin(&self, _: &Location) -> TrustOrigin {
        TrustOrigin::Files
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        let path = folder(at).ok()?.canonicalize().ok()?;
        Some(StoreIdentity(path.as_os_str().as_encoded_bytes().into()))
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn watch(&self, at: &Location) -> Option<Box<dyn LocationWatch>> {
        Some(Box::new(LmdbFolderWatch::new(folder(at).ok()?)))
    }
}
