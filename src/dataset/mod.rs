//! Datasets: arrays of elements.
//!
//! There is a folder for each step of the data path. Elements that are written come in at `write`, wait in `stage`, go
//! over the seam in `store`, and are seen by others after `publish`. Elements that are read come from the store and from
//! `stage` through `read`. `sources` leads reads and writes of virtual datasets to other datasets. In each folder, the
//! files whose names begin with `dataset_` have what [`Dataset`] offers of the step: there it is entered. `core` has the
//! state that all handles share, and `transfer` the caller's side of a read or a write.
//! `docs/design/data-path.md` follows an append, its flush and a read through the folders.

mod core;
mod error;
#[cfg(test)]
mod foreign_types_tests;
mod handle;
#[cfg(test)]
mod model_tests;
mod publish;
mod read;
mod scratch;
mod sources;
mod spec_snapshot;
mod stage;
mod store;
#[cfg(test)]
mod strided_tests;
#[cfg(test)]
mod tests;
mod transfer;
mod write;

pub(crate) use self::core::DatasetCore;
pub use self::handle::Dataset;
pub(crate) use self::read::ChunkCache;
pub use self::read::{ChunkSelectionIter, DatasetFollower};
pub use self::sources::SourceState;
pub(crate) use self::stage::{StagedDatasets, StagedList};
