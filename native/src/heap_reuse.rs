//! The heaps and symbol tables that a session has changed: what removed links and attributes leave in them can be used
//! again after a flush.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_format::Addr;
use h5live_indexes::{FractalHeap, HeapFreeSpace, SymbolTable};
use parking_lot::Mutex;

use crate::Result;

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

impl HeapReuse {
    /// The free space of a heap that is only read: it is not known.
    pub fn unknown_space(&self) -> Arc<HeapFreeSpace> {
        self.unknown.clone()
    }

    /// The heap at `addr`, which belongs to the object `owner` and is to be changed; `open` opens it.
    pub fn heap(&self, owner: Addr, addr: Addr, open: impl FnOnce() -> FractalHeap) -> FractalHeap {
        self.owners.lock().insert(owner);
        self.heaps.lock().entry(addr).or_insert_with(open).clone()
    }

    /// Adds a new heap, which belongs to the object `owner`.
    pub fn add_heap(&self, owner: Addr, heap: FractalHeap) {
        self.owners.lock().insert(owner);
        self.heaps.lock().insert(heap.addr(), heap);
    }

    /// Adds a new symbol table.
    pub fn add_table(&self, table: SymbolTable) {
        self.tables.lock().insert(table.addrs().1, table);
    }

    /// The symbol table with its names at `heap`, which is to be changed; `open` opens it.
    pub fn table(&self, heap: Addr, open: impl FnOnce() -> SymbolTable) -> SymbolTable {
        self.tables.lock().entry(heap).or_insert_with(open).clone()
    }

    /// The symbol table with its names at `heap` is no more.
    pub fn forget_table(&self, heap: Addr) {
        self.tables.lock().remove(&heap);
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
            settled |= heap.reclaim()?;
        }
        for table in self.tables() {
            settled |= table.finalize_names()?;
        }
        Ok(settled)
    }

    /// Names were removed from this table.
    ///
    /// # Errors
    /// If its heap cannot be read.
    pub fn note_removed_names(&self, table: &SymbolTable) -> Result<()> {
        self.names.fetch_max(table.heap_size()?, Ordering::Relaxed);
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
