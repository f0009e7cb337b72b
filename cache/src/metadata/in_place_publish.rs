//! The in-place publish, a fast path of a small append: raw data that no reader can see yet, and then the one entry
//! that publishes it, each with one write. It is used where a flush would find nothing else to do.

use std::{borrow::Cow, ops::Range};

use h5live_format::{Addr, EncodeError};

use super::redo::is_within_page;
use crate::{
    cache::Cache,
    cache_counters::add_to_counter,
    entry::{Entry, Handle},
    entry_id::Owner,
    error::{Error, Result, StorageAction, defined},
    reentry::{ReentryScope, enter_scope},
};

/// The longest piece of raw data that is stored through a mapping (bytes), into pages that may be new...
const MAX_MAPPED_RAW_BYTES: usize = 512;
/// ...and into those that were written before.
const MAX_MAPPED_RAW_BYTES_PREFILLED: usize = 64 << 10;

/// Raw data for a part of a chunk that no reader can see yet. The file leads to the chunk.
#[derive(Debug, Clone, Copy)]
pub struct UnpublishedChunkData<'a> {
    /// The address of the chunk.
    pub chunk: Addr,
    /// Where the part begins, in bytes from the beginning of the chunk.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether all of the chunk has been written before: the system has pages for it then.
    pub is_chunk_prefilled: bool,
}

/// The new bytes of an entry in the file.
#[derive(Debug)]
pub struct EntryPatch<'a> {
    /// Its image.
    pub image: Cow<'a, [u8]>,
    /// The bytes that differ from the file.
    pub changed_range: Range<usize>,
}

impl From<Vec<u8>> for EntryPatch<'_> {
    fn from(image: Vec<u8>) -> Self {
        EntryPatch { changed_range: 0..image.len(), image: image.into() }
    }
}

