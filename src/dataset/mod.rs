//! Datasets: arrays of elements.

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
pub use self::read::{ChunkIter, DatasetFollower};
pub use self::sources::SourceState;
pub(crate) use self::stage::StagedDatasets;
