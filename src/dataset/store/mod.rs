//! What goes over the seam: rows, chunks and the extent, handed to the store.
//!
//! In comes what was staged, or what is too long to be staged. Chunks go through their filters here. Out go batches
//! for [`ChunkStore`](h5live_model::ChunkStore).

mod append_rows;
mod encode_pipeline;
mod growing_chunks;
mod growing_writes;
mod part_writes;
mod store_state;
mod superseded;
mod writer;

pub(super) use self::append_rows::{MAX_BUFFERED_APPEND_BYTES, StoredRows};
pub(super) use self::encode_pipeline::{EncodeBuffers, encode_and_store};
pub(super) use self::part_writes::PartWrites;
pub(super) use self::store_state::StoreState;
pub(super) use self::writer::DatasetWriter;
