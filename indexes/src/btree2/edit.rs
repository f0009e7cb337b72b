//! One change of a version 2 B-tree: prepared on copies of its nodes, then made at once.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::{DependencyKind, Entry, Handle, SpaceKind};
use h5live_format::{Addr, Btree2ChildPointer, Btree2Geometry, Btree2Header, Btree2Record};
use smallvec::SmallVec;

use super::header::CachedBtree2Header;
use super::node::{CachedBtree2Node, MIN_NODE_CAPACITY, NodePtr, OpenNode, RecordsAndChildren, too_small_error};
use super::{Btree2, binary_search};
use crate::{Error, Result};

/// Most neighbours that share the records of a node that is too full.
const MAX_SHARING_SIBLINGS: usize = 4;

/// Neighbours share only if they have this fraction (one part in so many) of a node free together.
const MIN_SPARE_FRACTION: usize = 16;

/// A change that is being prepared. If it is dropped without [`Btree2Edit::apply_edits`], the tree stays unchanged.
pub(super) struct Btree2Edit<'a, R> {
    pub tree: &'a Btree2<R>,
    pub geometry: Arc<Btree2Geometry>,
    root: Handle<CachedBtree2Header>,
    header: Btree2Header,
    /// The nodes that were visited. Each has one parent.
    opened: Vec<Addr>,
    /// Space that was allocated for the nodes.
    allocated: Vec<Addr>,
    /// The new contents of the nodes.
    nodes: Vec<OpenNode>,
    /// Nodes that are no more.
    freed_nodes: Vec<Addr>,
}

impl<R: Btree2Record> Btree2<R> {
    /// Changes the tree. If `change` fails, the tree stays unchanged.
    pub(super) fn edit<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Btree2Edit<'_, R>) -> Result<T, E>,
    ) -> Result<T, E> {
        let root = self.header()?;
        let lock: Arc<_> = root.read().tree_lock();
        let _alone = lock.write();
        self.edit_locked(root, change)
    }

    /// As [`Btree2::edit`], where the caller keeps others from the tree.
    pub(super) fn edit_locked<T, E: From<Error>>(
        &self,
        root: Handle<CachedBtree2Header>,
        change: impl FnOnce(&mut Btree2Edit<'_, R>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut edit = Btree2Edit::new(self, root)?;
        let done = change(&mut edit)?;
        edit.apply_edits()?;
        Ok(done)
    }
}

impl<'a, R: Btree2Record> Btree2Edit<'a, R> {
    pub fn new(tree: &'a Btree2<R>, root: Handle<CachedBtree2Header>) -> Result<Self> {
        let (header, geometry) = tree.header_and_geometry(&root)?;
        let edit = Btree2Edit {
            tree,
            geometry,
            root,
            header,
            opened: Vec::new(),
            allocated: Vec::new(),
            nodes: Vec::new(),
            freed_nodes: Vec::new(),
        };
        (0..=edit.header.depth).try_for_each(|depth| edit.check_node_capacity(&edit.geometry, depth))?;
        Ok(edit)
    }

    /// Refuses nodes that are too small to be split.
    fn check_node_capacity(&self, geometry: &Btree2Geometry, depth: u16) -> Result<()> {
        match geometry.split_threshold(depth) {
            MIN_NODE_CAPACITY.. => Ok(()),
            _ => Err(too_small_error()),
        }
    }

    pub fn root_ptr(&self) -> Option<NodePtr> {
        self.tree.root_ptr(&self.header)
    }

    pub fn open_node(&mut self, ptr: NodePtr) -> Result<OpenNode> {
        if self.opened.contains(&ptr.addr) {
            return Err(self.tree.two_parents_error(ptr.addr));
        }
        self.opened.push(ptr.addr);
        self.tree.open_node(&self.root, ptr, &self.geometry)
    }

    /// The place of what `compare` seeks in a node that is being changed, and the record there if it is that.
    pub fn search_node<E: From<Error>>(
        &self,
        node: &OpenNode,
        prefilter: &impl Fn(&[u8]) -> Ordering,
        compare: &mut impl FnMut(&R) -> Result<Ordering, E>,
    ) -> Result<(usize, Option<R>), E> {
        binary_search(node.content.record_count(), compare, |range| {
            self.tree.narrow_by_prefilter(node.addr, &node.content.records, range, prefilter)
        })
    }

