//! Adding and removing the entries of a symbol table.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::{DependencyKind, DependencyNode, Handle};
use h5live_format::messages::BtreeK;
use h5live_format::{Addr, Btree1GroupKey, Btree1Node, SymbolTableEntry, SymbolTableNode, SymbolTableScratchPad};
use h5live_model::Name;

use super::{SymbolTable, SymbolTarget, partition_point};
use crate::btree1::{Btree1, Btree1PathStep, LeafCallbacks, NodeEntries};
use crate::local_heap::{LocalHeapFreeSpace, LocalHeapStrings};
use crate::{Error, ObjectMetadataAccess, Prerequisite, Result};

/// Bytes of a new local heap, if it is not known how many names there will be.
const NEW_HEAP_BYTES: u64 = 88;

/// The present or future place of a name.
struct NamePosition {
    path: Vec<Btree1PathStep>,
    /// The entries of the leaf at the end of the path.
    leaf: NodeEntries<Btree1GroupKey>,
    /// The child of the leaf between whose names the wanted name lies.
    index: usize,
}

impl SymbolTable {
    /// Makes an empty table.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(metadata: ObjectMetadataAccess, k: BtreeK, space: Arc<LocalHeapFreeSpace>) -> Result<Self> {
        let (tree, _) = Btree1::<Btree1GroupKey>::create(metadata.clone(), k.group_internal, ())?;
        let heap = LocalHeapStrings::create(&metadata, NEW_HEAP_BYTES, &space)?.addr();
        Ok(SymbolTable { metadata, tree, heap, k, space })
    }

    /// Makes `parent`, which leads to the table, wait for the first structures of the table.
    ///
    /// # Errors
    /// If a structure cannot be read; if the dependency would close a circle.
    pub fn add_flush_parent(&self, parent: &dyn DependencyNode) -> Result<()> {
        self.metadata.add_dependency(parent, &self.tree.dependency_node()?, DependencyKind::SymbolTable)?;
        self.name_heap()?.add_flush_parent(parent)
    }

    /// The B-tree and the heap, which entries that lead to the group repeat.
    pub fn tree_and_heap_addrs(&self) -> (Addr, Addr) {
        (self.tree.root(), self.heap)
    }

    fn find_position(&self, names: &LocalHeapStrings, name: &Name) -> Result<NamePosition> {
        let mut found = None;
        let path = self.tree.path_to_leaf(|node: &Btree1Node<Btree1GroupKey>| {
            // The names below child `i` are not greater than key `i + 1`.
            let index = partition_point(node.len(), |i| {
                let Btree1GroupKey(offset) = node.key(i + 1).unwrap_or_default();
                Ok(names.compare_string(offset, name)? == Ordering::Less)
            })?;
            let index = index.min(node.len().saturating_sub(1));
            if node.level == 0 {
                found = Some((NodeEntries::from_node(node), index));
            }
            Ok(index)
        })?;
        let (leaf, index) = found.unwrap_or((NodeEntries { keys: Vec::new(), children: Vec::new() }, 0));
        Ok(NamePosition { path, leaf, index })
    }

    fn position_in_node(names: &LocalHeapStrings, entries: &[SymbolTableEntry], name: &Name) -> Result<(usize, bool)> {
        let offset = |i: usize| entries.get(i).map_or(0, |entry| entry.name_offset);
        let at = partition_point(entries.len(), |i| Ok(names.compare_string(offset(i), name)? == Ordering::Less))?;
        let found = match entries.get(at) {
            Some(entry) => names.compare_string(entry.name_offset, name)? == Ordering::Equal,
            None => false,
        };
        Ok((at, found))
    }

    /// Adds an entry, which is written after `prerequisites`. There must be none of its name. `target_symbol_table` says where the symbol
    /// table of the object is to which it leads, if that is a group with one.
    ///
    /// # Errors
    /// If a structure cannot be read, or there is no room.
    pub fn insert_link_known_absent(
        &self,
        name: &Name,
        target: &SymbolTarget,
        target_symbol_table: Option<(Addr, Addr)>,
        prerequisites: &[Prerequisite<'_>],
    ) -> Result<()> {
        let mut names = self.name_heap()?;
        let entry = self.new_entry(&mut names, name, target, target_symbol_table)?;
        let name_offset = entry.name_offset;
        let NamePosition { path, mut leaf, index } = self.find_position(&names, name)?;
        let Some(&child) = leaf.children.get(index) else {
            let node = self.create_node(&names, vec![entry])?;
            leaf =
                NodeEntries { keys: vec![Btree1GroupKey(0), Btree1GroupKey(name_offset)], children: vec![node.addr()] };
            self.tree.replace_leaf_entries(&path, leaf, &[node.addr()], &SymbolNodes { table: self, names: &names })?;
            self.metadata.add_prerequisites(&node, prerequisites);
            return Ok(());
        };
        let node = self.load_node(child)?;
        let mut entries = node.read().entries.clone();
        let (at, _) = Self::position_in_node(&names, &entries, name)?;
        let is_last = at == entries.len();
        entries.insert(at, entry);
        let symbols = SymbolNodes { table: self, names: &names };
        if entries.len() <= usize::from(node.read().capacity) {
            // The first name may have belonged to the node before until now, so the tree must be written first. A node
            // that waits for the structures to which it leads stays unchanged, because it may still have to move.
            let is_in_place = node.is_new()
                || !is_last && prerequisites.is_empty() && (at > 0 || self.make_node_wait(&node, &path)?);
            let moved = if is_in_place {
                self.replace_node(&names, &node, entries)
            } else {
                self.move_node(&names, &node, entries)
            }?;
            let bound = is_last.then_some(name_offset);
            if set_leaf_child(&mut leaf, index, &moved, bound) {
                self.tree.replace_leaf_entries(&path, leaf, &[moved.addr()], &symbols)?;
            }
            self.metadata.add_prerequisites(&moved, prerequisites);
            return Ok(());
        }
        let position = NamePosition { path, leaf, index };
        self.split_node(&names, position, &node, (entries, at), prerequisites)
    }

    /// An entry for a new name, whose strings go to the heap.
    fn new_entry(
        &self,
        names: &mut LocalHeapStrings,
        name: &Name,
        target: &SymbolTarget,
        group: Option<(Addr, Addr)>,
    ) -> Result<SymbolTableEntry> {
        let strings = match target {
            SymbolTarget::Hard(_) => vec![name],
            SymbolTarget::Soft(path) => vec![name, path],
        };
        let offsets = names.insert_strings(&self.space, &strings, || self.string_offsets())?;
        let offset = |index: usize| offsets.get(index).copied().unwrap_or(0);
        let (header, cache) = match target {
            SymbolTarget::Hard(header) => {
                let cache = group
                    .map_or(SymbolTableScratchPad::None, |(btree, heap)| SymbolTableScratchPad::Group { btree, heap });
                (*header, cache)
            }
            SymbolTarget::Soft(_) => {
                let value = u32::try_from(offset(1));
                let value_offset = value.map_err(|_| Error::HeapFull { at: self.heap })?;
                (Addr::UNDEFINED, SymbolTableScratchPad::SoftLink { value_offset })
            }
        };
        Ok(SymbolTableEntry { name_offset: offset(0), header, cache })
    }

    /// Puts two nodes in the place of a full one, with its entries, of which that at `at` is new.
    fn split_node(
        &self,
        names: &LocalHeapStrings,
        NamePosition { path, mut leaf, index }: NamePosition,
        node: &Handle<SymbolTableNode>,
        (mut entries, at): (Vec<SymbolTableEntry>, usize),
        before: &[Prerequisite<'_>],
    ) -> Result<()> {
        // The next name often comes right after this one: names that come in their order leave full nodes behind.
        let (half, is_last) = (entries.len() / 2, at + 1 == entries.len());
        let kept = if at < half { half } else { (at + 1).min(entries.len() - 1) };
        let right = entries.split_off(kept);
        let is_left = at < kept;
        let last = |entries: &[SymbolTableEntry]| entries.last().map(|entry| entry.name_offset);
        let (left_bound, right_bound) = (last(&entries).unwrap_or(0), last(&right));
        let left = self.move_node(names, node, entries)?;
        let right = self.create_node(names, right)?;
        // The right half may now lead to structures for which the left half waits.
        let kept = self.metadata.cache().add_dependency_until_clean(&right, &left, DependencyKind::BTree1Symbols);
        kept.map_err(|circle| Error::Cache(circle.into()))?;
        set_leaf_child(&mut leaf, index, &left, None);
        leaf.children.insert((index + 1).min(leaf.children.len()), right.addr());
        leaf.keys.insert((index + 1).min(leaf.keys.len()), Btree1GroupKey(left_bound));
        set_leaf_child(&mut leaf, index + 1, &right, right_bound.filter(|_| is_last));
        let symbols = SymbolNodes { table: self, names };
        self.tree.replace_leaf_entries(&path, leaf, &[left.addr(), right.addr()], &symbols)?;
        self.metadata.add_prerequisites(if is_left { &left } else { &right }, before);
        Ok(())
    }

    /// Makes a node wait for the structures that lead to it, if nothing there waits for the node.
    fn make_node_wait(&self, node: &Handle<SymbolTableNode>, path: &[Btree1PathStep]) -> Result<bool> {
        for step in path {
            let above = self.tree.load_node(step.addr, None)?;
            if self.metadata.cache().add_dependency_until_clean(node, &above, DependencyKind::BTree1Symbols).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the structures that lead to a changing node wait for it, if the node waits for nothing there.
    fn make_path_wait(&self, node: &Handle<SymbolTableNode>, path: &[Btree1PathStep]) -> Result<bool> {
        node.mark_dirty();
        for step in path {
            let above = self.tree.load_node(step.addr, None)?;
            if self.metadata.cache().add_dependency_until_clean(&above, node, DependencyKind::BTree1Symbols).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The offsets of all strings that entries and keys lead to.
    fn string_offsets(&self) -> Result<Vec<u64>> {
        let mut offsets = Vec::new();
        let reached = self.tree.all_blocks()?;
        for addr in reached.nodes {
            let node = self.tree.load_node(addr, None)?;
            let node = node.read();
            offsets.extend((0..=node.len()).filter_map(|index| node.key(index)).map(|Btree1GroupKey(offset)| offset));
        }
        for child in reached.children {
            for entry in self.load_entries(child)? {
                offsets.push(entry.name_offset);
                if let SymbolTableScratchPad::SoftLink { value_offset } = entry.cache {
                    offsets.push(value_offset.into());
                }
            }
        }
        Ok(offsets)
    }

    /// A node with other entries in the place of `node`: at another address if the file leads to the old one, so that
    /// entries change at once with the names in the tree that bound them.
    fn move_node(
        &self,
        names: &LocalHeapStrings,
        node: &Handle<SymbolTableNode>,
        entries: Vec<SymbolTableEntry>,
    ) -> Result<Handle<SymbolTableNode>> {
        if node.is_new() {
            names.add_flush_parent(node)?;
            node.update(|node| node.entries = entries);
            return Ok(node.clone());
        }
        let moved = self.create_node(names, entries)?;
        let len = node.read().size(self.metadata.widths());
        self.metadata.free_structure(node.addr(), len as u64);
        Ok(moved)
    }

    /// A node with other entries in the place of `node`, which the names in the tree bound also before they change: at
    /// the same address if it is written at once, and nobody reads it meanwhile.
    fn replace_node(
        &self,
        names: &LocalHeapStrings,
        node: &Handle<SymbolTableNode>,
        entries: Vec<SymbolTableEntry>,
    ) -> Result<Handle<SymbolTableNode>> {
        let len = node.read().size(self.metadata.widths()) as u64;
        if node.is_new() || !self.metadata.cache().space().may_change_in_place(node.addr(), len) {
            return self.move_node(names, node, entries);
        }
        names.add_flush_parent(node)?;
        node.update(|node| node.entries = entries);
        Ok(node.clone())
    }

    fn create_node(&self, names: &LocalHeapStrings, entries: Vec<SymbolTableEntry>) -> Result<Handle<SymbolTableNode>> {
        let node = SymbolTableNode { entries, ..SymbolTableNode::for_k(self.k) };
        let node = self.metadata.create(node.size(self.metadata.widths()) as u64, node)?;
        names.add_flush_parent(&node)?;
        Ok(node)
    }

    /// Removes the entry of this name, and returns where it led.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn remove_link(&self, name: &Name) -> Result<Option<SymbolTarget>> {
        let names = self.name_heap()?;
        let NamePosition { path, mut leaf, index } = self.find_position(&names, name)?;
        let Some(&child) = leaf.children.get(index) else { return Ok(None) };
        let node = self.load_node(child)?;
        let mut entries = node.read().entries.clone();
        let (at, found) = Self::position_in_node(&names, &entries, name)?;
        if !found {
            return Ok(None);
        }
        let entry = entries.remove(at);
        let target = Self::target_of_entry(&names, &entry)?;
        let symbols = SymbolNodes { table: self, names: &names };
        match entries.last().map(|last| last.name_offset) {
            None => {
                leaf.remove(index);
                self.tree.replace_leaf_entries(&path, leaf, &[], &symbols)?;
                let len = node.read().size(self.metadata.widths()) as u64;
                match node.is_new() {
                    // Through it, another node may wait for the structures to which its own entries lead.
                    true => self.metadata.cache().space().free_metadata_after_full_flush(child, len),
                    false => self.metadata.free_structure(child, len),
                }
            }
            Some(bound) => {
                let bound = (at == entries.len()).then_some(bound);
                // Everything below a name in the tree is removed before the name.
                let is_in_place = bound.is_none() || node.is_new() || self.make_path_wait(&node, &path)?;
                let moved = if is_in_place {
                    self.replace_node(&names, &node, entries)
                } else {
                    self.move_node(&names, &node, entries)
                }?;
                if set_leaf_child(&mut leaf, index, &moved, bound) {
                    self.tree.replace_leaf_entries(&path, leaf, &[moved.addr()], &symbols)?;
                }
            }
        }
        names.remove_strings(&self.space, &[entry.name_offset])?;
        if let SymbolTableScratchPad::SoftLink { value_offset } = entry.cache {
            names.remove_strings(&self.space, &[value_offset.into()])?;
        }
        Ok(Some(target))
    }

    /// Writes the free space of the heap of names into the file again. No more changes are expected, and everything
    /// before was flushed. Returns whether anything was done.
    ///
    /// # Errors
    /// If the heap cannot be changed.
    pub fn finalize_name_heap_if_changed(&self) -> Result<bool> {
        if self.space.is_changed() { self.name_heap()?.finalize_if_changed(&self.space) } else { Ok(false) }
    }

    /// Bytes of the heap of names.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn name_heap_bytes(&self) -> Result<u64> {
        Ok(self.name_heap()?.segment_bytes())
    }

    /// Gives up the table.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_table(&self) -> Result<()> {
        let names = self.name_heap()?;
        let reached = self.tree.all_blocks()?;
        let len = SymbolTableNode::for_k(self.k).size(self.metadata.widths()) as u64;
        reached.children.into_iter().for_each(|child| self.metadata.free_structure(child, len));
        let len = self.tree.node_size();
        reached.nodes.into_iter().for_each(|node| self.metadata.free_structure(node, len));
        names.delete_heap();
        Ok(())
    }
}

/// Replaces a child, and the last name below it if that is different. Returns whether anything has changed.
fn set_leaf_child(
    leaf: &mut NodeEntries<Btree1GroupKey>,
    index: usize,
    child: &Handle<SymbolTableNode>,
    name_offset: Option<u64>,
) -> bool {
    let mut changed = false;
    if let Some(slot) = leaf.children.get_mut(index).filter(|slot| **slot != child.addr()) {
        *slot = child.addr();
        changed = true;
    }
    if let (Some(key), Some(name_offset)) = (leaf.keys.get_mut(index + 1), name_offset) {
        *key = Btree1GroupKey(name_offset);
        changed = true;
    }
    changed
}

/// The nodes below a tree of names.
struct SymbolNodes<'a> {
    table: &'a SymbolTable,
    names: &'a LocalHeapStrings,
}

impl LeafCallbacks<Btree1GroupKey> for SymbolNodes<'_> {
    fn add_child_dependency(&self, node: &Handle<Btree1Node<Btree1GroupKey>>, child: Addr) -> Result<()> {
        let metadata = &self.table.metadata;
        match metadata.cache().get_cached::<SymbolTableNode>(child)? {
            Some(child) if child.is_new() => {
                let done =
                    metadata.cache().add_dependency_until_first_write(node, &child, DependencyKind::BTree1Symbols);
                done.map_err(|circle| Error::Cache(circle.into()))
            }
            _ => Ok(()),
        }
    }

    fn leaf_changed(&self, node: &dyn DependencyNode) -> Result<()> {
        self.names.add_flush_parent(node)
    }
}
