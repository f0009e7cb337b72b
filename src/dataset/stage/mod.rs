//! What is staged: elements and an extent that the store does not have yet.
//!
//! In come rows, parts of chunks and whole chunks in the type of the file. They wait in memory; nothing here knows the
//! store. Out go their bytes: to the store when they are many or when a flush asks for them, and to reads, which see
//! them over the stored ones.

mod append_buffer;
mod growing_chunks;
mod staged_chunks;
mod staged_data;

pub(super) use self::append_buffer::{AppendBuffer, RowPiece};
pub(super) use self::growing_chunks::{ChunkForm, GrowingChunk, GrowingChunks, is_short, is_worth_unfiltered};
pub(super) use self::staged_chunks::{MAX_STAGED_PART_BYTES, StagedBytes, StagedChunk};
pub(super) use self::staged_data::StagedData;
