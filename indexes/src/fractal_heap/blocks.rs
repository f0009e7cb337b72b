//! The blocks of a fractal heap: making them, giving them up, and going through all of them.

use h5live_cache::{DependencyKind, DependencyNode};
use h5live_format::{
    Addr, ChunkIndexEntry, FractalHeapDirectBlock, FractalHeapHeader, FractalHeapIndirectBlock, HeapBlockSlot,
};

use super::block_path::{BlockPath, DirectBlock, IndirectBlock};
use super::filtered::FilteredDirectBlock;
use super::space::HeapSections;
use super::{FractalHeap, HeapHeader};
use crate::{Error, Result};

/// A block of a heap, or the place of one that does not exist.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeapBlock {
    pub slot: HeapBlockSlot,
    pub addr: Addr,
    /// Bytes in the file.
    pub stored_bytes: u64,
}

impl FractalHeap {
    fn block_overhead_bytes(&self, header: &FractalHeapHeader) -> u64 {
        header.direct_block_overhead(self.metadata.widths()) as u64
    }

    /// The bytes for objects in the block of a slot: their offset in heap space, and how many there are.
    pub(super) fn object_range(&self, header: &FractalHeapHeader, slot: HeapBlockSlot) -> (u64, u64) {
        let overhead = self.block_overhead_bytes(header);
        (slot.start.saturating_add(overhead), slot.size.saturating_sub(overhead))
    }

    /// Bytes of the smallest direct block that an object of `len` bytes fits in.
    fn min_block_bytes(&self, header: &FractalHeapHeader, len: u64) -> u64 {
        len.saturating_add(self.block_overhead_bytes(header)).next_power_of_two().max(header.table.start_block_bytes)
    }

    /// Bytes for objects in all blocks that the root stands for, whether they exist or not.
    pub(super) fn object_space(&self, header: &FractalHeapHeader, root: Addr, rows: u16) -> u64 {
        match rows {
            0 if root.is_defined() => header.table.start_block_bytes.saturating_sub(self.block_overhead_bytes(header)),
            0 => 0,
            rows => header.table.object_space(rows, self.block_overhead_bytes(header)),
        }
    }

    /// Where the space ends for which there have been blocks.
    fn used_space_end(&self, header: &FractalHeapHeader) -> u64 {
        match header.root_rows {
            0 if header.root.is_defined() => header.table.start_block_bytes,
            0 => 0,
            _ => header.next_block_offset,
        }
    }

    pub(super) fn add_dependency(&self, parent: &impl DependencyNode, child: &impl DependencyNode) -> Result<()> {
        self.metadata.add_dependency(parent, child, DependencyKind::FractalHeapBlock)
    }

    /// Makes everything on the way to a block wait for it.
    pub(super) fn add_path_dependencies_on(
        &self,
        header: &HeapHeader,
        place: &BlockPath,
        block: &DirectBlock,
    ) -> Result<()> {
        if block.is_new() {
            // All of it has waited since the block was made, for no flush has taken the block.
            return Ok(());
        }
        self.add_path_dependencies(header, place)?;
        match place.ancestors.last() {
            None => self.add_dependency(header, block),
            Some((parent, _)) => self.add_dependency(parent, block),
        }
    }

    /// Makes each block on the way to a direct one wait for the next.
    pub(super) fn add_path_dependencies(&self, header: &HeapHeader, place: &BlockPath) -> Result<()> {
        let Some(((root, _), below)) = place.ancestors.split_first() else { return Ok(()) };
        self.add_dependency(header, root)?;
        let mut parent = root;
        for (child, _) in below {
            self.add_dependency(parent, child)?;
            parent = child;
        }
        Ok(())
    }

