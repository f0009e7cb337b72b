//! All records of a tree, in no particular order: leaves are read in the order in which the file has them.

use std::collections::HashSet;
use std::sync::Arc;

use h5live_format::{Addr, Btree2Geometry, Btree2Leaf, Btree2Record, Btree2Records, decode_with};

use super::Btree2;
use super::node::NodePtr;
use crate::{Error, Result};

/// Most records of a tree whose leaves are cached when they are read.
const MAX_CACHED_TREE_RECORDS: u64 = 1 << 14;

/// A batch has not many more records than this.
const RECORDS_PER_BATCH: usize = 1 << 20;

/// Most leaves that are read at once.
const MAX_LEAVES_PER_READ: usize = 64;

/// Most bytes between two of them.
const MAX_READ_GAP_BYTES: u64 = 4 << 10;

impl<R: Btree2Record> Btree2<R> {
    /// Calls `each` with all records, in pieces and in no particular order, until it returns `false`. It must not
    /// change the tree.
    ///
    /// # Errors
    /// As [`Btree2::for_each`].
    pub fn for_each_batch_unordered<E: From<Error>>(
        &self,
        each: &mut dyn FnMut(Vec<R>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let root = self.header()?;
        let lock = root.read().tree_lock();
        let _shared = lock.read_recursive();
        let (header, geometry) = self.header_and_geometry(&root)?;
        let Some(way) = self.root_ptr(&header) else { return Ok(()) };
        let (leaves, records) = (Vec::new(), Vec::new());
        let mut pieces = BatchReader {
            tree: self,
            geometry,
            is_first_batch_small: header.total_record_count <= MAX_CACHED_TREE_RECORDS,
            visited_nodes: HashSet::new(),
            leaves,
            awaited: 0,
            records,
            each,
        };
        if pieces.visit_subtree(way)? {
            pieces.emit_batch()?;
        }
        Ok(())
    }
}

/// A walk over all nodes.
struct BatchReader<'a, R, E> {
    tree: &'a Btree2<R>,
    geometry: Arc<Btree2Geometry>,
    is_first_batch_small: bool,
    visited_nodes: HashSet<Addr>,
    /// Leaves that are yet to be read.
    leaves: Vec<NodePtr>,
    /// The records in them.
    awaited: usize,
    records: Vec<R>,
    each: &'a mut dyn FnMut(Vec<R>) -> Result<bool, E>,
}

impl<R: Btree2Record, E: From<Error>> BatchReader<'_, R, E> {
    /// Visits everything below `way`. Returns `false` if `each` has returned `false`. Goes no deeper than the tree is.
    fn visit_subtree(&mut self, way: NodePtr) -> Result<bool, E> {
        if !self.visited_nodes.insert(way.addr) {
            return Err(self.tree.two_parents_error(way.addr).into());
        }
        if way.depth == 0 {
            self.awaited += usize::from(way.records);
            self.leaves.push(way);
            return if self.records.len() + self.awaited < RECORDS_PER_BATCH { Ok(true) } else { self.emit_batch() };
        }
        let node = self.tree.load_node(way, &self.geometry)?;
        node.with_records(|records| self.collect_records(way.addr, records))?;
        for index in 0..=usize::from(way.records) {
            if let Some(child) = node.child_ptr(index, way.depth)
                && !self.visit_subtree(child)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn collect_records(&mut self, at: Addr, records: &Btree2Records) -> Result<()> {
        for record in records.iter() {
            self.records.push(self.tree.decode_record(at, Some(record))?);
        }
        Ok(())
    }

    /// Reads the gathered leaves, and passes their records on.
    fn emit_batch(&mut self) -> Result<bool, E> {
        let mut leaves = std::mem::take(&mut self.leaves);
        leaves.sort_unstable_by_key(|way| way.addr);
        self.records.reserve_exact(std::mem::take(&mut self.awaited));
        if self.is_first_batch_small {
            for way in leaves {
                self.tree
                    .load_node(way, &self.geometry)?
                    .with_records(|records| self.collect_records(way.addr, records))?;
            }
        } else {
            self.read_leaves(leaves)?;
        }
        (self.each)(std::mem::take(&mut self.records))
    }

    /// Reads leaves, but takes cached ones from the cache, which alone may have their present contents.
    fn read_leaves(&mut self, mut leaves: Vec<NodePtr>) -> Result<()> {
        let mut held = Vec::new();
        for way in &leaves {
            self.tree.check_node_ptr(*way, &self.geometry)?;
            if self.tree.metadata.cache().get_cached::<Btree2Leaf>(way.addr)?.is_some() {
                held.push(way.addr);
                self.tree
                    .load_node(*way, &self.geometry)?
                    .with_records(|records| self.collect_records(way.addr, records))?;
            }
        }
        leaves.retain(|way| held.binary_search(&way.addr).is_err());
        let far = u64::from(self.geometry.node_size()) + MAX_READ_GAP_BYTES;
        let is_near = |a: &NodePtr, b: &NodePtr| a.addr.get().zip(b.addr.get()).is_some_and(|(a, b)| b - a <= far);
        let groups = leaves.chunk_by(is_near);
        groups.flat_map(|near| near.chunks(MAX_LEAVES_PER_READ)).try_for_each(|group| self.read_adjacent_leaves(group))
    }

    /// Reads leaves that lie near each other.
    fn read_adjacent_leaves(&mut self, group: &[NodePtr]) -> Result<()> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(()) };
        let start = first.addr.get().ok_or(h5live_cache::Error::UndefinedAddr)?;
        let node_size = self.geometry.node_size() as usize;
        let offset = |way: &NodePtr| way.addr.get().map_or(usize::MAX, |at| (at - start) as usize);
        let bytes =
            self.tree.metadata.cache().read_block_uncached(first.addr, offset(last).saturating_add(node_size))?;
        for way in group {
            let wrong = |source| h5live_cache::Error::Decode { at: way.addr, source };
            let node = bytes.get(offset(way)..).and_then(|rest| rest.get(..node_size)).unwrap_or_default();
            let leaf = self.geometry.blank_leaf(way.records);
            let leaf = decode_with(leaf, node, self.tree.metadata.widths()).map_err(wrong)?;
            self.collect_records(way.addr, &leaf.records)?;
        }
        Ok(())
    }
}
