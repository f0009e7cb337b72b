//! Symbol tables: the links of old-style groups.

mod edit;
mod pack;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::Handle;
use h5live_format::messages::BtreeK;
use h5live_format::{Addr, Btree1GroupKey, Btree1Node, SymbolTableEntry, SymbolTableNode, SymbolTableScratchPad};
use h5live_model::Name;

pub use self::pack::SymbolTableRelocation;
use crate::btree1::{Btree1, KeyBounds, KeyRange};
use crate::local_heap::{LocalHeapFreeSpace, LocalHeapStrings};
use crate::{Error, ObjectMetadataAccess, Result};

/// The target of an old-style link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SymbolTarget {
    /// To the object with its header here.
    Hard(Addr),
    /// Along a path.
    Soft(Name),
}

/// The symbol table of one group: a version 1 B-tree with symbol table nodes below its leaves, and a local heap of
/// names (format specification 4.0, III.A.1, III.B to III.D).
#[derive(Debug, Clone)]
pub struct SymbolTable {
    metadata: ObjectMetadataAccess,
    tree: Btree1<Btree1GroupKey>,
    heap: Addr,
    k: BtreeK,
    space: Arc<LocalHeapFreeSpace>,
}

impl SymbolTable {
    /// The table with its B-tree at `btree` and its heap at `heap`, in a file with these K values. All handles of one
    /// session share `space`.
    pub fn new(
        metadata: ObjectMetadataAccess,
        btree: Addr,
        heap: Addr,
        k: BtreeK,
        space: Arc<LocalHeapFreeSpace>,
    ) -> Self {
        let tree = Btree1::new(metadata.clone(), btree, k.group_internal, ());
        SymbolTable { metadata, tree, heap, k, space }
    }

    fn name_heap(&self) -> Result<LocalHeapStrings> {
        LocalHeapStrings::load(&self.metadata, self.heap)
    }

    fn load_node(&self, addr: Addr) -> Result<Handle<SymbolTableNode>> {
        let empty = SymbolTableNode::for_k(self.k);
        self.metadata.load(addr, empty.size(self.metadata.widths()) as u64, || empty)
    }

    fn load_entries(&self, addr: Addr) -> Result<Vec<SymbolTableEntry>> {
        Ok(self.load_node(addr)?.read().entries.clone())
    }

    fn target_of_entry(names: &LocalHeapStrings, entry: &SymbolTableEntry) -> Result<SymbolTarget> {
        match entry.cache {
            SymbolTableScratchPad::SoftLink { value_offset } => {
                Ok(SymbolTarget::Soft(names.read_string(value_offset.into())?))
            }
            _ => Ok(SymbolTarget::Hard(entry.header)),
        }
    }

    /// Where the link of this name leads.
    ///
    /// # Errors
    /// If a node or the heap cannot be read.
    pub fn find_link(&self, name: &Name) -> Result<Option<SymbolTarget>> {
        let names = self.name_heap()?;
        let choose = |node: &Btree1Node<Btree1GroupKey>| {
            // The names below child `i` are not greater than key `i + 1`.
            partition_point(node.len(), |i| {
                let Btree1GroupKey(offset) = node.key(i + 1).unwrap_or_default();
                Ok(names.compare_string(offset, name)? == Ordering::Less)
            })
            .map(|child| (child < node.len()).then_some(child))
        };
        let Some((_, node)) = self.tree.find_entry(choose)? else { return Ok(None) };
        let entries = self.load_entries(node)?;
        let offset = |i: usize| entries.get(i).map_or(0, |entry| entry.name_offset);
        let found = partition_point(entries.len(), |i| Ok(names.compare_string(offset(i), name)? == Ordering::Less))?;
        match entries.get(found) {
            Some(entry) if names.compare_string(entry.name_offset, name)? == Ordering::Equal => {
                Self::target_of_entry(&names, entry).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Calls `each` with every link in the order of names, until it returns `false`.
    ///
    /// # Errors
    /// The first error of `each`; if a node or the heap cannot be read.
    pub fn for_each_link<E: From<Error>>(
        &self,
        each: &mut dyn FnMut(Name, SymbolTarget) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.for_each_link_after(None, each)
    }

    /// As [`SymbolTable::for_each_link`], of the links whose names come after a name.
    ///
    /// # Errors
    /// As [`SymbolTable::for_each_link`].
    pub fn for_each_link_after<E: From<Error>>(
        &self,
        after: Option<&Name>,
        each: &mut dyn FnMut(Name, SymbolTarget) -> Result<bool, E>,
    ) -> Result<(), E> {
        let names = &self.name_heap()?;
        let order = NameOrder { names, after };
        self.tree.for_each_in_range(&order, &mut |bounds, _, node| {
            for entry in self.load_entries(node)? {
                let name = names.read_string(entry.name_offset)?;
                let is_wanted = after.is_none_or(|after| name > *after) && order.contains_name(bounds, &name)?;
                if is_wanted && !each(name, Self::target_of_entry(names, &entry)?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// The names after one, or all, in their order.
struct NameOrder<'a> {
    names: &'a LocalHeapStrings,
    after: Option<&'a Name>,
}

impl NameOrder<'_> {
    /// Whether a name belongs to the child between these keys, or has moved to another.
    fn contains_name(&self, bounds: &KeyBounds<Btree1GroupKey>, name: &Name) -> Result<bool> {
        let order = |key: Option<Btree1GroupKey>| {
            key.map(|Btree1GroupKey(offset)| self.names.compare_string(offset, name)).transpose()
        };
        let is_behind = order(bounds.begin)?.is_none_or(|begin| begin == Ordering::Less);
        Ok(is_behind && order(bounds.end)? != Some(Ordering::Less))
    }
}

impl KeyRange<Btree1GroupKey> for NameOrder<'_> {
    fn is_before(&self, key: &Btree1GroupKey, other: &Btree1GroupKey) -> Result<bool> {
        Ok(self.names.compare_string(key.0, &self.names.read_string(other.0)?)? == Ordering::Less)
    }

    fn may_contain(&self, _level: u8, between: &KeyBounds<Btree1GroupKey>) -> bool {
        let (Some(after), Some(Btree1GroupKey(end))) = (self.after, between.end) else { return true };
        // A key that cannot be read is an error when the child is visited.
        self.names.compare_string(end, after).map_or(true, |order| order == Ordering::Greater)
    }
}

/// How many of the indices below `len` come first for which `before` holds.
fn partition_point(len: usize, mut before: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}
