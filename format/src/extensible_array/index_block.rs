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
    pub data_blocks: AddrTable,
    /// The super blocks.
    pub super_blocks: AddrTable,
}

impl ExtensibleArrayIndexBlock {
    /// An empty index block with room for these numbers of elements, data blocks and super blocks.
    pub fn new(
        header: Addr,
        format: ChunkEntryFormat,
        addr_width: Width,
        elements: usize,
        data_blocks: usize,
        super_blocks: usize,
    ) -> Self {
        ExtensibleArrayIndexBlock {
            header,
            elements: ChunkEntryTable::undefined(elements, format, addr_width),
            data_blocks: AddrTable::undefined(data_blocks, addr_width),
            super_blocks: AddrTable::undefined(super_blocks, addr_width),
        }
    }
}

impl Record for ExtensibleArrayIndexBlock {
    const NAME: &'static str = "extensible array index block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_block_start(w, "EAIB", self.elements.format(), &mut self.header)?;
        w.record(&mut self.elements)?;
        w.record(&mut self.data_blocks)?;
        w.record(&mut self.super_blocks)?;
        w.checksum()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self)
            .saturating_add(self.elements.memory_bytes())
            .saturating_add(self.data_blocks.memory_bytes())
            .saturating_add(self.super_blocks.memory_bytes())
    }
}