    /// Makes a direct block that an object of `len` bytes fits in: where one was skipped or given up, or behind all
    /// others.
    pub(super) fn add_block_for(&self, header: &HeapHeader, sections: &mut HeapSections, len: u64) -> Result<()> {
        let shape = header.read().clone();
        let min_size = self.min_block_bytes(&shape, len);
        let hole = sections.unallocated_slots(min_size).find_map(|hole| {
            let slot = shape.table.first_direct_slot_from(hole.start, min_size)?;
            (slot.end() <= hole.end()).then_some((hole, slot))
        });
        let slot = match hole {
            Some((hole, slot)) => {
                sections.remove_unallocated_slots(hole.start, hole.start.saturating_add(1));
                slot
            }
            None => {
                let slot = shape.table.first_direct_slot_from(self.used_space_end(&shape), min_size);
                slot.ok_or(Error::HeapFull { at: self.addr })?
            }
        };
        let (from, to) = hole.map_or((self.used_space_end(&shape), slot.end()), |(hole, _)| (hole.start, hole.end()));
        let is_root =
            !shape.root.is_defined() && slot == HeapBlockSlot { start: 0, size: shape.table.start_block_bytes };
        if is_root {
            self.add_root_block(header, &shape, slot)?;
        } else {
            self.add_block_at(header, &shape, slot)?;
        }
        let rows = header.read().root_rows;
        for (from, to) in [(from, slot.start), (slot.end(), to)] {
            shape.table.covering_slots(rows, from, to).into_iter().for_each(|slot| sections.add_unallocated_slot(slot));
        }
        let (offset, len) = self.object_range(&shape, slot);
        sections.insert_coalesced(offset, len);
        Ok(())
    }

    /// Makes a direct block, for which `parent` waits.
    fn create_direct_block(
        &self,
        parent: &impl DependencyNode,
        shape: &FractalHeapHeader,
        slot: HeapBlockSlot,
    ) -> Result<ChunkIndexEntry> {
        self.metadata.cache().check_memory_allocation(self.addr, slot.size)?;
        let overhead = shape.direct_block_overhead(self.metadata.widths());
        let block = shape.blank_direct_block(slot.size).with_zeroed_data(self.addr, slot.start, overhead);
        if let Some(filtered) = &shape.filter_info {
            return self.store_filtered_block(parent, &filtered.filters.filters, block);
        }
        let block = self.metadata.create(slot.size, block)?;
        self.add_dependency(parent, &block)?;
        Ok(ChunkIndexEntry { addr: block.addr(), ..ChunkIndexEntry::default() })
    }

    fn add_root_block(&self, header: &HeapHeader, shape: &FractalHeapHeader, slot: HeapBlockSlot) -> Result<()> {
        let block = self.create_direct_block(header, shape, slot)?;
        let (_, room) = self.object_range(shape, slot);
        header.update(|header| {
            header.set_direct_root(block);
            (header.managed_space, header.allocated_space, header.free_bytes) = (slot.size, slot.size, room);
        });
        Ok(())
    }

    fn add_block_at(&self, header: &HeapHeader, shape: &FractalHeapHeader, slot: HeapBlockSlot) -> Result<()> {
        let lost = || self.contradiction(self.addr, "doubling table", "a block has its place in it");
        let table = &shape.table;
        let (row, ..) = table.row_column_and_offset(slot.start).ok_or_else(lost)?;
        let end = self.used_space_end(shape);
        if row >= shape.root_rows {
            let min_rows = match (shape.root_rows, table.start_root_rows) {
                (0, 0) => table.max_rows(),
                (0, rows) => rows,
                (rows, _) => rows.saturating_mul(2),
            };
            self.replace_root_block(header, shape, min_rows.min(table.max_rows()).max(row + 1))?;
        }
        let (root, rows) = {
            let header = header.read();
            (header.root, header.root_rows)
        };
        let mut parent = self.load_indirect_block(shape, root, rows, 0)?;
        self.add_dependency(header, &parent)?;
        let (mut start, mut inside) = (0, slot.start);
        loop {
            let (row, column, rest) = table.row_column_and_offset(inside).ok_or_else(lost)?;
            let entry = usize::from(row) * usize::from(table.column_count) + usize::from(column);
            start = table
                .block_offset_in_parent(row, column)
                .and_then(|before| before.checked_add(start))
                .ok_or_else(lost)?;
            let Some(rows) = table.child_rows(row) else {
                let block = self.create_direct_block(&parent, shape, slot)?;
                parent.update(|parent| parent.set_child_entry(entry, block));
                break;
            };
            let child = parent.read().child_addr(entry).ok_or_else(lost)?;
            let child = if child.is_defined() {
                self.load_indirect_block(shape, child, rows, start)?
            } else {
                let child = self.create_indirect_block(shape, rows, start)?;
                parent.update(|parent| parent.set_unfiltered_child(entry, child.addr()));
                child
            };
            self.add_dependency(&parent, &child)?;
            (parent, inside) = (child, rest);
        }
        header.update(|header| {
            header.allocated_space = header.allocated_space.saturating_add(slot.size);
            header.next_block_offset = slot.end().max(end);
        });
        Ok(())
    }

