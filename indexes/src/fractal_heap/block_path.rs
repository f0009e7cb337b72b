//! The way from a fractal heap's root to the place of a block.

use h5live_cache::Handle;
use h5live_format::{
    Addr, ChunkIndexEntry, FractalHeapDirectBlock, FractalHeapHeader, FractalHeapIndirectBlock, HeapBlockSlot,
};

use smallvec::SmallVec;

use super::FractalHeap;
use crate::Result;
use crate::object_metadata::MaybeCached;

pub(super) type IndirectBlock = Handle<FractalHeapIndirectBlock>;
pub(super) type DirectBlock = Handle<FractalHeapDirectBlock>;

/// The place of a direct block.
#[derive(Debug)]
pub(super) struct BlockPath {
    /// The indirect blocks that lead to it, from the root down, and the entry in each. None if the block is the root.
    pub ancestors: SmallVec<[(IndirectBlock, usize); 2]>,
    /// The stretch of heap space that it stands for.
    pub slot: HeapBlockSlot,
    /// Where the block is.
    pub element: ChunkIndexEntry,
}

impl FractalHeap {
    /// The root, if that is a direct block.
    pub(super) fn root_block(&self, header: &FractalHeapHeader) -> ChunkIndexEntry {
        let (size, filter_mask) =
            header.filter_info.as_ref().map_or((0, 0), |root| (root.root_stored_size, root.root_filter_mask));
        ChunkIndexEntry { addr: header.root, stored_size: size, filter_mask }
    }

    /// The place of the direct block that holds an offset in heap space.
    pub(super) fn block_path(&self, header: &FractalHeapHeader, offset: u64) -> Result<BlockPath> {
        let table = &header.table;
        let lost = || self.contradiction(self.addr, "heap ID", "an object lies where the heap has a block");
        if header.root_rows == 0 {
            let slot = HeapBlockSlot { start: 0, size: table.start_block_bytes };
            return Ok(BlockPath { ancestors: SmallVec::new(), slot, element: self.root_block(header) });
        }
        let (mut at, mut rows, mut start, mut inside) = (header.root, header.root_rows, 0u64, offset);
        let mut ancestors = SmallVec::new();
        // Each indirect block has fewer rows than the one above it.
        loop {
            let block = self.load_indirect_block(header, at, rows, start)?;
            let (row, column, rest) =
                table.row_column_and_offset(inside).filter(|(row, ..)| *row < rows).ok_or_else(lost)?;
            let entry = usize::from(row) * usize::from(table.column_count) + usize::from(column);
            let before = table
                .block_offset_in_parent(row, column)
                .and_then(|before| start.checked_add(before))
                .ok_or_else(lost)?;
            let Some(below) = table.child_rows(row) else {
                let element = block.read().direct.get(entry).ok_or_else(lost)?;
                ancestors.push((block, entry));
                let slot = HeapBlockSlot { start: before, size: table.row_block_size(row).ok_or_else(lost)? };
                return Ok(BlockPath { ancestors, slot, element });
            };
            let child = block.read().child_addr(entry);
            at = child.filter(|addr| addr.is_defined()).ok_or_else(lost)?;
            ancestors.push((block, entry));
            (rows, start, inside) = (below, before, rest);
        }
    }

    /// The indirect block at `at` of `rows` rows, which begins at `start` in heap space.
    pub(super) fn load_indirect_block(
        &self,
        header: &FractalHeapHeader,
        at: Addr,
        rows: u16,
        start: u64,
    ) -> Result<IndirectBlock> {
        let block = self.metadata.load_with_computed_len(at, || {
            let widths = self.metadata.widths();
            let empty = header.blank_indirect_block(rows, widths);
            let len = empty.size(widths) as u64;
            (empty, len)
        })?;
        let (heap, offset) = {
            let block = block.read();
            (block.heap, block.offset_in_heap)
        };
        self.check_block_owner(at, "fractal heap indirect block", (heap, offset), start)?;
        Ok(block)
    }

    /// The direct block at a place, of a heap without filters.
    pub(super) fn load_direct_block(&self, header: &FractalHeapHeader, place: &BlockPath) -> Result<DirectBlock> {
        let (HeapBlockSlot { start, size }, at) = (place.slot, place.element.addr);
        let block = self.metadata.load(at, size, || header.blank_direct_block(size))?;
        let (heap, offset) = {
            let block = block.read();
            (block.heap, block.offset_in_heap)
        };
        self.check_block_owner(at, "fractal heap direct block", (heap, offset), start)?;
        Ok(block)
    }

    /// As [`FractalHeap::load_direct_block`], for a caller that reads each block once.
    pub(super) fn read_block_once(
        &self,
        header: &FractalHeapHeader,
        place: &BlockPath,
    ) -> Result<MaybeCached<FractalHeapDirectBlock>> {
        let (HeapBlockSlot { start, size }, at) = (place.slot, place.element.addr);
        let block = self.metadata.read_once(at, size, || header.blank_direct_block(size))?;
        let stated = block.with(|block| (block.heap, block.offset_in_heap));
        self.check_block_owner(at, "fractal heap direct block", stated, start)?;
        Ok(block)
    }

    pub(super) fn check_block_owner(
        &self,
        at: Addr,
        record: &'static str,
        stated: (Addr, u64),
        start: u64,
    ) -> Result<()> {
        match stated == (self.addr, start) {
            true => Ok(()),
            false => Err(self.contradiction(at, record, "it names its heap and its place in it")),
        }
    }
}
