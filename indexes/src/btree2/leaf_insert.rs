//! The fast insert into a leaf with room, where no node is split. Nodes on the way to which the file leads move to new
//! addresses with their contents. The others stay where they are.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::{DependencyKind, Entry, Handle, SpaceKind};
use h5live_format::{Addr, Btree2Geometry, Btree2Internal, Btree2Leaf, Btree2Record};
use smallvec::SmallVec;

use super::header::CachedBtree2Header;
use super::node::{CachedBtree2Node, NodeFreshness};
use super::{Btree2, binary_search};
use crate::{Error, Result};

/// The place of a new record.
pub(super) struct LeafSlot {
    geometry: Arc<Btree2Geometry>,
    /// The nodes above, from the root on, and the child of each that leads to the leaf.
    ancestors: SmallVec<[(Handle<Btree2Internal>, usize, NodeFreshness); INLINE_LEVELS]>,
    leaf: (Handle<Btree2Leaf>, NodeFreshness),
    index: usize,
}

/// The place for a new record.
pub(super) enum InsertPoint<R> {
    /// An equal record.
    Equal(R),
    /// Room, in a leaf that need not be split.
    Room(LeafSlot),
    /// Nodes that must be split, or none.
    MustSplit,
}

/// Levels that most trees do not exceed.
const INLINE_LEVELS: usize = 4;

impl<R: Btree2Record> Btree2<R> {
    /// Finds the place for the record that `compare` seeks. The caller holds the lock of the tree.
    pub(super) fn find_insert_point<E: From<Error>>(
        &self,
        root: &Handle<CachedBtree2Header>,
        prefilter: &impl Fn(&[u8]) -> Ordering,
        compare: &mut impl FnMut(&R) -> Result<Ordering, E>,
    ) -> Result<InsertPoint<R>, E> {
        let (way, geometry) = {
            let root = root.read();
            (self.root_ptr(&root.header), self.geometry(&root)?)
        };
        let Some(mut way) = way else { return Ok(InsertPoint::MustSplit) };
        let mut ancestors = SmallVec::new();
        loop {
            let (node, fresh) = self.load_node_with_freshness(root, way, &geometry)?;
            let is_known_ancestor =
                ancestors.iter().any(|(ancestor, ..): &(Handle<_>, _, _)| ancestor.addr() == way.addr);
            if is_known_ancestor
                || fresh == NodeFreshness::Stored
                    && self.metadata.cache().mutant_lacks_dependency(DependencyKind::BTree2Shadow)
            {
                return Ok(InsertPoint::MustSplit);
            }
            let len = usize::from(way.records);
            let (index, equal) = binary_search(len, compare, |range| {
                node.with_records(|records| self.narrow_by_prefilter(way.addr, records, range, prefilter))
            })?;
            if let Some(equal) = equal {
                return Ok(InsertPoint::Equal(equal));
            }
            let next = node.child_ptr(index, way.depth);
            match (node, next) {
                (CachedBtree2Node::Internal(node), Some(child)) => {
                    ancestors.push((node, index, fresh));
                    way = child;
                }
                (CachedBtree2Node::Leaf(leaf), _) => {
                    let fewest = usize::from(geometry.merge_threshold(0));
                    let fits =
                        len < usize::from(geometry.split_threshold(0)) && (ancestors.is_empty() || len >= fewest);
                    return Ok(match fits {
                        true => InsertPoint::Room(LeafSlot { geometry, ancestors, leaf: (leaf, fresh), index }),
                        false => InsertPoint::MustSplit,
                    });
                }
                (CachedBtree2Node::Internal(_), None) => return Ok(InsertPoint::MustSplit),
            }
        }
    }