    fn create_indirect_block(&self, shape: &FractalHeapHeader, rows: u16, start: u64) -> Result<IndirectBlock> {
        let widths = self.metadata.widths();
        let mut block = shape.blank_indirect_block(rows, widths).with_undefined_children(widths);
        (block.heap, block.offset_in_heap) = (self.addr, start);
        self.metadata.create(block.size(widths) as u64, block)
    }

    /// Gives the heap a root of `rows` rows in the place of the one that it has.
    fn replace_root_block(&self, header: &HeapHeader, shape: &FractalHeapHeader, rows: u16) -> Result<()> {
        let root = self.create_indirect_block(shape, rows, 0)?;
        let children: Vec<ChunkIndexEntry> = match shape.root_rows {
            0 => vec![self.root_block(shape)],
            old_rows => {
                let old = self.load_indirect_block(shape, shape.root, old_rows, 0)?;
                let old = old.read();
                (0..old.entry_count()).filter_map(|entry| old.child_entry(entry)).collect()
            }
        };
        for child in children.iter().filter(|child| child.addr.is_defined()) {
            self.depend_on_cached_block(&root, child.addr)?;
        }
        root.update(|root| {
            for (entry, child) in children.iter().enumerate() {
                root.set_child_entry(entry, *child);
            }
        });
        self.add_dependency(header, &root)?;
        let space = |rows| self.object_space(shape, shape.root, rows);
        let more = space(rows).saturating_sub(space(shape.root_rows));
        header.update(|header| {
            header.set_indirect_root(root.addr(), rows);
            header.managed_space = header.table.row_offset_in_parent(rows).unwrap_or(u64::MAX);
            header.free_bytes = header.free_bytes.saturating_add(more);
        });
        if shape.root_rows > 0 {
            let widths = self.metadata.widths();
            self.free_structure(shape.root, shape.blank_indirect_block(shape.root_rows, widths).size(widths) as u64);
        }
        Ok(())
    }

    /// Makes `parent` wait for a block, if the block is in the cache and so may not be in the file.
    fn depend_on_cached_block(&self, parent: &IndirectBlock, child: Addr) -> Result<()> {
        let cache = self.metadata.cache();
        if let Ok(Some(child)) = cache.get_cached::<FractalHeapDirectBlock>(child) {
            self.add_dependency(parent, &child)?;
        } else if let Ok(Some(child)) = cache.get_cached::<FilteredDirectBlock>(child) {
            self.add_dependency(parent, &child)?;
        } else if let Ok(Some(child)) = cache.get_cached::<FractalHeapIndirectBlock>(child) {
            self.add_dependency(parent, &child)?;
        }
        Ok(())
    }

    /// Gives up the direct block at a place, in which nothing is left.
    pub(super) fn free_direct_block(
        &self,
        header: &HeapHeader,
        sections: &mut HeapSections,
        place: BlockPath,
    ) -> Result<()> {
        let shape = header.read().clone();
        let BlockPath { mut ancestors, slot, element } = place;
        let widths = self.metadata.widths();
        self.free_structure(element.addr, if shape.filter_info.is_some() { element.stored_size } else { slot.size });
        let mut gap = slot;
        let mut emptied = ancestors.is_empty();
        while let Some((block, entry)) = ancestors.pop() {
            block.update(|block| block.set_unfiltered_child(entry, Addr::UNDEFINED));
            emptied = block.read().has_no_children();
            if !emptied {
                break;
            }
            let (start, len) = {
                let block = block.read();
                (block.offset_in_heap, block.size(widths) as u64)
            };
            self.free_structure(block.addr(), len);
            if let Some((_, entry)) = ancestors.last() {
                let row = entry / usize::from(shape.table.column_count);
                let size = u16::try_from(row).ok().and_then(|row| shape.table.row_block_size(row)).unwrap_or(0);
                gap = HeapBlockSlot { start, size };
            }
        }
        if emptied {
            *sections = HeapSections::empty(sections.is_known);
            header.update(|header| {
                header.set_indirect_root(Addr::UNDEFINED, 0);
                (header.managed_space, header.allocated_space, header.free_bytes) = (0, 0, 0);
                header.next_block_offset = 0;
            });
            return Ok(());
        }
        let end =
            if slot.end() == shape.next_block_offset { self.last_block_end(&shape)? } else { shape.next_block_offset };
        header.update(|header| {
            header.allocated_space = header.allocated_space.saturating_sub(slot.size);
            header.next_block_offset = end;
        });
        sections.remove_unallocated_slots(gap.start, gap.end());
        if gap.end() <= end {
            sections.add_unallocated_slot(gap);
        } else {
            sections.remove_unallocated_slots(end, u64::MAX);
        }
        Ok(())
    }

