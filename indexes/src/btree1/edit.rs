//! One change of a version 1 B-tree: prepared on copies of its nodes, then made at once.

use h5live_cache::{DependencyKind, DependencyNode, Handle, SpaceKind};
use h5live_format::{Addr, Btree1Key, Btree1Node};

use super::{Btree1, Btree1PathStep};
use crate::Result;

/// What the tree must know about the children of its leaves.
pub(crate) trait LeafCallbacks<K: Btree1Key> {
    /// `node` now leads to `child`, and may have to wait for it.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    fn add_child_dependency(&self, node: &Handle<Btree1Node<K>>, child: Addr) -> Result<()>;

    /// `node` has changed.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    fn leaf_changed(&self, node: &dyn DependencyNode) -> Result<()>;
}

/// The entries of a node, maybe more than fit: one more key than children, or nothing.
#[derive(Debug, Clone)]
pub(crate) struct NodeEntries<K> {
    pub keys: Vec<K>,
    pub children: Vec<Addr>,
}

impl<K: Btree1Key> NodeEntries<K> {
    pub fn from_node(node: &Btree1Node<K>) -> Self {
        let keys = (0..).map_while(|index| node.key(index)).collect();
        NodeEntries { keys, children: (0..node.len()).map_while(|index| node.child(index)).collect() }
    }

    /// Takes out a child, and the key that belongs to it.
    pub fn remove(&mut self, index: usize) {
        if index < self.children.len() {
            self.children.remove(index);
            self.keys.remove(index + usize::from(K::KEY_FOLLOWS_CHILD));
        }
        if self.children.is_empty() {
            self.keys.clear();
        }
    }
}

/// A node at work.
struct EditedNode<K: Btree1Key> {
    addr: Addr,
    /// `None` for a new node.
    handle: Option<Handle<Btree1Node<K>>>,
    node: Btree1Node<K>,
    entries: NodeEntries<K>,
    /// The first and the last key before the change.
    bounds: Option<(K, K)>,
    is_changed: bool,
    is_removed: bool,
}

/// A change that is being prepared.
pub(super) struct Btree1Edit<'a, K: Btree1Key> {
    tree: &'a Btree1<K>,
    edited_nodes: Vec<EditedNode<K>>,
    /// Pairs of nodes. The first loses entries to another node, to which the second or a node below it will lead.
    lost_edges: Vec<(usize, usize)>,
    /// Pairs of nodes. The second, a new one, becomes the left neighbour of the first.
    new_left_siblings: Vec<(usize, usize)>,
}

impl<K: Btree1Key> Btree1<K> {
    /// Sets the entries of the leaf at the end of `path`, and changes the tree accordingly. `added` are the new
    /// children.
    ///
    /// # Errors
    /// If a node cannot be read, or there is no room for a new one. The tree is then unchanged.
    pub(crate) fn replace_leaf_entries(
        &self,
        path: &[Btree1PathStep],
        entries: NodeEntries<K>,
        added: &[Addr],
        leaf: &impl LeafCallbacks<K>,
    ) -> Result<()> {
        let mut edit =
            Btree1Edit { tree: self, edited_nodes: Vec::new(), lost_edges: Vec::new(), new_left_siblings: Vec::new() };
        match edit.edit_path(path, entries).and_then(|()| edit.encode_nodes()) {
            Ok(nodes) => edit.apply_edits(nodes, added, leaf),
            Err(error) => {
                edit.free_new_nodes();
                Err(error)
            }
        }
    }
}

