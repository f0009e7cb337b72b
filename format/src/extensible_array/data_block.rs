//! Extensible array data block.

use crate::array_block::wire_block_start;
use crate::{Addr, ChunkEntryTable, Record, Result, Width, Wire};

/// A data block: elements, or, if it is paged, what precedes its pages (format specification 4.0, VII.D).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensibleArrayDataBlock {
    /// The header of the array.
    pub header: Addr,
    /// Width of `block_offset`.
    pub block_offset_width: Width,
    /// The index of the first element, less those of the index block.
    pub block_offset: u64,
    /// The elements; an empty table if the block is paged.
    pub elements: ChunkEntryTable,
}

impl Record for ExtensibleArrayDataBlock {
    const NAME: &'static str = "extensible array data block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_block_start(w, "EADB", self.elements.format(), &mut self.header)?;
        w.uint("block offset", self.block_offset_width, &mut self.block_offset)?;
        w.record(&mut self.elements)?;
        w.checksum()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.elements.memory_bytes())
    }
}
