//! What was written and is not in the store yet.
//!
//! A chunk with filters is staged whole and decoded, so that small writes do not filter it again each time. Of a
//! chunk without filters one run of bytes is staged, to which neighbouring writes are added.

use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_model::ChunkCoord;

use super::core::Dims;

/// Runs of unfiltered chunks up to this length are staged (bytes).
pub(super) const STAGED_RUN: usize = 64 << 10;
/// A staged run that has grown to this length is stored (bytes).
pub(super) const STAGED_PART: usize = 1 << 20;
/// Memory up to this length is kept for the next run (bytes): a dataset of which nothing is staged should not take more.
const SPARE: usize = 4 << 10;

/// The staged elements and extent of a dataset.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// The extent that the store has not been told.
    pub(super) extent: Option<Dims>,
    chunks: StagedChunks,
    bytes: usize,
    /// Where the next run may be put.
    spare: Option<Arc<Vec<u8>>>,
}

/// The staged chunks. One that is alone, as it is between small appends and flushes, takes no map.
#[derive(Debug, Default)]
struct StagedChunks {
    /// Nothing if there are several.
    alone: Option<(ChunkCoord, Staged)>,
    several: BTreeMap<ChunkCoord, Staged>,
}

impl StagedChunks {
    fn get(&self, coord: &ChunkCoord) -> Option<&Staged> {
        match &self.alone {
            Some((alone, staged)) => (alone == coord).then_some(staged),
            None => self.several.get(coord),
        }
    }

    fn get_mut(&mut self, coord: &ChunkCoord) -> Option<&mut Staged> {
        match &mut self.alone {
            Some((alone, staged)) => (alone == coord).then_some(staged),
            None => self.several.get_mut(coord),
        }
    }

    /// The chunks in their order.
    fn iter(&self) -> impl Iterator<Item = (&ChunkCoord, &Staged)> {
        self.alone.iter().map(|(coord, staged)| (coord, staged)).chain(&self.several)
    }

    /// Puts a chunk in place of what is there of it, and returns that.
    fn insert(&mut self, coord: &ChunkCoord, staged: Staged) -> Option<Staged> {
        match self.alone.take() {
            Some((alone, before)) if alone == *coord => {
                self.alone = Some((alone, staged));
                return Some(before);
            }
            Some((alone, before)) => drop(self.several.insert(alone, before)),
            None if self.several.is_empty() => {
                self.alone = Some((coord.clone(), staged));
                return None;
            }
            None => {}
        }
        self.several.insert(coord.clone(), staged)
    }

    fn remove(&mut self, coord: &ChunkCoord) -> Option<Staged> {
        match &self.alone {
            Some((alone, _)) if alone == coord => self.alone.take().map(|(_, staged)| staged),
            Some(_) => None,
            None => self.several.remove(coord),
        }
    }

    fn retain(&mut self, keep: impl Fn(&ChunkCoord, &Staged) -> bool) {
        self.alone = self.alone.take().filter(|(coord, staged)| keep(coord, staged));
        self.several.retain(|coord, staged| keep(coord, staged));
    }
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
        self.extent.is_some() || self.chunks.iter().any(|(_, staged)| staged.dirty)
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

    /// Stages a run of a chunk without filters, from `at` on (bytes): over or right after the one that is staged of it, or
    /// as the only one if it is short. Returns whether that could be done.
    pub(super) fn add(&mut self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> bool {
        let Some(staged) = self.chunks.get_mut(coord) else {
            let is_short = bytes.len() <= STAGED_RUN;
            if is_short {
                let bytes = self.memory_with(bytes);
                self.put(coord, Staged { at, bytes, dirty: true });
            }
            return is_short;
        };
        let before = staged.bytes.len();
        let touches = at >= staged.at && at <= staged.at + before && at + bytes.len() - staged.at <= STAGED_PART;
        if touches {
            let run = Arc::make_mut(&mut staged.bytes);
            let over = (before - (at - staged.at)).min(bytes.len());
            run[at - staged.at..][..over].copy_from_slice(&bytes[..over]);
            run.extend_from_slice(&bytes[over..]);
            staged.dirty = true;
            self.bytes += bytes.len() - over;
        }
        touches
    }

    /// Memory that holds `bytes`.
    fn memory_with(&mut self, bytes: &[u8]) -> Arc<Vec<u8>> {
        let mut memory = self.spare.take().unwrap_or_default();
        // Somebody may still read what was in it.
        if let Some(run) = Arc::get_mut(&mut memory) {
            run.clear();
            run.extend_from_slice(bytes);
            return memory;
        }
        Arc::new(bytes.into())
    }

    /// Keeps the memory of a run that is no longer staged.
    fn spare(&mut self, staged: Staged) {
        if staged.bytes.capacity() <= SPARE {
            self.spare = Some(staged.bytes);
        }
    }

    /// Removes and returns what is staged of a chunk.
    pub(super) fn take(&mut self, coord: &ChunkCoord) -> Option<Staged> {
        let staged = self.chunks.remove(coord)?;
        self.bytes -= staged.bytes.len();
        Some(staged)
    }

    pub(super) fn put(&mut self, coord: &ChunkCoord, staged: Staged) {
        self.bytes += staged.bytes.len();
        if let Some(before) = self.chunks.insert(coord, staged) {
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
        let (coord, staged) = self.chunks.alone.as_ref().filter(|(_, staged)| staged.dirty)?;
        Some((coord.clone(), staged.clone(), Dims::from_slice(self.extent.as_ref()?)))
    }

    /// Forgets everything: the store has it.
    pub(super) fn clear(&mut self) {
        self.extent = None;
        self.bytes = 0;
        self.chunks.several.clear();
        if let Some((_, staged)) = self.chunks.alone.take() {
            self.spare(staged);
        }
    }

    /// Keeps what the store has now of the chunk that was staged so; a part is no longer needed.
    pub(super) fn stored(&mut self, coord: &ChunkCoord, keep: bool) {
        match self.chunks.get_mut(coord) {
            Some(staged) if keep => staged.dirty = false,
            _ => {
                if let Some(staged) = self.take(coord) {
                    self.spare(staged);
                }
            }
        }
    }

    /// Forgets chunks.
    pub(super) fn retain(&mut self, keep: impl Fn(&ChunkCoord, &Staged) -> bool) {
        self.chunks.retain(keep);
        self.bytes = self.chunks.iter().map(|(_, staged)| staged.bytes.len()).sum();
    }
}