impl<K: Btree1Key> Btree1Edit<'_, K> {
    fn open_node(&mut self, addr: Addr) -> Result<usize> {
        match self.edited_nodes.iter().position(|work| work.addr == addr) {
            Some(known) => Ok(known),
            None => self.load_node(addr, None),
        }
    }

    /// Takes a node to work, to which entries are given, or which keeps those that it has.
    fn load_node(&mut self, addr: Addr, given: Option<NodeEntries<K>>) -> Result<usize> {
        let handle = self.tree.load_node(addr, None)?;
        let node = handle.read().clone();
        let bounds = node.key(0).zip(node.key(node.len()));
        let changed = given.is_some();
        let entries = given.unwrap_or_else(|| NodeEntries::from_node(&node));
        self.edited_nodes.push(EditedNode {
            addr,
            handle: Some(handle),
            node,
            entries,
            bounds,
            is_changed: changed,
            is_removed: false,
        });
        Ok(self.edited_nodes.len() - 1)
    }

    fn create_node(&mut self, level: u8, entries: NodeEntries<K>) -> Result<usize> {
        let tree = self.tree;
        let mut node = Btree1Node::empty(tree.k, tree.shape, tree.metadata.widths());
        node.level = level;
        let addr = tree.metadata.cache().space().alloc(node.node_size() as u64, SpaceKind::Metadata)?;
        self.edited_nodes.push(EditedNode {
            addr,
            handle: None,
            node,
            entries,
            bounds: None,
            is_changed: true,
            is_removed: false,
        });
        Ok(self.edited_nodes.len() - 1)
    }

    fn free_new_nodes(&self) {
        let space = self.tree.metadata.cache().space();
        let made = self.edited_nodes.iter().filter(|work| work.handle.is_none());
        made.for_each(|work| space.free_metadata_after_full_flush(work.addr, work.node.node_size() as u64));
    }

    fn edit_path(&mut self, path: &[Btree1PathStep], entries: NodeEntries<K>) -> Result<()> {
        let [above @ .., leaf] = path else { return Ok(()) };
        let mut at = self.load_node(leaf.addr, Some(entries))?;
        let mut above = above;
        loop {
            let (full, empty, same) = {
                let EditedNode { node, entries, bounds, .. } = &self.edited_nodes[at];
                let same = bounds.as_ref().map(|(first, last)| (first, last));
                let same = same == entries.keys.first().zip(entries.keys.last());
                (entries.children.len() > node.capacity(), entries.children.is_empty(), same)
            };
            if same && !full && !empty {
                return Ok(());
            }
            let [higher @ .., parent] = above else {
                return self.split_root_in_place(at, full);
            };
            let up = self.open_node(parent.addr)?;
            if empty {
                self.unlink_from_siblings(at)?;
                self.edited_nodes[up].entries.remove(parent.index);
                self.edited_nodes[up].is_changed = true;
            } else {
                self.propagate_keys(at, up, parent.index)?;
                if full {
                    self.split_node(at, up, parent.index, above)?;
                }
                if !self.edited_nodes[up].is_changed {
                    return Ok(());
                }
            }
            (at, above) = (up, higher);
        }
    }

    /// Passes the outer keys of a node on to its parent, and to the nodes beside it, if they have changed.
    fn propagate_keys(&mut self, at: usize, up: usize, index: usize) -> Result<()> {
        let EditedNode { entries, bounds, node, .. } = &self.edited_nodes[at];
        let (left, right) = (node.left_sibling, node.right_sibling);
        let new = entries.keys.first().cloned().zip(entries.keys.last().cloned());
        let (Some((first, last)), before) = (new, bounds.clone()) else { return Ok(()) };
        if before.as_ref().is_none_or(|(before, _)| *before != first) {
            if left.is_defined() {
                let left = self.open_node(left)?;
                self.set_key(left, usize::MAX, &first);
            }
            self.set_key(up, index, &first);
        }
        if before.as_ref().is_none_or(|(_, before)| *before != last) {
            if right.is_defined() {
                let right = self.open_node(right)?;
                self.set_key(right, 0, &last);
            }
            self.set_key(up, index + 1, &last);
        }
        Ok(())
    }

    /// Sets one key, or the last.
    fn set_key(&mut self, at: usize, index: usize, key: &K) {
        let EditedNode { entries, is_changed: changed, .. } = &mut self.edited_nodes[at];
        let last = entries.keys.len().saturating_sub(1);
        if let Some(slot) = entries.keys.get_mut(index.min(last)).filter(|slot| *slot != key) {
            *slot = key.clone();
            *changed = true;
        }
    }

    /// How many of its children a node that holds too many keeps: as libhdf5 splits.
    fn split_point(node: &Btree1Node<K>, len: usize) -> usize {
        let kept = match (node.left_sibling.is_defined(), node.right_sibling.is_defined()) {
            (_, false) => len * 9 / 10,
            (false, true) => len / 10,
            (true, true) => len / 2,
        };
        kept.clamp(1, len.saturating_sub(1).max(1)).max(len.saturating_sub(node.capacity()))
    }

    /// Moves the later children of a node to a new one.
    fn split_off_right_half(&mut self, at: usize) -> Result<usize> {
        let EditedNode { node, entries, .. } = &mut self.edited_nodes[at];
        let kept = Self::split_point(node, entries.children.len()).min(node.capacity());
        let children = entries.children.split_off(kept);
        let keys = entries.keys.split_off(kept);
        entries.keys.extend(keys.first().cloned());
        let level = node.level;
        let made = self.create_node(level, NodeEntries { keys, children })?;
        self.edited_nodes[at].is_changed = true;
        Ok(made)
    }

    /// Splits a node, to which `above` is the path.
    fn split_node(&mut self, at: usize, up: usize, index: usize, above: &[Btree1PathStep]) -> Result<()> {
        let made = self.split_off_right_half(at)?;
        let (here, there) = (self.edited_nodes[at].addr, self.edited_nodes[made].addr);
        let right = std::mem::replace(&mut self.edited_nodes[at].node.right_sibling, there);
        self.edited_nodes[made].node.left_sibling = here;
        self.edited_nodes[made].node.right_sibling = right;
        if right.is_defined() {
            let right = self.open_node(right)?;
            self.edited_nodes[right].node.left_sibling = there;
            self.edited_nodes[right].is_changed = true;
            self.new_left_siblings.push((right, made));
        }
        let between = self.edited_nodes[made].entries.keys.first().cloned();
        let EditedNode { entries, is_changed: changed, .. } = &mut self.edited_nodes[up];
        entries.children.insert((index + 1).min(entries.children.len()), there);
        entries.keys.splice((index + 1).min(entries.keys.len())..(index + 1).min(entries.keys.len()), between);
        *changed = true;
        // All nodes on the way: the pointer to the new node may move up and away from the parent before it is written.
        for step in above {
            let up = self.open_node(step.addr)?;
            self.lost_edges.push((at, up));
        }
        Ok(())
    }

    /// Keeps the root at its address: entries that do not fit move to two new nodes below it.
    fn split_root_in_place(&mut self, root: usize, full: bool) -> Result<()> {
        let EditedNode { entries, node, .. } = &mut self.edited_nodes[root];
        if entries.children.is_empty() {
            node.level = 0;
            return Ok(());
        }
        if !full {
            return Ok(());
        }
        let level = node.level;
        let higher = level.checked_add(1);
        let rule = "a tree has at most 255 levels";
        let higher = higher.ok_or_else(|| self.tree.contradiction(self.tree.root, rule))?;
        let right = self.split_off_right_half(root)?;
        let entries = self.edited_nodes[root].entries.clone();
        let (first, between) = (entries.keys.first().cloned(), entries.keys.last().cloned());
        let last = self.edited_nodes[right].entries.keys.last().cloned();
        let left = self.create_node(level, entries)?;
        self.edited_nodes[left].node.right_sibling = self.edited_nodes[right].addr;
        self.edited_nodes[right].node.left_sibling = self.edited_nodes[left].addr;
        let children = vec![self.edited_nodes[left].addr, self.edited_nodes[right].addr];
        let keys = [first, between, last].into_iter().flatten().collect();
        self.edited_nodes[root].entries = NodeEntries { keys, children };
        self.edited_nodes[root].node.level = higher;
        Ok(())
    }

    /// Takes a node without children out of its level.
    fn unlink_from_siblings(&mut self, at: usize) -> Result<()> {
        self.edited_nodes[at].is_removed = true;
        let (left, right) = (self.edited_nodes[at].node.left_sibling, self.edited_nodes[at].node.right_sibling);
        let bounds = self.edited_nodes[at].bounds.clone();
        if left.is_defined() {
            let beside = self.open_node(left)?;
            self.edited_nodes[beside].node.right_sibling = right;
            self.edited_nodes[beside].is_changed = true;
            if let (false, Some((_, last))) = (K::KEY_FOLLOWS_CHILD, &bounds) {
                self.set_key(beside, usize::MAX, last);
            }
        }
        if right.is_defined() {
            let beside = self.open_node(right)?;
            self.edited_nodes[beside].node.left_sibling = left;
            self.edited_nodes[beside].is_changed = true;
            if let (true, Some((first, _))) = (K::KEY_FOLLOWS_CHILD, &bounds) {
                self.set_key(beside, 0, first);
            }
        }
        Ok(())
    }

    /// The new contents of the nodes.
    fn encode_nodes(&mut self) -> Result<Vec<Btree1Node<K>>> {
        let encode = |work: &EditedNode<K>| {
            let mut node = work.node.clone();
            let fits =
                work.is_removed || !work.is_changed || node.set_entries(&work.entries.keys, &work.entries.children);
            let rule = "its keys are between its children";
            if fits { Ok(node) } else { Err(self.tree.contradiction(work.addr, rule)) }
        };
        self.edited_nodes.iter().map(encode).collect()
    }

    fn apply_edits(mut self, nodes: Vec<Btree1Node<K>>, added: &[Addr], leaf: &impl LeafCallbacks<K>) -> Result<()> {
        let metadata = &self.tree.metadata;
        let (cache, owner) = (metadata.cache(), metadata.owner());
        let made: Vec<bool> = self.edited_nodes.iter().map(|work| work.handle.is_none()).collect();
        for (work, node) in self.edited_nodes.iter_mut().zip(&nodes) {
            work.handle.get_or_insert_with(|| cache.insert_entry(work.addr, owner, node.clone()));
        }
        let handles: Vec<_> = self.edited_nodes.iter().filter_map(|work| work.handle.clone()).collect();
        for ((work, handle), made) in
            self.edited_nodes.iter().zip(&handles).zip(&made).filter(|((work, _), _)| work.is_changed)
        {
            if work.is_removed {
                continue;
            }
            leaf.leaf_changed(handle)?;
            for child in &work.entries.children {
                if work.node.level == 0 {
                    if *made || added.contains(child) {
                        leaf.add_child_dependency(handle, *child)?;
                    }
                } else if *made || self.edited_nodes.iter().zip(&handles).any(|(_, other)| other.addr() == *child) {
                    let child = cache.get_cached::<Btree1Node<K>>(*child)?;
                    if let Some(child) = child.filter(Handle::is_new) {
                        let edge = cache.add_dependency_until_first_write(handle, &child, DependencyKind::BTree1Node);
                        edge.map_err(h5live_cache::Error::from)?;
                    }
                }
            }
        }
        // An entry that waits for a node from here on also waits for the changes below, whatever flush is under way.
        let changed =
            self.edited_nodes.iter().zip(&handles).zip(&made).filter(|((work, _), made)| work.is_changed && !**made);
        changed.filter(|((work, _), _)| !work.is_removed).for_each(|((_, handle), _)| handle.mark_dirty());
        let wait = |later: usize, earlier: usize, beside: bool| {
            let (Some(later), Some(earlier)) = (handles.get(later), handles.get(earlier)) else { return Ok(()) };
            // Nothing in the file leads to a new node.
            if later.is_new() || earlier.is_new() && !beside {
                return Ok(());
            }
            cache.remove_dependencies(earlier, later);
            cache
                .add_dependency_until_clean(later, earlier, DependencyKind::BTree1Node)
                .map_err(h5live_cache::Error::from)
        };
        self.lost_edges.iter().try_for_each(|(later, earlier)| wait(*later, *earlier, false))?;
        self.new_left_siblings.iter().try_for_each(|(later, earlier)| wait(*later, *earlier, true))?;
        for (((work, handle), node), made) in self.edited_nodes.iter().zip(&handles).zip(nodes).zip(made) {
            if work.is_removed {
                metadata.free_structure(work.addr, node.node_size() as u64);
            } else if work.is_changed && !made {
                handle.update(|value| *value = node);
            }
        }
        Ok(())
    }
}
