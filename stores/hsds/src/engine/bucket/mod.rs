//! Objects in a bucket of an object store.
//!
//! A session that writes holds a lease ([`lease`]), and asks for it before each wave of changes.

mod claims;
mod lease;
mod lease_document;
mod lease_observer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_model::{DurabilitySupport, Mode, Result};
use h5live_objects::{
    GetCondition, GetItem, GetOutcome, InFlightLimits, ListEntry, ObjectBytes, ObjectClient, ObjectError,
    ObjectErrorKind, PutCondition, PutItem,
};
use parking_lot::Mutex;

use self::claims::PrefixClaims;
use self::lease::{WriterLease, key_in_domain_folder, lease_key, limits_for_lease_ttl};
use self::lease_observer::LeaseObserver;
use super::{
    ClaimState, DocumentPut, FetchedObject, ListedObject, OBJECTS_FOLDER, ObjectChangeTag, ObjectEngine, ObjectPut,
    ObjectSink, PollPauses, RequestCounters, RequestCounts, Revalidation, is_domain_key, key_in_bucket,
};
use crate::error::HsdsError;
use crate::layout::DOMAIN_FILE;

pub use self::lease::LeaseOptions;

/// Most requests of a session at a time.
const IN_FLIGHT: usize = 64;
/// Most bytes that are on their way.
const MAX_BYTES_IN_FLIGHT: u64 = 256 << 20;
/// The first pause of a reader between two looks.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// How a session uses a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketOptions {
    /// How a session that writes excludes others.
    pub lease: LeaseOptions,
    /// The longest pause of a reader between two looks.
    pub longest_poll_pause: Duration,
}

impl Default for BucketOptions {
    fn default() -> Self {
        BucketOptions {
            lease: LeaseOptions { ttl: Duration::from_secs(60), takes_over_unexpired: false, is_unfenced: false },
            longest_poll_pause: Duration::from_secs(1),
        }
    }
}

/// Objects in a bucket.
#[derive(Debug)]
pub struct BucketEngine {
    client: ObjectClient,
    bucket: String,
    lease_key: String,
    /// The domain.
    domain: String,
    /// That of a session that writes, and how it is taken.
    lease: Option<WriterLease>,
    lease_request: LeaseOptions,
    claims: PrefixClaims,
    observer: Mutex<LeaseObserver>,
    longest_pause: Duration,
    /// Bytes of the largest object that was read: what others probably have.
    max_read: AtomicU64,
    counters: RequestCounters,
}

/// An error of the client, or of what takes the objects.
enum WaveError {
    Client(ObjectError),
    Sink(h5live_model::Error),
}

impl From<ObjectError> for WaveError {
    fn from(error: ObjectError) -> Self {
        WaveError::Client(error)
    }
}

impl From<WaveError> for h5live_model::Error {
    fn from(error: WaveError) -> Self {
        match error {
            WaveError::Client(error) => error.into(),
            WaveError::Sink(error) => error,
        }
    }
}

impl BucketEngine {
    /// The objects of the bucket of this name, which `client` has, for a session on a domain. A session that writes
    /// excludes others that write the same domain.
    ///
    /// # Errors
    /// [`HsdsError::Leased`] if another session writes the domain, [`HsdsError::BadLease`], [`HsdsError::NoConditionalWrites`];
    /// those of the client.
    pub fn open(
        client: &ObjectClient,
        bucket: &str,
        domain: &str,
        mode: Mode,
        request: &BucketOptions,
    ) -> Result<Self> {
        let client = match mode.writes() {
            true => client.with_limits(limits_for_lease_ttl(client.limits(), request.lease.ttl)),
            false => client.clone(),
        };
        let counters = RequestCounters::default();
        let is_made = matches!(mode, Mode::Create | Mode::CreateNew);
        // Nothing is made where a domain should be and is not.
        let lease = match mode.writes() && (is_made || BucketEngine::has_domain(&client, domain, &counters)?) {
            true => Some(WriterLease::acquire(&client, domain, &request.lease)?),
            false => None,
        };
        Ok(BucketEngine {
            client,
            bucket: bucket.to_owned(),
            lease_key: lease_key(domain),
            domain: domain.to_owned(),
            lease,
            lease_request: request.lease,
            claims: PrefixClaims::default(),
            observer: Mutex::default(),
            longest_pause: request.longest_poll_pause,
            max_read: AtomicU64::new(0),
            counters,
        })
    }

