//! Symbol table nodes: the leaves of an old-style group (format specification 4.0, III.B).

use crate::messages::BtreeK;
use crate::{Fault, Record, Result, SymbolTableEntry, Widths, Wire};

/// A symbol table node. Its entries are sorted by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolTableNode {
    /// Entries for which the node has space: twice the group leaf node K of the file. Context for decoding.
    pub capacity: u16,
    /// The entries.
    pub entries: Vec<SymbolTableEntry>,
}

impl Default for SymbolTableNode {
    fn default() -> Self {
        SymbolTableNode::for_k(BtreeK::default())
    }
}

impl SymbolTableNode {
    /// An empty node of a file with these K values.
    pub fn for_k(k: BtreeK) -> Self {
        SymbolTableNode { capacity: k.group_leaf.saturating_mul(2), entries: Vec::new() }
    }

    /// Bytes of a node.
    pub fn size(&self, widths: Widths) -> usize {
        usize::from(self.capacity).saturating_mul(SymbolTableEntry::size(widths)).saturating_add(8)
    }
}

impl Record for SymbolTableNode {
    const NAME: &'static str = "symbol table node";

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(size_of_val(&self.entries[..]))
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("SNOD")?;
        w.version(1..=1, &mut 1)?;
        w.reserved(1)?;
        let count = w.derived_u16("symbols", u16::try_from(self.entries.len()).unwrap_or(u16::MAX))?;
        if count > self.capacity {
            return Err(w.fault("symbols", Fault::TooLarge { found: count.into(), limit: self.capacity.into() }));
        }
        let each = SymbolTableEntry::size(w.widths());
        w.list("symbols", count.into(), each, &mut self.entries)?;
        w.reserved(usize::from(self.capacity.saturating_sub(count)).saturating_mul(each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addr, SymbolTableScratchPad, decode, encode};

    #[test]
    fn comes_back_from_bytes() {
        let entry = |name_offset, cache| SymbolTableEntry { name_offset, header: Addr::new(name_offset + 800), cache };
        let group = SymbolTableScratchPad::Group { btree: Addr::new(1), heap: Addr::new(2) };
        let entries = vec![
            entry(8, SymbolTableScratchPad::None),
            entry(16, group),
            SymbolTableEntry {
                header: Addr::UNDEFINED,
                ..entry(24, SymbolTableScratchPad::SoftLink { value_offset: 32 })
            },
        ];
        let node = SymbolTableNode { entries, ..Default::default() };
        let bytes = encode(&node, Widths::default()).unwrap();
        assert_eq!(bytes.len(), node.size(Widths::default()));
        assert_eq!(bytes.len(), 328);
        assert_eq!(decode::<SymbolTableNode>(&bytes, Widths::default()).unwrap(), node);
    }

    #[test]
    fn refuses_more_entries_than_it_has_space_for() {
        let node = SymbolTableNode { capacity: 2, entries: vec![SymbolTableEntry::default(); 3] };
        assert!(encode(&node, Widths::default()).is_err());
    }
}
