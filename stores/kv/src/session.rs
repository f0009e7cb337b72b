//! A session on a container: what all of its parts share.

use std::sync::Arc;

use h5live_model::{
    AllocationLimit, Capabilities, ChunkEncodedBy, ChunkReadStrategy, ConsistencyScope, DurabilitySupport,
    Error as ModelError, FilterEngine, Mode, ObjectSpec, PartialWrites, PublishLevel, Result, SessionInfo,
    SmallWritesStagedBy, StoreFeatures, StoreSizeLimits,
};

use crate::blob_ids::BlobIdGenerator;
use crate::engine::{ChecksumPolicy, ChecksumStrippingView, Engine, KeySpan, View, ViewWithEdits};
use crate::error::KvError;
use crate::layout::encode::STORED_VLEN_AND_REFERENCE_SIZES;
use crate::layout::value::{ContainerFormat, LAYOUT_VERSION};
use crate::layout::{MetadataField, key, oid};
use crate::object_edits::{self, DeletionContext};
use crate::primitive::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::primitive::{RwLock, RwLockReadGuard};
use crate::state::KvState;

/// The name of the kind of store, and its scheme.
pub const CONNECTOR: &str = "kv";
/// Most bytes of a chunk: engines have values of up to 4 GiB.
const MAX_CHUNK_BYTES: u64 = u32::MAX as u64 - 16;

/// The share of the bytes that may wait for a commit which is taken beyond them after each refusal: the inverse of it.
const FLUSH_SHARE: u64 = 8;

/// What a session on a container can do whose commits are durable like this.
pub const fn capabilities(durability: DurabilitySupport) -> Capabilities {
    Capabilities {
        features: StoreFeatures::all().without(StoreFeatures::EXTERNAL_FILES),
        partial_writes: PartialWrites::Bytes { multiple_of: 1 },
        staging: SmallWritesStagedBy::Caller,
        encoding: ChunkEncodedBy::Pipeline,
        reads: ChunkReadStrategy::Direct { atomic_read_bytes: 0 },
        commit: ConsistencyScope::Store,
        view: ConsistencyScope::Store,
        durability,
        supports_live_reads: true,
        limits: StoreSizeLimits::NONE.with_max_chunk_bytes(MAX_CHUNK_BYTES),
    }
}

/// How a container is opened.
#[derive(Debug, Clone)]
pub struct KvOpenRequest {
    /// What the session may do.
    pub mode: Mode,
    /// What the root group of a new container is like.
    pub root: ObjectSpec,
    /// Whether commits are durable.
    pub durability: DurabilitySupport,
    /// Most bytes that are allocated at once for a length that the store states.
    pub max_allocation: AllocationLimit,
    /// What undoes filters of elements that are deleted.
    pub filter_engine: Arc<dyn FilterEngine>,
    /// Most bytes of changes that are not committed, before a further change is refused.
    pub max_uncommitted_bytes: u64,
    /// A random number, for the identities of blobs.
    pub blob_id_seed: u64,
    /// Whether values of a new container get checksums.
    pub checksum_new_container: bool,
}

impl KvOpenRequest {
    /// [`KvOpenRequest::max_uncommitted_bytes`], if nobody asks for another one: 1 GiB.
    pub const DEFAULT_MAX_UNCOMMITTED_BYTES: u64 = 1 << 30;
}

/// The form of the records of a container, of which this is a state as it is stored.
///
/// # Errors
/// [`KvError::NoStore`], [`KvError::NotKvStore`], [`KvError::UnsupportedVersion`].
pub fn container_format(stored: &ViewWithEdits<'_>) -> Result<ContainerFormat> {
    let at = key::metadata(oid::GLOBAL_METADATA, MetadataField::ContainerFormat);
    let value = stored.get(at.as_bytes())?.ok_or(KvError::NoStore)?;
    let form = ContainerFormat::decode_stored(&value).map_err(KvError::NotKvStore)?;
    form.map_err(|found| KvError::UnsupportedVersion { found, known: LAYOUT_VERSION }.into())
}

