//! Fractal heap header.

use super::{DoublingTable, FractalHeapDirectBlock, FractalHeapIdFormat, FractalHeapIndirectBlock};
use crate::messages::FilterPipelineMessage;
use crate::{Addr, ChunkIndexEntry, Fault, Record, Result, Width, Widths, Wire, encoded_len};

/// The filters of a heap, and how its root is stored if that is a direct block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FractalHeapFilterInfo {
    /// Stored bytes of the root direct block, after the filters.
    pub root_stored_size: u64,
    /// Bit `i` set: filter `i` was skipped on the root direct block.
    pub root_filter_mask: u32,
    /// The filters of all direct blocks and huge objects.
    pub filters: FilterPipelineMessage,
}

/// The header: shape, statistics, and the way to the root block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FractalHeapHeader {
    /// Bytes of a heap ID.
    pub id_len: u16,
    /// Whether numbers of huge objects have been used up once, so that they may be used twice.
    pub huge_ids_wrapped: bool,
    /// Whether direct blocks have checksums.
    pub has_direct_block_checksums: bool,
    /// Bytes of the largest managed object; larger ones are huge.
    pub max_managed_object_bytes: u32,
    /// The number of the next huge object.
    pub next_huge_id: u64,
    /// The version 2 B-tree of huge objects; undefined if there are none.
    pub huge_index: Addr,
    /// Free bytes in direct blocks.
    pub free_bytes: u64,
    /// The free-space manager; undefined if it is not kept.
    pub free_space_manager: Addr,
    /// Bytes of heap space that the blocks can hold.
    pub managed_space: u64,
    /// Bytes of heap space for which there are blocks.
    pub allocated_space: u64,
    /// Where the next direct block goes (offset in heap space).
    pub next_block_offset: u64,
    /// Managed objects.
    pub managed_object_count: u64,
    /// Bytes of huge objects.
    pub huge_bytes: u64,
    /// Huge objects.
    pub huge_object_count: u64,
    /// Bytes of tiny objects.
    pub tiny_bytes: u64,
    /// Tiny objects.
    pub tiny_object_count: u64,
    /// The shape of the heap space.
    pub table: DoublingTable,
    /// The root block; undefined if there are no managed objects.
    pub root: Addr,
    /// Rows of the root block; 0 if it is a direct block.
    pub root_rows: u16,
    /// The filters, if there are any.
    pub filter_info: Option<FractalHeapFilterInfo>,
}

impl Default for FractalHeapHeader {
    fn default() -> Self {
        FractalHeapHeader {
            id_len: 7,
            huge_ids_wrapped: false,
            has_direct_block_checksums: true,
            max_managed_object_bytes: 4096,
            next_huge_id: 0,
            huge_index: Addr::UNDEFINED,
            free_bytes: 0,
            free_space_manager: Addr::UNDEFINED,
            managed_space: 0,
            allocated_space: 0,
            next_block_offset: 0,
            managed_object_count: 0,
            huge_bytes: 0,
            huge_object_count: 0,
            tiny_bytes: 0,
            tiny_object_count: 0,
            table: DoublingTable::LINKS,
            root: Addr::UNDEFINED,
            root_rows: 0,
            filter_info: None,
        }
    }
}

const WRAPPED: u8 = 0x01;
const CHECKSUMS: u8 = 0x02;

impl FractalHeapHeader {
    /// Bytes of a header without filters; enough to see how many the filters take.
    pub fn size_without_filters(widths: Widths) -> usize {
        widths
            .offset
            .bytes()
            .saturating_mul(3)
            .saturating_add(widths.length.bytes().saturating_mul(12))
            .saturating_add(26)
    }

    /// Bytes of a header that begins with `bytes`, filters included.
    ///
    /// # Errors
    /// [`crate::DecodeError`] if the bytes do not begin with a fractal heap header.
    pub fn stated_size(bytes: &[u8], widths: Widths) -> Result<usize> {
        let (prefix, _) = crate::decode_prefix::<FractalHeapPrefix>(bytes, widths)?;
        let filters = match prefix.filter_len {
            0 => 0,
            len => usize::from(len).saturating_add(widths.length.bytes()).saturating_add(4),
        };
        Ok(Self::size_without_filters(widths).saturating_add(filters))
    }

    /// The shape of the heap's IDs.
    pub fn id_format(&self, widths: Widths) -> FractalHeapIdFormat {
        let from_block = Width::for_value(self.table.max_direct_block_bytes.saturating_sub(1).max(1));
        FractalHeapIdFormat {
            id_len: self.id_len,
            offset_width: self.table.offset_width(),
            length_width: from_block.min(Width::for_value(self.max_managed_object_bytes.into())),
            has_filters: self.filter_info.is_some(),
            widths,
        }
    }

    /// Bytes of a direct block before its data.
    pub fn direct_block_overhead(&self, widths: Widths) -> usize {
        let checksum = if self.has_direct_block_checksums { 4 } else { 0 };
        let fixed = widths.offset.bytes().saturating_add(self.table.offset_width().bytes());
        fixed.saturating_add(checksum).saturating_add(5)
    }

