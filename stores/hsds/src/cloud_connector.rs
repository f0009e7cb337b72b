//! The connector of object stores in buckets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use h5live_model::{
    Capabilities, Connector, ConnectorOptions, DurabilitySupport, FileDiagnosis, LinkedStoreRole, Location,
    LocationWatch, Maintenance, Mode, Name, OpenError, OpenRequest, PathProbe, ReclaimReport, RepairReport, Store,
    StoreCheckOptions, StoreCheckReport, StoreIdentity, TrustOrigin,
};
use h5live_objects::ObjectClient;

use crate::cloud_options::HsdsCloud;
use crate::cloud_place::CloudDomainPlace;
use crate::connector::{read_only_request, request_to_open, set_options};
use crate::engine::BucketEngine;
use crate::maintenance::{self, UpkeepTarget};
use crate::opened_stores::{self, LastOpenedStore};
use crate::session::{HsdsOpenRequest, HsdsSession, capabilities, domain_document_key};
use crate::store::HsdsStore;

/// The name of the kind of store, and its first scheme.
const CONNECTOR: &str = "hsds+s3";
/// The shortest pause between two looks whether a domain is there.
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// Opens object stores in buckets: `hsds+s3://bucket/home/me/run`.
#[derive(Debug, Clone, Default)]
pub struct HsdsCloudConnector {
    pub(crate) opened: Option<LastOpenedStore>,
}

/// The options that the query of a location gives.
pub(crate) fn options_of(at: &Location) -> HsdsCloud {
    let mut options = HsdsCloud::default();
    set_options(&mut options, at);
    options
}

/// What documents of the domain at a location call a file of the same bucket; `None` if it is none.
pub(crate) fn file_uri(domain: &Location, file: &Location) -> Option<String> {
    let (place, Location::Url(file)) = (CloudDomainPlace::of_domain(domain, &options_of(domain).schema).ok()?, file)
    else {
        return None;
    };
    let path = String::from_utf8(file.decoded_hier_part().ok()?).ok()?;
    let (bucket, key) = path.strip_prefix("//")?.split_once('/')?;
    let is_here = file.scheme() == place.cloud.scheme() && bucket == place.bucket;
    is_here.then(|| format!("{}://{bucket}/{key}", file.scheme()))
}

/// The place of a domain, and a client of its bucket.
pub(crate) fn place_and_client(
    at: &Location,
    options: &HsdsCloud,
) -> Result<(CloudDomainPlace, ObjectClient), OpenError> {
    let place = CloudDomainPlace::of_domain(at, &options.schema)?;
    let client = place.bucket_location().build_client(&options.objects);
    Ok((place, client.map_err(|error| OpenError::Store(error.into()))?))
}

/// The objects of a domain, for a session of its own.
///
/// # Errors
/// [`OpenError::InvalidLocation`], [`OpenError::Store`].
pub(crate) fn open_engine(
    at: &Location,
    options: &HsdsCloud,
    mode: Mode,
) -> Result<(CloudDomainPlace, BucketEngine), OpenError> {
    let (place, client) = place_and_client(at, options)?;
    open_bucket(place, &client, options, mode)
}

/// The objects of a bucket, to read domains at a location, or below a folder there.
///
/// # Errors
/// As [`open_engine`].
pub(crate) fn open_folder_engine(
    at: &Location,
    options: &HsdsCloud,
) -> Result<(CloudDomainPlace, BucketEngine), OpenError> {
    let place = CloudDomainPlace::of_domain_or_folder(at, &options.schema)?;
    let client =
        place.bucket_location().build_client(&options.objects).map_err(|error| OpenError::Store(error.into()))?;
    open_bucket(place, &client, options, Mode::Read)
}

fn open_bucket(
    place: CloudDomainPlace,
    client: &ObjectClient,
    options: &HsdsCloud,
    mode: Mode,
) -> Result<(CloudDomainPlace, BucketEngine), OpenError> {
    let engine = BucketEngine::open(client, &place.bucket, &place.domain, mode, &options.request());
    Ok((place, engine.map_err(OpenError::Store)?))
}

impl HsdsCloudConnector {
    /// A connector that lets `opened` keep a handle on the last session.
    pub fn remembering_last_opened(opened: LastOpenedStore) -> Self {
        HsdsCloudConnector { opened: Some(opened) }
    }

    fn open_session(at: &Location, how: &OpenRequest<'_>) -> Result<HsdsSession, OpenError> {
        HsdsCloudConnector::open_as(at, how, false)
    }

    fn open_for_upkeep(at: &Location, how: &OpenRequest<'_>) -> Result<UpkeepTarget, OpenError> {
        UpkeepTarget::of(HsdsCloudConnector::open_session(at, how), || {
            Ok(Box::new(open_engine(at, how.downcast_options::<HsdsCloud>()?, how.mode)?.1))
        })
    }

