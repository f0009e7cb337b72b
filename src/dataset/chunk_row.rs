//! Whole chunks that were appended one after the other, and are stored together.

use std::sync::Arc;

use h5live_model::ChunkCoord;

/// Longer chunks are stored each by itself (bytes): for them a copy costs more than the ways to the store...
const CHUNK: usize = 16 << 10;
/// ...and a row that has become so long is stored (bytes): it is still in a near cache then.
const ROW: usize = 256 << 10;
/// ...as is one of so many chunks.
const CHUNKS: usize = 256;

/// Chunks for which there is memory at first.
const FEW: usize = 4;

/// Staged chunks without filters that follow each other along the first dimension.
#[derive(Debug)]
pub(super) struct ChunkRow {
    pub(super) first: ChunkCoord,
    /// Bytes of a chunk.
    pub(super) size: usize,
    /// Those of the chunks, one after the other; none is just memory for the next ones.
    pub(super) bytes: Arc<Vec<u8>>,
    /// Whether the row before had more chunks than [`FEW`].
    is_long: bool,
}

/// What became of a chunk that was to be staged in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    Yes,
    /// What is staged has to be stored first.
    Full,
    /// The chunk is too long.
    Never,
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
        (first..).zip(self.bytes.chunks_exact(self.size)).map(|(at, bytes)| (self.first.moved(0, at), bytes))
    }

    /// Adds a whole chunk to the row, or begins one with it; at most `limit` bytes are staged.
    pub(super) fn join(row: &mut Option<Self>, coord: &ChunkCoord, bytes: &[u8], limit: usize) -> Joined {
        if bytes.is_empty() || bytes.len() > CHUNK.min(limit) {
            return Joined::Never;
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
        let most = ROW.min(CHUNKS * row.size).min(limit);
        if !is_next || row.size != bytes.len() || row.bytes.len() + bytes.len() > most {
            return Joined::Full;
        }
        let few = row.is_empty() && !row.is_long;
        let row = Arc::make_mut(&mut row.bytes);
        if row.capacity() < row.len() + bytes.len() {
            let room = if few { most.min(FEW * bytes.len()) } else { most };
            row.reserve_exact(room - row.len());
        }
        row.extend_from_slice(bytes);
        Joined::Yes
    }

    /// Forgets the chunks, but keeps their memory if `more` are to come, and nobody reads them.
    pub(super) fn clear(&mut self, more: bool) {
        self.is_long = more || self.bytes.len() > FEW * self.size;
        match Arc::get_mut(&mut self.bytes).filter(|_| more) {
            Some(bytes) => bytes.clear(),
            None => self.bytes = Arc::default(),
        }
    }
}
