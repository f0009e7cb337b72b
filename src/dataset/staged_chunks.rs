//! The chunks of which something is staged.

use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_model::ChunkCoord;

use super::chunk_row::{ChunkRow, Joined};

/// Runs of unfiltered chunks up to this length are staged (bytes).
pub(super) const STAGED_RUN: usize = 64 << 10;
/// A staged run that has grown to this length is stored (bytes).
pub(super) const STAGED_PART: usize = 1 << 20;
/// The memory of runs up to this length is kept (bytes): a dataset of which nothing is staged should not take more.
const SPARE: usize = 4 << 10;

/// The staged part of a chunk.
#[derive(Debug, Clone)]
pub(super) struct Staged {
    /// Bytes from the start of the decoded chunk.
    pub(super) at: usize,
    pub(super) bytes: Arc<Vec<u8>>,
    /// Whether the store lacks it.
    pub(super) dirty: bool,
}

impl Staged {
    /// A whole chunk that the store lacks.
    fn whole(bytes: &[u8]) -> Self {
        Staged { at: 0, bytes: Arc::new(bytes.into()), dirty: true }
    }

    /// Forgets the run, but keeps its memory if that is little and nobody reads it; whether it was so.
    fn clear(&mut self) -> bool {
        let Some(run) = Arc::get_mut(&mut self.bytes).filter(|run| run.capacity() <= SPARE) else { return false };
        run.clear();
        self.dirty = false;
        true
    }
}

/// The staged chunks. One that is alone, as it is between small appends and flushes, takes no map.
#[derive(Debug, Default)]
pub(super) struct StagedChunks {
    /// Nothing if there are several. Without bytes, it is just memory for the next run of the chunk.
    alone: Option<(ChunkCoord, Staged)>,
    several: BTreeMap<ChunkCoord, Staged>,
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

    pub(super) fn get(&self, coord: &ChunkCoord) -> Option<Staged> {
        if let Some(bytes) = self.row().and_then(|row| row.get(coord)) {
            return Some(Staged::whole(bytes));
        }
        let staged = match &self.alone {
            Some((alone, staged)) => (alone == coord && !staged.bytes.is_empty()).then_some(staged),
            None => self.several.get(coord),
        };
        staged.cloned()
    }

    /// The chunks in a row, if there are some.
    pub(super) fn row(&self) -> Option<&ChunkRow> {
        self.row.as_ref().filter(|row| !row.is_empty())
    }

    /// Stages a whole chunk in a row.
    pub(super) fn join(&mut self, coord: &ChunkCoord, bytes: &[u8], limit: usize) -> Joined {
        match self.bytes {
            0 => ChunkRow::join(&mut self.row, coord, bytes, limit),
            _ => Joined::Full,
        }
    }

    /// Forgets the chunks in a row, but keeps their memory if `more` are to come.
    pub(super) fn forget_row(&mut self, more: bool) {
        if let Some(row) = &mut self.row {
            row.clear(more);
        }
    }

    /// Has the chunks of a row apart.
    fn part(&mut self) {
        let Some(row) = self.row.take() else { return };
        for (coord, bytes) in row.chunks() {
            self.put(&coord, Staged::whole(bytes));
        }
    }

    /// As [`StagedChunks::get`], to be changed but not in its length.
    pub(super) fn get_mut(&mut self, coord: &ChunkCoord) -> Option<&mut Staged> {
        self.part();
        match &mut self.alone {
            Some((alone, staged)) => (alone == coord).then_some(staged),
            None => self.several.get_mut(coord),
        }
    }

    /// The chunk that is staged, if it is just one.
    pub(super) fn alone(&self) -> Option<&(ChunkCoord, Staged)> {
        self.alone.as_ref().filter(|_| self.row().is_none())
    }

    /// The chunks that are staged apart, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ChunkCoord, &Staged)> {
        self.alone.iter().map(|(coord, staged)| (coord, staged)).chain(&self.several)
    }

    /// Puts a chunk in place of what is there of it.
    pub(super) fn put(&mut self, coord: &ChunkCoord, staged: Staged) {
        self.part();
        drop(self.take(coord));
        self.bytes += staged.bytes.len();
        self.alone = self.alone.take().filter(|(_, staged)| !staged.bytes.is_empty());
        if self.alone.is_none() && self.several.is_empty() {
            self.alone = Some((coord.clone(), staged));
            return;
        }
        self.several.extend(self.alone.take());
        self.several.insert(coord.clone(), staged);
    }

    /// Removes and returns what is staged of a chunk.
    pub(super) fn take(&mut self, coord: &ChunkCoord) -> Option<Staged> {
        self.part();
        let staged = match &self.alone {
            Some((alone, _)) if alone == coord => self.alone.take().map(|(_, staged)| staged),
            Some(_) => None,
            None => self.several.remove(coord),
        }?;
        self.bytes -= staged.bytes.len();
        Some(staged)
    }

    /// Removes chunks.
    pub(super) fn retain(&mut self, keep: impl Fn(&ChunkCoord, &Staged) -> bool) {
        self.part();
        self.alone = self.alone.take().filter(|(coord, staged)| keep(coord, staged));
        self.several.retain(|coord, staged| keep(coord, staged));
        self.bytes = self.iter().map(|(_, staged)| staged.bytes.len()).sum();
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.row = None;
        self.bytes = 0;
        if !self.several.is_empty() {
            self.several.clear();
        }
        if !self.alone.as_mut().is_some_and(|(_, staged)| staged.clear()) {
            self.alone = None;
        }
    }

    /// Stages a run of a chunk without filters, from `at` on (bytes): over or right after the one that is staged of it, or
    /// as the only one if it is short. Returns whether that could be done.
    pub(super) fn add(&mut self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> bool {
        let Some(staged) = self.get_mut(coord) else {
            let is_short = bytes.len() <= STAGED_RUN;
            if is_short {
                self.put(coord, Staged { at, bytes: Arc::new(bytes.into()), dirty: true });
            }
            return is_short;
        };
        let before = staged.bytes.len();
        if before == 0 && bytes.len() <= STAGED_RUN {
            staged.at = at;
        }
        let touches = at >= staged.at && at <= staged.at + before && at + bytes.len() - staged.at <= STAGED_PART;
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