impl Cache {
    /// Writes raw data. Then calls `change` to change an entry of `entry_len` bytes that publishes this data, and writes the
    /// entry. A flush of the entry's owner would do the same. Returns whether it was done. It is not done if `change`
    /// returns `None`. `change` is not called if a flush would have more to do: something of the owner is dirty or
    /// waits, the entry crosses a page, a redo record is active, or flushes are durable.
    ///
    /// `change` gets the entry and its edition (the number of earlier changes, by [`Handle::update`] or this way). It
    /// returns the new bytes of the entry. It must not use the cache. Must not be called inside an operation.
    ///
    /// # Errors
    /// As [`Cache::flush`]. If the write of the entry failed, the entry was changed and is dirty.
    pub fn try_publish_in_place<'a, T: Entry>(
        &self,
        part: UnpublishedChunkData<'_>,
        entry: &Handle<T>,
        entry_len: u64,
        change: impl FnOnce(&mut T, u64) -> Option<std::result::Result<EntryPatch<'a>, EncodeError>>,
    ) -> Result<bool> {
        let _inside = enter_scope(self, ReentryScope::Flush, &[ReentryScope::Operation, ReentryScope::Flush]);
        let _only = self.flush_lock.lock();
        let at = defined(part.chunk.checked_add(part.offset))?;
        let end = defined(at.checked_add(part.bytes.len() as u64).and_then(Addr::get))?;
        let is_alone = is_within_page(self.options.base_addr, entry.addr(), entry_len)
            && end <= self.space.superblock_eof()
            && !self.needs_protocol_steps()
            && self.dirty_raw_data.is_chunk_clean(part.chunk);
        if !is_alone || !self.is_clean(entry.owner()) || !entry.matches_file() {
            return Ok(false);
        }
        self.write_raw_part(at, part)?;
        let patch = {
            let _gate = self.operation_gate.write();
            // Another thread may have begun to change it meanwhile. Then it is written again.
            if !self.is_clean(entry.owner()) || !entry.matches_file() {
                return Ok(false);
            }
            entry.update_for_write_through(change)
        };
        let Some(patch) = patch else { return Ok(false) };
        let at = entry.addr();
        let written = patch.map_err(|source| Error::Encode { at, source }).and_then(|patch| {
            self.write_entry_patch(StorageAction::WriteEntry(std::any::type_name::<T>()), at, &patch)
        });
        match written {
            Ok(()) => add_to_counter(&self.counters.flushes, 1),
            Err(_) => entry.mark_dirty(),
        }
        written.map(|()| true)
    }

    /// Writes raw data by the shortest way.
    fn write_raw_part(&self, at: Addr, part: UnpublishedChunkData<'_>) -> Result<()> {
        let UnpublishedChunkData { bytes, is_chunk_prefilled: is_prefilled, .. } = part;
        // Beyond that, a call costs less than new pages of a mapping do.
        let is_short = bytes.len() <= if is_prefilled { MAX_MAPPED_RAW_BYTES_PREFILLED } else { MAX_MAPPED_RAW_BYTES };
        if is_short && self.storage.try_store_mapped(bytes, defined(at.get())?) {
            self.count_written_bytes(bytes.len());
            return Ok(());
        }
        self.write_counted(StorageAction::WriteRaw, at, bytes)
    }

    /// Writes an entry that lies within a page by the shortest way.
    fn write_entry_patch(&self, action: StorageAction, at: Addr, patch: &EntryPatch<'_>) -> Result<()> {
        if self.storage.try_store_crash_atomic(&patch.image, patch.changed_range.clone(), defined(at.get())?) {
            self.count_written_bytes(patch.changed_range.len());
            return Ok(());
        }
        self.write_counted(action, at, &patch.image)
    }

    /// Whether [`Cache::try_publish_in_place`] can be used at all, maybe after the next flush: flushes have no steps beside
    /// writing dirty entries.
    pub fn allows_in_place_publish(&self) -> bool {
        !(self.is_read_only()
            || self.has_barriers()
            || self.atomic_flush.load(std::sync::atomic::Ordering::Acquire)
            || self.options.mutant.lacks_edges()
            || self.publishes_generations())
    }

    /// Whether a flush has steps beside writing dirty entries and raw data.
    pub(super) fn needs_protocol_steps(&self) -> bool {
        !self.allows_in_place_publish() || self.has_active_redo()
    }

    /// Whether nothing of `owner` waits to be written, nor anything of others that must be written before.
    fn is_clean(&self, owner: Owner) -> bool {
        self.shared_graph.graph.lock().is_clean(owner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::Block;
    use super::*;
    use crate::test_superblock::EofOnlySuperblock;
    use crate::{CacheOptions, FaultyStorage, FlushScope, InjectedFailure, MemoryStorage, SpaceKind, Storage};

    const OWNER: Owner = Owner::new(Addr::new(8));

    /// A cache whose file has an extent of 1 and a chunk of 8 bytes.
    fn prepared(storage: Arc<dyn Storage>) -> (Cache, Handle<Block>, Addr) {
        let cache = Cache::new_writable(storage, CacheOptions::default(), 8, Arc::new(EofOnlySuperblock));
        let at = cache.space().alloc(4, SpaceKind::Metadata).unwrap();
        let extent = cache.insert_entry(at, OWNER, Block(vec![1; 4]));
        let chunk = cache.space().alloc(8, SpaceKind::Raw).unwrap();
        cache.write_or_enqueue_new_raw(OWNER, chunk, 0, &[1; 8]).unwrap();
        cache.flush(FlushScope::All).unwrap();
        (cache, extent, chunk)
    }

    fn publish(cache: &Cache, extent: &Handle<Block>, chunk: Addr, to: u8) -> Result<bool> {
        let part = UnpublishedChunkData { chunk, offset: 2, bytes: &[to; 3], is_chunk_prefilled: false };
        cache.try_publish_in_place(part, extent, 4, |extent, _| {
            extent.0.fill(to);
            Some(Ok(extent.0.clone().into()))
        })
    }

    #[test]
    fn raw_data_is_written_and_then_what_tells_of_it() {
        let storage = MemoryStorage::new();
        let (cache, extent, chunk) = prepared(Arc::new(storage.clone()));
        let before = cache.stats();
        assert!(publish(&cache, &extent, chunk, 2).unwrap());
        let (bytes, after) = (storage.to_vec(), cache.stats());
        let (at, raw) = (extent.addr().get().unwrap() as usize, chunk.get().unwrap() as usize);
        assert_eq!((&bytes[at..at + 4], &bytes[raw..raw + 8]), (&[2; 4][..], &[1, 1, 2, 2, 2, 1, 1, 1][..]));
        assert_eq!((after.writes - before.writes, after.flushes - before.flushes), (2, 1));
        assert!(!cache.is_dirty());
    }

    #[test]
    fn it_is_left_to_a_flush_where_there_is_more_to_do() {
        let storage = MemoryStorage::new();
        let (cache, extent, chunk) = prepared(Arc::new(storage.clone()));
        let before = storage.to_vec();
        let refused = |why: &str| {
            assert!(!publish(&cache, &extent, chunk, 3).unwrap(), "{why}");
            assert_eq!(storage.to_vec(), before, "{why}");
            assert_eq!(extent.read().0, [1; 4], "{why}");
        };
        let at = cache.space().alloc(4, SpaceKind::Metadata).unwrap();
        let other = cache.insert_entry(at, OWNER, Block(vec![9; 4]));
        refused("another entry is new");
        cache.forget_entry(other.addr());
        extent.mark_dirty();
        refused("the entry is dirty");
        cache.flush(FlushScope::All).unwrap();
        let before = storage.to_vec();
        cache.enqueue_raw_write(OWNER, chunk, 0, vec![7]);
        assert!(!publish(&cache, &extent, chunk, 3).unwrap(), "raw data waits");
        cache.discard_raw(chunk);
        cache.enable_barriers();
        assert!(!publish(&cache, &extent, chunk, 3).unwrap(), "flushes are durable");
        assert_eq!(storage.to_vec(), before);
    }

    #[test]
    fn an_entry_whose_write_fails_is_written_by_the_next_flush() {
        let memory = MemoryStorage::new();
        let storage = Arc::new(FaultyStorage::new(memory.clone()));
        let (cache, extent, chunk) = prepared(storage.clone());
        storage.fail_after(1, InjectedFailure::StorageFull, false);
        assert!(publish(&cache, &extent, chunk, 2).is_err());
        assert!(cache.is_dirty());
        cache.flush(FlushScope::All).unwrap();
        let at = extent.addr().get().unwrap() as usize;
        assert_eq!(memory.to_vec()[at..at + 4], [2; 4]);
    }
}
