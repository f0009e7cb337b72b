//! The implicit index: all chunks lie behind one another, and nothing needs to be looked up.

use std::sync::Arc;

use h5live_cache::ChunkProxy;
use h5live_format::ChunkIndexEntry;
use h5live_model::ChunkCoord;

use crate::{ChunkIndex, Error, IndexAddrSlot, LinearChunkOrder, ObjectMetadataAccess, Result};

/// The chunks of one dataset, behind one another (format specification 4.0, IV.A.2.i, "Implicit").
#[derive(Debug)]
pub struct ImplicitIndex {
    metadata: ObjectMetadataAccess,
    root: Arc<dyn IndexAddrSlot>,
    line: LinearChunkOrder,
    chunk_count: u64,
    chunk_bytes: u64,
}

impl ImplicitIndex {
    /// The chunks of `chunk_bytes` bytes that begin where `root` leads.
    ///
    /// # Errors
    /// [`Error::Contradiction`] if the dataset cannot have such an index.
    pub fn new(
        metadata: ObjectMetadataAccess,
        root: Arc<dyn IndexAddrSlot>,
        line: LinearChunkOrder,
        chunk_bytes: u64,
    ) -> Result<Self> {
        let chunks = line.chunk_count().filter(|chunks| chunks.checked_mul(chunk_bytes).is_some());
        let chunks = chunks.ok_or(Error::Contradiction {
            record: "data layout message",
            at: metadata.owner().object_header_addr(),
            other: "dataspace",
            rule: "chunks behind one another have an end",
        })?;
        Ok(ImplicitIndex { metadata, root, line, chunk_count: chunks, chunk_bytes })
    }

    fn element(&self, index: u64) -> Option<ChunkIndexEntry> {
        let addr = self.root.addr().checked_add(index.checked_mul(self.chunk_bytes)?)?;
        Some(ChunkIndexEntry { addr, ..ChunkIndexEntry::default() })
    }
}

impl ChunkIndex for ImplicitIndex {
    fn get_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        Ok(self.line.index_of(coord).and_then(|index| self.element(index)))
    }

    fn set_chunk_entry(&self, _: &ChunkCoord, _: ChunkIndexEntry, _: Option<&ChunkProxy>) -> Result<()> {
        Err(Error::Unsupported("moving a chunk of an implicit index"))
    }

    fn remove_chunk_entry(&self, _: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        Ok(None)
    }

    fn can_remove_chunks(&self) -> bool {
        false
    }

    fn delete_index(&self) -> Result<()> {
        Ok(())
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        // All chunks are there from the start, so more than the file has room for are none.
        let cache = self.metadata.cache();
        let failed = |source| {
            let action = h5live_cache::StorageAction::QueryLength;
            h5live_cache::Error::Io { action, at: 0, len: 0, source }
        };
        let end = match cache.is_read_only() {
            true => cache.storage().len().map_err(failed)?,
            false => cache.space().allocated_end(),
        };
        for index in 0..self.chunk_count {
            match self.element(index).filter(|element| element.addr.get().is_some_and(|at| at < end)) {
                Some(element) if each(self.line.coord_at(index), element) => {}
                _ => break,
            }
        }
        Ok(())
    }
}
