//! Symbol tables: the links of old-style groups.

use std::cmp::Ordering;

use h5live_format::messages::BtreeK;
use h5live_format::{
    Addr, Btree1Node, GroupKey, LocalHeap, LocalHeapData, SymbolCache, SymbolTableEntry, SymbolTableNode,
};
use h5live_model::Name;

use crate::btree1::Btree1;
use crate::{Error, ObjectMetadata, Result};

/// Where an old-style link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SymbolTarget {
    /// To the object with its header here.
    Object(Addr),
    /// Along a path.
    Path(Name),
}

/// The symbol table of one group: a version 1 B-tree whose leaves lead to nodes of entries, and a local heap of names
/// (format specification 4.0, III.A.1, III.B to III.D).
#[derive(Debug, Clone)]
pub struct SymbolTable {
    metadata: ObjectMetadata,
    tree: Btree1<GroupKey>,
    heap: Addr,
    k: BtreeK,
}

impl SymbolTable {
    /// The table with its B-tree at `btree` and its heap at `heap`, in a file of these K values.
    pub fn new(metadata: ObjectMetadata, btree: Addr, heap: Addr, k: BtreeK) -> Self {
        let tree = Btree1::new(metadata.clone(), btree, k.group_internal, ());
        SymbolTable { metadata, tree, heap, k }
    }

    fn names(&self) -> Result<Names> {
        let prefix =
            self.metadata.load(self.heap, LocalHeap::prefix_size(self.metadata.widths()) as u64, LocalHeap::default)?;
        let (data, size) = {
            let prefix = prefix.read();
            (prefix.data, prefix.size)
        };
        if size == 0 {
            return Ok(Names { at: self.heap, data: None });
        }
        let data = self.metadata.load(data, size, LocalHeapData::default)?;
        Ok(Names { at: self.heap, data: Some(data) })
    }

    fn entries(&self, addr: Addr) -> Result<Vec<SymbolTableEntry>> {
        let empty = SymbolTableNode::for_k(self.k);
        let node = self.metadata.load(addr, empty.size(self.metadata.widths()) as u64, || empty)?;
        let entries = node.read().entries.clone();
        Ok(entries)
    }

    fn target(names: &Names, entry: &SymbolTableEntry) -> Result<SymbolTarget> {
        match entry.cache {
            SymbolCache::SoftLink { value_offset } => Ok(SymbolTarget::Path(names.get(value_offset.into())?)),
            _ => Ok(SymbolTarget::Object(entry.header)),
        }
    }

    /// Where the link of this name leads.
    ///
    /// # Errors
    /// If a node or the heap cannot be read.
    pub fn find(&self, name: &Name) -> Result<Option<SymbolTarget>> {
        let names = self.names()?;
        let choose = |node: &Btree1Node<GroupKey>| {
            // The names below child `i` are not greater than key `i + 1`.
            partition(node.len(), |i| {
                let GroupKey(offset) = node.key(i + 1).unwrap_or_default();
                Ok(names.compare(offset, name)? == Ordering::Less)
            })
            .map(|child| (child < node.len()).then_some(child))
        };
        let Some((_, node)) = self.tree.find(choose)? else { return Ok(None) };
        let entries = self.entries(node)?;
        let offset = |i: usize| entries.get(i).map_or(0, |entry| entry.name_offset);
        let found = partition(entries.len(), |i| Ok(names.compare(offset(i), name)? == Ordering::Less))?;
        match entries.get(found) {
            Some(entry) if names.compare(entry.name_offset, name)? == Ordering::Equal => {
                Self::target(&names, entry).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Calls `each` with every link in the order of names, until it returns `false`.
    ///
    /// # Errors
    /// The first error of `each`; if a node or the heap cannot be read.
    pub fn for_each<E: From<Error>>(
        &self,
        each: &mut dyn FnMut(Name, SymbolTarget) -> Result<bool, E>,
    ) -> Result<(), E> {
        let names = self.names()?;
        self.tree.for_each(&mut |_, node| {
            for entry in self.entries(node)? {
                if !each(names.get(entry.name_offset)?, Self::target(&names, &entry)?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// The strings of a local heap.
struct Names {
    at: Addr,
    data: Option<h5live_cache::Handle<LocalHeapData>>,
}

impl Names {
    fn with<T>(&self, look: impl FnOnce(&LocalHeapData) -> h5live_format::Result<T>) -> Result<T> {
        let found = match &self.data {
            Some(data) => look(&data.read()),
            None => look(&LocalHeapData::default()),
        };
        found.map_err(|source| Error::Cache(h5live_cache::Error::Decode { at: self.at, source }))
    }

    fn get(&self, offset: u64) -> Result<Name> {
        self.with(|data| data.string(offset))
    }

    fn compare(&self, offset: u64, name: &Name) -> Result<Ordering> {
        self.with(|data| Ok(data.text(offset)?.cmp(name.as_bytes())))
    }
}

/// How many of the indices below `len` come first for which `before` holds.
fn partition(len: usize, mut before: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}
