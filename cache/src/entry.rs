//! Cached structures, and the handles by which they are read and changed.

use std::{
    any::{Any, type_name},
    fmt,
    ops::Deref,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use h5live_format::{Addr, EncodeError, Record, Widths, append_encoded, encode};

use crate::{
    dependency_node::{DependencyNode, NodeRef, sealed},
    entry_header::{AnySlot, EntryHeader},
    entry_id::{EntryId, Owner},
    metadata::{ReadOrigin, SharedGraph},
    primitive::{RwLock, RwLockReadGuard},
};

/// A structure that a cache can keep and write.
pub trait Entry: Any + Send + Sync + fmt::Debug {
    /// The bytes to be written at the entry's address, checksum included.
    ///
    /// # Errors
    /// When a value does not fit its field.
    fn encode_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError>;

    /// As [`Entry::encode_image`], behind other `images`, which are as before if it fails. The structure is unchanged
    /// afterwards.
    ///
    /// # Errors
    /// As [`Entry::encode_image`].
    fn append_image(&mut self, widths: Widths, images: &mut Vec<u8>) -> Result<(), EncodeError> {
        images.extend_from_slice(&self.encode_image(widths)?);
        Ok(())
    }

    /// The memory that the structure takes, in bytes; an estimate, cheap to compute.
    fn weight(&self) -> usize;
}

/// Memory of an entry beside its structure: its header, and its places in the maps of the cache (bytes).
const ENTRY_OVERHEAD_BYTES: usize = 256;

impl<R: Record + Clone + Any + Send + Sync + fmt::Debug> Entry for R {
    fn encode_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        encode(self, widths)
    }

    fn append_image(&mut self, widths: Widths, images: &mut Vec<u8>) -> Result<(), EncodeError> {
        append_encoded(self, widths, images)
    }

    fn weight(&self) -> usize {
        Record::memory_bytes(self).saturating_add(ENTRY_OVERHEAD_BYTES)
    }
}

struct Slot<T> {
    entry_header: EntryHeader,
    shared_graph: Arc<SharedGraph>,
    entry: RwLock<T>,
}

impl<T: Entry> AnySlot for Slot<T> {
    fn entry_header(&self) -> &EntryHeader {
        &self.entry_header
    }

    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }

    fn encode_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        self.entry.read().encode_image(widths)
    }

    fn take_dirty_image(&self, widths: Widths, images: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut value = self.entry.write();
        value.append_image(widths, images)?;
        self.entry_header.mark_image_taken();
        Ok(())
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
        shared_graph: Arc<SharedGraph>,
        (value, origin): (T, ReadOrigin),
    ) -> Self {
        let weight = value.weight().saturating_add(origin.memory_bytes());
        let entry_header = EntryHeader::new(id, addr, owner, weight, origin);
        Handle { slot: Arc::new(Slot { entry_header, shared_graph, entry: RwLock::new(value) }) }
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
        &self.slot.entry_header
    }

    /// Makes the entry dirty without a change, so that it is written by the next flush.
    pub fn mark_dirty(&self) {
        let _value = self.slot.entry.write();
        self.note_change(self.slot.entry_header.weight.load(Relaxed));
    }

    /// The entry's identity.
    pub fn id(&self) -> EntryId {
        self.slot.entry_header.id
    }

    /// Where the entry is, in bytes from the base address.
    pub fn addr(&self) -> Addr {
        self.slot.entry_header.addr
    }

    /// The object to which the entry belongs.
    pub fn owner(&self) -> Owner {
        self.slot.entry_header.owner
    }

    /// Whether the cache has given up this entry: removed, replaced, or forgotten or doubted by a refresh.
    pub fn is_invalidated(&self) -> bool {
        let Slot { entry_header, shared_graph, .. } = &*self.slot;
        entry_header.is_invalidated() || shared_graph.stale_owners.is_stale(entry_header.owner, &entry_header.origin)
    }

    /// Whether no flush has taken the structure since it was added by [`Cache::insert_entry`](crate::Cache::insert_entry), or
    /// only flushes that failed: then nothing in the file leads to it.
    pub fn is_new(&self) -> bool {
        self.slot.entry_header.is_new()
    }

    /// The value, which does not change as long as the guard lives. Do not call the cache while holding it.
    pub fn read(&self) -> EntryReadGuard<'_, T> {
        EntryReadGuard(self.slot.entry.read())
    }

    /// Changes the value and makes the entry dirty. `change` must not use other entries of the cache. Changes
    /// that belong together are made inside one [`Cache::begin_atomic_change`](crate::Cache::begin_atomic_change).
    ///
    /// An entry that [is gone](Handle::is_invalidated) changes in memory only.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.slot.entry.write();
        let result = change(&mut value);
        let weight = value.weight();
        self.slot.entry_header.weight.store(weight, Relaxed);
        self.note_change(weight);
        result
    }

    /// Makes the entry dirty, which weighs `weight` bytes now. Under the lock of the value.
    fn note_change(&self, weight: usize) {
        let Slot { entry_header, shared_graph, .. } = &*self.slot;
        entry_header.increment_version();
        if !entry_header.is_dirty() && shared_graph.graph.lock().mark_entry_dirty(&self.slot, weight) {
            entry_header.set_dirty();
        }
    }

    /// Calls `take` to take the value out of an entry that will be forgotten.
    pub(crate) fn take_value(&self, take: impl FnOnce(&mut T) -> T) -> T {
        take(&mut self.slot.entry.write())
    }

    /// Whether the file has the present state of the entry.
    pub(crate) fn matches_file(&self) -> bool {
        let entry_header = &self.slot.entry_header;
        entry_header.is_in_file() && !entry_header.is_dirty() && !entry_header.is_invalidated()
    }

    /// Calls `change` to change the value, for a caller that writes it at once. `change` gets the number of earlier
    /// changes, made this way or by [`Handle::update`]. It returns `None` if it has changed nothing.
    pub(crate) fn update_for_write_through<R>(&self, change: impl FnOnce(&mut T, u64) -> Option<R>) -> Option<R> {
        let mut value = self.slot.entry.write();
        let changed = change(&mut value, self.slot.entry_header.version())?;
        self.slot.entry_header.increment_version();
        Some(changed)
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

impl<T: Entry> sealed::Sealed for Handle<T> {
    #[allow(private_interfaces)]
    fn node_ref(&self) -> NodeRef {
        NodeRef::Slot(self.as_any_slot())
    }
}

impl<T: Entry> DependencyNode for Handle<T> {
    fn id(&self) -> EntryId {
        self.slot.entry_header.id
    }
}
