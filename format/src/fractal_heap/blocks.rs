//! The blocks of a fractal heap.

use super::DoublingTable;
use crate::{Addr, AddrTable, ChunkEntryFormat, ChunkEntryTable, ChunkIndexEntry, Record, Result, Width, Widths, Wire};

/// A direct block, which holds objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FractalHeapDirectBlock {
    /// The header of the heap.
    pub heap: Addr,
    /// Where the block begins in heap space (bytes).
    pub offset_in_heap: u64,
    /// The bytes after the block's own fields.
    pub data: Vec<u8>,
    offset_width: Width,
    checksum: bool,
    size: u64,
}

impl FractalHeapDirectBlock {
    /// Makes an empty block of this shape, for writing. `overhead` is the value of the header.
    pub fn with_zeroed_data(mut self, heap: Addr, offset_in_heap: u64, overhead: usize) -> Self {
        let len = usize::try_from(self.size).unwrap_or(usize::MAX).saturating_sub(overhead);
        (self.heap, self.offset_in_heap, self.data) = (heap, offset_in_heap, vec![0; len]);
        self
    }

    pub(super) fn blank(offset_width: Width, checksum: bool, size: u64) -> Self {
        FractalHeapDirectBlock {
            heap: Addr::UNDEFINED,
            offset_in_heap: 0,
            data: Vec::new(),
            offset_width,
            checksum,
            size,
        }
    }

    /// Bytes of the block.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes of an object. `heap_offset` counts from the start of heap space. `None` if the object is not completely
    /// inside the block's data.
    pub fn object(&self, heap_offset: u64, len: u64) -> Option<&[u8]> {
        let before = self.size.checked_sub(self.data.len() as u64)?;
        let start = heap_offset.checked_sub(self.offset_in_heap)?.checked_sub(before)?;
        let rest = self.data.get(usize::try_from(start).ok()?..)?;
        rest.get(..usize::try_from(len).ok()?)
    }

    /// As [`FractalHeapDirectBlock::object`], to be written.
    pub fn object_mut(&mut self, heap_offset: u64, len: u64) -> Option<&mut [u8]> {
        let before = self.size.checked_sub(self.data.len() as u64)?;
        let start = heap_offset.checked_sub(self.offset_in_heap)?.checked_sub(before)?;
        let rest = self.data.get_mut(usize::try_from(start).ok()?..)?;
        rest.get_mut(..usize::try_from(len).ok()?)
    }
}

impl Record for FractalHeapDirectBlock {
    const NAME: &'static str = "fractal heap direct block";

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.data.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        let size = w.bounded_count("data", self.size, 1)?;
        w.magic("FHDB")?;
        w.version(0..=0, &mut 0)?;
        w.addr("heap", &mut self.heap)?;
        w.uint("offset in heap", self.offset_width, &mut self.offset_in_heap)?;
        if self.checksum {
            w.embedded_checksum(size)?;
        }
        let used = w.position().saturating_sub(start);
        let len = size.checked_sub(used);
        w.require("data", len.is_some(), self.size, "a block holds its own fields")?;
        w.bytes("data", len.unwrap_or(0), &mut self.data)
    }
}

/// An indirect block, which holds the addresses of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FractalHeapIndirectBlock {
    /// The header of the heap.
    pub heap: Addr,
    /// Where the block begins in heap space (bytes).
    pub offset_in_heap: u64,
    /// The direct blocks, row after row. In heaps with filters each has its stored size and filter mask.
    pub direct: ChunkEntryTable,
    /// The indirect blocks, row after row.
    pub indirect: AddrTable,
    offset_width: Width,
    format: ChunkEntryFormat,
    direct_entries: usize,
    indirect_entries: usize,
}

impl FractalHeapIndirectBlock {
    pub(super) fn blank(table: &DoublingTable, rows: u16, filtered: bool, widths: Widths) -> Self {
        let format = if filtered { ChunkEntryFormat::Filtered(widths.length) } else { ChunkEntryFormat::Unfiltered };
        let direct_rows = rows.min(table.direct_rows());
        let entries = |rows: u16| usize::from(rows).saturating_mul(table.column_count.into());
        FractalHeapIndirectBlock {
            heap: Addr::UNDEFINED,
            offset_in_heap: 0,
            direct: ChunkEntryTable::undefined(0, format, widths.offset),
            indirect: AddrTable::undefined(0, widths.offset),
            offset_width: table.offset_width(),
            format,
            direct_entries: entries(direct_rows),
            indirect_entries: entries(rows.saturating_sub(direct_rows)),
        }
    }

