//! Extensible array index block.

use crate::array_block::wire_block_start;
use crate::{Addr, AddrTable, ChunkEntryFormat, ChunkEntryTable, Record, Result, Width, Wire};

/// The index block: the first elements, and the way to all data blocks and super blocks (format specification 4.0,
/// VII.D).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensibleArrayIndexBlock {
    /// The header of the array.
    pub header: Addr,
    /// The first elements.
    pub elements: ChunkEntryTable,
    /// The data blocks that have no super block of their own.
    pub direct_data_blocks: AddrTable,
    /// The super blocks.
    pub super_blocks: AddrTable,
}

impl ExtensibleArrayIndexBlock {
    /// An empty index block with room for these numbers of elements, data blocks and super blocks.
    pub fn new(
        header: Addr,
        format: ChunkEntryFormat,
        addr_width: Width,
        element_count: usize,
        direct_data_block_count: usize,
        super_block_count: usize,
    ) -> Self {
        ExtensibleArrayIndexBlock {
            header,
            elements: ChunkEntryTable::undefined(element_count, format, addr_width),
            direct_data_blocks: AddrTable::undefined(direct_data_block_count, addr_width),
            super_blocks: AddrTable::undefined(super_block_count, addr_width),
        }
    }
}

impl Record for ExtensibleArrayIndexBlock {
    const NAME: &'static str = "extensible array index block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_block_start(w, "EAIB", self.elements.format(), &mut self.header)?;
        w.record(&mut self.elements)?;
        w.record(&mut self.direct_data_blocks)?;
        w.record(&mut self.super_blocks)?;
        w.checksum()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self)
            .saturating_add(self.elements.memory_bytes())
            .saturating_add(self.direct_data_blocks.memory_bytes())
            .saturating_add(self.super_blocks.memory_bytes())
    }
}