/// A state of a container as it is read.
pub fn view_without_checksums(
    form: ContainerFormat,
    stored: Arc<dyn View>,
    checksum_use: ChecksumPolicy,
) -> Arc<dyn View> {
    if form.has_checksums { Arc::new(ChecksumStrippingView::new(stored, checksum_use)) } else { stored }
}

/// A session on a container.
#[derive(Debug)]
pub struct KvSession {
    pub info: SessionInfo,
    pub engine: Box<dyn Engine>,
    pub deletion_context: DeletionContext,
    max_uncommitted: u64,
    form: ContainerFormat,
    state: RwLock<KvState>,
    /// How many objects it has deleted: those that are open look whether they are still there when this changes.
    deleted_objects: AtomicU64,
    is_closed: AtomicBool,
}

impl KvSession {
    /// Opens the container of an engine, or makes it.
    ///
    /// # Errors
    /// [`KvError::NoStore`], [`KvError::NotKvStore`], [`KvError::UnsupportedVersion`], and those of the engine.
    pub fn open(engine: Box<dyn Engine>, request: &KvOpenRequest) -> Result<Self> {
        let mut described = SessionInfo::new(CONNECTOR, request.mode, oid::ROOT, capabilities(request.durability));
        described.vlen_and_reference_sizes = STORED_VLEN_AND_REFERENCE_SIZES;
        let stored = engine.view()?;
        let is_new = matches!(request.mode, Mode::Create | Mode::CreateNew);
        // What a new container replaces is in any form, and is only listed.
        let (form, how) = match is_new {
            true => (ContainerFormat::new(request.checksum_new_container), ChecksumPolicy::Skip),
            false => (container_format(&ViewWithEdits::without_edits(&stored))?, ChecksumPolicy::Verify),
        };
        let view = view_without_checksums(form, stored, how);
        let state = KvState::new(form, view, BlobIdGenerator::new(request.blob_id_seed), request.max_uncommitted_bytes);
        let session = KvSession {
            info: described,
            engine,
            deletion_context: DeletionContext {
                filter_engine: request.filter_engine.clone(),
                max_allocation: request.max_allocation,
            },
            max_uncommitted: request.max_uncommitted_bytes,
            form,
            state: RwLock::new(state),
            deleted_objects: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        };
        if is_new {
            session.create(&request.root)?;
        }
        Ok(session)
    }

    fn create(&self, root: &ObjectSpec) -> Result<()> {
        let mut state = self.state.write();
        let mut old = Vec::new();
        state.view_with_edits().scan(&KeySpan::all(), &mut |key, _| {
            old.push(key.to_vec());
            true
        })?;
        let is_replaced = !old.is_empty();
        old.iter().for_each(|key| state.edits.delete(key));
        let version = key::metadata(oid::GLOBAL_METADATA, MetadataField::ContainerFormat);
        state.put(&version, self.form.encode_without_checksum());
        state.put(&key::metadata(oid::GLOBAL_METADATA, MetadataField::RootGroup), oid::token(oid::ROOT));
        object_edits::create_root(&mut state, root)?;
        match is_replaced {
            // The first commit replaces what is there: until then, nothing is lost.
            true => Ok(()),
            false => self.commit_state(&mut state, PublishLevel::Visible),
        }
    }

