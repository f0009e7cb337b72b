//! A session on a domain: what all of its parts share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use h5live_model::{
    AllocationLimit, Capabilities, ChunkEncodedBy, ChunkReadStrategy, ConsistencyScope, DurabilitySupport,
    Error as ModelError, FilterEngine, Mode, ObjectId, ObjectKind, ObjectSpec, PartialWrites, Result, SessionInfo,
    SmallWritesStagedBy, StoreFeatures, StoreSizeLimits,
};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::decoded_chunk_cache::DecodedChunkCache;
use crate::engine::{ChunkBatchingEngine, ObjectEngine};
use crate::error::{HsdsError, damaged_object_error};
use crate::holders::VarLenTokenTable;
use crate::layout::{AclRight, DOMAIN_FILE, DomainId, EntryQuery, ObjectDocument, ShardingThreshold, kind, object_id};
use crate::random::random;
use crate::small_chunk_read_ahead::SmallChunkReadAhead;
use crate::state::{SessionState, TaggedDocument};

/// The name of the kind of store, and its scheme.
pub const CONNECTOR: &str = "hsds";
/// Most bytes of a chunk: a Blosc frame has no room for more.
const MAX_CHUNK_BYTES: u64 = i32::MAX as u64 - 64;
/// Requests that are best under way at a time.
const IN_FLIGHT: usize = 64;
/// Documents that are read in one wave, to count what they use.
const DOCUMENTS_AT_ONCE: usize = 4096;
/// Most documents that are read ahead at once.
const MAX_READ_AHEAD: usize = 256;

/// What a session on a domain can do whose commits are durable like this.
pub const fn capabilities(durability: DurabilitySupport) -> Capabilities {
    let missing = StoreFeatures::USER_LINKS
        .with(StoreFeatures::VIRTUAL)
        .with(StoreFeatures::EXTERNAL_FILES)
        .with(StoreFeatures::MAPS);
    Capabilities {
        features: StoreFeatures::all().without(missing),
        partial_writes: PartialWrites::Whole,
        staging: SmallWritesStagedBy::Caller,
        encoding: ChunkEncodedBy::Store,
        reads: ChunkReadStrategy::Batched { preferred_reads_in_flight: IN_FLIGHT, max_gap_bytes: 0 },
        commit: ConsistencyScope::Chunk,
        view: ConsistencyScope::Chunk,
        durability,
        supports_live_reads: true,
        limits: StoreSizeLimits::NONE.with_max_chunk_bytes(MAX_CHUNK_BYTES),
    }
}

/// How a domain is opened.
#[derive(Debug, Clone)]
pub struct HsdsOpenRequest {
    /// What the session may do.
    pub mode: Mode,
    /// What the root group of a new domain is like.
    pub root: ObjectSpec,
    /// The domain: a path in the bucket, without a slash in front.
    pub domain: String,
    /// The owner of a new domain.
    pub new_domain_owner: String,
    /// Whether a new domain is seen only after [`HsdsStore::publish_domain`](crate::HsdsStore::publish_domain). A session
    /// that ends before leaves nothing, or what was there before.
    pub creates_draft: bool,
    /// The user whose rights count; `None`: everything is allowed.
    pub acl_user: Option<String>,
    /// Most links, and most attributes, that an object has without shards; 0: as many as there are. Readers need not know.
    pub shard_above: u64,
    /// Most bytes of documents and elements that are kept to be read again.
    pub cache_bytes: u64,
    /// Most bytes that are allocated at once for a length that the store states.
    pub max_allocation: AllocationLimit,
    /// What compresses chunks and undoes that.
    pub filter_engine: Arc<dyn FilterEngine>,
}

/// A session on a domain.
#[derive(Debug)]
pub struct HsdsSession {
    pub session_info: SessionInfo,
    pub engine: ChunkBatchingEngine,
    pub domain: DomainId,
    pub domain_path: String,
    pub acl_user: Option<String>,
    pub sharding: ShardingThreshold,
    /// Most documents that are kept which the session has not changed.
    pub max_cached_documents: usize,
    pub max_allocation: AllocationLimit,
    pub filter_engine: Arc<dyn FilterEngine>,
    pub varlen_tokens: VarLenTokenTable,
    pub decoded_chunks: DecodedChunkCache,
    pub chunks_ahead: SmallChunkReadAhead,
    pub(crate) state: RwLock<SessionState>,
    pub(crate) is_closed: AtomicBool,
    /// Held for reading while chunks are written, which the state is not.
    pub(crate) chunk_writes: RwLock<()>,
}

