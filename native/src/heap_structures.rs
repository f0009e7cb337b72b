//! The fractal heaps and symbol tables of a file, in which its links and attributes are. What removed ones leave in them
//! can be used again after a flush.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_format::Addr;
use h5live_format::messages::{BtreeK, FilterPipelineMessage, SymbolTableMessage};
use h5live_indexes::{FractalHeap, HeapFreeSpace, HeapParameters, ObjectMetadata, SymbolTable};
use h5live_model::Unfilter;
use parking_lot::Mutex;

use crate::Result;

/// The way to the heaps and symbol tables of a file, with the known free space of those that this session has changed.
#[derive(Debug)]
pub(crate) struct HeapStructures {
    /// Undoes the filters of filtered heaps.
    unfilter: Arc<dyn Unfilter>,
    /// The sizes of version 1 B-tree nodes.
    btree_k: BtreeK,
    /// The heaps that were changed.
    heaps: Mutex<BTreeMap<Addr, FractalHeap>>,
    /// For all heaps that are only read: their free space is never known.
    unknown: Arc<HeapFreeSpace>,
    /// The symbol tables that were changed, by the addresses of their names.
    tables: Mutex<BTreeMap<Addr, SymbolTable>>,
    /// The headers of the objects to which the changed heaps belong.
    owners: Mutex<BTreeSet<Addr>>,
    /// Bytes of the largest heap of names from which some were removed since the last flush.
    names: AtomicU64,
}

impl HeapStructures {
    /// The heaps and symbol tables of a file with B-tree nodes of these sizes. None was changed yet.
    pub fn new(unfilter: Arc<dyn Unfilter>, btree_k: BtreeK) -> Self {
        HeapStructures {
            unfilter,
            btree_k,
            heaps: Mutex::default(),
            unknown: Arc::default(),
            tables: Mutex::default(),
            owners: Mutex::default(),
            names: AtomicU64::new(0),
        }
    }

    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be read.
    pub fn fractal_heap(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        FractalHeap::new(metadata.clone(), addr, self.unfilter.clone(), self.unknown.clone())
    }

    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be changed.
    pub fn fractal_heap_for_writing(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        let open = || FractalHeap::new(metadata.clone(), addr, self.unfilter.clone(), Arc::default());
        self.owners.lock().insert(metadata.owner().header());
        self.heaps.lock().entry(addr).or_insert_with(open).clone()
    }

    /// A new fractal heap for the object of `metadata`, with these filters, if there are any.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_fractal_heap(
        &self,
        metadata: &ObjectMetadata,
        parameters: &HeapParameters,
        filters: Option<FilterPipelineMessage>,
    ) -> Result<FractalHeap> {
        let unfilter = self.unfilter.clone();
        let heap = FractalHeap::create(metadata.clone(), unfilter, parameters, filters, Arc::default())?;
        self.owners.lock().insert(metadata.owner().header());
        self.heaps.lock().insert(heap.addr(), heap.clone());
        Ok(heap)
    }

    /// The symbol table to which a group's message leads, to be read.
    pub fn symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        let SymbolTableMessage { btree, heap } = *message;
        SymbolTable::new(metadata.clone(), btree, heap, self.btree_k, Arc::default())
    }

    /// The symbol table to which a group's message leads, to be changed.
    pub fn symbol_table_for_writing(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        let open = || self.symbol_table(metadata, message);
        self.tables.lock().entry(message.heap).or_insert_with(open).clone()
    }

    /// A new symbol table for the group of `metadata`.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_symbol_table(&self, metadata: &ObjectMetadata) -> Result<SymbolTable> {
        let table = SymbolTable::create(metadata.clone(), self.btree_k, Arc::default())?;
        self.tables.lock().insert(table.tree_and_heap_addrs().1, table.clone());
        Ok(table)
    }

    /// Gives up a symbol table.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> Result<()> {
        self.tables.lock().remove(&message.heap);
        Ok(self.symbol_table(metadata, message).delete_table()?)
    }

    /// The symbol tables that were changed.
    pub fn tables(&self) -> Vec<SymbolTable> {
        self.tables.lock().values().cloned().collect()
    }

    /// Gives up what the last flush has made unreachable, and says whether there was any.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn reclaim(&self) -> Result<bool> {
        let heaps: Vec<_> = self.heaps.lock().values().cloned().collect();
        let mut settled = false;
        for heap in heaps {
            settled |= heap.reclaim_space()?;
        }
        for table in self.tables() {
            settled |= table.write_free_name_list()?;
        }
        Ok(settled)
    }

    /// Names were removed from this table.
    ///
    /// # Errors
    /// If its heap cannot be read.
    pub fn note_removed_names(&self, table: &SymbolTable) -> Result<()> {
        self.names.fetch_max(table.heap_bytes()?, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of the largest heap in which the next flush makes names free, which the flush may have to write; 0 for
    /// none.
    pub fn pending_name_bytes(&self) -> u64 {
        self.names.load(Ordering::Relaxed)
    }

    /// A whole flush begins.
    pub fn begin_flush(&self) {
        self.names.store(0, Ordering::Relaxed);
    }

    /// The headers of the objects whose heaps were changed. They are forgotten.
    pub fn take_owners(&self) -> BTreeSet<Addr> {
        std::mem::take(&mut *self.owners.lock())
    }

    /// The object with its header at `owner` is no more.
    pub fn forget_owner(&self, owner: Addr) {
        self.owners.lock().remove(&owner);
    }
}
