//! Growing chunks: chunks of a live dataset with filters that are not full yet.
//!
//! A chunk that went through filters cannot be appended to, so each flush would store all of it anew, and readers keep
//! the space of each earlier form from being used again. So from its second flush on, a growing chunk is stored without
//! filters, with all bits of its filter mask set, and rows are written behind those that it has. When it is full, it goes
//! through the filters, and is stored elsewhere. What is not full when the file is closed goes through them then.

use std::collections::BTreeMap;
use std::ops::Range;

use h5live_model::ChunkCoord;
use parking_lot::Mutex;

/// What the store has of a growing chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrowingChunk {
    /// Rows.
    pub(crate) rows: u64,
    /// Bytes, if it went through filters; `None` if it did not.
    pub(crate) encoded_bytes: Option<usize>,
}

/// The growing chunks of a dataset.
#[derive(Debug, Default)]
pub(crate) struct GrowingChunks(Mutex<BTreeMap<ChunkCoord, GrowingChunk>>);

/// The form in which a staged chunk of a dataset with filters is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkStoreForm {
    /// Through the filters.
    Filtered,
    /// Through the filters, unless that makes it hardly shorter. It has `rows` of `chunk_rows` rows.
    FilteredIfWorth { rows: u64, chunk_rows: u64 },
    /// All of it, without filters.
    Unfiltered,
    /// These bytes, which come after those that the store has without filters.
    UnfilteredTail(Range<usize>),
}

impl GrowingChunks {
    /// Whether some chunk is stored without filters.
    pub(crate) fn has_unfiltered(&self) -> bool {
        self.0.lock().values().any(|chunk| chunk.encoded_bytes.is_none())
    }

    /// Forgets a chunk: what the store has of it may have changed.
    pub(crate) fn forget_chunk(&self, coord: &ChunkCoord) {
        let mut chunks = self.0.lock();
        if !chunks.is_empty() {
            chunks.remove(coord);
        }
    }

    pub(crate) fn forget_all(&self) {
        self.0.lock().clear();
    }

    pub(crate) fn get(&self, coord: &ChunkCoord) -> Option<GrowingChunk> {
        self.0.lock().get(coord).copied()
    }

    pub(crate) fn insert(&self, coord: ChunkCoord, chunk: GrowingChunk) {
        self.0.lock().insert(coord, chunk);
    }

    pub(crate) fn unfiltered(&self) -> Vec<ChunkCoord> {
        let chunks = self.0.lock();
        chunks.iter().filter(|(_, chunk)| chunk.encoded_bytes.is_none()).map(|(coord, _)| coord.clone()).collect()
    }
}

/// Whether the first form of a growing chunk of `chunk_bytes` bytes, which has `rows` of `chunk_rows` rows, is the filtered
/// one of `encoded` bytes. It is not if it is no shorter, or so long for so few rows that later ones will not be longer.
pub(crate) fn is_worth_filtering(chunk_bytes: usize, encoded: usize, rows: u64, chunk_rows: u64) -> bool {
    let (chunk, encoded) = (chunk_bytes as u128, encoded as u128);
    let is_long_for_its_rows = encoded * u128::from(chunk_rows) > 2 * u128::from(rows) * chunk;
    encoded < chunk && !(encoded * 4 > chunk && is_long_for_its_rows)
}

/// Whether a growing chunk of `chunk_bytes` bytes is stored without filters from now on. It is if the stored forms that
/// are still to come, until it is full, would take more bytes than it has. `encoded` are the bytes of its last stored
/// form, which had `stored` of its `rows` rows; with each flush come as many rows as now, and its stored form is longer by
/// as much.
pub(crate) fn is_worth_unfiltered(chunk_bytes: usize, encoded: usize, stored: u64, filled: u64, rows: u64) -> bool {
    let (stored, step) = (stored.max(1), filled.saturating_sub(stored).max(1));
    // Of these, each has one step more than the one before.
    let forms = u128::from(rows.saturating_sub(stored).saturating_sub(1) / step);
    let row_sum = u128::from(stored) * forms + u128::from(step) * forms * (forms + 1) / 2;
    (encoded as u128).saturating_mul(row_sum) / u128::from(stored) > chunk_bytes as u128
}

#[cfg(test)]
mod tests {
    use super::{is_worth_filtering, is_worth_unfiltered};

    #[test]
    fn the_first_form_is_filtered_if_that_makes_it_shorter_and_later_ones_may_be_longer() {
        assert!(is_worth_filtering(8000, 30, 1, 1000));
        assert!(is_worth_filtering(8000, 4000, 500, 1000), "half of the rows in half of the bytes");
        assert!(!is_worth_filtering(8000, 8004, 1, 1000), "a checksum only");
        assert!(!is_worth_filtering(8000, 5000, 100, 1000), "as long as it will ever be");
        assert!(is_worth_filtering(8000, 1900, 1, 1000), "but short");
    }

    #[test]
    fn a_chunk_is_stored_unfiltered_if_its_filtered_forms_would_take_more() {
        // 8,000 bytes, a thousand rows of a counter that is hard to compress, one flush for each row, and for ten.
        assert!(is_worth_unfiltered(8000, 30, 1, 2, 1000));
        assert!(is_worth_unfiltered(8000, 800, 100, 200, 1000), "ten flushes in a chunk that does not get shorter");
        assert!(!is_worth_unfiltered(8000, 80, 100, 200, 1000), "ten flushes of what gets a tenth as long");
        assert!(!is_worth_unfiltered(8000, 2600, 334, 668, 1000), "one more flush will fill it");
        assert!(!is_worth_unfiltered(8000, 4000, 500, 1000, 1000));
        assert!(!is_worth_unfiltered(0, 0, 0, 0, 0));
        let _no_overflow = is_worth_unfiltered(usize::MAX, usize::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert!(is_worth_unfiltered(usize::MAX, usize::MAX, 1, 2, u64::MAX));
    }
}
