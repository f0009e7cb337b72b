//! Comparing what a heap's header counts with what the heap holds, and setting it right. The header is written before
//! the index that leads to the objects, so a writer that dies between the two leaves sums that are ahead of the index.

use std::collections::HashSet;

use h5live_format::{
    FractalHeapHeader, HeapObjectLocation, HugeDirectFilteredRecord, HugeDirectRecord, HugeIndirectFilteredRecord,
    HugeIndirectRecord,
};

use super::FractalHeap;
use crate::{Error, Result};

/// The contents of a heap, counted from the index of its objects and from its blocks.
#[derive(Debug, Clone)]
pub struct HeapRecount {
    /// The header, with the sums that are right.
    corrected_header: FractalHeapHeader,
    /// Huge objects to which the index does not lead, and their bytes.
    lost_huge_objects: Vec<HeapObjectLocation>,
    lost_huge_bytes: u64,
    is_consistent: bool,
}

impl HeapRecount {
    /// Whether the header says what the heap holds.
    pub fn is_consistent(&self) -> bool {
        self.is_consistent
    }
}

/// By what a huge object is known.
fn huge_object_key(place: &HeapObjectLocation) -> Option<u64> {
    match place {
        HeapObjectLocation::HugeIndirect(number) => Some(*number),
        HeapObjectLocation::HugeDirect { addr, .. } => addr.get(),
        _ => None,
    }
}

impl FractalHeap {
    /// Counts what the heap holds: `visit_ids` calls its argument with the IDs of all objects.
    ///
    /// # Errors
    /// The error of `visit_ids`; if an ID is none, or a block cannot be read.
    pub fn recount_contents<E: From<Error>>(
        &self,
        visit_ids: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<HeapRecount, E> {
        let found = self.header()?.read().clone();
        let mut right = FractalHeapHeader {
            managed_object_count: 0,
            tiny_object_count: 0,
            tiny_bytes: 0,
            huge_object_count: 0,
            huge_bytes: 0,
            ..found.clone()
        };
        let (mut used, mut huge, mut failed) = (0u64, HashSet::new(), None);
        visit_ids(&mut |id| {
            let counted = self.decode_id(&found, id).and_then(|place| {
                match &place {
                    HeapObjectLocation::Managed { length, .. } => {
                        right.managed_object_count = right.managed_object_count.saturating_add(1);
                        used = used.saturating_add(*length);
                    }
                    HeapObjectLocation::Tiny(bytes) => {
                        right.tiny_object_count = right.tiny_object_count.saturating_add(1);
                        right.tiny_bytes = right.tiny_bytes.saturating_add(bytes.len() as u64);
                    }
                    HeapObjectLocation::HugeDirect { .. } | HeapObjectLocation::HugeIndirect(_) => {
                        huge.extend(huge_object_key(&place));
                        let size = self.locate_huge_object(&found, place)?.object_bytes;
                        right.huge_object_count = right.huge_object_count.saturating_add(1);
                        right.huge_bytes = right.huge_bytes.saturating_add(size);
                    }
                }
                Ok(())
            });
            failed = failed.take().or(counted.err());
        })?;
        failed.map_or(Ok(()), Err)?;
        self.recount_heap_blocks(&found, used, &mut right)?;
        let (lost, lost_bytes) = self.find_lost_huge_objects(&found, &huge)?;
        // libhdf5 gives up a tree without objects even when it only reads, and fails.
        let is_empty = found.huge_index.is_defined() && right.huge_object_count == 0;
        let is_consistent = right == found && lost.is_empty() && !is_empty;
        Ok(HeapRecount { corrected_header: right, lost_huge_objects: lost, lost_huge_bytes: lost_bytes, is_consistent })
    }

    fn recount_heap_blocks(&self, found: &FractalHeapHeader, used: u64, right: &mut FractalHeapHeader) -> Result<()> {
        let (mut allocated, mut end) = (0u64, 0);
        self.for_each_block(found, &mut |block| {
            if block.addr.is_defined() && block.slot.size > 0 {
                allocated = allocated.saturating_add(block.slot.size);
                end = block.slot.end().max(end);
            }
        })?;
        right.allocated_space = allocated;
        right.managed_space = match found.root_rows {
            0 => allocated,
            rows => found.table.row_offset_in_parent(rows).unwrap_or(u64::MAX),
        };
        right.free_bytes = self.object_space(found, found.root, found.root_rows).saturating_sub(used);
        if found.root_rows > 0 {
            right.next_block_offset = found.next_block_offset.max(end);
        }
        Ok(())
    }

    /// The huge objects that are not among these, and their bytes.
    fn find_lost_huge_objects(
        &self,
        found: &FractalHeapHeader,
        held: &HashSet<u64>,
    ) -> Result<(Vec<HeapObjectLocation>, u64)> {
        let (mut lost, mut bytes) = (Vec::new(), 0u64);
        if !found.huge_index.is_defined() {
            return Ok((lost, bytes));
        }
        let mut add = |place: HeapObjectLocation, size: u64| {
            if huge_object_key(&place).is_none_or(|key| !held.contains(&key)) {
                lost.push(place);
                bytes = bytes.saturating_add(size);
            }
            Ok::<_, Error>(true)
        };
        match (found.id_format(self.metadata.widths()).has_direct_huge_ids(), found.filter_info.is_some()) {
            (true, false) => self.huge_object_tree(found, HugeDirectRecord::default()).for_each(&mut |record| {
                let HugeDirectRecord { addr, length } = record;
                add(HeapObjectLocation::HugeDirect { addr, length, filter_mask: 0, size: length }, length)
            })?,
            (true, true) => {
                self.huge_object_tree(found, HugeDirectFilteredRecord::default()).for_each(&mut |record| {
                    let HugeDirectFilteredRecord { addr, length, filter_mask, unfiltered_size: size } = record;
                    add(HeapObjectLocation::HugeDirect { addr, length, filter_mask, size }, size)
                })?
            }
            (false, false) => self
                .huge_object_tree(found, HugeIndirectRecord::default())
                .for_each(&mut |record| add(HeapObjectLocation::HugeIndirect(record.id), record.length))?,
            (false, true) => self
                .huge_object_tree(found, HugeIndirectFilteredRecord::default())
                .for_each(&mut |record| add(HeapObjectLocation::HugeIndirect(record.id), record.unfiltered_size))?,
        }
        Ok((lost, bytes))
    }

    /// Sets the counts of the header to `recount`. Frees huge objects to which nothing leads.
    ///
    /// # Errors
    /// If the tree of huge objects cannot be changed.
    pub fn apply_recount_and_free_lost(&self, recount: &HeapRecount) -> Result<()> {
        let header = self.header_for_writing()?;
        let HeapRecount { corrected_header, lost_huge_objects, lost_huge_bytes, .. } = recount;
        header.update(|header| {
            *header = FractalHeapHeader { free_space_manager: header.free_space_manager, ..corrected_header.clone() };
            // Those that are lost go one by one.
            header.huge_object_count = header.huge_object_count.saturating_add(lost_huge_objects.len() as u64);
            header.huge_bytes = header.huge_bytes.saturating_add(*lost_huge_bytes);
        });
        lost_huge_objects.iter().try_for_each(|place| self.free_huge_object(&header, place))?;
        let shape = header.read().clone();
        if shape.huge_index.is_defined() && shape.huge_object_count == 0 {
            self.delete_huge_objects(&shape)?;
            header.update(|header| header.huge_index = h5live_format::Addr::UNDEFINED);
        }
        Ok(())
    }
}
