//! Cached structures, and the handles by which they are read and changed.

use std::{
    any::{Any, type_name},
    fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{
            AtomicU8, AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Relaxed},
        },
    },
};

use h5live_format::{Addr, EncodeError, Record, Widths, encode, encode_transient};

use crate::{
    metadata::{ReadOrigin, SharedGraph},
    primitive::{
        RwLock, RwLockReadGuard,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
};

/// A structure that a cache can keep and write.
pub trait Entry: Any + Send + Sync + fmt::Debug {
    /// The bytes to be written at the entry's address, checksum included.
    ///
    /// # Errors
    /// When a value does not fit its field.
    fn image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError>;

    /// As [`Entry::image`], for bytes that are written and dropped at once. The structure is unchanged afterwards.
    ///
    /// # Errors
    /// As [`Entry::image`].
    fn transient_image(&mut self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        self.image(widths)
    }

    /// The memory that the structure takes, in bytes; an estimate, cheap to compute.
    fn weight(&self) -> usize;
}

/// Memory of an entry beside its structure: its header, and its places in the maps of the cache (bytes).
const ENTRY_OVERHEAD_BYTES: usize = 256;

impl<R: Record + Clone + Any + Send + Sync + fmt::Debug> Entry for R {
    fn image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        encode(self, widths)
    }

    fn transient_image(&mut self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        encode_transient(self, widths)
    }

    fn weight(&self) -> usize {
        Record::weight(self).saturating_add(ENTRY_OVERHEAD_BYTES)
    }
}

/// The identity of an entry or proxy among those of one cache. Never used again, also when the address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(crate) u64);

/// The object to which an entry belongs: the address of its object header. Objects are flushed and refreshed as
/// a whole by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Addr);

impl Owner {
    /// The owner of structures that belong to the whole file (superblock extension, shared heaps).
    pub const FILE: Owner = Owner(Addr::UNDEFINED);

    /// The object with its header at `header`.
    pub const fn new(header: Addr) -> Self {
        Owner(header)
    }

    /// The address of the object header; undefined for [`Owner::FILE`].
    pub const fn header(self) -> Addr {
        self.0
    }
}

/// The part of a cached entry that does not depend on its type.
pub(crate) struct EntryHeader {
    pub(crate) id: EntryId,
    pub(crate) addr: Addr,
    pub(crate) owner: Owner,
    pub(crate) ledger: Arc<SharedGraph>,
    /// Bytes in memory, as last asked for.
    pub(crate) weight: AtomicUsize,
    /// True only while the ledger has the entry as dirty. Read and changed under the lock of the value.
    dirty: AtomicBool,
    /// No longer what the cache has at this address: changes are not written.
    pub(crate) invalidated: AtomicBool,
    /// Whether the file has the structure: one of the constants below.
    file_state: AtomicU8,
    /// Bytes of the last image that a flush took; 0 before. A hint.
    len: AtomicUsize,
    /// How often the value was changed. Changed under its lock.
    version: AtomicU64,
    /// The bytes from which a reader has decoded the value.
    pub(crate) origin: ReadOrigin,
    /// Found again since the clock hand last passed. A hint, as is `weight`: not for loom to explore.
    used: std::sync::atomic::AtomicBool,
}

/// No flush has taken the structure yet.
const FILE_STATE_NEW: u8 = 0;
/// A flush that is under way has taken it for the first time.
const FILE_STATE_WRITING: u8 = 1;
/// It was read from the file, or written.
const FILE_STATE_STORED: u8 = 2;

impl EntryHeader {
    /// Bytes in the file, if a flush has taken the structure; otherwise 0.
    pub(crate) fn stored_len(&self) -> u64 {
        self.len.load(Relaxed) as u64
    }

    pub(crate) fn set_new(&self) {
        self.file_state.store(FILE_STATE_NEW, Release);
    }

    /// Whether the file has the structure.
    pub(crate) fn is_stored(&self) -> bool {
        self.file_state.load(Acquire) == FILE_STATE_STORED
    }

    /// Whether no flush has taken the structure.
    pub(crate) fn is_new(&self) -> bool {
        self.file_state.load(Acquire) == FILE_STATE_NEW
    }

