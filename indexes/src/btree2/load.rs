//! Nodes of a version 2 B-tree, as they are found in the cache or in the file.

use h5live_cache::Handle;
use h5live_format::{Btree2Geometry, Btree2Record, Btree2Records};

use super::Btree2;
use super::header::CachedBtree2Header;
use super::node::{CachedBtree2Node, NodeFreshness, NodePtr, OpenNode};
use crate::Result;

impl<R: Btree2Record> Btree2<R> {
    /// Refuses a way to a node that cannot be.
    pub(super) fn check_node_ptr(&self, way: NodePtr, geometry: &Btree2Geometry) -> Result<()> {
        if way.records <= geometry.max_records(way.depth) {
            return Ok(());
        }
        let rule = "a node has no more records than its size allows";
        Err(self.contradiction(way.addr, "version 2 B-tree node", "version 2 B-tree header", rule))
    }

    pub(super) fn load_node(&self, way: NodePtr, geometry: &Btree2Geometry) -> Result<CachedBtree2Node> {
        self.check_node_ptr(way, geometry)?;
        let len = geometry.node_size().into();
        let (leaf, internal) =
            (|| geometry.blank_leaf(way.records), || geometry.blank_internal(way.depth, way.records));
        let node = match way.depth {
            0 => CachedBtree2Node::Leaf(self.metadata.load(way.addr, len, leaf)?),
            _ => CachedBtree2Node::Internal(self.metadata.load(way.addr, len, internal)?),
        };
        self.check_record_count(&node, way)?;
        Ok(node)
    }

    /// As [`Btree2::load_node`], for a change of the tree. Also returns whether the node may be changed in place, and is in
    /// memory.
    pub(super) fn load_node_with_freshness(
        &self,
        root: &Handle<CachedBtree2Header>,
        way: NodePtr,
        geometry: &Btree2Geometry,
    ) -> Result<(CachedBtree2Node, NodeFreshness)> {
        let fresh = root.read().fresh_node(way.addr);
        match fresh {
            Some(Some(node)) => {
                self.check_record_count(&node, way)?;
                Ok((node, NodeFreshness::FreshOrdered))
            }
            Some(None) => Ok((self.load_node(way, geometry)?, NodeFreshness::Fresh)),
            None => Ok((self.load_node(way, geometry)?, NodeFreshness::Stored)),
        }
    }

    fn check_record_count(&self, node: &CachedBtree2Node, way: NodePtr) -> Result<()> {
        // A cached node may have been read on the way from a parent that was older.
        if node.with_records(Btree2Records::len) != usize::from(way.records) {
            let rule = "it has the number of records that its parent states";
            return Err(self.contradiction(way.addr, "version 2 B-tree node", "its parent", rule));
        }
        Ok(())
    }

    pub(super) fn open_node(
        &self,
        root: &Handle<CachedBtree2Header>,
        way: NodePtr,
        geometry: &Btree2Geometry,
    ) -> Result<OpenNode> {
        let content = self
            .load_node_with_freshness(root, way, geometry)?
            .0
            .copy_records_and_children(geometry.overfull_record_capacity(way.depth));
        Ok(OpenNode { addr: way.addr, depth: way.depth, content })
    }
}
