//! Extensible array super block.

use crate::array_block::wire_block_start;
use crate::{Addr, AddrTable, Bitmap, ChunkEntryFormat, Record, Result, Width, Wire};

/// A super block: the way to a run of data blocks of one size (format specification 4.0, VII.D).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensibleArraySuperBlock {
    /// The format of an element.
    pub format: ChunkEntryFormat,
    /// The header of the array.
    pub header: Addr,
    /// Width of `offset`.
    pub offset_width: Width,
    /// The index of the first element below this block, less those of the index block.
    pub offset: u64,
    /// Which pages of paged data blocks were ever written.
    pub pages: Bitmap,
    /// The data blocks.
    pub data_blocks: AddrTable,
}

impl Record for ExtensibleArraySuperBlock {
    const NAME: &'static str = "extensible array super block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_block_start(w, "EASB", self.format, &mut self.header)?;
        w.uint("block offset", self.offset_width, &mut self.offset)?;
        w.record(&mut self.pages)?;
        w.record(&mut self.data_blocks)?;
        w.checksum()
    }

    fn weight(&self) -> usize {
        size_of_val(self).saturating_add(self.pages.weight()).saturating_add(self.data_blocks.weight())
    }
}