/// The time (seconds), as objects have it.
pub fn unix_seconds_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The time of so many seconds since 1970; `None` if there is no such time.
pub fn system_time_from_unix(seconds: f64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

/// The key of the object of a domain or a folder.
pub fn domain_document_key(path: &str) -> String {
    if path.is_empty() { DOMAIN_FILE.to_owned() } else { format!("{path}/{DOMAIN_FILE}") }
}

impl HsdsSession {
    /// # Errors
    /// [`ModelError::Closed`].
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(ModelError::Closed) } else { Ok(()) }
    }

    /// # Errors
    /// [`ModelError::Closed`], [`ModelError::ReadOnly`].
    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.session_info.mode.writes() { Ok(()) } else { Err(ModelError::ReadOnly) }
    }

    /// Refuses what the user may not do with an object, or with the domain.
    ///
    /// # Errors
    /// [`HsdsError::AccessDenied`].
    pub fn check_right(&self, document: Option<&ObjectDocument>, right: AclRight) -> Result<()> {
        let Some(user) = &self.acl_user else { return Ok(()) };
        let own = document.and_then(|document| document.own_acl_access(user));
        let access = own.unwrap_or_else(|| self.state.read().domain.access(user));
        let object = || match document.filter(|_| own.is_some()) {
            Some(document) => self.domain.document_key(document.id()),
            None => format!("/{}", self.domain_path),
        };
        match access.has(right) {
            true => Ok(()),
            false => Err(HsdsError::AccessDenied { user: user.clone(), right: right.name(), object: object() }.into()),
        }
    }

    /// What the session has.
    pub fn state(&self) -> RwLockReadGuard<'_, SessionState> {
        self.state.read()
    }

    /// What the session has, to change it.
    ///
    /// # Errors
    /// [`ModelError::Closed`]: what is changed after the session has ended would be lost.
    pub fn state_mut(&self) -> Result<RwLockWriteGuard<'_, SessionState>> {
        let state = self.state.write();
        self.check_open()?;
        Ok(state)
    }

    /// The document of an object. If objects of a group are opened one after the other, those that follow are read ahead.
    ///
    /// # Errors
    /// [`ModelError::NoObject`], [`ModelError::Closed`], [`ModelError::Store`].
    pub fn document(&self, id: ObjectId) -> Result<Arc<ObjectDocument>> {
        let document = self.document_ignoring_rights(id)?;
        self.check_right(Some(&document), AclRight::Read).map(|()| document)
    }

    /// The same, whatever the rights of the user.
    ///
    /// # Errors
    /// As [`HsdsSession::document`].
    pub fn document_ignoring_rights(&self, id: ObjectId) -> Result<Arc<ObjectDocument>> {
        self.check_open()?;
        let known = self.state.read().cached_document(id);
        if let Some(found) = known {
            return found;
        }
        if kind(id).is_none() {
            return Err(ModelError::NoObject(id));
        }
        let wanted = self.state.write().read_ahead.advance_prefetch_window(id, MAX_READ_AHEAD);
        let state = self.fetch(&wanted, Some(id))?;
        state.cached_document(id).unwrap_or(Err(ModelError::NoObject(id)))
    }

    /// Reads documents in one wave. Those that are known already stay as they are, and are not read but for `asked`. Returns the
    /// state with them: as soon as others may change it, they may drop what they have no room for.
    ///
    /// # Errors
    /// [`ModelError::Store`].
    fn fetch(&self, ids: &[ObjectId], asked: Option<ObjectId>) -> Result<RwLockWriteGuard<'_, SessionState>> {
        let unknown: Vec<ObjectId> = {
            let state = self.state.read();
            ids.iter().copied().filter(|id| asked == Some(*id) || state.cached_document(*id).is_none()).collect()
        };
        let keys: Vec<String> = unknown.iter().map(|id| self.domain.document_key(*id)).collect();
        let parsed = parking_lot::Mutex::new(Vec::new());
        self.engine.get_many(&keys, &|number, found| {
            let (Some(id), Some(key), Some(found)) = (unknown.get(number), keys.get(number), found) else {
                return Ok(());
            };
            let document = ObjectDocument::parse(self.domain, *id, &found.bytes).map_err(damaged_object_error(key))?;
            parsed.lock().push(TaggedDocument { document: Arc::new(document), tag: Some(found.tag) });
            Ok(())
        })?;
        let (mut state, parsed) = (self.state.write(), parsed.into_inner());
        state.evict_unchanged_if_full(parsed.len(), self.max_cached_documents);
        parsed.into_iter().for_each(|stored| state.insert_fetched_if_absent(stored));
        Ok(state)
    }

    /// Reads all documents of the domain, and counts the uses of each object.
    ///
    /// # Errors
    /// [`ModelError::Store`].
    pub fn ensure_references_counted(&self) -> Result<()> {
        self.check_open()?;
        if self.state.read().reference_counts.is_some() {
            return Ok(());
        }
        let listed = self.engine.list(&format!("{}/", self.domain.key_prefix_without_slash()))?;
        let ids: Vec<ObjectId> =
            listed.iter().filter_map(|object| self.domain.object_of_document_key(&object.key)).collect();
        let mut uses_of = HashMap::new();
        for part in ids.chunks(DOCUMENTS_AT_ONCE) {
            drop(self.fetch(part, None)?);
            for id in part {
                match self.document_with_entries_ignoring_rights(*id, EntryQuery::All) {
                    Ok(document) => drop(uses_of.insert(*id, document.known_used_objects())),
                    // It is gone, and uses nothing.
                    Err(ModelError::NoObject(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.state.write().count_references(uses_of);
        Ok(())
    }

    /// A new identity.
    ///
    /// # Errors
    /// As [`random`].
    pub fn new_id(&self, kind: ObjectKind) -> Result<ObjectId> {
        loop {
            let id = object_id(kind, random()?);
            if id != self.domain.root() && self.state.read().cached_document(id).is_none() {
                return Ok(id);
            }
        }
    }
}

impl Drop for HsdsSession {
    fn drop(&mut self) {
        self.close_without_commit_ignoring_errors();
    }
}
