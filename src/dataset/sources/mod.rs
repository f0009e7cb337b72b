//! Virtual datasets: datasets whose elements are those of others, their sources.
//!
//! In come reads and writes of a virtual dataset, and the question how far it reaches. Out go reads and writes of the
//! datasets that are its sources, also in other files.

mod source_index;
#[cfg(test)]
mod sources_tests;
mod virtual_extent;
mod virtual_extent_search;
mod virtual_sources;
mod virtual_transfer;
#[cfg(test)]
mod virtual_write_tests;

pub(super) use self::virtual_extent::SourcesState;
pub use self::virtual_sources::SourceState;
