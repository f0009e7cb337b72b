//! The interface of a chunk index, and what an index needs of its dataset.

use std::fmt;

use h5live_cache::{ChunkProxy, DependencyNode, EntryId};
use h5live_format::{Addr, ChunkIndexEntry};
use h5live_model::ChunkCoord;

use crate::Result;

/// The chunk index of one dataset.
pub trait ChunkIndex: Send + Sync + fmt::Debug {
    /// Looks up the place of a chunk; `None` if the chunk was never written.
    ///
    /// # Errors
    /// If a structure of the index cannot be read.
    fn get_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>>;

    /// Whether the index can ever hold a chunk. One that numbers its chunks counts only so far.
    fn can_hold_chunk(&self, _coord: &ChunkCoord) -> bool {
        true
    }

    /// Whether any of `count` chunks is stored: `first`, and those that follow it along the dimension `axis`.
    ///
    /// # Errors
    /// As [`ChunkIndex::get_chunk_entry`].
    fn has_any_chunk_along_axis(&self, first: &ChunkCoord, axis: usize, count: u64) -> Result<bool> {
        let at = first.scaled().get(axis).copied().unwrap_or_default();
        for at in at..at.saturating_add(count) {
            if self.get_chunk_entry(&first.with_index(axis, at))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets the place of a chunk. The structure that points to the chunk is written after `proxy` is clean.
    ///
    /// # Errors
    /// If a structure of the index cannot be read, or there is no room for a new one. The index is then unchanged.
    fn set_chunk_entry(&self, coord: &ChunkCoord, entry: ChunkIndexEntry, proxy: Option<&ChunkProxy>) -> Result<()>;

    /// As [`ChunkIndex::set_chunk_entry`], and returns where the chunk was stored before.
    ///
    /// # Errors
    /// As [`ChunkIndex::set_chunk_entry`].
    fn replace_chunk_entry(
        &self,
        coord: &ChunkCoord,
        entry: ChunkIndexEntry,
        proxy: Option<&ChunkProxy>,
    ) -> Result<Option<ChunkIndexEntry>> {
        let old = self.get_chunk_entry(coord)?;
        self.set_chunk_entry(coord, entry, proxy)?;
        Ok(old)
    }

    /// Whether one proxy may stand for a row of chunks in [`ChunkIndex::set_unfiltered_entries_along_axis`]. It may not where
    /// entries move between nodes: there each node finds what it waits for by the address of each chunk.
    fn allows_shared_proxy(&self) -> bool {
        true
    }

    /// As [`ChunkIndex::set_chunk_entry`], for chunks without filters that follow each other along a dimension: the one
    /// at `first` is stored at the first of `addrs`.
    ///
    /// # Errors
    /// As [`ChunkIndex::set_chunk_entry`]; those before the one that could not be set are.
    fn set_unfiltered_entries_along_axis(
        &self,
        first: &ChunkCoord,
        axis: usize,
        addrs: &[Addr],
        proxy: Option<&ChunkProxy>,
    ) -> Result<()> {
        let at = first.scaled().get(axis).copied().unwrap_or_default();
        let mut chunks = (at..).zip(addrs);
        chunks.try_for_each(|(at, place)| {
            self.set_chunk_entry(&first.with_index(axis, at), ChunkIndexEntry::unfiltered(*place), proxy)
        })
    }

    /// Removes a chunk, and returns its place. The caller frees the space there. `None` if the chunk was never written,
    /// or if this index cannot remove chunks.
    ///
    /// # Errors
    /// As [`ChunkIndex::set_chunk_entry`].
    fn remove_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        let old = self.get_chunk_entry(coord)?;
        if old.is_some() {
            self.set_chunk_entry(coord, ChunkIndexEntry::default(), None)?;
        }
        Ok(old)
    }

    /// Whether this index can remove chunks.
    fn can_remove_chunks(&self) -> bool {
        true
    }

    /// Frees the space of the index's own structures. The caller frees the chunks. The structure that led to the index
    /// stays unchanged, and the index must not be used any more.
    ///
    /// # Errors
    /// If a structure of the index cannot be read. Nothing is freed then.
    fn delete_index(&self) -> Result<()>;

    /// Whether the index counts its own blocks wrong, as a writer that died may have left it; with `repair`, it counts
    /// them right afterwards.
    ///
    /// # Errors
    /// If a structure of the index cannot be read.
    fn find_or_fix_block_count_errors(&self, _repair: bool) -> Result<bool> {
        Ok(false)
    }

    /// Calls `each` with every stored chunk, in the order of the index, until it returns `false`.
    /// `each` may change the index.
    ///
    /// # Errors
    /// If a structure of the index cannot be read.
    fn for_each_chunk(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()>;

    /// As [`for_each_chunk`](Self::for_each_chunk), of the chunks that come after one in the order of the index. Returns
    /// `false`, and calls `each` never, if the index cannot be read from there on.
    ///
    /// # Errors
    /// As `for_each_chunk`.
    fn for_each_after_if_supported(
        &self,
        _after: Option<&ChunkCoord>,
        _each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool,
    ) -> Result<bool> {
        Ok(false)
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), also with chunks that the index does not count yet: a writer that
    /// died may have left them. [`ChunkIndex::remove_chunk_entry`] forgets them, too.
    ///
    /// # Errors
    /// As `for_each_chunk`.
    fn for_each_chunk_with_uncounted(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        self.for_each_chunk(each)
    }
}

/// The place where the layout message of a dataset keeps the address of the index.
pub trait IndexAddrSlot: Send + Sync + fmt::Debug {
    /// The first structure of the index; undefined before the first chunk is stored.
    fn addr(&self) -> Addr;

    /// Replaces the address of the first structure.
    ///
    /// # Errors
    /// If the object header cannot be changed.
    fn set_addr(&self, addr: Addr) -> Result<()>;

    /// The parts of the object header that [`IndexAddrSlot::depend_on`] would have wait now.
    fn flush_parent_ids(&self) -> [Option<EntryId>; 2];

    /// Makes the object header wait for `child`, a structure of the index or a chunk. The extent in the header must
    /// never be ahead of the index, also if structures between the two are unchanged.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    fn depend_on(&self, child: &dyn DependencyNode) -> Result<()>;
}
