//! Dense storage: a heap of messages, an index of their names, and perhaps one of the order of creation. Links and
//! attributes have the same.

use std::collections::HashMap;
use std::hash::Hash;

use h5live_cache::DependencyKind;
use h5live_format::{Addr, Btree2Record, LinkNameRecord, LinkOrderRecord, lookup3};
use h5live_indexes::{Btree2, FractalHeap, ObjectMetadataAccess};
use h5live_model::Name;

use crate::header::CachedHeader;
use crate::{Error, Result};

/// Bytes of a node of the indexes.
const INDEX_NODE_BYTES: u32 = 512;

/// The structures of dense links, or of dense attributes. `N` and `O` are the records of the two indexes.
#[derive(Debug)]
pub(crate) struct DenseStorage<N, O> {
    pub heap: FractalHeap,
    pub names: Btree2<N>,
    pub order: Option<Btree2<O>>,
}

/// Those of dense links.
pub(crate) type DenseLinkStorage = DenseStorage<LinkNameRecord, LinkOrderRecord>;

/// A part of a list in the order of the hashes of names. It ends where the hash changes: names of one hash are in no order
/// that all programs keep.
#[derive(Debug)]
pub(crate) struct HashOrderedPage {
    /// The hash of the name that the part comes after.
    after: Option<u32>,
    last: Option<u32>,
    is_full: bool,
    is_ended: bool,
}

impl HashOrderedPage {
    pub fn after(name: Option<&Name>) -> Self {
        let after = name.map(|name| lookup3(name.as_bytes(), 0));
        HashOrderedPage { after, last: None, is_full: false, is_ended: false }
    }

    /// Whether records with this hash are none of the part, but of one before.
    pub fn hash_precedes_page(&self, hash: u32) -> bool {
        self.after.is_some_and(|after| hash <= after)
    }

    /// Takes the next record, of this hash, with `take`, which returns whether there is room for more. Returns whether
    /// the record is one of the part.
    ///
    /// # Errors
    /// The error of `take`.
    pub fn visit_if_in_page(&mut self, hash: u32, take: impl FnOnce() -> Result<bool>) -> Result<bool> {
        self.is_ended = self.is_full && self.last != Some(hash);
        if !self.is_ended {
            self.is_full |= !take()?;
            self.last = Some(hash);
        }
        Ok(!self.is_ended)
    }

    /// Whether there are records behind the part.
    pub fn has_more_after_page(&self) -> bool {
        self.is_ended
    }
}

impl<N: Btree2Record + Default, O: Btree2Record + Default> DenseStorage<N, O> {
    /// Whether the index of positions lacks something `expected`, or has anything else; with `repair`, it has exactly that
    /// afterwards. `key` and `position` are those of a record, and `add` adds the record of something expected.
    ///
    /// # Errors
    /// If a structure cannot be read or changed.
    pub fn find_or_repair_order_index_fault<K: Eq + Hash, V, P: Ord + Copy>(
        &self,
        mut expected: HashMap<K, V>,
        (key, position): (impl Fn(&O) -> K, impl Fn(&O) -> P),
        add: impl Fn(&Btree2<O>, K, V) -> Result<()>,
        repair: bool,
    ) -> Result<bool> {
        let Some(tree) = &self.order else { return Ok(false) };
        let mut old = Vec::new();
        tree.for_each(&mut |record| {
            if expected.remove(&key(&record)).is_none() {
                old.push(position(&record));
            }
            Ok::<_, Error>(true)
        })?;
        let is_wrong = !expected.is_empty() || !old.is_empty();
        if repair {
            for at in old {
                tree.remove(|held| Ok::<_, Error>(position(held).cmp(&at)))?;
            }
            expected.into_iter().try_for_each(|(key, value)| add(tree, key, value))?;
        }
        Ok(is_wrong)
    }

    /// The heap, with the indexes at these addresses.
    pub fn new(metadata: &ObjectMetadataAccess, heap: FractalHeap, names: Addr, order: Option<Addr>) -> Self {
        let order = order.map(|order| Btree2::new(metadata.clone(), order, O::default()));
        DenseStorage { heap, names: Btree2::new(metadata.clone(), names, N::default()), order }
    }

    /// Whether the heap and the indexes are at these addresses.
    pub fn is_at(&self, heap: Addr, names: Addr, order: Option<Addr>) -> bool {
        (self.heap.addr(), self.names.addr(), self.order.as_ref().map(Btree2::addr)) == (heap, names, order)
    }

    /// The heap, with new indexes.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(metadata: &ObjectMetadataAccess, heap: FractalHeap, has_order: bool) -> Result<Self> {
        let names = Btree2::create(metadata.clone(), N::default(), INDEX_NODE_BYTES)?;
        let order = match has_order {
            true => Some(Btree2::create(metadata.clone(), O::default(), INDEX_NODE_BYTES)?),
            false => None,
        };
        Ok(DenseStorage { heap, names, order })
    }

    /// Makes the indexes wait for the heap.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn make_indexes_wait_for_heap(&self) -> Result<()> {
        let heap = self.heap.dependency_node()?;
        self.names.depend_on(&heap, DependencyKind::DenseStorage)?;
        if let Some(order) = &self.order {
            order.depend_on(&heap, DependencyKind::DenseStorage)?;
        }
        Ok(())
    }

    /// Makes the header wait for the indexes, and these for the heap. Call it before an entry is added, because a
    /// structure to which the entry leads may already wait for the header.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn add_flush_parent(&self, header: &CachedHeader) -> Result<()> {
        let heap = self.heap.dependency_node()?;
        self.names.depend_on_with_parents(&heap, header.chunk_nodes(), DependencyKind::DenseStorage)?;
        if let Some(order) = &self.order {
            order.depend_on_with_parents(&heap, header.chunk_nodes(), DependencyKind::DenseStorage)?;
        }
        Ok(())
    }

    /// The number of entries.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn len(&self) -> Result<u64> {
        Ok(self.names.len()?)
    }

    /// Gives back the space of the heap and of the indexes.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete(&self) -> Result<()> {
        self.names.delete_tree()?;
        if let Some(order) = self.order.as_ref().filter(|order| order.addr().is_defined()) {
            order.delete_tree()?;
        }
        Ok(self.heap.delete_heap()?)
    }
}
