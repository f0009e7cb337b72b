//! Virtual datasets: datasets whose elements are those of others, their sources.
//!
//! In come reads and writes of a virtual dataset, and the question how far it reaches. Out go reads and writes of the
//! datasets that are its sources, also in other files.

mod block_names;
mod dataset_sources;
mod dataset_transfer;
mod depth_guard;
mod source_index;
mod source_parts;
mod source_state;
#[cfg(test)]
mod sources_tests;
mod virtual_extent;
#[cfg(test)]
mod virtual_write_tests;

pub use self::source_state::SourceState;
pub(super) use self::virtual_extent::SourcesState;