    /// Makes all entries undefined, for writing.
    pub fn with_undefined_children(mut self, widths: Widths) -> Self {
        self.direct = ChunkEntryTable::undefined(self.direct_entries, self.format, widths.offset);
        self.indirect = AddrTable::undefined(self.indirect_entries, widths.offset);
        self
    }

    /// The number of entries. The first ones are for direct blocks.
    pub fn entry_count(&self) -> usize {
        self.direct.len().saturating_add(self.indirect.len())
    }

    /// Whether no entry leads to a block.
    pub fn has_no_children(&self) -> bool {
        self.last_child_index().is_none()
    }

    /// The block to which an entry leads; `None` past the last entry.
    pub fn child_addr(&self, entry: usize) -> Option<Addr> {
        match entry.checked_sub(self.direct.len()) {
            None => self.direct.get(entry).map(|element| element.addr),
            Some(entry) => self.indirect.get(entry),
        }
    }

    /// Replaces the block to which an entry leads. In heaps with filters, that is no direct block.
    pub fn set_unfiltered_child(&mut self, entry: usize, addr: Addr) -> bool {
        self.set_child_entry(entry, ChunkIndexEntry { addr, ..ChunkIndexEntry::default() })
    }

    /// As [`FractalHeapIndirectBlock::set_unfiltered_child`], with the size and the mask that a direct block has in a heap with
    /// filters.
    pub fn set_child_entry(&mut self, entry: usize, block: ChunkIndexEntry) -> bool {
        match entry.checked_sub(self.direct.len()) {
            None => self.direct.set(entry, block),
            Some(entry) => self.indirect.set(entry, block.addr),
        }
    }

    /// The block to which an entry leads, with its size and its mask if it is a direct one in a heap with filters;
    /// `None` past the last entry.
    pub fn child_entry(&self, entry: usize) -> Option<ChunkIndexEntry> {
        match entry.checked_sub(self.direct.len()) {
            None => self.direct.get(entry),
            Some(entry) => self.indirect.get(entry).map(|addr| ChunkIndexEntry { addr, ..ChunkIndexEntry::default() }),
        }
    }

    /// The last entry that leads to a block.
    pub fn last_child_index(&self) -> Option<usize> {
        let defined = |entry: &usize| self.child_addr(*entry).is_some_and(|addr| addr.is_defined());
        (0..self.entry_count()).rev().find(defined)
    }

    /// Bytes of the block.
    pub fn size(&self, widths: Widths) -> usize {
        let direct = self.direct_entries.saturating_mul(self.format.size(widths.offset));
        let indirect = self.indirect_entries.saturating_mul(widths.offset.bytes());
        let fixed = widths.offset.bytes().saturating_add(self.offset_width.bytes()).saturating_add(9);
        fixed.saturating_add(direct).saturating_add(indirect)
    }
}

impl Record for FractalHeapIndirectBlock {
    const NAME: &'static str = "fractal heap indirect block";

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.direct.memory_bytes()).saturating_add(self.indirect.memory_bytes())
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("FHIB")?;
        w.version(0..=0, &mut 0)?;
        w.addr("heap", &mut self.heap)?;
        w.uint("offset in heap", self.offset_width, &mut self.offset_in_heap)?;
        let offset = w.widths().offset;
        if w.is_decoding() {
            let direct = w.bounded_count("direct blocks", self.direct_entries as u64, self.format.size(offset))?;
            self.direct = ChunkEntryTable::undefined(direct, self.format, offset);
        }
        let counts = (self.direct.len(), self.indirect.len());
        let whole = w.is_decoding() || counts == (self.direct_entries, self.indirect_entries);
        w.require("direct blocks", whole, counts.0 as u64, "as many entries as the rows have")?;
        w.record(&mut self.direct)?;
        if w.is_decoding() {
            let indirect = w.bounded_count("indirect blocks", self.indirect_entries as u64, offset.bytes())?;
            self.indirect = AddrTable::undefined(indirect, offset);
        }
        w.record(&mut self.indirect)?;
        w.checksum()
    }
}
