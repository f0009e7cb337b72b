//! How many records the nodes of a version 2 B-tree hold, and how wide their pointers are.

use smallvec::{SmallVec, smallvec};

use super::{Btree2Internal, Btree2Leaf};
use crate::{Fault, Width, Widths};

/// Bytes of a node that hold neither records nor pointers: signature, version, type, checksum.
pub(super) const NODE_OVERHEAD_BYTES: u64 = 10;

/// A tree deeper than this holds more records than 64 bits count.
const MAX_DEPTH: u16 = 64;

/// Capacities of one level of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LevelCapacity {
    /// Most records of a node.
    records: u16,
    /// Most records of a node and everything below it.
    below: u64,
}

/// The shape of the nodes of a tree, which follows from its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Btree2Geometry {
    kind: u8,
    node_size: u32,
    record_size: u16,
    split: u8,
    merge: u8,
    offset: Width,
    /// The width of the number of records in a child.
    count: Width,
    levels: SmallVec<[LevelCapacity; 4]>,
}

impl Btree2Geometry {
    /// The geometry of a tree with `depth` levels above the leaves. Nodes of `node_size` bytes are split at `split`
    /// percent, and merged at `merge` percent.
    ///
    /// # Errors
    /// [`Fault::InvalidValue`] if a node cannot hold a record, [`Fault::DeeperThan`] for more than 64 levels.
    pub(super) fn new(
        kind: u8,
        (node_size, record_size): (u32, u16),
        (split, merge): (u8, u8),
        depth: u16,
        widths: Widths,
    ) -> Result<Self, Fault> {
        let space = u64::from(node_size).saturating_sub(NODE_OVERHEAD_BYTES);
        let too_small = Fault::InvalidValue { found: node_size.into(), rule: "a node holds at least one record" };
        let narrow = |records: u64| u16::try_from(records).unwrap_or(u16::MAX);
        let leaf = space.checked_div(record_size.into()).filter(|n| *n > 0).ok_or(too_small.clone())?;
        let mut geometry = Btree2Geometry {
            kind,
            node_size,
            record_size,
            split,
            merge,
            offset: widths.offset,
            count: Width::for_value(leaf),
            levels: smallvec![LevelCapacity { records: narrow(leaf), below: leaf }],
        };
        if depth > MAX_DEPTH {
            return Err(Fault::DeeperThan(MAX_DEPTH.into()));
        }
        for depth in 1..=depth {
            let level = geometry.next_level(depth, space).ok_or(too_small.clone())?;
            geometry.levels.push(level);
        }
        Ok(geometry)
    }

    /// The geometry of the same tree when it has become one level deeper. `None` if it cannot.
    pub fn with_next_level(&self) -> Option<Self> {
        let mut deeper = self.clone();
        let depth = u16::try_from(self.levels.len()).ok().filter(|depth| *depth <= MAX_DEPTH)?;
        let level = self.next_level(depth, u64::from(self.node_size).saturating_sub(NODE_OVERHEAD_BYTES))?;
        deeper.levels.push(level);
        Some(deeper)
    }

    fn next_level(&self, depth: u16, space: u64) -> Option<LevelCapacity> {
        let pointer = self.child_pointer_size(depth) as u64;
        let each = pointer.saturating_add(self.record_size.into());
        let records = space.saturating_sub(pointer).checked_div(each).filter(|n| *n > 0)?;
        let below = self.levels.last().map_or(0, |level| level.below);
        let below = records.saturating_add(1).saturating_mul(below).saturating_add(records);
        Some(LevelCapacity { records: u16::try_from(records).unwrap_or(u16::MAX), below })
    }

    fn level(&self, depth: u16) -> Option<&LevelCapacity> {
        self.levels.get(usize::from(depth))
    }

    /// Most records of a node at `depth` levels above the leaves; 0 above the root.
    pub fn max_records(&self, depth: u16) -> u16 {
        self.level(depth).map_or(0, |level| level.records)
    }

    /// Most records of a node at `level` while it is being changed: one more than fits.
    pub fn overfull_record_capacity(&self, level: u16) -> usize {
        usize::from(self.max_records(level)).saturating_add(1)
    }

    /// Most records of a node at `depth` and everything below it.
    pub fn max_subtree_records(&self, depth: u16) -> u64 {
        self.level(depth).map_or(0, |level| level.below)
    }

    /// Records of a node at `level` from which it is split.
    pub fn split_threshold(&self, level: u16) -> u16 {
        percent_of(self.max_records(level), self.split)
    }

    /// Records of a node at `level` up to which it is merged.
    pub fn merge_threshold(&self, level: u16) -> u16 {
        percent_of(self.max_records(level), self.merge)
    }

    /// Bytes of a node.
    pub fn node_size(&self) -> u32 {
        self.node_size
    }

    /// Bytes of a record.
    pub fn record_size(&self) -> u16 {
        self.record_size
    }

    /// The width of the number of records in a child.
    pub fn child_record_count_width(&self) -> Width {
        self.count
    }

    /// The width of the number of all records below a child of a node at `parent_level`; `None` if the children are
    /// leaves.
    pub fn subtree_record_count_width(&self, parent_level: u16) -> Option<Width> {
        let below = parent_level.checked_sub(1).filter(|below| *below > 0)?;
        self.level(below).map(|level| Width::for_value(level.below))
    }

    /// Bytes of a pointer to a child, in a node at `parent_level`.
    pub fn child_pointer_size(&self, parent_level: u16) -> usize {
        let total = self.subtree_record_count_width(parent_level).map_or(0, Width::bytes);
        self.offset.bytes().saturating_add(self.count.bytes()).saturating_add(total)
    }

    /// An empty leaf of the tree.
    pub fn empty_leaf(&self) -> Btree2Leaf {
        Btree2Leaf::blank(self.kind, self.node_size, self.record_size)
    }

    /// A leaf of `records` records: context for decoding.
    pub fn blank_leaf(&self, records: u16) -> Btree2Leaf {
        let mut leaf = self.empty_leaf();
        leaf.records.set_blank(records);
        leaf
    }

    /// An internal node of `records` records at `level`: context for decoding.
    pub fn blank_internal(&self, level: u16, records: u16) -> Btree2Internal {
        let total = self.subtree_record_count_width(level);
        let mut node = Btree2Internal::blank(self.kind, self.node_size, self.record_size, self.count, total);
        node.records.set_blank(records);
        node
    }
}

fn percent_of(records: u16, percent: u8) -> u16 {
    let part = u32::from(records).saturating_mul(percent.into()) / 100;
    u16::try_from(part).unwrap_or(u16::MAX)
}
