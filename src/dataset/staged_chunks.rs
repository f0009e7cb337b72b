//! The chunks of which something is staged.

use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_model::ChunkCoord;

use super::chunk_row::{ChunkRow, JoinResult};

/// Runs of unfiltered chunks up to this length are staged (bytes).
pub(super) const MAX_STAGED_RUN_BYTES: usize = 64 << 10;
/// A staged run that has grown to this length is stored (bytes).
pub(super) const MAX_STAGED_PART_BYTES: usize = 1 << 20;
/// The memory of runs up to this length is kept (bytes): a dataset of which nothing is staged should not take more.
const MAX_SPARE_RUN_BYTES: usize = 4 << 10;

/// The staged part of a chunk.
#[derive(Debug, Clone)]
pub(super) struct StagedChunk {
    /// Bytes from the start of the decoded chunk.
    pub(super) at: usize,
    pub(super) bytes: Arc<Vec<u8>>,
    /// Whether the store lacks it.
    pub(super) dirty: bool,
}

impl StagedChunk {
    /// A whole chunk that the store lacks.
    fn whole(bytes: &[u8]) -> Self {
        StagedChunk { at: 0, bytes: Arc::new(bytes.into()), dirty: true }
    }

    /// Forgets the run, but keeps its memory if that is little and nobody reads it; whether it was so.
    fn clear(&mut self) -> bool {
        let Some(run) = Arc::get_mut(&mut self.bytes).filter(|run| run.capacity() <= MAX_SPARE_RUN_BYTES) else {
            return false;
        };
        run.clear();
        self.dirty = false;
        true
    }
}

/// The staged chunks. A single chunk, as between small appends and flushes, needs no map.
#[derive(Debug, Default)]
pub(super) struct StagedChunks {
    /// Nothing if there are several. Without bytes, it is just memory for the next run of the chunk.
    single: Option<(ChunkCoord, StagedChunk)>,
    others: BTreeMap<ChunkCoord, StagedChunk>,
    /// If it has chunks, nothing else is staged. It has them apart as soon as anything but a row is asked for.
    row: Option<ChunkRow>,
    /// Bytes staged apart.
    bytes: usize,
}

impl StagedChunks {
    /// Bytes staged.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.row().map_or(0, |row| row.bytes.len())
    }

    pub(super) fn get(&self, coord: &ChunkCoord) -> Option<StagedChunk> {
        if let Some(bytes) = self.row().and_then(|row| row.get(coord)) {
            return Some(StagedChunk::whole(bytes));
        }
        let staged = match &self.single {
            Some((alone, staged)) => (alone == coord && !staged.bytes.is_empty()).then_some(staged),
            None => self.others.get(coord),
        };
        staged.cloned()
    }

    /// The chunks in a row, if there are some.
    pub(super) fn row(&self) -> Option<&ChunkRow> {
        self.row.as_ref().filter(|row| !row.is_empty())
    }

    /// Stages a whole chunk in a row.
    pub(super) fn join_row(&mut self, coord: &ChunkCoord, bytes: &[u8], limit: usize) -> JoinResult {
        match self.bytes {
            0 => ChunkRow::join(&mut self.row, coord, bytes, limit),
            _ => JoinResult::Full,
        }
    }

    /// Forgets the chunks in a row, but keeps their memory if `more` are to come.
    pub(super) fn clear_row(&mut self, more: bool) {
        if let Some(row) = &mut self.row {
            row.clear(more);
        }
    }

    /// Has the chunks of a row apart.
    fn split_row(&mut self) {
        let Some(row) = self.row.take() else { return };
        for (coord, bytes) in row.chunks() {
            self.put(&coord, StagedChunk::whole(bytes));
        }
    }

    /// As [`StagedChunks::get`], to be changed but not in its length.
    pub(super) fn get_mut(&mut self, coord: &ChunkCoord) -> Option<&mut StagedChunk> {
        self.split_row();
        match &mut self.single {
            Some((alone, staged)) => (alone == coord).then_some(staged),
            None => self.others.get_mut(coord),
        }
    }

    /// The chunk that is staged, if it is just one.
    pub(super) fn single(&self) -> Option<&(ChunkCoord, StagedChunk)> {
        self.single.as_ref().filter(|_| self.row().is_none())
    }

    /// The chunks that are staged apart, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ChunkCoord, &StagedChunk)> {
        self.single.iter().map(|(coord, staged)| (coord, staged)).chain(&self.others)
    }

    /// Stages a chunk, and replaces its staged contents.
    pub(super) fn put(&mut self, coord: &ChunkCoord, staged: StagedChunk) {
        self.split_row();
        drop(self.take(coord));
        self.bytes += staged.bytes.len();
        self.single = self.single.take().filter(|(_, staged)| !staged.bytes.is_empty());
        if self.single.is_none() && self.others.is_empty() {
            self.single = Some((coord.clone(), staged));
            return;
        }
        self.others.extend(self.single.take());
        self.others.insert(coord.clone(), staged);
    }

    /// Removes a staged chunk, and returns it.
    pub(super) fn take(&mut self, coord: &ChunkCoord) -> Option<StagedChunk> {
        self.split_row();
        let staged = match &self.single {
            Some((alone, _)) if alone == coord => self.single.take().map(|(_, staged)| staged),
            Some(_) => None,
            None => self.others.remove(coord),
        }?;
        self.bytes -= staged.bytes.len();
        Some(staged)
    }

    /// Removes chunks.
    pub(super) fn retain(&mut self, keep: impl Fn(&ChunkCoord, &StagedChunk) -> bool) {
        self.split_row();
        self.single = self.single.take().filter(|(coord, staged)| keep(coord, staged));
        self.others.retain(|coord, staged| keep(coord, staged));
        self.bytes = self.iter().map(|(_, staged)| staged.bytes.len()).sum();
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.row = None;
        self.bytes = 0;
        if !self.others.is_empty() {
            self.others.clear();
        }
        if !self.single.as_mut().is_some_and(|(_, staged)| staged.clear()) {
            self.single = None;
        }
    }

    /// Stages a run of a chunk without filters, from `at` on (bytes): over or right after the one that is staged of it,
    /// or as the only one if it is short. Returns whether that could be done.
    pub(super) fn add_run(&mut self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> bool {
        let Some(staged) = self.get_mut(coord) else {
            let is_short = bytes.len() <= MAX_STAGED_RUN_BYTES;
            if is_short {
                self.put(coord, StagedChunk { at, bytes: Arc::new(bytes.into()), dirty: true });
            }
            return is_short;
        };
        let before = staged.bytes.len();
        if before == 0 && bytes.len() <= MAX_STAGED_RUN_BYTES {
            staged.at = at;
        }
        let touches =
            at >= staged.at && at <= staged.at + before && at + bytes.len() - staged.at <= MAX_STAGED_PART_BYTES;
        if touches {
            let (from, over) = (at - staged.at, bytes.len().min(staged.at + before - at));
            let run = Arc::make_mut(&mut staged.bytes);
            run[from..from + over].copy_from_slice(&bytes[..over]);
            run.extend_from_slice(&bytes[over..]);
            staged.dirty = true;
            self.bytes += bytes.len() - over;
        }
        touches
    }
}
