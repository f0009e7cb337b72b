//! A fractal heap of the file, with what was found in it.

use std::collections::HashMap;

use h5live_format::{Addr, FractalHeapHeader, FractalHeapIdFormat, Widths};

use super::byte_ranges::ByteRanges;

/// How bytes went through filters: their number before, and which filters were skipped.
pub(super) type FilterInfo = Option<(u64, u32)>;

/// A direct block.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedBlock {
    /// Its offset in heap space.
    pub offset: u64,
    /// Bytes of heap space.
    pub size: u64,
    pub addr: Addr,
    /// Bytes in the file.
    pub stored: u64,
    pub filtered: FilterInfo,
}

/// An object outside the heap's blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct HugeObjectRef {
    pub addr: Addr,
    pub length: u64,
    pub filtered: FilterInfo,
}

/// A fractal heap with visited blocks.
#[derive(Debug)]
pub(super) struct CheckedFractalHeap {
    pub addr: Addr,
    pub header: FractalHeapHeader,
    pub shape: FractalHeapIdFormat,
    /// By offset.
    pub blocks: Vec<CheckedBlock>,
    pub huge: HashMap<u64, HugeObjectRef>,
    /// The heap space of objects.
    pub used: ByteRanges,
    pub managed: u64,
    pub tiny: (u64, u64),
    pub huge_seen: (u64, u64),
    /// Whether all blocks could be followed.
    pub whole: bool,
    /// The last block that went through filters, undone.
    pub unfiltered: Option<(u64, Vec<u8>)>,
}

impl CheckedFractalHeap {
    /// A heap without the blocks and objects that its header leads to.
    pub fn unvisited(addr: Addr, header: FractalHeapHeader, widths: Widths) -> Self {
        CheckedFractalHeap {
            addr,
            shape: header.id_format(widths),
            header,
            blocks: Vec::new(),
            huge: HashMap::new(),
            used: ByteRanges::default(),
            managed: 0,
            tiny: (0, 0),
            huge_seen: (0, 0),
            whole: true,
            unfiltered: None,
        }
    }

    /// Bytes of a direct block that are not for objects.
    pub fn block_overhead_bytes(&self, widths: Widths) -> u64 {
        self.header.direct_block_overhead(widths) as u64
    }

    /// Bytes for objects in all direct blocks of `rows` rows, including blocks that do not exist yet.
    pub fn object_space_bytes(&self, rows: u16, overhead: u64, depth: u32) -> u64 {
        let table = &self.header.table;
        let block = |row: u16| match table.child_rows(row) {
            None => table.row_block_size(row).unwrap_or(0).saturating_sub(overhead),
            Some(rows) if depth < 8 => self.object_space_bytes(rows, overhead, depth + 1),
            Some(_) => 0,
        };
        (0..rows).fold(0, |n, row| block(row).saturating_mul(table.column_count.into()).saturating_add(n))
    }

    /// The block at an offset in heap space.
    pub fn block_at(&self, heap_offset: u64) -> Option<&CheckedBlock> {
        let after = self.blocks.partition_point(|block| block.offset <= heap_offset);
        self.blocks.get(after.checked_sub(1)?).filter(|block| heap_offset - block.offset < block.size)
    }
}
