//! Adding a record to a leaf that has room, and to which nothing in the file leads yet: no node is copied.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::{EdgeKind, Handle};
use h5live_format::{Btree2Geometry, Btree2Internal, Btree2Leaf, Btree2Record};
use smallvec::SmallVec;

use super::header::Root;
use super::node::{Fresh, Node};
use super::{Btree2, search};
use crate::{Error, Result};

/// The place of a new record.
pub(super) struct Spot {
    geometry: Arc<Btree2Geometry>,
    /// The nodes above, from the root on, and the child of each that leads to the leaf.
    above: SmallVec<[(Handle<Btree2Internal>, usize, Fresh); 4]>,
    leaf: (Handle<Btree2Leaf>, Fresh),
    index: usize,
}

/// What there is where a record is to go.
pub(super) enum Found<R> {
    /// An equal record.
    Equal(R),
    /// Room, in nodes that may be changed where they are.
    Room(Spot),
    /// Nodes that must be copied or split, or none.
    Other,
}

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
            if fresh == Fresh::Not {
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
    pub(super) fn put_at(&self, root: &Handle<Root>, spot: Spot, bytes: &[u8]) -> Result<()> {
        let Spot { geometry, above, leaf: (leaf, fresh), index } = spot;
        // The header has waited for a node that no flush has taken since the node was made.
        let waits = |fresh, is_new: bool| fresh == Fresh::Held || is_new;
        let kind = |is_root| if is_root { EdgeKind::BTree2Root } else { EdgeKind::BTree2Node };
        for (number, (node, _, fresh)) in above.iter().enumerate() {
            if !waits(*fresh, node.is_new()) {
                self.metadata.depend(root, node, kind(number == 0))?;
            }
        }
        if !waits(fresh, leaf.is_new()) {
            self.metadata.depend(root, &leaf, kind(above.is_empty()))?;
        }
        let fits = leaf.update(|leaf| leaf.records.insert_bytes(index, bytes));
        debug_assert!(fits, "records of one tree have one size");
        for (depth, (node, index, _)) in (0..).zip(above.iter().rev()) {
            node.update(|node| {
                if let Some(child) = node.children.get_mut(*index) {
                    child.records += u16::from(depth == 0);
                    child.total = (child.total + 1).min(geometry.max_below(depth));
                }
            });
        }
        root.update(|Root { header, .. }| {
            header.root_records += u16::from(above.is_empty());
            header.records = (header.records + 1).min(geometry.max_below(header.depth));
        });
        Ok(())
    }
}
