//! Lists that are read in parts: one that takes longer than the writer of a file with generations takes from one flush to
//! the next would never be read at once.

/// Fewer items are not read at once, however often the writer flushes.
const MIN_PART_ITEMS: usize = 16;

/// How many items are read at once: all of them, and after each attempt in vain half of what it read.
#[derive(Debug)]
pub(crate) struct AdaptiveBatchLimit {
    max_items: usize,
    /// Items that the last attempt at this part has read.
    last_read: Option<usize>,
}

impl AdaptiveBatchLimit {
    pub fn unlimited() -> Self {
        AdaptiveBatchLimit { max_items: usize::MAX, last_read: None }
    }

    /// An attempt begins. If it is not the first one at this part, the one before was in vain.
    pub fn shrink_if_retrying(&mut self) {
        if let Some(read) = self.last_read.take() {
            self.max_items = (read / 2).max(MIN_PART_ITEMS);
        }
    }

    /// Whether another item may be read after so many.
    pub fn may_read_more(&self, items_read: usize) -> bool {
        items_read < self.max_items
    }

    /// An attempt has read so many items.
    pub fn record_attempt_size(&mut self, items: usize) {
        self.last_read = Some(items);
    }

    /// The part counts. The next one may be longer.
    pub fn grow_after_success(&mut self) {
        self.last_read = None;
        self.max_items = self.max_items.saturating_mul(2);
    }
}
