//! Giving back what deleted objects had.

use h5live_format::LocalHeapPrefix;
use h5live_format::messages::{AttributeInfo, ExternalFiles, LinkInfo, SymbolTableMessage};

use super::NativeSession;
use crate::Result;
use crate::attributes::DenseAttributes;
use crate::header::CachedHeader;
use crate::links::DenseLinks;
use crate::unlinked_objects::DeletePlan;

impl NativeSession {
    /// Takes the uses that are lost off the counts of what stays.
    ///
    /// # Errors
    /// If a header cannot be read or changed.
    pub fn subtract_lost_uses(&self, plan: &DeletePlan) -> Result<()> {
        for (addr, lost) in &plan.lost_uses {
            if !plan.deleted_objects.contains(addr) {
                let _lock = self.lock_header(*addr);
                self.load_header(*addr)?.change_link_count(-i32::try_from(*lost).unwrap_or(i32::MAX))?;
            }
        }
        Ok(())
    }

    /// Gives back the space of what goes.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn free_deleted(&self, mut plan: DeletePlan) -> Result<()> {
        self.release_shared_uses(std::mem::take(&mut plan.shared_uses))?;
        for dataset in &plan.datasets {
            dataset.mark_deleted_and_free_index()?;
        }
        let (cache, space) = (&self.cache, self.cache.space());
        for (addr, len) in &plan.raw_ranges {
            cache.free_raw(None, *addr, *len);
        }
        for addr in &plan.deleted_objects {
            let header = CachedHeader::load_header(&self.object_metadata(*addr), true)?;
            self.free_link_and_attribute_storage(&header)?;
            space.require_full_flush_for_owner(header.metadata().owner());
            if self.may_be_followed() {
                let (at, len) = header.replace_with_tombstone();
                // Readers of h5live keep the address for as long as they have the object open, and then look there.
                if self.followers.reuses_only_when_exclusive() {
                    space.free_metadata_after_full_flush(at, len);
                }
            } else {
                header.delete_header()
            }
            self.datasets.forget_dataset(*addr);
            self.heaps.forget_changed_heap_owner(*addr);
        }
        Ok(())
    }

    /// Gives back what deleted objects had, when the file no longer leads to them.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn finalize_deletes(&self, pending: Vec<DeletePlan>) -> Result<()> {
        let _operation = self.cache.begin_atomic_change();
        pending.into_iter().try_for_each(|plan| self.free_and_mark_deleted(plan))
    }

    /// Gives back what goes, and finds no object there from now on, though the file still has the bytes of its header.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn free_and_mark_deleted(&self, plan: DeletePlan) -> Result<()> {
        let deleted = plan.deleted_objects.clone();
        // Until then, one may lead to another: attributes to their types.
        self.free_deleted(plan)?;
        deleted.into_iter().for_each(|addr| self.headers.mark_deleted(addr));
        Ok(())
    }

    /// Gives back what holds the dense links and attributes of an object, or the names of its raw files.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn free_link_and_attribute_storage(&self, header: &CachedHeader) -> Result<()> {
        let metadata = header.metadata();
        if let Some(info) = header.get_message::<AttributeInfo>()?.filter(AttributeInfo::is_dense) {
            DenseAttributes::open_for_writing(self, header, &info).delete_heap_and_indexes()?;
        }
        if let Some(info) = header.get_message::<LinkInfo>()?.filter(LinkInfo::is_dense) {
            DenseLinks::open_for_writing(self, header, &info).delete_heap_and_indexes()?;
        }
        if let Some(message) = header.get_message::<SymbolTableMessage>()? {
            self.heaps.delete_symbol_table(metadata, &message)?;
        }
        if let Some(files) = header.get_message::<ExternalFiles>()? {
            let len = LocalHeapPrefix::prefix_size(header.widths()) as u64;
            let heap = metadata.load(files.heap, len, LocalHeapPrefix::default)?.read().clone();
            for (addr, len) in [(files.heap, len), (heap.data, heap.data_size)] {
                self.cache.forget_entry(addr);
                self.cache.space().free_metadata_after_full_flush(addr, len);
            }
        }
        Ok(())
    }
}
