//! Extensible array super block.

use crate::array_block::wire_block_start;
use crate::{Addr, AddrTable, ChunkEntryFormat, PageBitmap, Record, Result, Width, Wire};

/// A super block: the way to a run of data blocks of one size (format specification 4.0, VII.D).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensibleArraySuperBlock {
    /// The format of an element.
    pub format: ChunkEntryFormat,
    /// The header of the array.
    pub header: Addr,
    /// Width of `block_offset`.
    pub block_offset_width: Width,
    /// The index of the first element below this block, less those of the index block.
    pub block_offset: u64,
    /// Which pages of paged data blocks were ever written.
    pub written_pages: PageBitmap,
    /// The data blocks.
    pub data_blocks: AddrTable,
}

impl Record for ExtensibleArraySuperBlock {
    const NAME: &'static str = "extensible array super block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_block_start(w, "EASB", self.format, &mut self.header)?;
        w.uint("block offset", self.block_offset_width, &mut self.block_offset)?;
        w.record(&mut self.written_pages)?;
        w.record(&mut self.data_blocks)?;
        w.checksum()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self)
            .saturating_add(self.written_pages.memory_bytes())
            .saturating_add(self.data_blocks.memory_bytes())
    }
}