    /// Where the last direct block ends.
    fn last_block_end(&self, shape: &FractalHeapHeader) -> Result<u64> {
        let lost = || self.contradiction(self.addr, "fractal heap indirect block", "it leads to a block");
        let (mut at, mut rows, mut start) = (shape.root, shape.root_rows, 0u64);
        loop {
            let block = self.load_indirect_block(shape, at, rows, start)?;
            let (entry, child) = {
                let block = block.read();
                let entry = block.last_child_index().ok_or_else(lost)?;
                (entry, block.child_addr(entry).ok_or_else(lost)?)
            };
            let slot = self.slot_of_entry(shape, start, entry).ok_or_else(lost)?;
            match shape.table.child_rows(self.row_of_entry(shape, entry)) {
                None => return Ok(slot.end()),
                Some(below) => (at, rows, start) = (child, below, slot.start),
            }
        }
    }

    fn row_of_entry(&self, shape: &FractalHeapHeader, entry: usize) -> u16 {
        u16::try_from(entry / usize::from(shape.table.column_count.max(1))).unwrap_or(u16::MAX)
    }

    /// The meaning of an entry of the indirect block that begins at `start`.
    fn slot_of_entry(&self, shape: &FractalHeapHeader, start: u64, entry: usize) -> Option<HeapBlockSlot> {
        let row = self.row_of_entry(shape, entry);
        let column = u16::try_from(entry % usize::from(shape.table.column_count.max(1))).ok()?;
        let start = start.checked_add(shape.table.block_offset_in_parent(row, column)?)?;
        Some(HeapBlockSlot { start, size: shape.table.row_block_size(row)? })
    }

    /// Calls `each` with every block, children before parents, and with every place before the last block where there
    /// is none.
    pub(super) fn for_each_block(&self, shape: &FractalHeapHeader, each: &mut dyn FnMut(HeapBlock)) -> Result<()> {
        if !shape.root.is_defined() {
            return Ok(());
        }
        if shape.root_rows > 0 {
            return self.for_each_block_below(shape, (shape.root, shape.root_rows, 0), each);
        }
        let slot = HeapBlockSlot { start: 0, size: shape.table.start_block_bytes };
        let len = shape.filter_info.as_ref().map_or(slot.size, |root| root.root_stored_size);
        each(HeapBlock { slot, addr: shape.root, stored_bytes: len });
        Ok(())
    }

    fn for_each_block_below(
        &self,
        shape: &FractalHeapHeader,
        (at, rows, start): (Addr, u16, u64),
        each: &mut dyn FnMut(HeapBlock),
    ) -> Result<()> {
        let block = self.load_indirect_block(shape, at, rows, start)?.read().clone();
        for entry in 0..block.entry_count() {
            let (Some(slot), Some(addr)) = (self.slot_of_entry(shape, start, entry), block.child_addr(entry)) else {
                break;
            };
            let below = shape.table.child_rows(self.row_of_entry(shape, entry));
            match below {
                _ if !addr.is_defined() && slot.end() > shape.next_block_offset => {}
                Some(below) if addr.is_defined() => {
                    self.for_each_block_below(shape, (addr, below, slot.start), each)?
                }
                _ => {
                    let stored = block.direct.get(entry).map_or(0, |element| element.stored_size);
                    let len = if shape.filter_info.is_some() { stored } else { slot.size };
                    each(HeapBlock { slot, addr, stored_bytes: len });
                }
            }
        }
        let len = block.size(self.metadata.widths()) as u64;
        each(HeapBlock { slot: HeapBlockSlot { start, size: 0 }, addr: at, stored_bytes: len });
        Ok(())
    }

    /// Gives up a structure and its space.
    pub(super) fn free_structure(&self, at: Addr, len: u64) {
        self.metadata.free_structure(at, len);
    }
}
