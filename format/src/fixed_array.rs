//! The fixed array: the chunk index of datasets without an unlimited dimension (format specification 4.0, VII.C).

use crate::array_block::{wire_block_start, wire_header_start};
use crate::{Addr, ChunkEntryFormat, ChunkEntryTable, PageBitmap, Record, Result, Wire};

/// The header: shape, and the way to the data block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedArrayHeader {
    /// The format of an element.
    pub format: ChunkEntryFormat,
    /// Bits of the number of elements in a page.
    pub page_bits: u8,
    /// Number of elements.
    pub element_count: u64,
    /// The data block.
    pub data_block: Addr,
}

impl Default for FixedArrayHeader {
    fn default() -> Self {
        FixedArrayHeader {
            format: ChunkEntryFormat::Unfiltered,
            page_bits: 10,
            element_count: 0,
            data_block: Addr::UNDEFINED,
        }
    }
}

impl Record for FixedArrayHeader {
    const NAME: &'static str = "fixed array header";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_header_start(w, "FAHD", &mut self.format)?;
        w.u8("page bits", &mut self.page_bits)?;
        w.require("page bits", self.page_bits > 0 && self.page_bits < 32, self.page_bits.into(), "1 to 31")?;
        w.length("elements", &mut self.element_count)?;
        w.require("elements", self.element_count > 0, self.element_count, "at least one")?;
        w.addr("data block", &mut self.data_block)?;
        w.checksum()
    }
}

/// The data block: elements, or, if it is paged, which of the pages behind it were ever written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedArrayDataBlock {
    /// The header of the array.
    pub header: Addr,
    /// Which pages were ever written; no bytes if the block is not paged.
    pub written_pages: PageBitmap,
    /// The elements; an empty table if the block is paged.
    pub elements: ChunkEntryTable,
}

impl Record for FixedArrayDataBlock {
    const NAME: &'static str = "fixed array data block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_block_start(w, "FADB", self.elements.format(), &mut self.header)?;
        w.record(&mut self.written_pages)?;
        w.record(&mut self.elements)?;
        w.checksum()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.written_pages.memory_bytes()).saturating_add(self.elements.memory_bytes())
    }
}
