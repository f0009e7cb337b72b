//! Reads: from stored and staged chunks to the caller's buffer.
//!
//! In comes a selection. Its chunks are looked up, read and decoded, by several threads if that is worth it, with what
//! is staged over them. Out go the selected elements, in the type that the caller wants.

mod batched_read;
#[cfg(test)]
mod batched_read_tests;
mod chunk_cache;
mod chunk_reader;
mod chunk_selection_iter;
mod dataset_chunks;
#[cfg(test)]
mod dataset_chunks_tests;
mod dataset_read;
mod follow;
#[cfg(test)]
mod mmap_view_tests;
mod primitive;
mod read_state;
#[cfg(test)]
mod read_tests;
mod run_group;
mod selection;
mod unfiltered_read;

pub(crate) use self::chunk_cache::ChunkCache;
pub(super) use self::chunk_reader::DatasetReader;
pub use self::chunk_selection_iter::ChunkSelectionIter;
pub use self::follow::DatasetFollower;
pub(super) use self::read_state::ReadState;