    fn set_writing(&self) {
        let _ = self.file_state.compare_exchange(FILE_STATE_NEW, FILE_STATE_WRITING, AcqRel, Relaxed);
    }

    pub(crate) fn set_stored(&self) {
        self.file_state.store(FILE_STATE_STORED, Release);
    }

    pub(crate) fn set_not_stored(&self) {
        let _ = self.file_state.compare_exchange(FILE_STATE_WRITING, FILE_STATE_NEW, AcqRel, Relaxed);
    }

    pub(crate) fn mark_used(&self) {
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }

    /// Whether the entry was used since [`EntryHeader::take_used`].
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Relaxed)
    }

    /// Whether the entry was used since the last call.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Relaxed)
    }
}

pub(crate) struct Slot<T> {
    head: EntryHeader,
    value: RwLock<T>,
}

/// A slot of any type.
pub(crate) trait AnySlot: Any + Send + Sync {
    fn head(&self) -> &EntryHeader;
    fn type_name(&self) -> &'static str;
    /// The encoded value, for a comparison of two caches.
    fn image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError>;
    /// The encoded value. Later changes make the entry dirty again.
    fn take_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError>;
}

impl<T: Entry> AnySlot for Slot<T> {
    fn head(&self) -> &EntryHeader {
        &self.head
    }

    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }

    fn image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        self.value.read().image(widths)
    }

    fn take_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        let mut value = self.value.write();
        let image = value.transient_image(widths)?;
        self.head.dirty.store(false, Release);
        self.head.set_writing();
        self.head.len.store(image.len(), Relaxed);
        Ok(image)
    }
}

/// A cached entry of type `T`. Clones lead to the same entry; while there is one, the entry is not evicted.
pub struct Handle<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Handle { slot: Arc::clone(&self.slot) }
    }
}

impl<T: Entry> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("addr", &self.addr()).field("value", &*self.read()).finish()
    }
}

impl<T: Entry> Handle<T> {
    pub(crate) fn new(
        id: EntryId,
        addr: Addr,
        owner: Owner,
        ledger: Arc<SharedGraph>,
        (value, origin): (T, ReadOrigin),
    ) -> Self {
        let head = EntryHeader {
            id,
            addr,
            owner,
            ledger,
            weight: AtomicUsize::new(value.weight().saturating_add(origin.weight())),
            dirty: AtomicBool::new(false),
            invalidated: AtomicBool::new(false),
            file_state: FILE_STATE_STORED.into(),
            len: AtomicUsize::new(0),
            version: AtomicU64::new(0),
            origin,
            used: false.into(),
        };
        Handle { slot: Arc::new(Slot { head, value: RwLock::new(value) }) }
    }

