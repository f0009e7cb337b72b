//! Space inside structures: what removed links and attributes leave in heaps can be used again after a flush.

use std::collections::HashMap;
use std::sync::Arc;

use h5live_format::Addr;
use h5live_format::messages::SymbolTable as SymbolTableMessage;
use h5live_indexes::{FractalHeap, HeapParameters, ObjectMetadata, SymbolTable};
use parking_lot::Mutex;

use crate::Result;
use crate::session::Session;

/// The heaps that this session has changed, each with what is known of its free space.
#[derive(Debug, Default)]
pub(crate) struct InnerSpace {
    heaps: Mutex<HashMap<Addr, FractalHeap>>,
    tables: Mutex<HashMap<Addr, SymbolTable>>,
}

impl Session {
    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be read.
    pub fn fractal_heap(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        FractalHeap::new(metadata.clone(), addr, self.unfilter.clone(), Arc::default())
    }

    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be changed.
    pub fn fractal_heap_for_writing(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        let mut heaps = self.inner.heaps.lock();
        heaps.entry(addr).or_insert_with(|| self.fractal_heap(metadata, addr)).clone()
    }

    /// A new fractal heap for the object of `metadata`.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_fractal_heap(&self, metadata: &ObjectMetadata, parameters: &HeapParameters) -> Result<FractalHeap> {
        let heap = FractalHeap::create(metadata.clone(), self.unfilter.clone(), parameters, Arc::default())?;
        self.inner.heaps.lock().insert(heap.addr(), heap.clone());
        Ok(heap)
    }

    /// The symbol table to which a group's message leads, to be read.
    pub fn symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        let SymbolTableMessage { btree, heap } = *message;
        SymbolTable::new(metadata.clone(), btree, heap, self.extension.btree_k, Arc::default())
    }

    /// The symbol table to which a group's message leads, to be changed.
    pub fn symbol_table_for_writing(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        let mut tables = self.inner.tables.lock();
        tables.entry(message.heap).or_insert_with(|| self.symbol_table(metadata, message)).clone()
    }

    /// A new symbol table for the group of `metadata`.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_symbol_table(&self, metadata: &ObjectMetadata) -> Result<SymbolTable> {
        Ok(SymbolTable::create(metadata.clone(), self.extension.btree_k, Arc::default())?)
    }

    /// Gives up a symbol table.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> Result<()> {
        self.inner.tables.lock().remove(&message.heap);
        Ok(self.symbol_table(metadata, message).delete()?)
    }

    /// Gives up what the last flush has made unreachable, and says whether there was any.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn settle_inner_space(&self) -> Result<bool> {
        let heaps: Vec<_> = self.inner.heaps.lock().values().cloned().collect();
        let _operation = self.cache.operation();
        let mut settled = false;
        for heap in heaps {
            settled |= heap.settle()?;
        }
        let tables: Vec<_> = self.inner.tables.lock().values().cloned().collect();
        for table in tables {
            settled |= table.settle()?;
        }
        Ok(settled)
    }
}
