//! The connector of object stores in folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use h5live_model::{
    AllocationLimit, Capabilities, Connector, ConnectorOptions, DurabilitySupport, LinkedStoreRole, Location,
    LocationWatch, Maintenance, Mode, Name, NoFilters, ObjectSpec, OpenError, OpenRequest, PathProbe, Store,
    StoreIdentity, TrustOrigin, Url,
};

use crate::engine::FolderEngine;
use crate::opened_stores::{self, LastOpenedStore};
use crate::options::{DEFAULT_METADATA_CACHE_BYTES, Hsds};
use crate::place::{DomainPlace, is_domain_or_bucket};
use crate::session::{CONNECTOR, HsdsOpenRequest, HsdsSession, capabilities, domain_document_key};
use crate::store::HsdsStore;

/// The pause between two looks whether a domain is there.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two looks at what is in a domain. Each is twice as long as the one before.
const MAX_PAUSE: Duration = Duration::from_millis(160);

/// Opens object stores in folders: `hsds:run`.
#[derive(Debug, Clone, Default)]
pub struct HsdsFolderConnector {
    pub(crate) opened: Option<LastOpenedStore>,
}

/// The path of a location.
///
/// # Errors
/// [`OpenError::InvalidLocation`] if the location names none.
pub(crate) fn path_of(at: &Location) -> Result<PathBuf, OpenError> {
    let Location::Url(url) = at else { return Ok(at.as_path().map(Path::to_owned).unwrap_or_default()) };
    let missing = || OpenError::InvalidLocation("an object store has a folder: hsds:run is one".to_owned());
    url.hier_part_as_path()?.ok_or_else(missing)
}

/// Where the domain at a location is.
///
/// # Errors
/// [`OpenError::InvalidLocation`], [`OpenError::Store`].
pub(crate) fn place_of(at: &Location, options: &Hsds) -> Result<DomainPlace, OpenError> {
    DomainPlace::resolve(&path_of(at)?, &options.domain).map_err(OpenError::Store)
}

/// What documents of the domain at a location call a file of the same bucket; `None` if it is none.
pub(crate) fn file_uri(domain: &Location, file: &Location) -> Option<String> {
    let is_here = |at: &&Location| !matches!(at, Location::Url(url) if url.scheme() != CONNECTOR);
    let bucket = place_of(Some(domain).filter(is_here)?, &options_of(domain)).ok()?.bucket.canonicalize().ok()?;
    let file = file.as_path()?.canonicalize().ok().filter(|file| file.is_file())?;
    let key: Option<Vec<&str>> = file.strip_prefix(&bucket).ok()?.iter().map(|part| part.to_str()).collect();
    Some(format!("{}/{}", bucket.file_name()?.to_str()?, key?.join("/")))
}

/// The options that the query of a location gives.
pub(crate) fn options_of(at: &Location) -> Hsds {
    let mut options = Hsds::default();
    set_options(&mut options, at);
    options
}

/// Sets the options that the query of a location gives. Those that are unknown are refused where it is opened.
pub(crate) fn set_options(options: &mut dyn ConnectorOptions, at: &Location) {
    if let Location::Url(url) = at
        && let Ok(settings) = url.query_settings()
    {
        settings.iter().for_each(|(name, value)| drop(options.set(name, value)));
    }
}

/// What a session is asked for on this domain.
pub(crate) fn request_to_open(domain: String, options: &Hsds, how: &OpenRequest<'_>) -> HsdsOpenRequest {
    let given = [&options.owner, &options.user].into_iter().find(|name| !name.is_empty());
    HsdsOpenRequest {
        mode: how.mode,
        root: how.root.clone(),
        domain,
        new_domain_owner: given.cloned().unwrap_or_else(default_owner),
        creates_draft: false,
        acl_user: Some(options.user.clone()).filter(|user| !user.is_empty()),
        shard_above: options.shard_above,
        cache_bytes: options.metadata_cache,
        max_allocation: how.max_allocation,
        filter_engine: how.filter_engine.clone(),
    }
}

/// What a session is asked for that reads this domain, without filters.
pub(crate) fn read_only_request(domain: String) -> HsdsOpenRequest {
    HsdsOpenRequest {
        mode: Mode::Read,
        root: ObjectSpec::group(),
        domain,
        new_domain_owner: String::new(),
        creates_draft: false,
        acl_user: None,
        shard_above: 0,
        cache_bytes: DEFAULT_METADATA_CACHE_BYTES,
        max_allocation: AllocationLimit::default(),
        filter_engine: Arc::new(NoFilters),
    }
}

