//! Version 2 B-trees: the index of dense links and attributes, of shared messages, of huge objects in heaps, and of
//! chunks (format specification 4.0, III.A.2).

mod geometry;
mod header;
mod node;
mod records;

pub use geometry::Btree2Geometry;
pub use header::Btree2Header;
pub use node::{Btree2ChildPointer, Btree2Internal, Btree2Leaf, Btree2Records};
pub use records::{
    AttributeNameRecord, AttributeOrderRecord, Btree2Record, ChunkRecord, FilteredChunkRecord,
    HugeDirectFilteredRecord, HugeDirectRecord, HugeIndirectFilteredRecord, HugeIndirectRecord, LinkNameRecord,
    LinkOrderRecord, compare_chunk_coord,
};

#[cfg(test)]
mod tests;