    fn has_domain(client: &ObjectClient, domain: &str, counters: &RequestCounters) -> Result<bool> {
        counters.wave(&counters.gets, 1);
        match client.head(&key_in_domain_folder(domain, DOMAIN_FILE)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind == ObjectErrorKind::NotThere => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a wave of changes begin.
    fn confirm_lease(&self) -> Result<()> {
        let Some(lease) = &self.lease else { return Ok(()) };
        self.counters.wave(&self.counters.gets, 1);
        lease.confirm()
    }

    /// Lets a change of a wave begin. What forbids it is kept in `refused`.
    fn may_begin(&self, refused: &Mutex<Option<h5live_model::Error>>) -> bool {
        let kept = self.lease.as_ref().map_or(Ok(()), WriterLease::renew_if_due);
        kept.map_err(|error| *refused.lock() = Some(error)).is_ok()
    }

    fn limits(&self) -> InFlightLimits {
        InFlightLimits { max_requests: IN_FLIGHT, max_bytes: MAX_BYTES_IN_FLIGHT }
    }

    fn take(&self, found: ObjectBytes) -> FetchedObject {
        self.max_read.fetch_max(found.bytes.len() as u64, Ordering::Relaxed);
        RequestCounters::add_bytes(&self.counters.bytes_read, found.bytes.len());
        FetchedObject { tag: tag_of(&found.meta.tag), bytes: found.bytes.as_ref().into() }
    }
}

/// The tag of an object, with its version behind a line feed if it has one; an empty one, if the store gives none.
fn tag_of(tag: &h5live_objects::ObjectChangeTag) -> ObjectChangeTag {
    let etag = tag.etag().unwrap_or_default();
    ObjectChangeTag(tag.version().map_or_else(|| etag.to_owned(), |version| format!("{etag}\n{version}")))
}

/// The tag as the client has it; `None` if the store gives none.
fn client_tag(tag: &ObjectChangeTag) -> Option<h5live_objects::ObjectChangeTag> {
    let (etag, version) =
        tag.0.split_once('\n').map_or((tag.0.as_str(), None), |(etag, version)| (etag, Some(version)));
    let of_etag = || h5live_objects::ObjectChangeTag::of_etag(etag).with_version(version.map(str::to_owned));
    (!etag.is_empty()).then(of_etag)
}

impl ObjectEngine for BucketEngine {
    fn get(&self, key: &str) -> Result<Option<FetchedObject>> {
        self.counters.wave(&self.counters.gets, 1);
        match self.client.get(key, &GetCondition::Always) {
            Ok(GetOutcome::Object(found)) => Ok(Some(self.take(found))),
            Ok(GetOutcome::NotModified) => Ok(None),
            Err(error) if error.kind == ObjectErrorKind::NotThere => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn get_many(&self, keys: &[String], each: &ObjectSink<'_>) -> Result<()> {
        self.counters.wave(&self.counters.gets, keys.len());
        let expected_bytes = self.max_read.load(Ordering::Relaxed);
        let item = |key: &String| GetItem { key: key.clone(), estimated_bytes: expected_bytes, ..GetItem::default() };
        let sink = &mut |number: usize, found: Option<GetOutcome>| {
            let found = match found {
                Some(GetOutcome::Object(found)) => Some(self.take(found)),
                Some(GetOutcome::NotModified) | None => None,
            };
            each(number, found).map_err(WaveError::Sink)
        };
        Ok(self.client.get_many(keys.iter().map(item), self.limits(), sink)?)
    }

    fn get_file_range(&self, uri: &str, start: u64, bytes: u64) -> Result<Vec<u8>> {
        let key = key_in_bucket(uri, &self.bucket)?;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        self.counters.wave(&self.counters.gets, 1);
        let found = self.client.get_range(key, start..start.saturating_add(bytes), &GetCondition::Always)?;
        RequestCounters::add_bytes(&self.counters.bytes_read, found.bytes.len());
        match found.bytes.len() as u64 == bytes {
            true => Ok(found.bytes.to_vec()),
            false => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                Err(HsdsError::Io { key: self.client.object_display_name(key), source }.into())
            }
        }
    }

    fn revalidate(&self, key: &str, tag: &ObjectChangeTag) -> Result<Revalidation> {
        self.counters.wave(&self.counters.gets, 1);
        let condition = client_tag(tag).map_or(GetCondition::Always, GetCondition::NotMatching);
        match self.client.get(key, &condition) {
            Ok(GetOutcome::NotModified) => Ok(Revalidation::Same),
            Ok(GetOutcome::Object(found)) => Ok(Revalidation::Newer(self.take(found))),
            Err(error) if error.kind == ObjectErrorKind::NotThere => Ok(Revalidation::Gone),
            Err(error) => Err(error.into()),
        }
    }

    fn put_many(&self, puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>> {
        self.put_documents(puts.into_iter().map(|object| DocumentPut { object, expected_tag: None }).collect())
    }

    fn put_documents(&self, puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>> {
        if puts.is_empty() {
            return Ok(Vec::new());
        }
        self.confirm_lease()?;
        let has_conditions = self.lease.as_ref().is_some_and(|lease| !lease.is_unfenced());
        self.counters.wave(&self.counters.puts, puts.len());
        let mut tags: Vec<Option<ObjectChangeTag>> = vec![None; puts.len()];
        let refused = Mutex::new(None);
        let items = puts.into_iter().map_while(|DocumentPut { object, expected_tag: replaces }| {
            RequestCounters::add_bytes(&self.counters.bytes_written, object.bytes.len());
            let replaced = replaces.filter(|_| has_conditions).as_ref().and_then(client_tag);
            let condition = replaced.map_or(PutCondition::Always, PutCondition::Matching);
            let item = PutItem { key: object.key, bytes: object.bytes.into(), condition };
            self.may_begin(&refused).then_some(item)
        });
        let written = self.client.put_many::<WaveError>(items, self.limits(), &mut |number, tag| {
            if let Some(place) = tags.get_mut(number) {
                *place = Some(tag_of(&tag));
            }
            Ok(())
        });
        refused.into_inner().map_or(Ok(()), Err)?;
        match written {
            Err(WaveError::Client(error)) if error.kind == ObjectErrorKind::Changed => {
                // Most probably the lease was taken after the question: its taker is named.
                self.confirm_lease()?;
                return Err(HsdsError::DocumentChanged(error.object_display_name).into());
            }
            written => written?,
        }
        Ok(tags.into_iter().flatten().collect())
    }

    fn delete_many(&self, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.confirm_lease()?;
        self.counters.wave(&self.counters.deletes, keys.len());
        let refused = Mutex::new(None);
        let items = keys.iter().map_while(|key| self.may_begin(&refused).then(|| key.clone()));
        let deleted = self.client.delete_many::<WaveError>(items, self.limits());
        refused.into_inner().map_or(Ok(()), Err)?;
        Ok(deleted?)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>> {
        let mut found = Vec::new();
        self.for_each_object(prefix, &mut |object| {
            found.push(object);
            true
        })?;
        Ok(found)
    }

    fn for_each_object(&self, prefix: &str, each: &mut dyn FnMut(ListedObject) -> bool) -> Result<()> {
        self.counters.wave(&self.counters.lists, 1);
        let listed = &mut |entry| match entry {
            ListEntry::Object { key, meta } => {
                each(ListedObject { key, size: meta.size, modified: Some(meta.modified) })
            }
            ListEntry::Prefix(_) => true,
        };
        Ok(self.client.list_objects_recursively(prefix.trim_end_matches('/'), listed)?)
    }

    fn folder_names(&self, prefix: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.for_each_folder_name(prefix, &mut |name| {
            found.push(name);
            true
        })?;
        Ok(found)
    }

    fn for_each_folder_name(&self, prefix: &str, each: &mut dyn FnMut(String) -> bool) -> Result<()> {
        self.counters.wave(&self.counters.lists, 1);
        let listed = &mut |entry| match entry {
            ListEntry::Prefix(folder) => each(folder.rsplit('/').next().unwrap_or_default().to_owned()),
            ListEntry::Object { .. } => true,
        };
        Ok(self.client.list_children(prefix.trim_end_matches('/'), listed)?)
    }

    fn all_domain_document_keys(&self) -> Result<Vec<String>> {
        let mut keys = vec![DOMAIN_FILE.to_owned()];
        for top in self.folder_names("")?.into_iter().filter(|name| name != OBJECTS_FOLDER) {
            self.counters.wave(&self.counters.lists, 1);
            self.client.list_objects_recursively(&top, &mut |entry| {
                if let ListEntry::Object { key, .. } = entry
                    && is_domain_key(&key)
                {
                    keys.push(key);
                }
                true
            })?;
        }
        Ok(keys)
    }

    fn claim(&self, prefix: &str) -> Result<()> {
        self.counters.wave(&self.counters.puts, 1);
        self.claims.claim_prefix(&self.client, prefix, (&self.domain, self.lease.as_ref()), &self.lease_request)
    }

    fn release_claim(&self, prefix: &str) -> Result<()> {
        self.counters.wave(&self.counters.deletes, 1);
        self.claims.release(&self.client, prefix)
    }

    fn find_claim(&self, prefix: &str) -> Result<ClaimState> {
        self.counters.wave(&self.counters.gets, 2);
        claims::claim_state(&self.client, prefix)
    }

    fn durability(&self) -> DurabilitySupport {
        DurabilitySupport::Always
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn has_writer(&self) -> Result<bool> {
        if let Some(lease) = &self.lease {
            return Ok(lease.is_held());
        }
        self.counters.wave(&self.counters.gets, 1);
        Ok(self.observer.lock().has_writer(&self.client, &self.lease_key)?)
    }

    fn is_abandoned(&self) -> Result<bool> {
        Ok(self.lease.is_none() && !self.has_writer()? && self.observer.lock().has_expired())
    }

    fn poll_pauses(&self) -> PollPauses {
        PollPauses { first: FIRST_PAUSE, longest: self.longest_pause.max(FIRST_PAUSE), continues_across_waits: true }
    }

    fn close(&self) -> Result<()> {
        let claims = self.claims.release_all(&self.client);
        if let Some(lease) = &self.lease {
            lease.release();
        }
        claims
    }

    fn close_never_created(&self) -> Result<()> {
        self.claims.release_all(&self.client)?;
        self.lease.as_ref().map_or(Ok(()), WriterLease::release_and_delete_if_created)
    }

    fn close_after_deletion(&self) -> Result<()> {
        self.claims.release_all(&self.client)?;
        self.lease.as_ref().map_or(Ok(()), |lease| lease.release_delete_unless_domain_exists(&self.client))
    }

    fn counts(&self) -> RequestCounts {
        self.counters.counts()
    }
}
