//! The staged chunks of a dataset.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use h5live_model::ChunkCoord;

/// Runs of unfiltered chunks up to this length are staged (bytes).
pub(super) const MAX_STAGED_RUN_BYTES: usize = 64 << 10;
/// A staged run that has grown to this length is stored (bytes).
pub(crate) const MAX_STAGED_PART_BYTES: usize = 1 << 20;

/// The staged part of a chunk.
#[derive(Debug, Clone)]
pub(crate) struct StagedChunk {
    /// Bytes from the start of the decoded chunk.
    pub(crate) offset: usize,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Whether the store lacks it.
    pub(crate) is_dirty: bool,
    /// Whether it changes elements that the store has, and is not only new rows.
    pub(crate) is_rewritten: bool,
}

impl StagedChunk {
    /// A whole chunk that the store lacks, and whether elements are changed that the store has.
    pub(crate) fn whole(bytes: Vec<u8>, is_rewritten: bool) -> Self {
        StagedChunk { offset: 0, bytes: Arc::new(bytes), is_dirty: true, is_rewritten }
    }

    /// Whether it has all of these bytes of the decoded chunk.
    pub(crate) fn covers(&self, bytes: Range<usize>) -> bool {
        self.offset <= bytes.start && bytes.end <= self.offset + self.bytes.len()
    }
}

/// The staged bytes of a chunk, maybe only a part of it.
#[derive(Debug)]
pub(crate) struct StagedBytes {
    /// Bytes from the start of the decoded chunk.
    offset: usize,
    shared: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl StagedBytes {
    /// A range of bytes that others share, which begin `at` in the decoded chunk.
    pub(crate) fn new(at: usize, shared: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        StagedBytes { offset: at, shared, range }
    }

    /// All bytes, if they are a whole chunk of `chunk_bytes` bytes.
    pub(crate) fn whole_chunk(&self, chunk_bytes: usize) -> Option<Arc<Vec<u8>>> {
        let is_all = self.range == (0..self.shared.len());
        (self.range.len() == chunk_bytes)
            .then(|| if is_all { self.shared.clone() } else { Arc::new(self.bytes().to_vec()) })
    }

    /// Puts them over the bytes of the decoded chunk from `at` on.
    pub(crate) fn overlay_onto(&self, at: usize, into: &mut [u8]) {
        let bytes = self.bytes();
        let (from, to) = (self.offset.max(at), (self.offset + bytes.len()).min(at + into.len()));
        if from < to {
            into[from - at..to - at].copy_from_slice(&bytes[from - self.offset..to - self.offset]);
        }
    }

    fn bytes(&self) -> &[u8] {
        self.shared.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<&StagedChunk> for StagedBytes {
    fn from(staged: &StagedChunk) -> Self {
        StagedBytes::new(staged.offset, staged.bytes.clone(), 0..staged.bytes.len())
    }
}

/// The staged chunks.
#[derive(Debug, Default)]
pub(crate) struct StagedChunks {
    chunks: BTreeMap<ChunkCoord, StagedChunk>,
    /// Bytes of all.
    bytes: usize,
}

impl StagedChunks {
    /// Bytes staged.
    pub(crate) fn total_bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(crate) fn get(&self, coord: &ChunkCoord) -> Option<&StagedChunk> {
        self.chunks.get(coord)
    }

    /// As [`StagedChunks::get`], to be changed but not in its length.
    pub(crate) fn get_mut(&mut self, coord: &ChunkCoord) -> Option<&mut StagedChunk> {
        self.chunks.get_mut(coord)
    }

    /// The chunks, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ChunkCoord, &StagedChunk)> {
        self.chunks.iter()
    }

    /// Stages a chunk, and replaces its staged contents.
    pub(crate) fn stage_chunk(&mut self, coord: &ChunkCoord, staged: StagedChunk) {
        drop(self.take_chunk(coord));
        self.bytes += staged.bytes.len();
        self.chunks.insert(coord.clone(), staged);
    }

    /// Removes a staged chunk, and returns it.
    pub(crate) fn take_chunk(&mut self, coord: &ChunkCoord) -> Option<StagedChunk> {
        let staged = self.chunks.remove(coord)?;
        self.bytes -= staged.bytes.len();
        Some(staged)
    }

    /// Removes chunks.
    pub(crate) fn retain(&mut self, keep: impl Fn(&ChunkCoord, &StagedChunk) -> bool) {
        self.chunks.retain(|coord, staged| keep(coord, staged));
        self.bytes = self.chunks.values().map(|staged| staged.bytes.len()).sum();
    }

    /// Stages a run of a chunk without filters, from `at` on (bytes): over or right after the one that is staged of it,
    /// or as the only one if it is short. Returns whether that could be done.
    pub(crate) fn add_run(&mut self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> bool {
        let Some(staged) = self.chunks.get_mut(coord) else {
            let is_short = bytes.len() <= MAX_STAGED_RUN_BYTES;
            if is_short {
                let bytes = Arc::new(bytes.into());
                self.stage_chunk(coord, StagedChunk { offset: at, bytes, is_dirty: true, is_rewritten: false });
            }
            return is_short;
        };
        let before = staged.bytes.len();
        let touches = at >= staged.offset
            && at <= staged.offset + before
            && at + bytes.len() - staged.offset <= MAX_STAGED_PART_BYTES;
        if touches {
            let (from, over) = (at - staged.offset, bytes.len().min(staged.offset + before - at));
            let run = Arc::make_mut(&mut staged.bytes);
            run[from..from + over].copy_from_slice(&bytes[..over]);
            run.extend_from_slice(&bytes[over..]);
            staged.is_dirty = true;
            self.bytes += bytes.len() - over;
        }
        touches
    }
}