    fn open_as(at: &Location, how: &OpenRequest<'_>, is_draft: bool) -> Result<HsdsSession, OpenError> {
        let options = how.downcast_options::<HsdsCloud>()?;
        let domain = CloudDomainPlace::of_domain(at, &options.schema)?.domain;
        let request = request_to_open(domain, &options.schema, how);
        HsdsCloudConnector::open_domain(at, options, &HsdsOpenRequest { creates_draft: is_draft, ..request })
    }

    fn open_read_only(at: &Location) -> Result<HsdsSession, OpenError> {
        let options = options_of(at);
        let domain = CloudDomainPlace::of_domain(at, &options.schema)?.domain;
        HsdsCloudConnector::open_domain(at, &options, &read_only_request(domain))
    }

    fn open_domain(at: &Location, options: &HsdsCloud, request: &HsdsOpenRequest) -> Result<HsdsSession, OpenError> {
        let (_, engine) = open_engine(at, options, request.mode)?;
        let mut session = HsdsSession::open(Box::new(engine), request).map_err(OpenError::Store)?;
        session.session_info.location = Some(at.clone());
        session.session_info.connector = CONNECTOR;
        Ok(session)
    }
}

impl Connector for HsdsCloudConnector {
    fn name(&self) -> &'static str {
        CONNECTOR
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[CONNECTOR, "hsds+gs", "hsds+az"]
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(DurabilitySupport::Always)
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(HsdsCloud::default())
    }

    fn claims(&self, _: &PathProbe<'_>) -> bool {
        false
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let session = HsdsCloudConnector::open_as(at, how, opened_stores::makes_drafts(self.opened.as_ref()))?;
        Ok(opened_stores::remember_opened(self.opened.as_ref(), HsdsStore::new(session)))
    }

    /// A domain of the same bucket.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, _: LinkedStoreRole) -> Vec<Location> {
        let place = base.and_then(|base| CloudDomainPlace::of_domain(base, &options_of(base).schema).ok());
        let linked = place.and_then(|place| place.linked_domain_url(name.as_str()?));
        linked.into_iter().map(Location::from).collect()
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn trust_origin(&self, at: &Location) -> TrustOrigin {
        let place = CloudDomainPlace::of_domain(at, &options_of(at).schema);
        TrustOrigin::Named(place.map(|place| place.bucket_location().display_name()).unwrap_or_default())
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        let place = CloudDomainPlace::of_domain(at, &options_of(at).schema).ok()?;
        Some(StoreIdentity(place.canonical_name().into_bytes().into()))
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn watch(&self, at: &Location) -> Option<Box<dyn LocationWatch>> {
        let options = options_of(at);
        let (place, client) = place_and_client(at, &options).ok()?;
        let longest = options.poll_interval.max(MIN_PAUSE);
        let mut watch = DomainWatch {
            client,
            key: domain_document_key(&place.domain),
            pause: MIN_PAUSE,
            longest,
            was_there: false,
        };
        watch.was_there = watch.is_there();
        Some(Box::new(watch))
    }
}

/// Looks again and again whether a domain is there.
#[derive(Debug)]
struct DomainWatch {
    client: ObjectClient,
    key: String,
    pause: Duration,
    longest: Duration,
    /// Whether it was there at the last look.
    was_there: bool,
}

impl LocationWatch for DomainWatch {
    fn is_there(&self) -> bool {
        self.client.head(&self.key).is_ok()
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        std::thread::sleep(timeout.min(self.pause));
        self.pause = (self.pause * 2).min(self.longest);
        let is_there = self.is_there();
        // Nothing tells of changes in a domain that is there.
        std::mem::replace(&mut self.was_there, is_there) || is_there
    }
}

impl Maintenance for HsdsCloudConnector {
    fn diagnose(&self, at: &Location) -> Result<FileDiagnosis, OpenError> {
        maintenance::diagnosis(&HsdsCloudConnector::open_read_only(at)?).map_err(OpenError::Store)
    }

    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<RepairReport, OpenError> {
        let before = self.diagnose(at).ok();
        HsdsCloudConnector::open_for_upkeep(at, &maintenance::with_mode(how, Mode::Write))?.repair(before)
    }

    fn repair_and_reclaim_unreachable(&self, at: &Location, how: &OpenRequest<'_>) -> Result<ReclaimReport, OpenError> {
        HsdsCloudConnector::open_for_upkeep(at, &maintenance::with_mode(how, Mode::Write))?.reclaim()
    }

    fn check(
        &self,
        at: &Location,
        how: &OpenRequest<'_>,
        what: &StoreCheckOptions,
    ) -> Result<StoreCheckReport, OpenError> {
        HsdsCloudConnector::open_for_upkeep(at, &maintenance::with_mode(how, Mode::Read))?.check(*what)
    }
}
