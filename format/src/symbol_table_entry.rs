//! Entries of symbol tables (format specification 4.0, III.C).

use crate::{Addr, Fault, Record, Result, Wire};

/// An entry of a symbol table node, and the way a version 0 or 1 superblock leads to the root group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SymbolTableEntry {
    /// Where the name begins in the group's local heap (bytes).
    pub name_offset: u64,
    /// The object header; undefined for soft links.
    pub header: Addr,
    /// Cached properties of the object, known without its header.
    pub cache: SymbolTableScratchPad,
}

/// Cached properties of the object of a symbol table entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SymbolTableScratchPad {
    /// Nothing.
    #[default]
    None,
    /// The object is a group with this symbol table.
    Group {
        /// The version 1 B-tree of the names.
        btree: Addr,
        /// The local heap of the names.
        heap: Addr,
    },
    /// The entry is a soft link.
    SoftLink {
        /// The offset of its value in the group's local heap (bytes).
        value_offset: u32,
    },
}

/// Bytes of the scratch-pad.
const SCRATCH_PAD_BYTES: usize = 16;

impl SymbolTableEntry {
    /// Bytes of an entry in a file of these widths.
    pub fn size(widths: crate::Widths) -> usize {
        widths.offset.bytes().saturating_add(widths.length.bytes()).saturating_add(SCRATCH_PAD_BYTES).saturating_add(8)
    }
}

impl Record for SymbolTableEntry {
    const NAME: &'static str = "symbol table entry";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.length("name offset", &mut self.name_offset)?;
        w.addr("object header", &mut self.header)?;
        let mut kind = match self.cache {
            SymbolTableScratchPad::None => 0,
            SymbolTableScratchPad::Group { .. } => 1,
            SymbolTableScratchPad::SoftLink { .. } => 2,
        };
        w.u32("cache type", &mut kind)?;
        if w.is_decoding() {
            self.cache = match kind {
                0 => SymbolTableScratchPad::None,
                1 => SymbolTableScratchPad::Group { btree: Addr::UNDEFINED, heap: Addr::UNDEFINED },
                2 => SymbolTableScratchPad::SoftLink { value_offset: 0 },
                found => {
                    let rule = "a cache type is 0, 1 or 2";
                    return Err(w.fault("cache type", Fault::InvalidValue { found: found.into(), rule }));
                }
            };
        }
        w.reserved(4)?;
        let start = w.position();
        match &mut self.cache {
            SymbolTableScratchPad::None => {}
            SymbolTableScratchPad::Group { btree, heap } => {
                w.addr("B-tree", btree)?;
                w.addr("local heap", heap)?;
            }
            SymbolTableScratchPad::SoftLink { value_offset } => w.u32("link value offset", value_offset)?,
        }
        w.reserved(SCRATCH_PAD_BYTES.saturating_sub(w.position().saturating_sub(start)))
    }
}