    /// The way to a child of a node that is being changed.
    pub fn child_ptr(&self, node: &OpenNode, index: usize) -> Result<NodePtr> {
        let child = node.content.children.get(index);
        let way = child.and_then(|child| {
            Some(NodePtr { addr: child.addr, depth: node.depth.checked_sub(1)?, records: child.record_count })
        });
        let rule = "it has one more children than records";
        way.ok_or_else(|| self.tree.contradiction(node.addr, "version 2 B-tree node", "its parent", rule))
    }

    /// A leaf without records below an internal node.
    pub fn empty_leaf_error(&self, leaf: NodePtr) -> Error {
        let rule = "a leaf below another node has records";
        self.tree.contradiction(leaf.addr, "version 2 B-tree node", "its parent", rule)
    }

    /// Most records of a node.
    pub fn split_threshold(&self, level: u16) -> usize {
        self.geometry.split_threshold(level).into()
    }

    /// Fewest records of a node that is not the root.
    pub fn min_records(&self, level: u16) -> usize {
        usize::from(self.geometry.merge_threshold(level)).min(self.split_threshold(level) / 2).max(1)
    }

    /// Decides the address of a node, and returns the pointer to it. It replaces the node at `was`, if that is defined.
    fn assign_node_addr(&mut self, was: Addr, depth: u16, content: RecordsAndChildren) -> Result<Btree2ChildPointer> {
        let unshadowed =
            self.tree.metadata.cache().mutant_lacks_dependency(DependencyKind::BTree2Shadow) && was.is_defined();
        let addr = if self.root.read().is_fresh_node(was) || unshadowed {
            was
        } else {
            let size = self.geometry.node_size().into();
            let addr = self.tree.metadata.cache().space().alloc(size, SpaceKind::Metadata)?;
            self.allocated.push(addr);
            self.freed_nodes.extend(Some(was).filter(|was| was.is_defined()));
            addr
        };
        let records = u16::try_from(content.record_count()).unwrap_or(u16::MAX);
        let total = content.subtree_record_count().min(self.geometry.max_subtree_records(depth));
        self.nodes.push(OpenNode { addr, depth, content });
        Ok(Btree2ChildPointer { addr, record_count: records, subtree_record_count: total })
    }

    /// Makes a changed node, which may hold too much or too little, child `index` of `parent`. `is_append`: what made it
    /// grow comes after everything else in the tree.
    pub fn replace_child_rebalanced(
        &mut self,
        parent: &mut OpenNode,
        index: usize,
        child: OpenNode,
        is_append: bool,
    ) -> Result<()> {
        let len = child.content.record_count();
        if len > self.split_threshold(child.depth) {
            self.handle_overflow(parent, index, child, is_append)
        } else if len < self.min_records(child.depth) && parent.content.record_count() > 0 {
            self.handle_underflow(parent, index, child)
        } else {
            let placed = self.assign_node_addr(child.addr, child.depth, child.content)?;
            self.set_child(parent, index, placed);
            Ok(())
        }
    }

    fn set_child(&self, parent: &mut OpenNode, index: usize, child: Btree2ChildPointer) {
        if let Some(slot) = parent.content.children.get_mut(index) {
            *slot = child;
        }
    }

    /// Moves records of a node that is too full to a neighbour with room, or to a new one.
    fn handle_overflow(&mut self, parent: &mut OpenNode, index: usize, child: OpenNode, last: bool) -> Result<()> {
        if !last && parent.content.record_count() > 0 {
            return self.redistribute(parent, index, child);
        }
        let (split_threshold, fewest) = (self.split_threshold(child.depth), self.min_records(child.depth));
        let room = |index: Option<usize>| {
            let neighbour = index.and_then(|index| parent.content.children.get(index));
            neighbour.map_or(0, |child| split_threshold.saturating_sub(child.record_count.into()))
        };
        let before = room(index.checked_sub(1));
        let after = room(index.checked_add(1));
        // If there is too little room, sharing would soon be necessary again.
        let worthwhile = split_threshold / 8 + 1;
        if before.max(after) >= worthwhile {
            let first = if before >= after { index.saturating_sub(1) } else { index };
            let pair = self.merge_children(parent, index, child, first)?;
            let len = pair.content.record_count();
            let left = if last { split_threshold.min(len - 1 - fewest) } else { (len - 1) / 2 };
            return self.redistribute_pair(parent, first, pair, left);
        }
        let OpenNode { addr, depth, mut content } = child;
        let len = content.record_count();
        let left = if last { len - 1 - fewest } else { len / 2 };
        let (between, right) = content.split_off_with_separator(left);
        let left = self.assign_node_addr(addr, depth, content)?;
        let right = self.assign_node_addr(Addr::UNDEFINED, depth, right)?;
        self.set_child(parent, index, left);
        parent.content.children.insert((index + 1).min(parent.content.children.len()), right);
        let fits = parent.content.records.insert_bytes(index, &between);
        debug_assert!(fits, "records of one tree have one size");
        Ok(())
    }

