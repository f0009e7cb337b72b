//! The spot of a new record in a leaf that has room, where no node is split: those on the way there to which the file leads
//! move as they are, the others stay where they are.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::{EdgeKind, Entry, Handle, Kind};
use h5live_format::{Addr, Btree2Geometry, Btree2Internal, Btree2Leaf, Btree2Record};
use smallvec::SmallVec;

use super::header::Root;
use super::node::{Fresh, Node};
use super::{Btree2, search};
use crate::{Error, Result};

/// The place of a new record.
pub(super) struct Spot {
    geometry: Arc<Btree2Geometry>,
    /// The nodes above, from the root on, and the child of each that leads to the leaf.
    above: SmallVec<[(Handle<Btree2Internal>, usize, Fresh); LEVELS]>,
    leaf: (Handle<Btree2Leaf>, Fresh),
    index: usize,
}

/// What there is where a record is to go.
pub(super) enum Found<R> {
    /// An equal record.
    Equal(R),
    /// Room, in a leaf that need not be split.
    Room(Spot),
    /// Nodes that must be split, or none.
    Other,
}

/// Levels that most trees do not exceed.
const LEVELS: usize = 4;

impl<R: Btree2Record> Btree2<R> {
    /// What there is where the record is to go that `compare` seeks. The caller keeps others from the tree.
    pub(super) fn spot<E: From<Error>>(
        &self,
        root: &Handle<Root>,
        glance: &impl Fn(&[u8]) -> Ordering,
        compare: &mut impl FnMut(&R) -> Result<Ordering, E>,
    ) -> Result<Found<R>, E> {
        let (way, geometry) = {
            let root = root.read();
            (self.root(&root.header), self.geometry(&root)?)
        };
        let Some(mut way) = way else { return Ok(Found::Other) };
        let mut above = SmallVec::new();
        loop {
            let (node, fresh) = self.node_of(root, way, &geometry)?;
            let is_above = above.iter().any(|(above, ..): &(Handle<_>, _, _)| above.addr() == way.addr);
            if is_above
                || fresh == Fresh::Not && self.metadata.cache().disabled_edges().contains(EdgeKind::BTree2Shadow)
            {
                return Ok(Found::Other);
            }
            let len = usize::from(way.records);
            let (index, equal) =
                search(len, compare, |range| node.with(|records| self.narrow(way.addr, records, range, glance)))?;
            if let Some(equal) = equal {
                return Ok(Found::Equal(equal));
            }
            let next = node.child(index, way.depth);
            match (node, next) {
                (Node::Internal(node), Some(child)) => {
                    above.push((node, index, fresh));
                    way = child;
                }
                (Node::Leaf(leaf), _) => {
                    let fewest = usize::from(geometry.merge_at(0));
                    let fits = len < usize::from(geometry.split_at(0)) && (above.is_empty() || len >= fewest);
                    return Ok(match fits {
                        true => Found::Room(Spot { geometry, above, leaf: (leaf, fresh), index }),
                        false => Found::Other,
                    });
                }
                (Node::Internal(_), None) => return Ok(Found::Other),
            }
        }
    }

    /// Puts the bytes of a record in its place. The caller still keeps others from the tree.
    ///
    /// # Errors
    /// If there is no room for the nodes that must move. The tree is then as it was.
    pub(super) fn put_at(&self, root: &Handle<Root>, spot: Spot, bytes: &[u8]) -> Result<()> {
        let Spot { geometry, above, leaf: (leaf, fresh), index } = spot;
        let moving = above.iter().map(|(_, _, fresh)| *fresh).chain([fresh]).filter(|fresh| *fresh == Fresh::Not);
        let size = geometry.node_size().into();
        let places = self.places(moving.count(), size)?.into_iter();
        let mut change = Change { tree: self, root, size, places };
        let put = |leaf: &mut Btree2Leaf| {
            let fits = leaf.records.insert_bytes(index, bytes);
            debug_assert!(fits, "records of one tree have one size");
        };
        let is_root = above.is_empty();
        let mut child = change.node(leaf, fresh, is_root, || geometry.empty_leaf(), Node::Leaf, put)?;
        for (depth, (number, (node, index, fresh))) in (0..).zip(above.into_iter().enumerate().rev()) {
            let count = |node: &mut Btree2Internal| {
                if let Some(way) = node.children.get_mut(index) {
                    way.addr = child;
                    way.records += u16::from(depth == 0);
                    way.total = (way.total + 1).min(geometry.max_below(depth));
                }
            };
            let blank = || geometry.internal(depth + 1, 0);
            child = change.node(node, fresh, number == 0, blank, Node::Internal, count)?;
        }
        root.update(|Root { header, .. }| {
            header.root = child;
            header.root_records += u16::from(is_root);
            header.records = (header.records + 1).min(geometry.max_below(header.depth));
        });
        Ok(())
    }

    /// Space for so many nodes of so many bytes.
    fn places(&self, nodes: usize, size: u64) -> Result<SmallVec<[Addr; LEVELS]>> {
        let space = self.metadata.cache().space();
        let mut places = SmallVec::new();
        while places.len() < nodes {
            match space.alloc(size, Kind::Metadata) {
                Ok(place) => places.push(place),
                Err(full) => {
                    places.iter().for_each(|place| space.free(*place, size));
                    return Err(full.into());
                }
            }
        }
        Ok(places)
    }
}

/// The change of the nodes on one way through a tree, from the leaf up.
struct Change<'a, R> {
    tree: &'a Btree2<R>,
    root: &'a Handle<Root>,
    /// Bytes of a node.
    size: u64,
    /// Where those are to be that must move.
    places: smallvec::IntoIter<[Addr; LEVELS]>,
}

impl<R: Btree2Record> Change<'_, R> {
    /// Changes a node, and returns where it is then. `blank` is left where it was if it moves.
    fn node<N: Entry>(
        &mut self,
        node: Handle<N>,
        fresh: Fresh,
        is_root: bool,
        blank: impl FnOnce() -> N,
        known: impl FnOnce(Handle<N>) -> Node,
        change: impl FnOnce(&mut N),
    ) -> Result<Addr> {
        let metadata = &self.tree.metadata;
        let kind = if is_root { EdgeKind::BTree2Root } else { EdgeKind::BTree2Node };
        let place = if fresh == Fresh::Not { self.places.next() } else { None };
        let Some(place) = place else {
            // The header has waited for a node that no flush has taken since the node was made.
            if fresh != Fresh::Held && !node.is_new() {
                metadata.depend(self.root, &node, kind)?;
            }
            node.update(change);
            return Ok(node.addr());
        };
        let was = node.addr();
        let node = metadata.cache().shift(&node, place, |node| {
            let mut node = std::mem::replace(node, blank());
            change(&mut node);
            node
        });
        metadata.depend(self.root, &node, kind)?;
        self.root.read().add_fresh(place, known(node));
        metadata.cache().space().free_of(metadata.owner(), was, self.size);
        Ok(place)
    }
}
