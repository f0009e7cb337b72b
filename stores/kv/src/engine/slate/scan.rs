//! Ranges of keys, read piece by piece.

use std::ops::Bound;

use bytes::Bytes;
use slatedb::config::ScanOptions;
use slatedb::{DbIterator, KeyValue};

use crate::engine::KeySpan;

/// Keys that the first piece has; each further one has four times as many, up to the limit.
const FIRST_PIECE_KEYS: usize = 8;
const MAX_PIECE_KEYS: usize = 1024;
/// Bytes with which a piece ends.
const MAX_PIECE_BYTES: usize = 1 << 20;

/// How ranges are read: blocks that are read stay in the cache.
pub fn scan_options() -> ScanOptions {
    ScanOptions::default().with_cache_blocks(true)
}

/// A range as SlateDB takes it.
pub fn bounds(range: &KeySpan) -> (Bound<Bytes>, Bound<Bytes>) {
    let end = range.end.as_deref().map_or(Bound::Unbounded, |end| Bound::Excluded(Bytes::copy_from_slice(end)));
    let start = match range.start.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Included(Bytes::copy_from_slice(&range.start)),
    };
    (start, end)
}

/// Keys of a range that are still to be read.
pub struct RangeReader {
    keys: DbIterator,
    piece_keys: usize,
}

/// Some keys of a range with their values, in order.
#[derive(Default)]
pub struct ScanBatch {
    pub pairs: Vec<KeyValue>,
    /// Whether no further keys follow.
    pub is_last: bool,
}

impl RangeReader {
    /// A reader of these keys.
    pub fn new(keys: DbIterator) -> Self {
        RangeReader { keys, piece_keys: FIRST_PIECE_KEYS }
    }

    /// Reads the next keys, and returns itself with them.
    pub async fn next_batch(mut self) -> Result<(Self, ScanBatch), slatedb::Error> {
        let (mut piece, mut bytes) = (ScanBatch::default(), 0);
        while piece.pairs.len() < self.piece_keys && bytes < MAX_PIECE_BYTES {
            let Some(pair) = self.keys.next().await? else {
                piece.is_last = true;
                break;
            };
            bytes += pair.key.len() + pair.value.len();
            piece.pairs.push(pair);
        }
        self.piece_keys = (self.piece_keys * 4).min(MAX_PIECE_KEYS);
        Ok((self, piece))
    }
}
