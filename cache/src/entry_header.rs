//! What the cache keeps of an entry beside its value, and entries of any type.

use std::{
    any::Any,
    sync::atomic::{
        AtomicU8, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Relaxed},
    },
};

use h5live_format::{Addr, EncodeError, Widths};

use crate::{
    identity::{EntryId, Owner},
    metadata::ReadOrigin,
    primitive::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

/// The part of a cached entry that does not depend on its type.
pub(crate) struct EntryHeader {
    pub(crate) id: EntryId,
    pub(crate) addr: Addr,
    pub(crate) owner: Owner,
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
    /// The header of an entry that the file has, of `weight` bytes in memory.
    pub(crate) fn new(id: EntryId, addr: Addr, owner: Owner, weight: usize, origin: ReadOrigin) -> Self {
        EntryHeader {
            id,
            addr,
            owner,
            weight: AtomicUsize::new(weight),
            dirty: AtomicBool::new(false),
            invalidated: AtomicBool::new(false),
            file_state: FILE_STATE_STORED.into(),
            len: AtomicUsize::new(0),
            version: AtomicU64::new(0),
            origin,
            used: false.into(),
        }
    }

    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Acquire)
    }

    #[inline]
    pub(crate) fn set_dirty(&self) {
        self.dirty.store(true, Release);
    }

    #[inline]
    pub(crate) fn is_invalidated(&self) -> bool {
        self.invalidated.load(Acquire)
    }

    /// How often the value was changed. Under its lock.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// Counts a change of the value. Under its lock.
    #[inline]
    pub(crate) fn count_change(&self) {
        self.version.fetch_add(1, Relaxed);
    }

    /// A flush has taken an image of `len` bytes. Under the lock of the value.
    pub(crate) fn set_taken(&self, len: usize) {
        self.dirty.store(false, Release);
        self.set_writing();
        self.len.store(len, Relaxed);
    }

    /// Bytes in the file, if a flush has taken the structure; otherwise 0.
    pub(crate) fn stored_len(&self) -> u64 {
        self.len.load(Relaxed) as u64
    }

    pub(crate) fn set_new(&self) {
        self.file_state.store(FILE_STATE_NEW, Release);
    }

    /// Whether the file has the structure.
    #[inline]
    pub(crate) fn is_stored(&self) -> bool {
        self.file_state.load(Acquire) == FILE_STATE_STORED
    }

    /// Whether no flush has taken the structure.
    #[inline]
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

    #[inline]
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

/// A slot of any type.
pub(crate) trait AnySlot: Any + Send + Sync {
    fn head(&self) -> &EntryHeader;
    fn type_name(&self) -> &'static str;
    /// The encoded value, for a comparison of two caches.
    fn image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError>;
    /// The encoded value. Later changes make the entry dirty again.
    fn take_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError>;
}
