//! Moving the nodes of a version 2 B-tree to where something is free.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5live_cache::{DependencyKind, Entry, Handle};
use h5live_format::{Addr, Btree2Geometry, Btree2Header, Btree2Internal, Btree2Leaf, Btree2Record};

use super::Btree2;
use super::node::{CachedBtree2Node, NodePtr};
use crate::Result;

impl<R: Btree2Record> Btree2<R> {
    /// Moves nodes at or behind `limit` (bytes from the base address) to free space before it, as far as there is room.
    /// Returns whether any has moved. The structures that lead to them are changed in place, in one write. So nothing
    /// moves if others may read the tree.
    ///
    /// # Errors
    /// If the header cannot be read.
    pub fn move_nodes_before(&self, limit: u64) -> Result<bool> {
        let root = self.header()?;
        let lock = root.read().tree_lock();
        let _alone = lock.write();
        let (header, geometry) = self.header_and_geometry(&root)?;
        let header_len = Btree2Header::size(self.metadata.widths()) as u64;
        let Some(way) = self.root_ptr(&header) else { return Ok(false) };
        if !self.metadata.cache().space().may_change_in_place(self.addr, header_len) {
            return Ok(false);
        }
        let mut nodes = HashSet::new();
        self.collect_node_addrs(way, &geometry, &mut nodes)?;
        let places =
            self.metadata.alloc_all_before(limit, nodes.into_iter().map(|node| (node, geometry.node_size().into())));
        let mut packing = Btree2Packer { tree: self, geometry, places, visited_nodes: HashSet::new(), moved: false };
        let at = packing.pack_subtree(way);
        let space = self.metadata.cache().space();
        let len = packing.geometry.node_size().into();
        packing.places.drain().for_each(|(_, place)| space.free_metadata_after_full_flush(place, len));
        if at != way.addr {
            packing.order_after_moved_child(&root, NodePtr { addr: at, ..way }, DependencyKind::BTree2Root)?;
            root.update(|root| root.header.root = at);
        }
        Ok(packing.moved)
    }
}

struct Btree2Packer<'a, R> {
    tree: &'a Btree2<R>,
    geometry: Arc<Btree2Geometry>,
    /// The new addresses of the nodes that move.
    places: HashMap<Addr, Addr>,
    visited_nodes: HashSet<Addr>,
    moved: bool,
}

impl<R: Btree2Record> Btree2Packer<'_, R> {
    /// Moves a node and everything below it, and returns its new address. A node that cannot be read stays where it is.
    fn pack_subtree(&mut self, way: NodePtr) -> Addr {
        self.pack_node(way).unwrap_or(way.addr)
    }

    fn pack_node(&mut self, way: NodePtr) -> Result<Addr> {
        if !self.visited_nodes.insert(way.addr) || way.depth == 0 && !self.places.contains_key(&way.addr) {
            return Ok(way.addr);
        }
        let node = self.tree.load_node(way, &self.geometry)?;
        let metadata = &self.tree.metadata;
        let (space, len) = (metadata.cache().space(), self.geometry.node_size().into());
        let place = self.places.remove(&way.addr);
        if place.is_none() && !space.may_change_in_place(way.addr, len) {
            return Ok(way.addr);
        }
        match (node, place) {
            (CachedBtree2Node::Leaf(_), None) => return Ok(way.addr),
            (CachedBtree2Node::Leaf(leaf), Some(place)) => {
                let leaf = leaf.read().clone();
                metadata.cache().insert_entry(place, metadata.owner(), leaf);
            }
            (CachedBtree2Node::Internal(node), place) => {
                let mut value = node.read().clone();
                let mut moved = Vec::new();
                for child in &mut value.children {
                    let depth = way.depth - 1;
                    let below = NodePtr { addr: child.addr, depth, records: child.record_count };
                    let at = self.pack_subtree(below);
                    if at != child.addr {
                        child.addr = at;
                        moved.push(NodePtr { addr: at, ..below });
                    }
                }
                let node = match place {
                    Some(place) => metadata.cache().insert_entry(place, metadata.owner(), value),
                    None if moved.is_empty() => return Ok(way.addr),
                    None => {
                        node.update(|node| *node = value);
                        node
                    }
                };
                for child in moved {
                    self.order_after_moved_child(&node, child, DependencyKind::BTree2HeaderToNode)?;
                }
            }
        }
        let Some(place) = place else { return Ok(way.addr) };
        self.moved = true;
        metadata.free_structure(way.addr, len);
        Ok(place)
    }

    /// Makes the structure that leads to a moved node wait for that node.
    fn order_after_moved_child(&self, parent: &Handle<impl Entry>, child: NodePtr, kind: DependencyKind) -> Result<()> {
        let cache = self.tree.metadata.cache();
        let done = match child.depth {
            0 => cache
                .get_cached::<Btree2Leaf>(child.addr)?
                .map(|child| cache.add_dependency_until_clean(parent, &child, kind)),
            _ => cache
                .get_cached::<Btree2Internal>(child.addr)?
                .map(|child| cache.add_dependency_until_clean(parent, &child, kind)),
        };
        Ok(done.unwrap_or(Ok(())).map_err(h5live_cache::Error::from)?)
    }
}
