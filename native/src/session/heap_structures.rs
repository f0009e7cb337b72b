//! The fractal heaps and symbol tables of a file, and packing them when it is closed.

use std::sync::Arc;

use h5live_cache::FlushScope;
use h5live_format::messages::{AttributeInfo, FilterPipelineMessage, LinkInfo, SymbolTableMessage};
use h5live_format::{Addr, AttributeNameRecord, LinkNameRecord, LinkOrderRecord};
use h5live_indexes::{Btree2, FractalHeap, HeapFreeSpace, HeapParameters, ObjectMetadata, SymbolTable};

use super::NativeSession;
use crate::Result;
use crate::header::CachedHeader;

impl NativeSession {
    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be read.
    pub fn fractal_heap(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        self.fractal_heap_with(metadata, addr, self.heap_reuse.unknown_space())
    }

    fn fractal_heap_with(&self, metadata: &ObjectMetadata, addr: Addr, space: Arc<HeapFreeSpace>) -> FractalHeap {
        FractalHeap::new(metadata.clone(), addr, self.unfilter.clone(), space)
    }

    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be changed.
    pub fn fractal_heap_for_writing(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        let open = || self.fractal_heap_with(metadata, addr, Arc::default());
        self.heap_reuse.heap(metadata.owner().header(), addr, open)
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
        self.heap_reuse.add_heap(metadata.owner().header(), heap.clone());
        Ok(heap)
    }

    /// The symbol table to which a group's message leads, to be read.
    pub fn symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        let SymbolTableMessage { btree, heap } = *message;
        SymbolTable::new(metadata.clone(), btree, heap, self.extension.btree_k, Arc::default())
    }

    /// The symbol table to which a group's message leads, to be changed.
    pub fn symbol_table_for_writing(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        self.heap_reuse.table(message.heap, || self.symbol_table(metadata, message))
    }

    /// A new symbol table for the group of `metadata`.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_symbol_table(&self, metadata: &ObjectMetadata) -> Result<SymbolTable> {
        let table = SymbolTable::create(metadata.clone(), self.extension.btree_k, Arc::default())?;
        self.heap_reuse.add_table(table.clone());
        Ok(table)
    }

    /// Gives up a symbol table.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> Result<()> {
        self.heap_reuse.forget_table(message.heap);
        Ok(self.symbol_table(metadata, message).delete()?)
    }

    /// Gives up what the last flush has made unreachable, and says whether there was any.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn reclaim_heap_space(&self) -> Result<bool> {
        let _operation = self.cache.begin_operation();
        self.heap_reuse.reclaim()
    }

    /// Where the file would end if nothing in it were free.
    fn packed_end(&self) -> u64 {
        let space = self.cache.space();
        space.end().saturating_sub(space.free_bytes())
    }

    /// Moves simple structures from the end of the file into free space. Everything was flushed before, and is flushed
    /// after. A power failure might tear such a move, so durable sessions leave holes instead.
    ///
    /// # Errors
    /// If a structure cannot be read, or a flush fails.
    pub fn pack(&self) -> Result<()> {
        let limit = self.packed_end();
        if self.is_durable() || limit == self.cache.space().end() {
            return Ok(());
        }
        let operation = self.cache.begin_operation();
        let mut packed = false;
        for owner in self.heap_reuse.take_owners() {
            // A structure that cannot be read stays where it is. A hole is no error.
            packed |= self.header(owner).and_then(|header| self.pack_dense(&header, limit)).unwrap_or(false);
        }
        let mut copies = Vec::new();
        for table in self.heap_reuse.tables() {
            copies.extend(table.pack(limit).unwrap_or(None));
        }
        drop(operation);
        if packed || !copies.is_empty() {
            self.cache.flush(FlushScope::All)?;
        }
        if !copies.is_empty() {
            let operation = self.cache.begin_operation();
            copies.into_iter().try_for_each(|copies| copies.commit())?;
            drop(operation);
            self.cache.flush(FlushScope::All)?;
        }
        Ok(())
    }

    /// Packs the indexes of dense links and attributes.
    fn pack_dense(&self, header: &CachedHeader, limit: u64) -> Result<bool> {
        let metadata = || header.metadata().clone();
        let mut packed = false;
        if let Some(info) = header.get::<LinkInfo>()?.filter(LinkInfo::is_dense) {
            packed |= Btree2::new(metadata(), info.names, LinkNameRecord::default()).pack(limit)?;
            if let Some(order) = info.order.filter(|order| order.is_defined()) {
                packed |= Btree2::new(metadata(), order, LinkOrderRecord::default()).pack(limit)?;
            }
        }
        if let Some(info) = header.get::<AttributeInfo>()?.filter(AttributeInfo::is_dense) {
            packed |= Btree2::new(metadata(), info.names, AttributeNameRecord::default()).pack(limit)?;
        }
        Ok(packed)
    }
}
