//! Memory that the open files of a process share: [`Options::memory`](crate::Options::memory).
//!
//! Files that are opened with the same number of bytes share one budget. An eighth of it is for the metadata of each file, a
//! quarter for one transfer, a quarter for decoded chunks and a quarter for staged elements, of all files together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use crate::dataset::ChunkCache;

/// The part that the decoded chunks of all files may take, one transfer, and the staged elements of all datasets.
const LARGE_SHARE: u64 = 4;
/// The part that the metadata of one file may take.
const METADATA_SHARE: u64 = 8;

/// The budgets of this process, by their bytes.
static BUDGETS: LazyLock<Mutex<HashMap<u64, Weak<MemoryBudget>>>> = LazyLock::new(Mutex::default);

/// What several files share, and what they use of it.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    bytes: u64,
    /// The decoded chunks of all files.
    chunks: ChunkCache,
    /// Bytes that all datasets have staged, as they counted them last.
    staged_bytes: AtomicUsize,
    /// How often elements were stored at once because too much was staged.
    early_stores: AtomicU64,
}

impl MemoryBudget {
    /// The budget of so many bytes of this process; `None` if that is no limit.
    pub fn get_or_create_if_limited(bytes: u64) -> Option<Arc<Self>> {
        if bytes == u64::MAX {
            return None;
        }
        let mut budgets = BUDGETS.lock();
        budgets.retain(|_, budget| budget.strong_count() > 0);
        if let Some(known) = budgets.get(&bytes).and_then(Weak::upgrade) {
            return Some(known);
        }
        let new = Arc::new(MemoryBudget {
            bytes,
            chunks: ChunkCache::new(large_share(bytes)),
            staged_bytes: AtomicUsize::new(0),
            early_stores: AtomicU64::new(0),
        });
        budgets.insert(bytes, Arc::downgrade(&new));
        Some(new)
    }

    /// The cache of decoded chunks of one file, which may have so many bytes of them.
    pub fn shared_chunk_cache_for_file(&self, max_bytes: usize) -> ChunkCache {
        self.chunks.with_same_chunks(max_bytes)
    }

    /// Whether more is staged than may be.
    pub fn is_staging_full(&self) -> bool {
        self.staged_bytes() > large_share(self.bytes)
    }

    /// Bytes that all datasets have staged.
    pub fn staged_bytes(&self) -> usize {
        self.staged_bytes.load(Ordering::Relaxed)
    }

    /// A dataset has `now` bytes staged, and had `before`.
    pub fn adjust_staged_bytes(&self, before: usize, now: usize) {
        match now.checked_sub(before) {
            Some(more) => self.staged_bytes.fetch_add(more, Ordering::Relaxed),
            None => self.staged_bytes.fetch_sub(before - now, Ordering::Relaxed),
        };
    }

    /// Elements were stored at once because too much was staged.
    pub fn record_early_store(&self) {
        self.early_stores.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was.
    pub fn early_store_count(&self) -> u64 {
        self.early_stores.load(Ordering::Relaxed)
    }
}

/// Bytes of a budget for decoded chunks, for one transfer, or for staged elements.
pub(crate) fn large_share(bytes: u64) -> usize {
    usize::try_from(bytes / LARGE_SHARE).unwrap_or(usize::MAX)
}

/// Bytes of a budget for the metadata of one file.
pub(crate) fn metadata_share(bytes: u64) -> u64 {
    bytes / METADATA_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_the_same_number_share_and_the_last_one_takes_it_along() {
        let first = MemoryBudget::get_or_create_if_limited(1 << 40 | 1).unwrap();
        let second = MemoryBudget::get_or_create_if_limited(1 << 40 | 1).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &MemoryBudget::get_or_create_if_limited(1 << 40 | 2).unwrap()));
        first.adjust_staged_bytes(0, 10);
        first.adjust_staged_bytes(10, 3);
        assert_eq!(second.staged_bytes(), 3);
        drop((first, second));
        assert_eq!(MemoryBudget::get_or_create_if_limited(1 << 40 | 1).unwrap().staged_bytes(), 0);
    }
}
