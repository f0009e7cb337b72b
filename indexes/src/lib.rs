//! Chunk indexes and group indexes of HDF5 files.
//!
//! Each index works on a [`Cache`](h5live_cache::Cache). It changes structures, and states in which order they must
//! reach the file. The cache decides when they are written.

mod btree1;
mod btree2;
mod chunk_btree1;
mod chunk_btree2;
mod chunk_index;
mod element_array;
mod element_block;
mod error;
mod extensible_array;
mod fixed_array;
mod fractal_heap;
mod implicit_index;
mod linear_chunk_order;
mod local_heap;
mod object_metadata;
mod symbol_table;
#[cfg(test)]
mod tests;

pub use btree1::Btree1;
pub use btree2::{Btree2, Btree2Parameters};
pub use chunk_btree1::ChunkBtree1;
pub use chunk_btree2::ChunkBtree2;
pub use chunk_index::{ChunkIndex, IndexAddrSlot};
pub use error::{Error, Result};
pub use extensible_array::ExtensibleArray;
pub use fixed_array::FixedArray;
pub use fractal_heap::{FractalHeap, FractalHeapFreeSpace, HeapBulkReader, HeapParameters, HeapRecount};
pub use implicit_index::ImplicitIndex;
pub use linear_chunk_order::LinearChunkOrder;
pub use local_heap::LocalHeapFreeSpace;
pub use object_metadata::{ObjectMetadataAccess, Prerequisite};
pub use symbol_table::{SymbolTable, SymbolTableRelocation, SymbolTarget};