/// The owner of a new domain, if none is given.
fn default_owner() -> String {
    let found =
        ["HS_USERNAME", "USER"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    found.unwrap_or_else(|| "admin".to_owned())
}

impl HsdsFolderConnector {
    /// A connector that lets `opened` keep a handle on the last session.
    pub fn remembering_last_opened(opened: LastOpenedStore) -> Self {
        HsdsFolderConnector { opened: Some(opened) }
    }

    /// A session on the domain at a location.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(crate) fn open_session(at: &Location, how: &OpenRequest<'_>) -> Result<HsdsSession, OpenError> {
        HsdsFolderConnector::open_as(at, how, false)
    }

    fn open_as(at: &Location, how: &OpenRequest<'_>, is_draft: bool) -> Result<HsdsSession, OpenError> {
        let options = how.downcast_options::<Hsds>()?;
        let place = place_of(at, options)?;
        let request = request_to_open(place.domain.clone(), options, how);
        if matches!(how.mode, Mode::Create | Mode::CreateNew) {
            place.check_no_nested_bucket()?;
        }
        HsdsFolderConnector::open_place(at, &place.bucket, &HsdsOpenRequest { creates_draft: is_draft, ..request })
    }

    /// A session that reads the domain at a location, without filters.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(crate) fn open_read_only(at: &Location) -> Result<HsdsSession, OpenError> {
        let place = place_of(at, &options_of(at))?;
        HsdsFolderConnector::open_place(at, &place.bucket, &read_only_request(place.domain))
    }

    fn open_place(at: &Location, bucket: &Path, request: &HsdsOpenRequest) -> Result<HsdsSession, OpenError> {
        let engine = FolderEngine::open(bucket, &request.domain, request.mode).map_err(OpenError::Store)?;
        let mut session = HsdsSession::open(Box::new(engine), request).map_err(OpenError::Store)?;
        session.session_info.location = Some(at.clone());
        Ok(session)
    }
}

impl Connector for HsdsFolderConnector {
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
        Box::new(Hsds::default())
    }

    fn claims(&self, probe: &PathProbe<'_>) -> bool {
        probe.is_dir() && is_domain_or_bucket(probe.path())
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let session = HsdsFolderConnector::open_as(at, how, opened_stores::makes_drafts(self.opened.as_ref()))?;
        Ok(opened_stores::remember_opened(self.opened.as_ref(), HsdsStore::new(session)))
    }

    /// A domain of the same bucket.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, _: LinkedStoreRole) -> Vec<Location> {
        let place = base.and_then(|base| place_of(base, &options_of(base)).ok());
        let (Some(place), Some(name)) = (place, name.as_str()) else { return Vec::new() };
        place.linked_domain_folder(name).map(|text| Url::literal(CONNECTOR, &text).into()).into_iter().collect()
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
        let place = place_of(at, &options_of(at)).ok()?;
        let path = place.domain_folder().canonicalize().ok()?;
        Some(StoreIdentity(path.as_os_str().as_encoded_bytes().into()))
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn watch(&self, at: &Location) -> Option<Box<dyn LocationWatch>> {
        let place = place_of(at, &options_of(at)).ok()?;
        let path = place.bucket.join(domain_document_key(&place.domain));
        Some(Box::new(DomainWatch { was_there: path.is_file(), path, pause: PAUSE }))
    }
}

/// Looks again and again whether a domain is there. What is in one that is there may change without a sign of it in any single
/// object, so whoever waits has to look himself.
#[derive(Debug)]
struct DomainWatch {
    /// The object of the domain.
    path: PathBuf,
    /// Whether it was there at the last look.
    was_there: bool,
    /// The next pause.
    pause: Duration,
}

impl LocationWatch for DomainWatch {
    fn is_there(&self) -> bool {
        self.path.is_file()
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        std::thread::sleep(timeout.min(self.pause));
        let is_there = self.is_there();
        self.pause = if is_there && self.was_there { (self.pause * 2).min(MAX_PAUSE) } else { PAUSE };
        std::mem::replace(&mut self.was_there, is_there) || is_there
    }
}