    /// Distributes what a node that holds too much and those beside it hold over these nodes, and one more if they are
    /// full.
    fn redistribute(&mut self, parent: &mut OpenNode, index: usize, child: OpenNode) -> Result<()> {
        let (split_threshold, depth) = (self.split_threshold(child.depth), child.depth);
        let wide = parent.content.children.len().min(MAX_SHARING_SIBLINGS);
        let first = index.saturating_sub(1).min(parent.content.children.len() - wide);
        let (mut addrs, mut child) = (SmallVec::<[Addr; MAX_SHARING_SIBLINGS]>::new(), Some(child));
        let mut all =
            RecordsAndChildren::with_capacity(&self.geometry, wide * self.geometry.overfull_record_capacity(depth));
        for at in first..first + wide {
            let node = match child.take_if(|_| at == index) {
                Some(child) => child,
                None => self.open_node(self.child_ptr(parent, at)?)?,
            };
            addrs.push(node.addr);
            let before = at.checked_sub(1).filter(|_| at > first);
            if let Some(between) = before.and_then(|before| parent.content.records.bytes_at(before)) {
                all.push(between);
            }
            all.append(node.content);
        }
        // Nodes that are left almost full would have to share again soon.
        let parts = if all.record_count() + split_threshold / MIN_SPARE_FRACTION <= wide * split_threshold {
            wide
        } else {
            wide + 1
        };
        let mut done = 0;
        for part in 0..parts {
            let left = parts - part - 1;
            let len = (all.record_count() - done - left) / (left + 1);
            let content = all.copy_range(done..done + len, self.geometry.overfull_record_capacity(depth));
            let placed = self.assign_node_addr(addrs.get(part).copied().unwrap_or(Addr::UNDEFINED), depth, content)?;
            done += len + 1;
            let (children, records) = (&mut parent.content.children, &mut parent.content.records);
            match children.get_mut(first + part).filter(|_| part < wide) {
                Some(slot) => *slot = placed,
                None => children.insert((first + part).min(children.len()), placed),
            }
            let fits = match all.records.bytes_at(done - 1) {
                None => true,
                Some(between) if part + 1 < wide => records.set_bytes(first + part, between),
                Some(between) => records.insert_bytes(first + part, between),
            };
            debug_assert!(fits, "records of one tree have one size");
        }
        Ok(())
    }

    /// Joins a node that has too little to a neighbour, or takes some from it.
    fn handle_underflow(&mut self, parent: &mut OpenNode, index: usize, child: OpenNode) -> Result<()> {
        let (split_threshold, fewest) = (self.split_threshold(child.depth), self.min_records(child.depth));
        let first = index.saturating_sub(1);
        let pair = self.merge_children(parent, index, child, first)?;
        let len = pair.content.record_count();
        if len > (split_threshold * 3 / 4).max(fewest * 2) {
            return self.redistribute_pair(parent, first, pair, (len - 1) / 2);
        }
        let right = self.child_ptr(parent, first + 1)?;
        self.freed_nodes.push(right.addr);
        let placed = self.assign_node_addr(pair.addr, pair.depth, pair.content)?;
        self.set_child(parent, first, placed);
        parent.content.children.remove(first + 1);
        parent.content.records.remove(first);
        Ok(())
    }

    /// The children `first` and `first + 1` of `parent` with the record between them as one; `child` is the changed
    /// one of them, number `index`.
    fn merge_children(&mut self, parent: &OpenNode, index: usize, child: OpenNode, first: usize) -> Result<OpenNode> {
        let other = if index == first { first + 1 } else { first };
        let other = self.child_ptr(parent, other)?;
        let other = self.open_node(other)?;
        let (mut left, right) = if index == first { (child, other) } else { (other, child) };
        let between = parent.content.records.bytes_at(first).unwrap_or_default();
        left.content.append_with_separator(between, right.content);
        Ok(left)
    }

