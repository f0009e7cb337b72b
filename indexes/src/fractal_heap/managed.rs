//! Objects in the direct blocks of a fractal heap.

use h5live_format::{FractalHeapHeader, HeapObjectLocation};

use super::block_path::{BlockPath, DirectBlock};
use super::space::HeapSections;
use super::{FractalHeap, HeapHeader};
use crate::{Error, Prerequisite, Result};

impl FractalHeap {
    pub(super) fn misplaced_object_error(&self) -> Error {
        self.contradiction(self.addr, "heap ID", "an object lies inside a direct block")
    }

    pub(super) fn read_managed_object(&self, header: &FractalHeapHeader, offset: u64, length: u64) -> Result<Vec<u8>> {
        let place = self.block_path(header, offset)?;
        let object = match &header.filter_info {
            None => self.load_direct_block(header, &place)?.read().object(offset, length).map(<[u8]>::to_vec),
            Some(filtered) => {
                let stored = self.load_filtered_block(header, filtered, &place)?;
                stored.read().block.object(offset, length).map(<[u8]>::to_vec)
            }
        };
        object.ok_or_else(|| self.misplaced_object_error())
    }

    pub(super) fn insert_managed_object(
        &self,
        header: &HeapHeader,
        sections: &mut HeapSections,
        object: &[u8],
        before: &[Prerequisite<'_>],
    ) -> Result<HeapObjectLocation> {
        let len = object.len() as u64;
        let offset = match sections.alloc_best_fit(len) {
            Some(offset) => offset,
            None => {
                self.add_block_for(header, sections, len)?;
                sections.alloc_best_fit(len).ok_or(Error::HeapFull { at: self.addr })?
            }
        };
        self.write_managed_object(header, offset, object, before)?;
        header.update(|header| {
            header.free_bytes = header.free_bytes.saturating_sub(len);
            header.managed_object_count = header.managed_object_count.saturating_add(1);
        });
        Ok(HeapObjectLocation::Managed { offset, length: len })
    }

    pub(super) fn write_managed_object(
        &self,
        header: &HeapHeader,
        offset: u64,
        object: &[u8],
        before: &[Prerequisite<'_>],
    ) -> Result<()> {
        let shape = header.read().clone();
        let place = self.block_path(&shape, offset)?;
        if let Some(filtered) = &shape.filter_info {
            let mut block = self.load_filtered_block(&shape, filtered, &place)?.read().block.clone();
            let room = block.object_mut(offset, object.len() as u64);
            room.map(|room| room.copy_from_slice(object)).ok_or_else(|| self.misplaced_object_error())?;
            // Each change stores the block at a new place. The header waits for everything to which these blocks lead.
            self.metadata.add_prerequisites(header, before);
            return self.replace_filtered_block(header, &filtered.filters.filters, &place, block);
        }
        let block: DirectBlock = self.load_direct_block(&shape, &place)?;
        self.add_path_dependencies_on(header, &place, &block)?;
        self.metadata.add_prerequisites(&block, before);
        block.update(|block| {
            let room = block.object_mut(offset, object.len() as u64);
            room.map(|room| room.copy_from_slice(object)).ok_or_else(|| self.misplaced_object_error())
        })
    }

    pub(super) fn free_managed_object(
        &self,
        header: &HeapHeader,
        sections: &mut HeapSections,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        let shape = header.read().clone();
        let (start, room) = self.object_range(&shape, self.block_path(&shape, offset)?.slot);
        let inside = offset.checked_sub(start).and_then(|before| before.checked_add(length));
        if length == 0 || inside.is_none_or(|end| end > room) {
            return Err(self.misplaced_object_error());
        }
        sections.add_removed_object(self.metadata.cache().space(), offset, length);
        header.update(|header| {
            header.free_bytes = header.free_bytes.saturating_add(length);
            header.managed_object_count = header.managed_object_count.saturating_sub(1);
        });
        Ok(())
    }

    /// Frees the space of removed objects to which nothing in the file leads any more. Frees blocks that are empty
    /// then.
    pub(super) fn reclaim_removed_objects(&self, header: &HeapHeader, sections: &mut HeapSections) -> Result<()> {
        for place in sections.take_reclaimable_huge_objects(self.metadata.cache().space()) {
            self.free_huge_object(header, &place)?;
        }
        for (offset, len) in sections.take_reclaimable_ranges(self.metadata.cache().space()) {
            let section = sections.insert_coalesced(offset, len);
            self.free_block_if_empty(header, sections, section)?;
        }
        Ok(())
    }

    fn free_block_if_empty(
        &self,
        header: &HeapHeader,
        sections: &mut HeapSections,
        (offset, len): (u64, u64),
    ) -> Result<()> {
        let shape = header.read().clone();
        let place: BlockPath = self.block_path(&shape, offset)?;
        if (offset, len) != self.object_range(&shape, place.slot) {
            return Ok(());
        }
        sections.remove_section(offset, len);
        self.free_direct_block(header, sections, place)
    }

    /// Computes the free space: everything in direct blocks except the objects `taken`, and the places of blocks that
    /// do not exist.
    pub(super) fn compute_free_space(&self, header: &FractalHeapHeader, taken: &[(u64, u64)]) -> Result<()> {
        let mut sections = self.space.lock();
        let waiting = sections.unreclaimed_ranges();
        let mut learned = Vec::new();
        self.for_each_block(header, &mut |block| learned.push(block))?;
        for block in learned.into_iter().filter(|block| block.slot.size > 0) {
            if block.addr.is_defined() {
                let (offset, len) = self.object_range(header, block.slot);
                sections.insert_coalesced(offset, len);
            } else {
                sections.add_unallocated_slot(block.slot);
            }
        }
        for (offset, len) in taken.iter().chain(&waiting) {
            sections.remove_range(*offset, *len);
        }
        sections.is_known = true;
        Ok(())
    }
}
