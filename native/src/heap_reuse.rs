//! Space inside structures: what removed links and attributes leave in heaps can be used again after a flush.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_cache::FlushScope;
use h5live_format::messages::{AttributeInfo, FilterPipelineMessage, LinkInfo, SymbolTableMessage};
use h5live_format::{Addr, AttributeNameRecord, LinkNameRecord, LinkOrderRecord};
use h5live_indexes::{Btree2, FractalHeap, HeapFreeSpace, HeapParameters, ObjectMetadata, SymbolTable};
use parking_lot::Mutex;

use crate::Result;
use crate::header::CachedHeader;
use crate::session::NativeSession;

/// The heaps that this session has changed, with the known free space of each.
#[derive(Debug, Default)]
pub(crate) struct HeapReuse {
    heaps: Mutex<BTreeMap<Addr, FractalHeap>>,
    /// For all heaps that are only read: their free space is never known.
    unknown: Arc<HeapFreeSpace>,
    tables: Mutex<BTreeMap<Addr, SymbolTable>>,
    /// The headers of the objects to which the heaps belong.
    owners: Mutex<BTreeSet<Addr>>,
    /// Bytes of the largest heap of names from which some were removed since the last flush.
    names: AtomicU64,
}

impl NativeSession {
    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be read.
    pub fn fractal_heap(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        self.fractal_heap_with(metadata, addr, self.heap_reuse.unknown.clone())
    }

    fn fractal_heap_with(&self, metadata: &ObjectMetadata, addr: Addr, space: Arc<HeapFreeSpace>) -> FractalHeap {
        FractalHeap::new(metadata.clone(), addr, self.unfilter.clone(), space)
    }

    /// The fractal heap at `addr`, which belongs to the object of `metadata`, to be changed.
    pub fn fractal_heap_for_writing(&self, metadata: &ObjectMetadata, addr: Addr) -> FractalHeap {
        self.heap_reuse.owners.lock().insert(metadata.owner().header());
        let mut heaps = self.heap_reuse.heaps.lock();
        heaps.entry(addr).or_insert_with(|| self.fractal_heap_with(metadata, addr, Arc::default())).clone()
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
        self.heap_reuse.owners.lock().insert(metadata.owner().header());
        self.heap_reuse.heaps.lock().insert(heap.addr(), heap.clone());
        Ok(heap)
    }

    /// The symbol table to which a group's message leads, to be read.
    pub fn symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        let SymbolTableMessage { btree, heap } = *message;
        SymbolTable::new(metadata.clone(), btree, heap, self.extension.btree_k, Arc::default())
    }

    /// The symbol table to which a group's message leads, to be changed.
    pub fn symbol_table_for_writing(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> SymbolTable {
        let mut tables = self.heap_reuse.tables.lock();
        tables.entry(message.heap).or_insert_with(|| self.symbol_table(metadata, message)).clone()
    }

    /// A new symbol table for the group of `metadata`.
    ///
    /// # Errors
    /// If there is no room.
    pub fn new_symbol_table(&self, metadata: &ObjectMetadata) -> Result<SymbolTable> {
        let table = SymbolTable::create(metadata.clone(), self.extension.btree_k, Arc::default())?;
        self.heap_reuse.tables.lock().insert(table.addrs().1, table.clone());
        Ok(table)
    }

    /// Gives up a symbol table.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_symbol_table(&self, metadata: &ObjectMetadata, message: &SymbolTableMessage) -> Result<()> {
        self.heap_reuse.tables.lock().remove(&message.heap);
        Ok(self.symbol_table(metadata, message).delete()?)
    }

    /// Gives up what the last flush has made unreachable, and says whether there was any.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn reclaim_heap_space(&self) -> Result<bool> {
        let heaps: Vec<_> = self.heap_reuse.heaps.lock().values().cloned().collect();
        let _operation = self.cache.begin_operation();
        let mut settled = false;
        for heap in heaps {
            settled |= heap.reclaim()?;
        }
        let tables: Vec<_> = self.heap_reuse.tables.lock().values().cloned().collect();
        for table in tables {
            settled |= table.finalize_names()?;
        }
        Ok(settled)
    }

    /// Names were removed from this table.
    ///
    /// # Errors
    /// If its heap cannot be read.
    pub fn note_removed_names(&self, table: &SymbolTable) -> Result<()> {
        self.heap_reuse.names.fetch_max(table.heap_size()?, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of the largest heap in which the next flush makes names free, which the flush may have to write; 0 for
    /// none.
    pub fn pending_name_heap_bytes(&self) -> u64 {
        self.heap_reuse.names.load(Ordering::Relaxed)
    }

    /// A whole flush begins.
    pub fn begin_name_flush(&self) {
        self.heap_reuse.names.store(0, Ordering::Relaxed);
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
        for owner in std::mem::take(&mut *self.heap_reuse.owners.lock()) {
            // A structure that cannot be read stays where it is. A hole is no error.
            packed |= self.header(owner).and_then(|header| self.pack_dense(&header, limit)).unwrap_or(false);
        }
        let tables: Vec<_> = self.heap_reuse.tables.lock().values().cloned().collect();
        let mut copies = Vec::new();
        for table in tables {
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

    /// The object with its header at `owner` is no more.
    pub fn forget_owner(&self, owner: Addr) {
        self.heap_reuse.owners.lock().remove(&owner);
    }
}
