//! The chunks of one dataset.

use std::fmt;
use std::sync::Arc;

use super::FileBackedBytes;
use super::reads::{ChunkReadRequest, ChunkSink};
use crate::{ChunkBatch, ChunkCoord, ChunkWrite, DatasetSpec, ObjectId, PublishLevel, Result, StoredChunk};

/// The chunks of one dataset. A contiguous or compact dataset is one chunk at the origin, of the size of the extent.
pub trait ChunkStore: Send + Sync + fmt::Debug {
    /// The identity of the dataset.
    fn id(&self) -> ObjectId;

    /// The description, with the extent as last refreshed or set.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if it cannot be read.
    fn spec(&self) -> Result<Arc<DatasetSpec>>;

    /// Where a chunk is stored; `None` if nobody wrote it.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the index cannot be read.
    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>>;

    /// Calls `each` with every stored chunk, in the order of the index, until it returns `false`.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the index cannot be read.
    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()>;

    /// Reads `into.len()` stored bytes of a chunk from `byte_offset` on (bytes). What lies past the end of the file is zero.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if it cannot be read.
    fn read(&self, chunk: &StoredChunk, byte_offset: u64, into: &mut [u8]) -> Result<()>;

    /// Reads a box of elements of a chunk without filters, row-major. `start` (`[rank]`, elements) is counted from the
    /// first element of the chunk. A store whose reads are not [of blocks](crate::ChunkReadStrategy::ElementBlocks) calls
    /// [`read_block_by_runs`](crate::read_block_by_runs).
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the box does not lie in the chunk, or has another number of bytes than `into`.
    /// [`crate::Error::Store`] if it cannot be read.
    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()>;

    /// Looks up chunks and reads them, and calls `each` with what it finds of each of `wanted`, in any order and from
    /// any thread. It holds at most `budget` bytes at a time beside what `each` has, and stops at the first error. A
    /// store whose reads are [direct](crate::ChunkReadStrategy::Direct) calls [`read_chunks_sequentially`](crate::read_chunks_sequentially).
    ///
    /// # Errors
    /// The first error of `each`. [`crate::Error::Moved`] if a chunk was stored anew meanwhile: refresh, and ask again
    /// for those that did not come. [`crate::Error::Allocation`] if a chunk is larger than the budget.
    /// [`crate::Error::Store`] if one cannot be read.
    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()>;

    /// Where stored bytes of a chunk begin, from `byte_offset` on (bytes), that may be other than zero; `None` if there are none
    /// up to its end. Copies skip the holes between. A store that does not know where its holes are returns `byte_offset`.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if that cannot be found out.
    fn next_data(&self, chunk: &StoredChunk, byte_offset: u64) -> Result<Option<u64>>;

    /// The first `len` stored bytes of a chunk, where the file has them; `None` if the store cannot share them, as it
    /// can those of a file that is open just to be read.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the system refuses.
    fn map(&self, chunk: &StoredChunk, len: u64) -> Result<Option<FileBackedBytes>>;

    /// Changes elements and the extent, and publishes that: everything that changes a dataset goes this way.
    ///
    /// The parts of the batch take effect in this order: the writes, the order after other datasets, the extent, the
    /// publication. A reader that sees the extent sees the data below it.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`]. [`crate::Error::Invalid`] for a chunk outside of the maximum, for bytes that do not
    /// fit the chunk, for a part of a chunk with filters, and for an extent that the dataset cannot have.
    /// [`crate::Error::Unsupported`] for a part in a form that the store does not take ([`PartialWrites`](crate::PartialWrites)).
    /// [`crate::Error::Store`] if there is no room. Some of the writes may have been done then; nothing was published,
    /// and the same batch may be given again.
    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()>;

    /// Refuses a chunk that can never be stored, wherever its elements lie, before any of them is accepted. If it takes a
    /// chunk, it takes all those whose coordinates are no larger.
    ///
    /// # Errors
    /// As [`ChunkStore::write`] refuses the chunk.
    fn check_chunk_storable(&self, _coord: &ChunkCoord) -> Result<()> {
        Ok(())
    }

    /// Whether a chunk of a dataset with filters that is not full yet is best stored without them, with all bits of its
    /// filter mask set, and filled by parts that lie beyond the extent. So it is where others follow the file and keep the
    /// space of each earlier form of the chunk from being used again. A store that returns `false` takes no such parts.
    fn prefers_unfiltered_until_full(&self) -> bool {
        false
    }

    /// Takes up what the writer has published since, and says whether the extent has changed.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the dataset cannot be read any more.
    fn refresh(&self) -> Result<bool>;
}

/// Batches of one change.
impl dyn ChunkStore + '_ {
    /// Stores a whole chunk, as it came out of the filters.
    ///
    /// # Errors
    /// As [`ChunkStore::write`].
    pub fn write_whole_chunk(&self, coord: &ChunkCoord, filter_mask: u32, bytes: &[u8]) -> Result<()> {
        self.write(&ChunkBatch { writes: &[ChunkWrite::Whole { coord, filter_mask, bytes }], ..ChunkBatch::default() })
    }

    /// Stores whole chunks of `chunk_bytes` bytes each that follow each other along the first dimension.
    ///
    /// # Errors
    /// As [`ChunkStore::write`].
    pub fn write_chunks_along_first_dim(&self, first: &ChunkCoord, chunk_bytes: usize, bytes: &[u8]) -> Result<()> {
        self.write(&ChunkBatch {
            writes: &[ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes, bytes }],
            ..ChunkBatch::default()
        })
    }

    /// Overwrites part of a chunk, from `byte_offset` on (bytes).
    ///
    /// # Errors
    /// As [`ChunkStore::write`].
    pub fn write_byte_range(&self, coord: &ChunkCoord, byte_offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(&ChunkBatch {
            writes: &[ChunkWrite::ByteRange { coord, byte_offset, bytes, unseen: false }],
            ..ChunkBatch::default()
        })
    }

    /// Overwrites a box of elements in a chunk.
    ///
    /// # Errors
    /// As [`ChunkStore::write`].
    pub fn write_block(&self, coord: &ChunkCoord, start: &[u64], count: &[u64], bytes: &[u8]) -> Result<()> {
        let writes = [ChunkWrite::ElementBlock { coord, start, count, bytes }];
        self.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })
    }

    /// Changes the extent.
    ///
    /// # Errors
    /// As [`ChunkStore::write`].
    pub fn set_extent(&self, dims: &[u64]) -> Result<()> {
        self.write(&ChunkBatch { extent: Some(dims), ..ChunkBatch::default() })
    }

    /// Has what is changed from now on seen only after what was changed of the datasets in `after` so far.
    ///
    /// # Errors
    /// As [`ChunkStore::write`].
    pub fn add_publish_dependencies(&self, after: &[ObjectId]) -> Result<()> {
        self.write(&ChunkBatch { publish_after: after, ..ChunkBatch::default() })
    }

    /// Publishes what was changed.
    ///
    /// # Errors
    /// As [`ChunkStore::write`].
    pub fn publish(&self, publish: PublishLevel) -> Result<()> {
        self.write(&ChunkBatch { publish: Some(publish), ..ChunkBatch::default() })
    }
}
