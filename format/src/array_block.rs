//! What the fixed array and the extensible array have in common: how their blocks begin, and their pages (format
//! specification 4.0, VII.C and VII.D).

use crate::{Addr, ChunkEntryFormat, ChunkEntryTable, Fault, Record, Result, Wire};

/// How the header of an array begins: signature, version, client, element size.
pub(crate) fn wire_header_start(w: &mut impl Wire, magic: &'static str, format: &mut ChunkEntryFormat) -> Result<()> {
    let offset = w.widths().offset;
    w.magic(magic)?;
    w.version(0..=0, &mut 0)?;
    let client = w.derived_u8("client", format.client_id())?;
    let size = u8::try_from(format.size(offset)).unwrap_or(u8::MAX);
    let size = w.derived_u8("element size", size)?;
    *format = ChunkEntryFormat::from_header(client, size, offset).ok_or_else(|| {
        let rule = "client 0 with the size of an address, or 1 with 5 to 12 bytes more";
        w.fault("element size", Fault::InvalidValue { found: u64::from(size), rule })
    })?;
    Ok(())
}

/// How every other block of an array begins: signature, version, client, address of the header.
pub(crate) fn wire_block_start(
    w: &mut impl Wire,
    magic: &'static str,
    format: ChunkEntryFormat,
    header: &mut Addr,
) -> Result<()> {
    w.magic(magic)?;
    w.version(0..=0, &mut 0)?;
    let client = w.derived_u8("client", format.client_id())?;
    w.require("client", client == format.client_id(), client.into(), "that of the header")?;
    w.addr("header", header)
}

/// A page of a paged data block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayDataBlockPage {
    /// The elements.
    pub elements: ChunkEntryTable,
}

impl Record for ArrayDataBlockPage {
    const NAME: &'static str = "array data block page";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.record(&mut self.elements)?;
        w.checksum()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.elements.memory_bytes())
    }
}
