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
    entry_id::{EntryId, Owner},
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
    /// True only while the graph has the entry as dirty. Read and changed under the lock of the value.
    is_dirty: AtomicBool,
    /// No longer what the cache has at this address: changes are not written.
    pub(crate) is_invalidated: AtomicBool,
    /// Whether the file has the structure: one of the constants below.
    write_state: AtomicU8,
    /// How often the value was changed. Changed under its lock.
    version: AtomicU64,
    /// The bytes from which a reader has decoded the value.
    pub(crate) origin: ReadOrigin,
    /// Found again since the clock hand last passed. A hint, as is `weight`: not for loom to explore.
    is_used: std::sync::atomic::AtomicBool,
}

/// No flush has taken the structure yet.
const WRITE_STATE_NEVER_WRITTEN: u8 = 0;
/// A flush that is under way has taken it for the first time.
const WRITE_STATE_FIRST_WRITE: u8 = 1;
/// It was read from the file, or written.
const WRITE_STATE_IN_FILE: u8 = 2;

impl EntryHeader {
    /// The header of an entry that the file has, of `weight` bytes in memory.
    pub(crate) fn new(id: EntryId, addr: Addr, owner: Owner, weight: usize, origin: ReadOrigin) -> Self {
        EntryHeader {
            id,
            addr,
            owner,
            weight: AtomicUsize::new(weight),
            is_dirty: AtomicBool::new(false),
            is_invalidated: AtomicBool::new(false),
            write_state: WRITE_STATE_IN_FILE.into(),
            version: AtomicU64::new(0),
            origin,
            is_used: false.into(),
        }
    }

    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty.load(Acquire)
    }

    #[inline]
    pub(crate) fn set_dirty(&self) {
        self.is_dirty.store(true, Release);
    }

    #[inline]
    pub(crate) fn is_invalidated(&self) -> bool {
        self.is_invalidated.load(Acquire)
    }

    /// How often the value was changed. Under its lock.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// Counts a change of the value. Under its lock.
    #[inline]
    pub(crate) fn increment_version(&self) {
        self.version.fetch_add(1, Relaxed);
    }

    /// A flush has taken an image. Under the lock of the value.
    pub(crate) fn mark_image_taken(&self) {
        self.is_dirty.store(false, Release);
        self.set_writing();
    }

    pub(crate) fn set_new(&self) {
        self.write_state.store(WRITE_STATE_NEVER_WRITTEN, Release);
    }

    /// Whether the file has the structure.
    #[inline]
    pub(crate) fn is_in_file(&self) -> bool {
        self.write_state.load(Acquire) == WRITE_STATE_IN_FILE
    }

    /// Whether no flush has taken the structure.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.write_state.load(Acquire) == WRITE_STATE_NEVER_WRITTEN
    }

    fn set_writing(&self) {
        let _ = self.write_state.compare_exchange(WRITE_STATE_NEVER_WRITTEN, WRITE_STATE_FIRST_WRITE, AcqRel, Relaxed);
    }

    pub(crate) fn set_in_file(&self) {
        self.write_state.store(WRITE_STATE_IN_FILE, Release);
    }

    pub(crate) fn set_not_in_file(&self) {
        let _ = self.write_state.compare_exchange(WRITE_STATE_FIRST_WRITE, WRITE_STATE_NEVER_WRITTEN, AcqRel, Relaxed);
    }

    #[inline]
    pub(crate) fn mark_used(&self) {
        if !self.is_used.load(Relaxed) {
            self.is_used.store(true, Relaxed);
        }
    }

    /// Whether the entry was used since [`EntryHeader::take_used_flag`].
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Relaxed)
    }

    /// Whether the entry was used since the last call.
    pub(crate) fn take_used_flag(&self) -> bool {
        self.is_used.swap(false, Relaxed)
    }
}

/// A slot of any type.
pub(crate) trait AnySlot: Any + Send + Sync {
    fn entry_header(&self) -> &EntryHeader;
    fn type_name(&self) -> &'static str;
    /// The encoded value, for a comparison of two caches.
    fn encode_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError>;
    /// Appends the encoded value to `images`. Later changes make the entry dirty again.
    fn take_dirty_image(&self, widths: Widths, images: &mut Vec<u8>) -> Result<(), EncodeError>;
}
