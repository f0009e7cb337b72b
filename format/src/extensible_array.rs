//! The extensible array: the chunk index of datasets with one unlimited dimension (format specification 4.0, VII.D).

mod data_block;
mod header;
mod index_block;
mod super_block;

pub use data_block::ExtensibleArrayDataBlock;
pub use header::{ExtensibleArrayHeader, ExtensibleArrayParameters};
pub use index_block::ExtensibleArrayIndexBlock;
pub use super_block::ExtensibleArraySuperBlock;