    /// The entry as one of this type, or the name of the type that it is of.
    pub(crate) fn downcast(slot: Arc<dyn AnySlot>) -> Result<Self, &'static str> {
        let name = slot.type_name();
        let slot: Arc<dyn Any + Send + Sync> = slot;
        slot.downcast::<Slot<T>>().map(|slot| Handle { slot }).map_err(|_| name)
    }

    pub(crate) fn as_any_slot(&self) -> Arc<dyn AnySlot> {
        Arc::clone(&self.slot) as Arc<dyn AnySlot>
    }

    pub(crate) fn entry_header(&self) -> &EntryHeader {
        &self.slot.head
    }

    /// Makes the entry dirty without a change, so that it is written by the next flush.
    pub fn touch(&self) {
        self.update(|_| ());
    }

    /// The entry's identity.
    pub fn id(&self) -> EntryId {
        self.slot.head.id
    }

    /// Where the entry is, in bytes from the base address.
    pub fn addr(&self) -> Addr {
        self.slot.head.addr
    }

    /// The object to which the entry belongs.
    pub fn owner(&self) -> Owner {
        self.slot.head.owner
    }

    /// Whether the cache has given up this entry: removed, replaced, or forgotten or doubted by a refresh.
    pub fn is_invalidated(&self) -> bool {
        let head = &self.slot.head;
        head.invalidated.load(Acquire) || head.ledger.doubts.is_stale(head.owner, &head.origin)
    }

    /// Whether no flush has taken the structure since it was added by [`Cache::insert`](crate::Cache::insert), or
    /// only flushes that failed: then nothing in the file leads to it.
    pub fn is_new(&self) -> bool {
        self.slot.head.is_new()
    }

    /// The value, which does not change as long as the guard lives. Do not call the cache while holding it.
    pub fn read(&self) -> EntryReadGuard<'_, T> {
        EntryReadGuard(self.slot.value.read())
    }

    /// Changes the value and makes the entry dirty. `change` must not use other entries of the cache. Changes
    /// that belong together are made inside one [`Cache::begin_operation`](crate::Cache::begin_operation).
    ///
    /// An entry that [is gone](Handle::is_invalidated) changes in memory only.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let head = &self.slot.head;
        let mut value = self.slot.value.write();
        let result = change(&mut value);
        head.version.fetch_add(1, Relaxed);
        head.weight.store(value.weight(), Relaxed);
        if !head.dirty.load(Acquire) && head.ledger.graph.lock().mark_entry_dirty(&self.slot, T::weight(&value)) {
            head.dirty.store(true, Release);
        }
        result
    }

    /// Calls `take` to take the value out of an entry that will be forgotten.
    pub(crate) fn take_value(&self, take: impl FnOnce(&mut T) -> T) -> T {
        take(&mut self.slot.value.write())
    }

    /// Whether the file has the present state of the entry.
    pub(crate) fn matches_file(&self) -> bool {
        let head = &self.slot.head;
        head.is_stored() && !head.dirty.load(Acquire) && !head.invalidated.load(Acquire)
    }

    /// Calls `change` to change the value, for a caller that writes it at once. `change` gets the number of earlier
    /// changes, made this way or by [`Handle::update`]. It returns `None` if it has changed nothing.
    pub(crate) fn update_for_write_through<R>(&self, change: impl FnOnce(&mut T, u64) -> Option<R>) -> Option<R> {
        let mut value = self.slot.value.write();
        let edition = &self.slot.head.version;
        let changed = change(&mut value, edition.load(Relaxed))?;
        edition.fetch_add(1, Relaxed);
        Some(changed)
    }
}

impl<T> Slot<T> {
    pub(crate) fn entry_header(&self) -> &EntryHeader {
        &self.head
    }
}

/// A view of an entry's value.
pub struct EntryReadGuard<'a, T>(RwLockReadGuard<'a, T>);

impl<T> Deref for EntryReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for EntryReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A chunk proxy: stands among the entries for raw data that is not yet written. It is dirty until the data has
/// been written, and then ceases to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkProxy {
    pub(crate) id: EntryId,
    pub(crate) owner: Owner,
    pub(crate) chunk: Addr,
}

impl ChunkProxy {
    /// The proxy's identity.
    pub fn id(&self) -> EntryId {
        self.id
    }

    /// The address of the raw data, in bytes from the base address.
    pub fn chunk(&self) -> Addr {
        self.chunk
    }
}

/// Something that flush dependencies can join: a [`Handle`] or a [`ChunkProxy`].
pub trait DependencyNode: sealed::Sealed {
    /// Its identity.
    fn id(&self) -> EntryId;
}

pub(crate) enum NodeRef {
    Slot(Arc<dyn AnySlot>),
    Proxy(EntryId),
}

impl NodeRef {
    pub(crate) fn id(&self) -> EntryId {
        match self {
            NodeRef::Slot(slot) => slot.head().id,
            NodeRef::Proxy(id) => *id,
        }
    }
}

mod sealed {
    pub trait Sealed {
        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn node_ref(&self) -> super::NodeRef;
    }
}

impl<T: Entry> sealed::Sealed for Handle<T> {
    #[allow(private_interfaces)]
    fn node_ref(&self) -> NodeRef {
        NodeRef::Slot(self.as_any_slot())
    }
}

impl<T: Entry> DependencyNode for Handle<T> {
    fn id(&self) -> EntryId {
        self.slot.head.id
    }
}

impl sealed::Sealed for ChunkProxy {
    #[allow(private_interfaces)]
    fn node_ref(&self) -> NodeRef {
        NodeRef::Proxy(self.id)
    }
}

impl DependencyNode for ChunkProxy {
    fn id(&self) -> EntryId {
        self.id
    }
}