    /// Puts the bytes of a record into its place. The caller still holds the lock of the tree.
    ///
    /// # Errors
    /// If there is no room for the nodes that must move. The tree is then unchanged.
    pub(super) fn insert_at(&self, root: &Handle<CachedBtree2Header>, spot: LeafSlot, bytes: &[u8]) -> Result<()> {
        let LeafSlot { geometry, ancestors, leaf: (leaf, fresh), index } = spot;
        let moving =
            ancestors.iter().map(|(_, _, fresh)| *fresh).chain([fresh]).filter(|fresh| *fresh == NodeFreshness::Stored);
        let size = geometry.node_size().into();
        let places = self.alloc_nodes(moving.count(), size)?.into_iter();
        let mut change = PathChange { tree: self, root, size, places };
        let put = |leaf: &mut Btree2Leaf| {
            let fits = leaf.records.insert_bytes(index, bytes);
            debug_assert!(fits, "records of one tree have one size");
        };
        let is_root = ancestors.is_empty();
        let mut child = change.node(leaf, fresh, is_root, || geometry.empty_leaf(), CachedBtree2Node::Leaf, put)?;
        for (depth, (number, (node, index, fresh))) in (0..).zip(ancestors.into_iter().enumerate().rev()) {
            let count = |node: &mut Btree2Internal| {
                if let Some(way) = node.children.get_mut(index) {
                    way.addr = child;
                    way.record_count += u16::from(depth == 0);
                    way.subtree_record_count = (way.subtree_record_count + 1).min(geometry.max_subtree_records(depth));
                }
            };
            let blank = || geometry.blank_internal(depth + 1, 0);
            child = change.node(node, fresh, number == 0, blank, CachedBtree2Node::Internal, count)?;
        }
        root.update(|CachedBtree2Header { header, .. }| {
            header.root = child;
            header.root_record_count += u16::from(is_root);
            header.total_record_count = (header.total_record_count + 1).min(geometry.max_subtree_records(header.depth));
        });
        Ok(())
    }

    /// Allocates space for `nodes` nodes of `size` bytes.
    fn alloc_nodes(&self, nodes: usize, size: u64) -> Result<SmallVec<[Addr; INLINE_LEVELS]>> {
        let space = self.metadata.cache().space();
        let mut places = SmallVec::new();
        while places.len() < nodes {
            match space.alloc(size, SpaceKind::Metadata) {
                Ok(place) => places.push(place),
                Err(full) => {
                    places.iter().for_each(|place| space.free_metadata_after_full_flush(*place, size));
                    return Err(full.into());
                }
            }
        }
        Ok(places)
    }
}

/// The change of the nodes on one way through a tree, from the leaf up.
struct PathChange<'a, R> {
    tree: &'a Btree2<R>,
    root: &'a Handle<CachedBtree2Header>,
    /// Bytes of a node.
    size: u64,
    /// The new addresses of the nodes that must move.
    places: smallvec::IntoIter<[Addr; INLINE_LEVELS]>,
}

impl<R: Btree2Record> PathChange<'_, R> {
    /// Changes a node, and returns where it is then. `blank` is left where it was if it moves.
    fn node<N: Entry>(
        &mut self,
        node: Handle<N>,
        fresh: NodeFreshness,
        is_root: bool,
        blank: impl FnOnce() -> N,
        known: impl FnOnce(Handle<N>) -> CachedBtree2Node,
        change: impl FnOnce(&mut N),
    ) -> Result<Addr> {
        let metadata = &self.tree.metadata;
        let kind = if is_root { DependencyKind::BTree2Root } else { DependencyKind::BTree2HeaderToNode };
        let place = if fresh == NodeFreshness::Stored { self.places.next() } else { None };
        let Some(place) = place else {
            // The header has waited for a node that no flush has taken since the node was made.
            if fresh != NodeFreshness::FreshOrdered && !node.is_new() {
                metadata.add_dependency(self.root, &node, kind)?;
            }
            node.update(change);
            return Ok(node.addr());
        };
        let was = node.addr();
        let node = metadata.cache().relocate_entry(&node, place, |node| {
            let mut node = std::mem::replace(node, blank());
            change(&mut node);
            node
        });
        metadata.add_dependency(self.root, &node, kind)?;
        self.root.read().add_fresh_node(place, known(node));
        metadata.cache().space().free_metadata_after_owner_flush(metadata.owner(), was, self.size);
        Ok(place)
    }
}
