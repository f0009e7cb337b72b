//! What is changed of one dataset at once.

use crate::{ChunkCoord, ObjectId};

/// Changes of one dataset, for [`ChunkStore::write`](crate::ChunkStore::write). An empty batch changes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChunkBatch<'a> {
    /// Elements, in this order.
    pub writes: &'a [ChunkWrite<'a>],
    /// The new extent (`[rank]`, elements) of a chunked dataset. Chunks that lie wholly outside of a smaller extent
    /// are dropped once readers see it; what other chunks hold outside is the caller's to overwrite with fill values.
    pub extent: Option<&'a [u64]>,
    /// Datasets of the same store. What is changed of this dataset from now on is seen only after what was changed of
    /// these so far.
    pub publish_after: &'a [ObjectId],
    /// Whether to publish what was changed of the dataset, now and before, with whatever must be seen before it.
    pub publish: Option<PublishLevel>,
}

impl ChunkBatch<'_> {
    /// Whether it changes anything, and is not only a publication.
    pub fn has_changes(&self) -> bool {
        !self.writes.is_empty() || self.extent.is_some() || !self.publish_after.is_empty()
    }
}

/// Elements of a dataset, as they are stored.
#[derive(Debug, Clone, Copy)]
pub enum ChunkWrite<'a> {
    /// A whole chunk, as it came out of the filters. It may lie outside of the extent, but not outside of the maximum:
    /// data is written before the extent that covers it.
    Whole {
        /// The chunk.
        coord: &'a ChunkCoord,
        /// The filters that were left out, one bit each.
        filter_mask: u32,
        /// What is stored of it.
        bytes: &'a [u8],
    },
    /// Whole chunks of a dataset without filters that follow each other along the first dimension.
    ChunksAlongFirstDim {
        /// The first of them.
        first: &'a ChunkCoord,
        /// Bytes of each.
        chunk_bytes: usize,
        /// All of them, one after the other.
        bytes: &'a [u8],
    },
    /// Part of a chunk of a dataset without filters. A chunk that is not there yet is filled with fill values first.
    ByteRange {
        /// The chunk.
        coord: &'a ChunkCoord,
        /// Where the part begins in it (bytes).
        byte_offset: u64,
        /// The part.
        bytes: &'a [u8],
        /// Whether no reader was ever led to these bytes: nothing leads to the dataset yet, or the caller keeps account of
        /// where its data ends in the chunk, and publishes that later, by an attribute of the same dataset. Then they
        /// may be written at once. They are seen only after what was put as blobs before.
        unseen: bool,
    },
    /// A box of elements in a chunk of a dataset without filters, for stores that take
    /// [`PartialWrites::ElementBlocks`](crate::PartialWrites::ElementBlocks). A chunk that is not there yet is filled with fill values first.
    ElementBlock {
        /// The chunk.
        coord: &'a ChunkCoord,
        /// The first element (`[rank]`, elements from the start of the chunk).
        start: &'a [u64],
        /// The sides of the box (`[rank]`, elements).
        count: &'a [u64],
        /// The elements, row-major.
        bytes: &'a [u8],
    },
}

impl ChunkWrite<'_> {
    /// The first chunk that is written to.
    pub fn first_coord(&self) -> &ChunkCoord {
        match self {
            ChunkWrite::Whole { coord, .. }
            | ChunkWrite::ChunksAlongFirstDim { first: coord, .. }
            | ChunkWrite::ByteRange { coord, .. }
            | ChunkWrite::ElementBlock { coord, .. } => coord,
        }
    }
}

/// How far a publication reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PublishLevel {
    /// Other processes see it, and it outlasts the death of this one.
    Visible,
    /// It also outlasts a power failure.
    Durable,
}
