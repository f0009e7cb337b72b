//! What is staged: elements and an extent that the store does not have yet.
//!
//! In come rows, parts of chunks and whole chunks in the type of the file. They wait in memory; nothing here knows the
//! store. Out go their bytes: to the store when they are many or when a flush asks for them, and to reads, which see
//! them over the stored ones.

mod append_buffer;
mod stage_state;
mod staged_chunks;
mod staged_data;
mod staged_datasets;

pub(super) use self::append_buffer::{AppendBuffer, MAX_BUFFERED_APPEND_BYTES, RowPiece};
pub(super) use self::stage_state::StageState;
pub(super) use self::staged_chunks::{MAX_STAGED_PART_BYTES, StagedBytes, StagedChunk};
pub(super) use self::staged_data::StagedData;
pub(crate) use self::staged_datasets::{StagedDatasets, StagedList};