    /// Distributes what [`Btree2Edit::merge_children`] made one over the same two children again: `len` records for the
    /// left one.
    fn redistribute_pair(&mut self, parent: &mut OpenNode, first: usize, mut pair: OpenNode, len: usize) -> Result<()> {
        let right_addr = self.child_ptr(parent, first + 1)?.addr;
        let (between, right) = pair.content.split_off_with_separator(len);
        let left = self.assign_node_addr(pair.addr, pair.depth, pair.content)?;
        let right = self.assign_node_addr(right_addr, pair.depth, right)?;
        self.set_child(parent, first, left);
        self.set_child(parent, first + 1, right);
        let fits = parent.content.records.set_bytes(first, &between);
        debug_assert!(fits, "records of one tree have one size");
        Ok(())
    }

    /// Makes a changed node the root. The tree grows by a level if it holds too much, and loses one if nothing is
    /// between its children.
    pub fn replace_root_rebalanced(&mut self, root: OpenNode, is_append: bool) -> Result<()> {
        let len = root.content.record_count();
        let child = if len > self.split_threshold(root.depth) {
            let depth = root.depth + 1;
            let rule = "its nodes hold records";
            let geometry = self.geometry.with_next_level().ok_or_else(|| self.tree.unfit_error(rule))?;
            self.check_node_capacity(&geometry, depth)?;
            self.geometry = Arc::new(geometry);
            let mut above =
                OpenNode { addr: Addr::UNDEFINED, depth, content: RecordsAndChildren::empty(&self.geometry) };
            above.content.children.push(Btree2ChildPointer::default());
            self.replace_child_rebalanced(&mut above, 0, root, is_append)?;
            self.header.depth = depth;
            self.assign_node_addr(Addr::UNDEFINED, depth, above.content)?
        } else if len > 0 {
            self.assign_node_addr(root.addr, root.depth, root.content)?
        } else {
            self.freed_nodes.extend(Some(root.addr).filter(|addr| addr.is_defined()));
            self.header.depth = root.depth.saturating_sub(1);
            root.content.children.first().copied().unwrap_or_default()
        };
        let empty = child.record_count == 0;
        self.header.root = if empty { Addr::UNDEFINED } else { child.addr };
        self.header.root_record_count = child.record_count;
        self.header.total_record_count = child.subtree_record_count;
        Ok(())
    }

    /// Makes the change.
    pub fn apply_edits(mut self) -> Result<()> {
        self.allocated.clear();
        for OpenNode { addr, depth, content: RecordsAndChildren { records, children } } in
            std::mem::take(&mut self.nodes)
        {
            let kind =
                if addr == self.header.root { DependencyKind::BTree2Root } else { DependencyKind::BTree2HeaderToNode };
            if depth == 0 {
                let mut leaf = self.geometry.empty_leaf();
                leaf.records = records;
                let leaf = self.cache_node(addr, leaf, kind)?;
                self.root.read().add_fresh_node(addr, CachedBtree2Node::Leaf(leaf));
            } else {
                let mut node = self.geometry.blank_internal(depth, 0);
                (node.records, node.children) = (records, children);
                let node = self.cache_node(addr, node, kind)?;
                self.root.read().add_fresh_node(addr, CachedBtree2Node::Internal(node));
            }
        }
        let header = self.header.clone();
        let widths = self.tree.metadata.widths();
        self.root.update(|root| root.set_header(header, widths));
        for addr in std::mem::take(&mut self.freed_nodes) {
            self.root.read().forget_fresh_node(addr);
            self.tree.metadata.free_after_owner_flush(addr, self.geometry.node_size().into());
        }
        Ok(())
    }

    /// Puts a node into the cache. The header waits for it.
    fn cache_node<N: Entry>(&self, addr: Addr, node: N, kind: DependencyKind) -> Result<Handle<N>> {
        let metadata = &self.tree.metadata;
        let handle = match metadata.cache().get_cached::<N>(addr) {
            Ok(Some(handle)) => {
                handle.update(|value| *value = node);
                handle
            }
            // A node is new where the mark of a deleted object was.
            Ok(None) | Err(h5live_cache::Error::WrongEntryType { .. }) => {
                metadata.cache().check_memory_allocation(addr, self.geometry.node_size().into())?;
                metadata.cache().insert_entry(addr, metadata.owner(), node)
            }
            Err(error) => return Err(error.into()),
        };
        metadata.add_dependency(&self.root, &handle, kind)?;
        Ok(handle)
    }
}

impl<R> Drop for Btree2Edit<'_, R> {
    fn drop(&mut self) {
        let space = self.tree.metadata.cache().space();
        self.allocated
            .iter()
            .for_each(|addr| space.free_metadata_after_full_flush(*addr, self.geometry.node_size().into()));
    }
}