    /// Makes a direct block the root of the heap. Its size and mask count if there are filters.
    pub fn set_direct_root(&mut self, block: ChunkIndexEntry) {
        (self.root, self.root_rows) = (block.addr, 0);
        if let Some(filtered) = &mut self.filter_info {
            (filtered.root_stored_size, filtered.root_filter_mask) = (block.stored_size, block.filter_mask);
        }
    }

    /// Makes an indirect block, or none, the root of the heap.
    pub fn set_indirect_root(&mut self, root: Addr, rows: u16) {
        self.set_direct_root(ChunkIndexEntry { addr: root, ..ChunkIndexEntry::default() });
        self.root_rows = rows;
    }

    /// An empty direct block of `size` bytes: context for decoding. Blocks that went through filters are decoded
    /// from their bytes before the filters.
    pub fn blank_direct_block(&self, size: u64) -> FractalHeapDirectBlock {
        FractalHeapDirectBlock::blank(self.table.offset_width(), self.has_direct_block_checksums, size)
    }

    /// An empty indirect block of `rows` rows: context for decoding.
    pub fn blank_indirect_block(&self, rows: u16, widths: Widths) -> FractalHeapIndirectBlock {
        FractalHeapIndirectBlock::blank(&self.table, rows, self.filter_info.is_some(), widths)
    }
}

#[derive(Default)]
struct FractalHeapPrefix {
    id_len: u16,
    filter_len: u16,
}

impl Record for FractalHeapPrefix {
    const NAME: &'static str = FractalHeapHeader::NAME;

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("FRHP")?;
        w.version(0..=0, &mut 0)?;
        w.u16("heap ID length", &mut self.id_len)?;
        w.u16("length of filters", &mut self.filter_len)
    }
}

impl FractalHeapFilterInfo {
    fn wire(&mut self, w: &mut impl Wire, len: u16) -> Result<()> {
        w.length("stored size of root", &mut self.root_stored_size)?;
        w.u32("filter mask of root", &mut self.root_filter_mask)?;
        let start = w.position();
        w.record(&mut self.filters)?;
        let used = w.position().saturating_sub(start);
        let fault = Fault::TooLarge { found: used as u64, limit: len.into() };
        match usize::from(len).checked_sub(used).ok_or_else(|| w.fault("length of filters", fault))? {
            0 => Ok(()),
            rest => w.reserved(rest),
        }
    }
}

impl Record for FractalHeapHeader {
    const NAME: &'static str = "fractal heap header";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let mut prefix = FractalHeapPrefix { id_len: self.id_len, filter_len: 0 };
        if let Some(filtered) = self.filter_info.as_ref().filter(|_| !w.is_decoding()) {
            let len = encoded_len(&filtered.filters, w.widths()).unwrap_or_default();
            prefix.filter_len = crate::messages::count_u16(w, "length of filters", len)?;
        }
        prefix.wire(w)?;
        self.id_len = prefix.id_len;
        w.require("heap ID length", self.id_len > 1, self.id_len.into(), "at least 2")?;
        let wrapped = if self.huge_ids_wrapped { WRAPPED } else { 0 };
        let checksums = if self.has_direct_block_checksums { CHECKSUMS } else { 0 };
        let flags = w.derived_u8("flags", wrapped | checksums)?;
        self.huge_ids_wrapped = flags & WRAPPED != 0;
        self.has_direct_block_checksums = flags & CHECKSUMS != 0;
        w.u32("largest managed object", &mut self.max_managed_object_bytes)?;
        w.length("next huge object", &mut self.next_huge_id)?;
        w.addr("huge object index", &mut self.huge_index)?;
        w.length("free space", &mut self.free_bytes)?;
        w.addr("free-space manager", &mut self.free_space_manager)?;
        w.length("managed space", &mut self.managed_space)?;
        w.length("allocated space", &mut self.allocated_space)?;
        w.length("next block", &mut self.next_block_offset)?;
        w.length("managed objects", &mut self.managed_object_count)?;
        w.length("bytes of huge objects", &mut self.huge_bytes)?;
        w.length("huge objects", &mut self.huge_object_count)?;
        w.length("bytes of tiny objects", &mut self.tiny_bytes)?;
        w.length("tiny objects", &mut self.tiny_object_count)?;
        w.record(&mut self.table)?;
        w.addr("root block", &mut self.root)?;
        w.u16("rows of root", &mut self.root_rows)?;
        let fits = self.root_rows <= self.table.max_rows();
        w.require("rows of root", fits, self.root_rows.into(), "at most what the largest offset needs")?;
        if prefix.filter_len > 0 {
            self.filter_info.get_or_insert_default().wire(w, prefix.filter_len)?;
        } else {
            self.filter_info = None;
        }
        w.checksum()
    }
}
