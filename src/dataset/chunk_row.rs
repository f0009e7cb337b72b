//! Whole chunks that were appended one after the other, and are stored together.

use std::sync::Arc;

use h5live_model::ChunkCoord;

/// Longer chunks are stored each by itself (bytes): for them a copy costs more than the ways to the store...
const MAX_ROW_CHUNK_BYTES: usize = 16 << 10;
/// ...and a row that has become so long is stored (bytes): it is still in a near cache then.
const MAX_ROW_BYTES: usize = 256 << 10;
/// ...as is one of so many chunks.
const MAX_ROW_CHUNKS: usize = 256;

/// Chunks for which there is memory at first.
const INITIAL_ROW_CHUNKS: usize = 4;

/// Staged chunks without filters that follow each other along the first dimension.
#[derive(Debug)]
pub(super) struct ChunkRow {
    pub(super) first: ChunkCoord,
    /// Bytes of a chunk.
    pub(super) size: usize,
    /// Those of the chunks, one after the other; none is just memory for the next ones.
    pub(super) bytes: Arc<Vec<u8>>,
    /// Whether the row before had more chunks than [`INITIAL_ROW_CHUNKS`].
    is_long: bool,
}

/// What happened to a chunk that was offered to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinResult {
    Joined,
    /// The staged row must be stored first.
    Full,
    /// The chunk is too long.
    TooLong,
}

impl ChunkRow {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How far behind the first chunk of the row another one is (chunks).
    fn number(&self, coord: &ChunkCoord) -> Option<usize> {
        let ((at, beside), (first, of_first)) = (coord.scaled().split_first()?, self.first.scaled().split_first()?);
        let number = usize::try_from(at.checked_sub(*first)?).ok()?;
        (beside == of_first).then_some(number)
    }

    /// The bytes of a chunk.
    pub(super) fn get(&self, coord: &ChunkCoord) -> Option<&[u8]> {
        self.bytes.chunks_exact(self.size).nth(self.number(coord)?)
    }

    /// The chunks.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (ChunkCoord, &[u8])> {
        let first = self.first.scaled().first().copied().unwrap_or_default();
        (first..).zip(self.bytes.chunks_exact(self.size)).map(|(at, bytes)| (self.first.with_index(0, at), bytes))
    }

    /// Adds a whole chunk to the row, or begins one with it; at most `limit` bytes are staged.
    pub(super) fn join(row: &mut Option<Self>, coord: &ChunkCoord, bytes: &[u8], limit: usize) -> JoinResult {
        if bytes.is_empty() || bytes.len() > MAX_ROW_CHUNK_BYTES.min(limit) {
            return JoinResult::TooLong;
        }
        let row = row.get_or_insert_with(|| ChunkRow {
            first: coord.clone(),
            size: bytes.len(),
            bytes: Arc::default(),
            is_long: false,
        });
        if row.is_empty() {
            (row.first, row.size) = (coord.clone(), bytes.len());
        }
        let is_next = row.number(coord).is_some_and(|number| number.checked_mul(row.size) == Some(row.bytes.len()));
        let most = MAX_ROW_BYTES.min(MAX_ROW_CHUNKS * row.size).min(limit);
        if !is_next || row.size != bytes.len() || row.bytes.len() + bytes.len() > most {
            return JoinResult::Full;
        }
        let few = row.is_empty() && !row.is_long;
        let row = Arc::make_mut(&mut row.bytes);
        if row.capacity() < row.len() + bytes.len() {
            let room = if few { most.min(INITIAL_ROW_CHUNKS * bytes.len()) } else { most };
            row.reserve_exact(room - row.len());
        }
        row.extend_from_slice(bytes);
        JoinResult::Joined
    }

    /// Forgets the chunks, but keeps their memory if `more` are to come, and nobody reads them.
    pub(super) fn clear(&mut self, more: bool) {
        self.is_long = more || self.bytes.len() > INITIAL_ROW_CHUNKS * self.size;
        match Arc::get_mut(&mut self.bytes).filter(|_| more) {
            Some(bytes) => bytes.clear(),
            None => self.bytes = Arc::default(),
        }
    }
}
