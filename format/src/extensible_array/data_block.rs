//! Extensible array data block, and its pages.

use crate::{Addr, ElementTable, Record, Result, Width, Wire};

/// A data block: elements, or, if it is paged, what precedes its pages (format specification 4.0, VII.D).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensibleArrayDataBlock {
    /// The header of the array.
    pub header: Addr,
    /// Width of `offset`.
    pub offset_width: Width,
    /// The index of the first element, less those of the index block.
    pub offset: u64,
    /// The elements; an empty table if the block is paged.
    pub elements: ElementTable,
}

impl Record for ExtensibleArrayDataBlock {
    const NAME: &'static str = "extensible array data block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("EADB")?;
        w.version(0..=0, &mut 0)?;
        let client = w.derived_u8("client", self.elements.format().client())?;
        w.require("client", client == self.elements.format().client(), client.into(), "that of the header")?;
        w.addr("header", &mut self.header)?;
        w.uint("block offset", self.offset_width, &mut self.offset)?;
        w.record(&mut self.elements)?;
        w.checksum()
    }

    fn weight(&self) -> usize {
        size_of_val(self).saturating_add(self.elements.weight())
    }
}

/// A page of a paged data block (format specification 4.0, VII.D).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensibleArrayPage {
    /// The elements.
    pub elements: ElementTable,
}

impl Record for ExtensibleArrayPage {
    const NAME: &'static str = "extensible array data block page";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.record(&mut self.elements)?;
        w.checksum()
    }

    fn weight(&self) -> usize {
        size_of_val(self).saturating_add(self.elements.weight())
    }
}
