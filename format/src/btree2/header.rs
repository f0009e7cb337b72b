//! Version 2 B-tree header.

use super::Btree2Geometry;
use crate::{Addr, Fault, Record, Result, Widths, Wire};

/// The header: shape, and the way to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Btree2Header {
    /// The type of the records: 1 to 11.
    pub kind: u8,
    /// Bytes of a node.
    pub node_size: u32,
    /// Bytes of a record.
    pub record_size: u16,
    /// Levels above the leaves.
    pub depth: u16,
    /// How full a node is when it is split (percent).
    pub split_percent: u8,
    /// How full a node is when it is merged (percent).
    pub merge_percent: u8,
    /// The root node; undefined if there are no records.
    pub root: Addr,
    /// Records in the root node.
    pub root_record_count: u16,
    /// Records in the whole tree.
    pub total_record_count: u64,
}

impl Default for Btree2Header {
    fn default() -> Self {
        Btree2Header {
            kind: 5,
            node_size: 512,
            record_size: 11,
            depth: 0,
            split_percent: 100,
            merge_percent: 40,
            root: Addr::UNDEFINED,
            root_record_count: 0,
            total_record_count: 0,
        }
    }
}

impl Btree2Header {
    /// Bytes of a header.
    pub fn size(widths: Widths) -> usize {
        widths.offset.bytes().saturating_add(widths.length.bytes()).saturating_add(22)
    }
}

impl Record for Btree2Header {
    const NAME: &'static str = "version 2 B-tree header";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("BTHD")?;
        w.version(0..=0, &mut 0)?;
        w.u8("record type", &mut self.kind)?;
        w.require("record type", (1..=11).contains(&self.kind), self.kind.into(), "1 to 11")?;
        w.u32("node size", &mut self.node_size)?;
        w.u16("record size", &mut self.record_size)?;
        w.u16("depth", &mut self.depth)?;
        for (field, percent) in [("split percent", &mut self.split_percent), ("merge percent", &mut self.merge_percent)]
        {
            w.u8(field, percent)?;
            w.require(field, *percent > 0 && *percent <= 100, (*percent).into(), "1 to 100")?;
        }
        w.addr("root", &mut self.root)?;
        w.u16("records of the root", &mut self.root_record_count)?;
        w.length("records", &mut self.total_record_count)?;
        w.checksum()?;
        let geometry = Btree2Geometry::from_header(self, w.widths()).map_err(|fault| w.fault("node size", fault))?;
        let max_records = geometry.max_records(self.depth);
        let fits = self.root_record_count <= max_records;
        w.require("records of the root", fits, self.root_record_count.into(), "at most what a node of this depth holds")
    }
}

impl Btree2Geometry {
    /// The geometry of the tree with this header.
    ///
    /// # Errors
    /// [`Fault::InvalidValue`] if a node cannot hold a record, [`Fault::DeeperThan`] for more than 64 levels.
    pub fn from_header(header: &Btree2Header, widths: Widths) -> std::result::Result<Self, Fault> {
        let Btree2Header { kind, node_size, record_size, split_percent: split, merge_percent: merge, depth, .. } =
            *header;
        Btree2Geometry::new(kind, (node_size, record_size), (split, merge), depth, widths)
    }
}