    /// # Errors
    /// [`ModelError::Closed`].
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(ModelError::Closed) } else { Ok(()) }
    }

    /// # Errors
    /// [`ModelError::Closed`], [`ModelError::ReadOnly`].
    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.info.mode.writes() { Ok(()) } else { Err(ModelError::ReadOnly) }
    }

    /// Reads what the session sees.
    ///
    /// # Errors
    /// [`ModelError::Closed`], and those of `read`.
    pub fn read<T>(&self, read: impl FnOnce(&ViewWithEdits<'_>) -> Result<T>) -> Result<T> {
        self.check_open()?;
        read(&self.state.read().view_with_edits())
    }

    /// What the session sees.
    pub fn state(&self) -> RwLockReadGuard<'_, KvState> {
        self.state.read()
    }

    /// Changes what the session sees. After a failure of the engine in the middle of a change, nothing is committed any
    /// more.
    ///
    /// # Errors
    /// [`ModelError::Closed`], [`ModelError::ReadOnly`], [`KvError::TooMuchUncommitted`] before anything is changed, and those
    /// of `change`.
    pub fn change<T>(&self, change: impl FnOnce(&mut KvState) -> Result<T>) -> Result<T> {
        self.check_writable()?;
        let mut state = self.state.write();
        // It may have been closed since: nothing commits what is changed then.
        self.check_open()?;
        let bytes = state.edits.memory_bytes() as u64;
        if bytes > state.current_max_uncommitted_bytes {
            // What the next flush hands over is taken. Else nothing could be committed any more.
            state.current_max_uncommitted_bytes = bytes + self.max_uncommitted / FLUSH_SHARE;
            return Err(KvError::TooMuchUncommitted { bytes, most: self.max_uncommitted }.into());
        }
        let changed = change(&mut state);
        self.deleted_objects.store(state.deleted_object_count, Ordering::Release);
        if matches!(changed, Err(ModelError::Store(_))) {
            state.is_poisoned = true;
        }
        changed
    }

    /// Finds out what a change has left to the commit. What the session sees stays as it is.
    ///
    /// # Errors
    /// [`ModelError::Closed`], and those of `settle`.
    pub fn with_state_mut<T>(&self, settle: impl FnOnce(&mut KvState) -> Result<T>) -> Result<T> {
        self.check_open()?;
        settle(&mut self.state.write())
    }

    /// How many objects the session has deleted.
    pub fn deleted_object_count(&self) -> u64 {
        self.deleted_objects.load(Ordering::Acquire)
    }

    /// The newest state.
    fn view(&self) -> Result<Arc<dyn View>> {
        Ok(view_without_checksums(self.form, self.engine.view()?, ChecksumPolicy::Verify))
    }

    /// Commits what was changed.
    ///
    /// # Errors
    /// [`ModelError::Closed`], [`ModelError::ReadOnly`], and those of the engine.
    pub fn commit(&self, publish: PublishLevel) -> Result<()> {
        self.check_writable()?;
        let mut state = self.state.write();
        self.check_open()?;
        self.commit_state(&mut state, publish)
    }

    fn commit_state(&self, state: &mut KvState, publish: PublishLevel) -> Result<()> {
        if publish == PublishLevel::Durable && self.info.capabilities.durability == DurabilitySupport::Never {
            return Err(ModelError::Unsupported("outlasting a power failure in this store"));
        }
        if state.is_poisoned {
            return Err(KvError::Poisoned.into());
        }
        if !state.edits.is_empty() || publish == PublishLevel::Durable {
            if self.form.has_checksums {
                state.edits.add_checksums();
            }
            let committed = self.engine.commit(&state.edits, publish);
            if committed.is_err() && self.form.has_checksums {
                state.edits.remove_checksums();
            }
            committed?;
            state.edits.clear();
            state.current_max_uncommitted_bytes = self.max_uncommitted;
            state.view = self.view()?;
        }
        Ok(())
    }

    /// Takes up the newest commit, and returns it.
    ///
    /// # Errors
    /// [`ModelError::Closed`], and those of the engine.
    pub fn refresh_view(&self) -> Result<Arc<dyn View>> {
        self.check_open()?;
        let newest = self.view()?;
        let mut state = self.state.write();
        if newest.version() > state.view.version() {
            state.view = newest;
        }
        Ok(state.view.clone())
    }

    /// Commits, and ends the session. A second call does nothing.
    ///
    /// # Errors
    /// As [`KvSession::commit`].
    pub fn close(&self) -> Result<()> {
        let mut state = self.state.write();
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.info.mode.writes() {
            self.commit_state(&mut state, PublishLevel::Visible)?;
        }
        // Under the lock: another thread's change is committed here, or is refused.
        self.is_closed.store(true, Ordering::Release);
        drop(state);
        Ok(self.engine.close()?)
    }
}
