//! The connector of key-value stores in folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_model::{
    Capabilities, Connector, ConnectorOptions, Durability, Identity, LinkUse, Location, LocationWatch, Name, OpenError,
    OpenRequest, Origin, PathProbe, Store, Upkeep, Url,
};

use crate::engine::{LmdbEngine, LmdbOptions, LongKeys};
use crate::options::Kv;
use crate::random::random;
use crate::session::{CONNECTOR, KvRequest, KvSession, capabilities};
use crate::store::KvStore;

/// Opens key-value stores in folders: `kv:run`.
#[derive(Debug, Clone, Default)]
pub struct KvConnector;

/// The folder of a store.
fn folder(at: &Location) -> Result<PathBuf, OpenError> {
    let Location::Url(url) = at else { return Ok(at.as_path().map(Path::to_owned).unwrap_or_default()) };
    let missing = || OpenError::Url("a key-value store has a folder: kv:run is one".to_owned());
    url.local_path()?.ok_or_else(missing)
}

impl Connector for KvConnector {
    fn name(&self) -> &'static str {
        CONNECTOR
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[CONNECTOR]
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(Durability::OnRequest)
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(Kv::default())
    }

    fn claims(&self, probe: &PathProbe<'_>) -> bool {
        probe.is_dir() && LmdbEngine::is_at(probe.path())
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let options = how.typed_options::<Kv>()?;
        let Kv { map_size, max_readers, sync } = *options;
        let engine = LmdbEngine::open(&folder(at)?, how.mode, &LmdbOptions { map_size, max_readers, sync });
        let engine = engine.map_err(|error| OpenError::Store(error.into()))?;
        let request = KvRequest {
            mode: how.mode,
            root: how.root.clone(),
            durability: sync.durability(),
            max_allocation: how.max_allocation,
            unfilter: how.unfilter.clone(),
            random: random()?,
        };
        let session = KvSession::open(Box::new(LongKeys::new(engine)), &request);
        let mut session = session.map_err(OpenError::Store)?;
        session.described.location = Some(at.clone());
        Ok(Arc::new(KvStore::new(session)))
    }

    /// A store beside the one that names it.
    fn linked_locations(&self, base: Option<&Location>, name: &Name, _: LinkUse) -> Vec<Location> {
        let Some(name) = name.as_str() else { return Vec::new() };
        let beside = base.and_then(|base| folder(base).ok()).and_then(|base| Some(base.parent()?.join(name)));
        let paths = beside.into_iter().chain([PathBuf::from(name)]);
        let located = |path: PathBuf| match path.is_dir() {
            true => Some(Url::literal(CONNECTOR, path.to_str()?).into()),
            false => Some(Location::Path(path)),
        };
        paths.filter_map(located).collect()
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn origin(&self, _: &Location) -> Origin {
        Origin::Files
    }

    fn identity(&self, at: &Location) -> Option<Identity> {
        let path = folder(at).ok()?.canonicalize().ok()?;
        Some(Identity(path.as_os_str().as_encoded_bytes().into()))
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        None
    }

    fn watch(&self, _: &Location) -> Option<Box<dyn LocationWatch>> {
        None
    }
}
