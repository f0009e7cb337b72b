//! Nodes of a version 2 B-tree: the cached form, and the form for changes.

use std::ops::Range;

use h5live_cache::Handle;
use h5live_format::{Addr, Btree2ChildPointer, Btree2Geometry, Btree2Internal, Btree2Leaf, Btree2Records};

use crate::Error;

/// Least records of a full node. Then its halves, and the record between them, are not empty.
pub(super) const MIN_NODE_CAPACITY: u16 = 3;

/// That a tree has nodes that are too small to be changed.
pub(super) fn too_small_error() -> Error {
    Error::Unsupported("changing a version 2 B-tree whose nodes hold fewer than 3 records")
}

/// The way to a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodePtr {
    pub addr: Addr,
    pub depth: u16,
    pub records: u16,
}

/// A cached node.
#[derive(Debug, Clone)]
pub(super) enum CachedBtree2Node {
    Leaf(Handle<Btree2Leaf>),
    Internal(Handle<Btree2Internal>),
}

impl CachedBtree2Node {
    /// The way to child `index` of an internal node at `level`.
    pub fn child_ptr(&self, index: usize, level: u16) -> Option<NodePtr> {
        let CachedBtree2Node::Internal(node) = self else { return None };
        let child = *node.read().children.get(index)?;
        Some(NodePtr { addr: child.addr, depth: level.checked_sub(1)?, records: child.record_count })
    }

    /// Whether the cache has given it up.
    pub fn is_invalidated(&self) -> bool {
        match self {
            CachedBtree2Node::Leaf(node) => node.is_invalidated(),
            CachedBtree2Node::Internal(node) => node.is_invalidated(),
        }
    }

    pub fn with_records<T>(&self, look: impl FnOnce(&Btree2Records) -> T) -> T {
        match self {
            CachedBtree2Node::Leaf(node) => look(&node.read().records),
            CachedBtree2Node::Internal(node) => look(&node.read().records),
        }
    }

    /// A copy with room for `capacity` records.
    pub fn copy_records_and_children(&self, capacity: usize) -> RecordsAndChildren {
        match self {
            CachedBtree2Node::Leaf(node) => {
                RecordsAndChildren { records: node.read().records.clone_with_capacity(capacity), children: Vec::new() }
            }
            CachedBtree2Node::Internal(node) => {
                let node = node.read();
                RecordsAndChildren {
                    records: node.records.clone_with_capacity(capacity),
                    children: node.children.clone(),
                }
            }
        }
    }
}

/// Whether nothing in the file leads to a node yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeFreshness {
    Stored,
    /// Nothing does.
    Fresh,
    /// Nothing does, and the header waits for it.
    FreshOrdered,
}

/// The contents of a node: records, and one child more than records (none in a leaf). May be more than fits.
#[derive(Debug)]
pub(super) struct RecordsAndChildren {
    pub records: Btree2Records,
    pub children: Vec<Btree2ChildPointer>,
}

impl RecordsAndChildren {
    pub fn empty(geometry: &Btree2Geometry) -> Self {
        RecordsAndChildren { records: geometry.empty_leaf().records, children: Vec::new() }
    }

    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    /// Records here and in all nodes below.
    pub fn subtree_record_count(&self) -> u64 {
        let below = self.children.iter().map(|child| child.subtree_record_count);
        below.fold(self.records.len() as u64, u64::saturating_add)
    }

    /// Empty contents with room for `records` records.
    pub fn with_capacity(geometry: &Btree2Geometry, records: usize) -> Self {
        RecordsAndChildren { records: geometry.empty_leaf().records.clone_with_capacity(records), children: Vec::new() }
    }

    /// Puts a record behind these.
    pub fn push(&mut self, record: &[u8]) {
        let fits = self.records.insert_bytes(self.record_count(), record);
        debug_assert!(fits, "records of one tree have one size");
    }

    /// Puts what another node holds behind this.
    pub fn append(&mut self, mut right: RecordsAndChildren) {
        self.records.append(&mut right.records);
        self.children.append(&mut right.children);
    }

    /// Puts a record that comes after all of these, and then `right`, behind them.
    pub fn append_with_separator(&mut self, between: &[u8], right: RecordsAndChildren) {
        self.push(between);
        self.append(right);
    }

    /// A copy of a range of records, with the children around them, and with room for `capacity` records.
    pub fn copy_range(&self, range: Range<usize>, capacity: usize) -> RecordsAndChildren {
        let children = self.children.get(range.start..=range.end).unwrap_or_default().to_vec();
        RecordsAndChildren { records: self.records.copy_range(range, capacity), children }
    }

    /// Leaves the first `len` records; returns the one after them, and the rest.
    pub fn split_off_with_separator(&mut self, len: usize) -> (Vec<u8>, RecordsAndChildren) {
        let mut records = self.records.split_off(len);
        let between = records.remove(0).unwrap_or_default();
        let children = match self.children.len() {
            0 => Vec::new(),
            all => self.children.split_off((len + 1).min(all)),
        };
        (between, RecordsAndChildren { records, children })
    }
}

/// A node that is being changed.
#[derive(Debug)]
pub(super) struct OpenNode {
    pub addr: Addr,
    pub depth: u16,
    pub content: RecordsAndChildren,
}
