//! Extensible array header.

use crate::array_block::wire_header_start;
use crate::{Addr, ChunkEntryFormat, Fault, Record, Result, Wire};

/// The numbers that fix the shape of an extensible array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExtensibleArrayParameters {
    /// Bits of the largest element index.
    pub element_index_bits: u8,
    /// Elements in the index block.
    pub index_block_elements: u8,
    /// Elements of the smallest data block: a power of two.
    pub data_block_min_elements: u8,
    /// Data blocks of the first super block that is a separate block: a power of two.
    pub super_block_min_pointers: u8,
    /// Bits of the number of elements in a data block page.
    pub page_bits: u8,
}

impl Default for ExtensibleArrayParameters {
    /// The parameters of libhdf5 for chunk indexes.
    fn default() -> Self {
        ExtensibleArrayParameters {
            element_index_bits: 32,
            index_block_elements: 4,
            data_block_min_elements: 16,
            super_block_min_pointers: 4,
            page_bits: 10,
        }
    }
}

impl ExtensibleArrayParameters {
    /// The rule that the numbers break, if they break one.
    pub fn fault(&self) -> Option<Fault> {
        let broken = |found: u8, rule| Some(Fault::InvalidValue { found: u64::from(found), rule });
        if self.element_index_bits == 0 || self.element_index_bits > 64 {
            broken(self.element_index_bits, "1 to 64 bits of the largest index")
        } else if self.index_block_elements == 0 {
            broken(self.index_block_elements, "at least one element in the index block")
        } else if !self.data_block_min_elements.is_power_of_two() {
            broken(self.data_block_min_elements, "a power of two")
        } else if !self.super_block_min_pointers.is_power_of_two() || self.super_block_min_pointers < 2 {
            broken(self.super_block_min_pointers, "a power of two, at least 2")
        } else if self.page_bits > self.element_index_bits || self.page_bits > 31 {
            broken(self.page_bits, "not above the bits of the largest index, nor 31")
        } else if u32::from(self.element_index_bits) <= self.data_block_min_elements.ilog2() {
            broken(self.element_index_bits, "more bits than the smallest data block takes")
        } else {
            None
        }
    }
}

/// The header: shape, statistics, and the way to the index block (format specification 4.0, VII.D).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensibleArrayHeader {
    /// The format of an element.
    pub format: ChunkEntryFormat,
    /// The shape.
    pub parameters: ExtensibleArrayParameters,
    /// Number of super blocks.
    pub super_block_count: u64,
    /// Bytes of all super blocks.
    pub total_super_block_bytes: u64,
    /// Number of data blocks.
    pub data_block_count: u64,
    /// Bytes of all data blocks, pages included.
    pub total_data_block_bytes: u64,
    /// One more than the largest index that was ever set: readers look no further.
    pub used_index_end: u64,
    /// Elements for which there is space in blocks.
    pub allocated_element_count: u64,
    /// The index block; undefined before the first element is set.
    pub index_block: Addr,
}

impl Default for ExtensibleArrayHeader {
    fn default() -> Self {
        ExtensibleArrayHeader {
            format: ChunkEntryFormat::Unfiltered,
            parameters: ExtensibleArrayParameters::default(),
            super_block_count: 0,
            total_super_block_bytes: 0,
            data_block_count: 0,
            total_data_block_bytes: 0,
            used_index_end: 0,
            allocated_element_count: 0,
            index_block: Addr::UNDEFINED,
        }
    }
}

impl Record for ExtensibleArrayHeader {
    const NAME: &'static str = "extensible array header";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_header_start(w, "EAHD", &mut self.format)?;
        w.u8("bits of largest index", &mut self.parameters.element_index_bits)?;
        w.u8("elements in index block", &mut self.parameters.index_block_elements)?;
        w.u8("elements of smallest data block", &mut self.parameters.data_block_min_elements)?;
        w.u8("data blocks of first super block", &mut self.parameters.super_block_min_pointers)?;
        w.u8("page bits", &mut self.parameters.page_bits)?;
        if let Some(fault) = self.parameters.fault() {
            return Err(w.fault("parameters", fault));
        }
        w.length("super blocks", &mut self.super_block_count)?;
        w.length("super block bytes", &mut self.total_super_block_bytes)?;
        w.length("data blocks", &mut self.data_block_count)?;
        w.length("data block bytes", &mut self.total_data_block_bytes)?;
        w.length("largest index set", &mut self.used_index_end)?;
        w.length("elements realized", &mut self.allocated_element_count)?;
        w.addr("index block", &mut self.index_block)?;
        w.checksum()
    }
}
