//! What was written and is not in the store yet.
//!
//! A chunk with filters is staged whole and decoded, so that small writes do not filter it again each time. Of a
//! chunk without filters one run of bytes is staged, to which neighbouring writes are added.

use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_model::ChunkCoord;

use super::core::Dims;

/// The staged elements and extent of a dataset.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// The extent that the store has not been told.
    pub(super) extent: Option<Dims>,
    chunks: BTreeMap<ChunkCoord, Staged>,
    bytes: usize,
}

/// The staged part of a chunk.
#[derive(Debug, Clone)]
pub(super) struct Staged {
    /// Bytes from the start of the decoded chunk.
    pub(super) at: usize,
    pub(super) bytes: Arc<Vec<u8>>,
    /// Whether the store lacks it.
    pub(super) dirty: bool,
}

impl Stage {
    pub(super) fn is_dirty(&self) -> bool {
        self.extent.is_some() || self.chunks.values().any(|staged| staged.dirty)
    }

    /// Bytes staged.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, coord: &ChunkCoord) -> Option<&Staged> {
        self.chunks.get(coord)
    }

    pub(super) fn get_mut(&mut self, coord: &ChunkCoord) -> Option<&mut Staged> {
        self.chunks.get_mut(coord)
    }

    /// Writes `bytes` over or right after the staged run of a chunk; `at` counts from the start of the chunk.
    pub(super) fn extend(&mut self, coord: &ChunkCoord, at: usize, bytes: &[u8]) {
        let Some(staged) = self.chunks.get_mut(coord) else { return };
        let run = Arc::make_mut(&mut staged.bytes);
        let from = at - staged.at;
        let before = run.len();
        run.resize(before.max(from + bytes.len()), 0);
        run[from..from + bytes.len()].copy_from_slice(bytes);
        staged.dirty = true;
        self.bytes += run.len() - before;
    }

    /// Removes and returns what is staged of a chunk.
    pub(super) fn take(&mut self, coord: &ChunkCoord) -> Option<Staged> {
        let staged = self.chunks.remove(coord)?;
        self.bytes -= staged.bytes.len();
        Some(staged)
    }

    pub(super) fn put(&mut self, coord: &ChunkCoord, staged: Staged) {
        self.bytes += staged.bytes.len();
        if let Some(before) = self.chunks.insert(coord.clone(), staged) {
            self.bytes -= before.bytes.len();
        }
    }

    /// The chunks that the store lacks.
    pub(super) fn dirty(&self) -> Vec<(ChunkCoord, Staged)> {
        let dirty = self.chunks.iter().filter(|(_, staged)| staged.dirty);
        dirty.map(|(coord, staged)| (coord.clone(), staged.clone())).collect()
    }

    /// What is staged, if it is one run, with the extent that it is to have.
    pub(super) fn one_run(&self) -> Option<(ChunkCoord, Staged, Dims)> {
        let extent = self.extent.as_ref()?;
        let mut chunks = self.chunks.iter();
        match (chunks.next(), chunks.next()) {
            (Some((coord, staged)), None) if staged.dirty => Some((coord.clone(), staged.clone(), extent.clone())),
            _ => None,
        }
    }

    /// Forgets everything: the store has it.
    pub(super) fn clear(&mut self) {
        *self = Stage::default();
    }

    /// Keeps what the store has now of the chunk that was staged so; a part is no longer needed.
    pub(super) fn stored(&mut self, coord: &ChunkCoord, keep: bool) {
        match self.chunks.get_mut(coord) {
            Some(staged) if keep => staged.dirty = false,
            _ => drop(self.take(coord)),
        }
    }

    /// Forgets chunks.
    pub(super) fn retain(&mut self, keep: impl Fn(&ChunkCoord, &Staged) -> bool) {
        self.chunks.retain(|coord, staged| keep(coord, staged));
        self.bytes = self.chunks.values().map(|staged| staged.bytes.len()).sum();
    }
}
