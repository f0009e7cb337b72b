//! The client: a place of objects, and how requests are tried.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use object_store::ObjectStore;
use object_store::list::PaginatedListStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::multipart::MultipartStore;
use object_store::path::Path as ObjectPath;
use tokio::sync::Semaphore;

use crate::cause::{AttemptTimedOutAfterSecs, is_transient, object_store_error};
use crate::counts::{Counters, RequestKind};
use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::limits::RequestLimits;
use crate::{RequestCounts, runtime};

/// Reads and writes the objects of one place, and waits for each request. Clones share counters and limits.
///
/// An object is named by its key within the place: `runs/a.h5` in a bucket or a folder. Keys have no empty part, no `.`
/// and no `..`.
#[derive(Clone)]
pub struct ObjectClient(pub(crate) Arc<ClientState>);

/// What all clones of a client share.
pub(crate) struct ClientState {
    /// The place, as errors name it: `s3://bucket`.
    name: String,
    pub store: Arc<dyn ObjectStore>,
    pub optional_interfaces: OptionalInterfaces,
    /// Whether it reads the last bytes of an object whose size is not known.
    pub supports_suffix_ranges: bool,
    pub limits: RequestLimits,
    permits: Semaphore,
    pub counters: Counters,
}

/// What a store can do beyond what each can.
#[derive(Default, Clone)]
pub(crate) struct OptionalInterfaces {
    /// It lists by pages.
    pub pages: Option<Arc<dyn PaginatedListStore>>,
    /// It takes the parts of an object by themselves.
    pub parts: Option<Arc<dyn MultipartStore>>,
}

impl OptionalInterfaces {
    /// Those of a cloud.
    #[cfg(feature = "cloud")]
    pub fn of_cloud<S: PaginatedListStore + MultipartStore>(store: &Arc<S>) -> Self {
        OptionalInterfaces { pages: Some(store.clone()), parts: Some(store.clone()) }
    }
}

/// The last failure of a request.
#[derive(Debug)]
pub(crate) struct Failure {
    pub error: object_store::Error,
    pub attempts: u32,
}

impl ObjectClient {
    /// Objects of any store of the library. `location_name` is what errors call it.
    pub fn over(location_name: impl Into<String>, store: Arc<dyn ObjectStore>, limits: RequestLimits) -> Self {
        ObjectClient::with_optional_interfaces(location_name.into(), store, OptionalInterfaces::default(), limits)
    }

    /// An empty store in memory, as long as a clone of the client lives.
    pub fn memory() -> Self {
        let store = Arc::new(InMemory::new());
        let abilities = OptionalInterfaces { pages: None, parts: Some(store.clone()) };
        ObjectClient::with_optional_interfaces("memory".to_owned(), store, abilities, RequestLimits::default())
    }

    /// The files of a folder, which must be there. An object appears whole, by renaming; with `is_durable`, it has
    /// reached the disk then. A condition on a tag ([`crate::PutCondition::Matching`]) is not supported.
    ///
    /// # Errors
    /// [`ObjectErrorKind::NotThere`] and others of the system.
    pub fn folder(folder: &Path, is_durable: bool) -> Result<Self> {
        let name = folder.to_string_lossy().into_owned();
        let store = LocalFileSystem::new_with_prefix(folder);
        let store = store.map_err(|error| ObjectError::of_library(&name, &error, 1))?;
        Ok(ObjectClient::over(name, Arc::new(store.with_fsync(is_durable)), RequestLimits::default()))
    }

    pub(crate) fn with_optional_interfaces(
        name: String,
        store: Arc<dyn ObjectStore>,
        abilities: OptionalInterfaces,
        limits: RequestLimits,
    ) -> Self {
        let permits = Semaphore::new(limits.max_in_flight.clamp(1, 1 << 16));
        let has_suffixes = !name.starts_with("az://");
        ObjectClient(Arc::new(ClientState {
            name,
            store,
            optional_interfaces: abilities,
            supports_suffix_ranges: has_suffixes,
            limits,
            permits,
            counters: Counters::default(),
        }))
    }

    /// The same place with other limits and new counters.
    #[must_use]
    pub fn with_limits(&self, limits: RequestLimits) -> Self {
        ObjectClient::with_optional_interfaces(
            self.0.name.clone(),
            self.0.store.clone(),
            self.0.optional_interfaces.clone(),
            limits,
        )
    }

    /// The store of the library: for libraries that take one. It makes each request once.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        self.0.store.clone()
    }

    /// The place, as errors name it.
    pub fn location_name(&self) -> &str {
        &self.0.name
    }

    /// What bounds its requests.
    pub fn limits(&self) -> &RequestLimits {
        &self.0.limits
    }

    /// The requests so far, of all clones.
    pub fn request_counts(&self) -> RequestCounts {
        self.0.counters.counts()
    }

    /// What errors call an object.
    pub fn object_display_name(&self, key: &str) -> String {
        self.0.object_display_name(key)
    }

    /// Runs a request on the threads of the process, and waits for it.
    pub(crate) fn spawn_and_wait<T: Send + 'static, F>(&self, work: impl FnOnce(Arc<ClientState>) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let state = self.0.clone();
        match runtime::spawn_and_wait(work(self.0.clone())) {
            Ok(result) => result,
            Err(error) => Err(ObjectError::new(ObjectErrorKind::Other, state.name.clone(), error.to_string())),
        }
    }
}

impl fmt::Debug for ObjectClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectClient").field(&self.0.name).finish()
    }
}

impl ClientState {
    pub fn object_display_name(&self, key: &str) -> String {
        match key.is_empty() {
            true => self.name.clone(),
            false => format!("{}/{key}", self.name.trim_end_matches('/')),
        }
    }

    /// A key as the library has it.
    pub fn parse_key(&self, key: &str) -> Result<ObjectPath> {
        let invalid =
            |cause: String| ObjectError::new(ObjectErrorKind::InvalidInput, self.object_display_name(key), cause);
        if key.starts_with('/') || key.ends_with('/') {
            return Err(invalid("the name of an object neither begins nor ends with a slash".to_owned()));
        }
        ObjectPath::parse(key).map_err(|error| invalid(error.to_string()))
    }

    /// The error of a request for an object.
    pub fn error(&self, key: &str, failure: &Failure) -> ObjectError {
        ObjectError::of_library(&self.object_display_name(key), &failure.error, failure.attempts)
    }

    /// Makes a request as often as the limits allow, while `is_also_retryable` says that a failure may pass. `attempt` gets the
    /// number of the attempt, from 0.
    pub async fn request_with_retries<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        kind: RequestKind,
        is_also_retryable: impl Fn(&object_store::Error) -> bool,
        attempt: impl Fn(u32) -> F,
    ) -> std::result::Result<T, Failure> {
        let begin = Instant::now();
        let mut attempts = 0;
        loop {
            let result = {
                // The semaphore is never closed.
                let _permit = self.permits.acquire().await;
                self.counters.record_attempt(kind, attempts > 0);
                let limit = self.limits.attempt_timeout;
                let timed = tokio::time::timeout(limit, attempt(attempts)).await;
                timed.unwrap_or_else(|_| Err(object_store_error(AttemptTimedOutAfterSecs(limit.as_secs()))))
            };
            attempts += 1;
            let error = match result {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let pause = self.limits.pause(attempts);
            let is_late = begin.elapsed().saturating_add(pause) >= self.limits.retry_timeout;
            if attempts >= self.limits.max_attempts || is_late || !(is_transient(&error) || is_also_retryable(&error)) {
                return Err(Failure { error, attempts });
            }
            tokio::time::sleep(pause).await;
        }
    }
}
