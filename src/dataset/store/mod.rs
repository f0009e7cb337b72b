//! What goes over the seam: rows, chunks and the extent, handed to the store.
//!
//! In comes what was staged, or what is too long to be staged. Chunks go through their filters here. Out go batches
//! for [`ChunkStore`](h5live_model::ChunkStore).

mod chunk_forms;
mod encode_pipeline;
mod growing_chunks;
mod part_writes;
mod store_state;
mod stored_rows;
mod superseded;
mod writer;

pub(super) use self::chunk_forms::ChunkForms;
pub(super) use self::encode_pipeline::{EncodeBuffers, encode_and_store};
pub(super) use self::growing_chunks::ChunkStoreForm;
pub(super) use self::part_writes::PartWrites;
pub(super) use self::store_state::StoreState;
pub(super) use self::stored_rows::{RowsToStore, make_room, store_direct, store_rows};
pub(super) use self::writer::DatasetWriter;
