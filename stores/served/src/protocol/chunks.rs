//! Requests and answers about chunks.

use std::ops::Range;

use h5live_format::{Record, Result, Wire};
use h5live_model::{ChunkCoord, ObjectId, StoredChunk};

use super::codec::{wire_blob, wire_dims, wire_id, wire_list, wire_option};
use super::messages::message;
use super::spec::no_id;
use super::wire_message_head;

/// What is wanted of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChunkWanted {
    /// The chunk.
    pub coord: ChunkCoord,
    /// Its stored bytes from here to there; `None` for all. An empty part asks where the chunk is.
    pub byte_range: Option<Range<u64>>,
}

/// What was found of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChunkAnswer {
    /// The chunk; `None` if nobody wrote it.
    pub chunk: Option<StoredChunk>,
    /// The stored bytes that were wanted. If they are too many for an answer, the first of them.
    pub bytes: Vec<u8>,
}

message! {
    /// Asks for chunks of a dataset: `chunks`.
    ChunksRequest = "request for chunks" {
        /// The file.
        incarnation: u64 = 0,
        /// The dataset.
        dataset: ObjectId = no_id(),
        /// Most bytes of all chunks, but for the first one.
        max_bytes: u64 = 0,
        /// The chunks.
        wanted: Vec<ChunkWanted> = Vec::new(),
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_id(w, "dataset", &mut this.dataset)?;
        w.u64("most bytes", &mut this.max_bytes)?;
        wire_list(w, "chunks", 2, &mut this.wanted, ChunkWanted::default, |w, wanted| {
            wire_coord(w, &mut wanted.coord)?;
            wire_option(w, "is a part", &mut wanted.byte_range, || 0..0, |w, part| {
                w.u64("start", &mut part.start)?;
                w.u64("end", &mut part.end)
            })
        })
    }
}

message! {
    /// The first chunks of those that were asked for, in their order; one at least.
    ChunksAnswer = "chunks" {
        /// The chunks.
        chunks: Vec<ChunkAnswer> = Vec::new(),
    }
    |this, w| {
        wire_list(w, "chunks", 9, &mut this.chunks, ChunkAnswer::default, |w, found| {
            wire_option(w, "is there", &mut found.chunk, new_chunk, wire_chunk)?;
            wire_blob(w, "bytes", &mut found.bytes)
        })
    }
}

message! {
    /// Asks for the list of the stored chunks of a dataset: `index`.
    IndexRequest = "request for an index" {
        /// The file.
        incarnation: u64 = 0,
        /// The dataset.
        dataset: ObjectId = no_id(),
        /// How many chunks at the beginning of the list are known.
        skip: u64 = 0,
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_id(w, "dataset", &mut this.dataset)?;
        w.u64("known", &mut this.skip)
    }
}

message! {
    /// A part of the list of stored chunks.
    IndexAnswer = "index" {
        /// The chunks.
        chunks: Vec<StoredChunk> = Vec::new(),
        /// Whether there are no more.
        is_end: bool = false,
    }
    |this, w| {
        wire_list(w, "chunks", 14, &mut this.chunks, new_chunk, wire_chunk)?;
        super::codec::wire_bool(w, "is the end", &mut this.is_end)
    }
}

fn new_chunk() -> StoredChunk {
    StoredChunk { coord: ChunkCoord::default(), file_offset: None, size: 0, filter_mask: 0 }
}

fn wire_coord(w: &mut impl Wire, coord: &mut ChunkCoord) -> Result<()> {
    let mut scaled = coord.scaled().to_vec();
    wire_dims(w, "chunk", &mut scaled)?;
    *coord = ChunkCoord::new(&scaled);
    Ok(())
}

fn wire_chunk<W: Wire>(w: &mut W, chunk: &mut StoredChunk) -> Result<()> {
    wire_coord(w, &mut chunk.coord)?;
    wire_option(w, "has an offset", &mut chunk.file_offset, || 0, |w, offset| w.u64("offset", offset))?;
    w.u64("size", &mut chunk.size)?;
    w.u32("filter mask", &mut chunk.filter_mask)
}
