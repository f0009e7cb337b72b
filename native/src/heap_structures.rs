//! The fractal heaps and symbol tables of a file, in which its links and attributes are. What removed ones leave in them
//! can be used again after a flush.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_cache::Owner;
use h5live_format::Addr;
use h5live_format::messages::{BtreeK, FilterPipelineMessage, LinkInfo, SymbolTableMessage};
use h5live_indexes::{FractalHeap, FractalHeapFreeSpace, HeapParameters, ObjectMetadataAccess, SymbolTable};
use h5live_model::FilterEngine;
use parking_lot::Mutex;

use crate::Result;
use crate::dense_storage::DenseLinkStorage;

/// The way to the heaps and symbol tables of a file, with the known free space of those that this session has changed.
#[derive(Debug)]
pub(crate) struct HeapStructures {
    /// Undoes the filters of filtered heaps.
    unfilter: Arc<dyn FilterEngine>,
    /// The sizes of version 1 B-tree nodes.
    btree_k: BtreeK,
    /// The heaps that were changed.
    changed_heaps: Mutex<BTreeMap<Addr, FractalHeap>>,
    /// The dense links that were changed last, with their group: many come into one group after each other.
    last_dense_links: Mutex<Option<(Owner, Arc<DenseLinkStorage>)>>,
    /// For all heaps that are only read: their free space is never known.
    unknown_free_space: Arc<FractalHeapFreeSpace>,
    /// The symbol tables that were changed, by the addresses of their names.
    changed_tables: Mutex<BTreeMap<Addr, SymbolTable>>,
    /// The headers of the objects to which the changed heaps belong.
    changed_owners: Mutex<BTreeSet<Addr>>,
    /// Bytes of the largest heap of names from which some were removed since the last flush.
    removed_name_bytes: AtomicU64,
}

impl HeapStructures {
    /// The heaps and symbol tables of a file with B-tree nodes of these sizes. None was changed yet.
    pub fn new(filter_engine: Arc<dyn FilterEngine>, btree_k: BtreeK) -> Self {
        HeapStructures {
            unfilter: filter_engine,
            btree_k,
            changed_heaps: Mutex::default(),
            last_dense_links: Mutex::default(),
            unknown_free_space: Arc::default(),
            changed_tables: Mutex::default(),
            changed_owners: Mutex::default(),
            removed_name_bytes: AtomicU64::new(0),
        }
    }

    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be read.
    pub fn fractal_heap(&self, metadata: &ObjectMetadataAccess, addr: Addr) -> FractalHeap {
        FractalHeap::new(metadata.clone(), addr, self.unfilter.clone(), self.unknown_free_space.clone())
    }

    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be changed.
    pub fn fractal_heap_for_writing(&self, metadata: &ObjectMetadataAccess, addr: Addr) -> FractalHeap {
        let open = || FractalHeap::new(metadata.clone(), addr, self.unfilter.clone(), Arc::default());
        self.changed_owners.lock().insert(metadata.owner().object_header_addr());
        self.changed_heaps.lock().entry(addr).or_insert_with(open).clone()
    }

    /// The dense links to which `info` leads, of the group of `metadata`, to be changed.
    pub fn dense_links_for_writing(&self, metadata: &ObjectMetadataAccess, info: &LinkInfo) -> Arc<DenseLinkStorage> {
        let mut last = self.last_dense_links.lock();
        if let Some((group, links)) = &*last
            && *group == metadata.owner()
            && links.is_at(info.heap, info.name_index, info.order_index)
        {
            self.changed_owners.lock().insert(group.object_header_addr());
            return links.clone();
        }
        let heap = self.fractal_heap_for_writing(metadata, info.heap);
        let links = Arc::new(DenseLinkStorage::new(metadata, heap, info.name_index, info.order_index));
        *last = Some((metadata.owner(), links.clone()));
        links
    }

    /// A new fractal heap for the object of `metadata`, with these filters, if there are any.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_fractal_heap(
        &self,
        metadata: &ObjectMetadataAccess,
        parameters: &HeapParameters,
        filters: Option<FilterPipelineMessage>,
    ) -> Result<FractalHeap> {
        let unfilter = self.unfilter.clone();
        let heap = FractalHeap::create(metadata.clone(), unfilter, parameters, filters, Arc::default())?;
        self.changed_owners.lock().insert(metadata.owner().object_header_addr());
        self.changed_heaps.lock().insert(heap.addr(), heap.clone());
        // The heap may be where another one was.
        *self.last_dense_links.lock() = None;
        Ok(heap)
    }

    /// The symbol table to which a group's message leads, to be read.
    pub fn symbol_table(&self, metadata: &ObjectMetadataAccess, message: &SymbolTableMessage) -> SymbolTable {
        let SymbolTableMessage { btree, heap } = *message;
        SymbolTable::new(metadata.clone(), btree, heap, self.btree_k, Arc::default())
    }

    /// The symbol table to which a group's message leads, to be changed.
    pub fn symbol_table_for_writing(
        &self,
        metadata: &ObjectMetadataAccess,
        message: &SymbolTableMessage,
    ) -> SymbolTable {
        let open = || self.symbol_table(metadata, message);
        self.changed_tables.lock().entry(message.heap).or_insert_with(open).clone()
    }

    /// A new symbol table for the group of `metadata`.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_symbol_table(&self, metadata: &ObjectMetadataAccess) -> Result<SymbolTable> {
        let table = SymbolTable::create(metadata.clone(), self.btree_k, Arc::default())?;
        self.changed_tables.lock().insert(table.tree_and_heap_addrs().1, table.clone());
        Ok(table)
    }

    /// Gives up a symbol table.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_symbol_table(&self, metadata: &ObjectMetadataAccess, message: &SymbolTableMessage) -> Result<()> {
        self.changed_tables.lock().remove(&message.heap);
        Ok(self.symbol_table(metadata, message).delete_table()?)
    }

    /// The symbol tables that were changed.
    pub fn changed_symbol_tables(&self) -> Vec<SymbolTable> {
        self.changed_tables.lock().values().cloned().collect()
    }

    /// Gives up what the last flush has made unreachable, and says whether there was any.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn reclaim_freed_space(&self) -> Result<bool> {
        let heaps: Vec<_> = self.changed_heaps.lock().values().cloned().collect();
        let mut settled = false;
        for heap in heaps {
            settled |= heap.reclaim_space()?;
        }
        for table in self.changed_symbol_tables() {
            settled |= table.finalize_name_heap_if_changed()?;
        }
        Ok(settled)
    }

    /// Names were removed from this table.
    ///
    /// # Errors
    /// If its heap cannot be read.
    pub fn record_reclaimable_name_heap(&self, table: &SymbolTable) -> Result<()> {
        self.removed_name_bytes.fetch_max(table.name_heap_bytes()?, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of the largest heap in which the next flush makes names free, which the flush may have to write; 0 for
    /// none.
    pub fn largest_reclaimable_name_heap_bytes(&self) -> u64 {
        self.removed_name_bytes.load(Ordering::Relaxed)
    }

    /// A whole flush begins.
    pub fn reset_largest_reclaimable_name_heap(&self) {
        self.removed_name_bytes.store(0, Ordering::Relaxed);
    }

    /// The headers of the objects whose heaps were changed. They are forgotten.
    pub fn take_changed_heap_owners(&self) -> BTreeSet<Addr> {
        std::mem::take(&mut *self.changed_owners.lock())
    }

    /// The object with its header at `owner` is no more.
    pub fn forget_changed_heap_owner(&self, owner: Addr) {
        self.changed_owners.lock().remove(&owner);
    }
}
