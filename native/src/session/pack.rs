//! Packing the file when it is closed: structures of links and attributes move from its end into free space.

use h5live_cache::FlushScope;
use h5live_format::messages::{AttributeInfo, LinkInfo};
use h5live_format::{AttributeNameRecord, LinkNameRecord, LinkOrderRecord};
use h5live_indexes::Btree2;

use super::NativeSession;
use crate::Result;
use crate::header::CachedHeader;

impl NativeSession {
    /// Gives up what the last flush has made unreachable, and says whether there was any.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn reclaim_heap_space(&self) -> Result<bool> {
        let _operation = self.cache.begin_atomic_change();
        Ok(self.global_heap.reclaim_removed_objects() | self.heaps.reclaim_freed_space()?)
    }

    /// Where the file would end if nothing in it were free.
    fn end_without_free_space(&self) -> u64 {
        let space = self.cache.space();
        space.allocated_end().saturating_sub(space.free_bytes())
    }

    /// Moves simple structures from the end of the file into free space. Everything was flushed before, and is flushed
    /// after. A power failure might tear such a move, so durable sessions leave holes instead.
    ///
    /// # Errors
    /// If a structure cannot be read, or a flush fails.
    pub fn move_structures_from_file_end(&self) -> Result<()> {
        let limit = self.end_without_free_space();
        if self.durable_flushes.is_always() || limit == self.cache.space().allocated_end() {
            return Ok(());
        }
        let operation = self.cache.begin_atomic_change();
        let mut packed = false;
        for owner in self.heaps.take_changed_heap_owners() {
            // A structure that cannot be read stays where it is. A hole is no error.
            packed |= self
                .load_header(owner)
                .and_then(|header| self.move_dense_storage_before(&header, limit))
                .unwrap_or(false);
        }
        let mut copies = Vec::new();
        for table in self.heaps.changed_symbol_tables() {
            copies.extend(table.copy_nodes_before(limit).unwrap_or(None));
        }
        drop(operation);
        if packed || !copies.is_empty() {
            self.cache.flush(FlushScope::All)?;
        }
        if !copies.is_empty() {
            let operation = self.cache.begin_atomic_change();
            copies.into_iter().try_for_each(|copies| copies.switch_to_copies())?;
            drop(operation);
            self.cache.flush(FlushScope::All)?;
        }
        Ok(())
    }

    /// Packs the indexes of dense links and attributes.
    fn move_dense_storage_before(&self, header: &CachedHeader, limit: u64) -> Result<bool> {
        let metadata = || header.metadata().clone();
        let mut packed = false;
        if let Some(info) = header.get_message::<LinkInfo>()?.filter(LinkInfo::is_dense) {
            packed |= Btree2::new(metadata(), info.name_index, LinkNameRecord::default()).move_nodes_before(limit)?;
            if let Some(order) = info.order_index.filter(|order| order.is_defined()) {
                packed |= Btree2::new(metadata(), order, LinkOrderRecord::default()).move_nodes_before(limit)?;
            }
        }
        if let Some(info) = header.get_message::<AttributeInfo>()?.filter(AttributeInfo::is_dense) {
            packed |=
                Btree2::new(metadata(), info.name_index, AttributeNameRecord::default()).move_nodes_before(limit)?;
        }
        Ok(packed)
    }
}
