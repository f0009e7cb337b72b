//! Fractal heaps: blocks, objects, and the free space between them.

use h5live_format::{
    Addr, FractalHeapDirectBlock, FractalHeapHeader, FractalHeapId, FractalHeapIndirectBlock, FreeSpaceClient,
    HeapObjectLocation, HugeDirectFilteredRecord, HugeDirectRecord, HugeIndirectFilteredRecord, HugeIndirectRecord,
    Record, decode_prefix_with,
};

use super::byte_ranges::ByteRanges;
use super::cause::FindingCause;
use super::checked_heap::{CheckedBlock, CheckedFractalHeap, FilterInfo, HugeObjectRef};
use super::walk::{FileWalk, MAX_STRUCTURE_BYTES};

const NAME: &str = FractalHeapHeader::NAME;
const OBJECT: &str = "fractal heap object";

impl FileWalk<'_> {
    /// A fractal heap with all its blocks.
    pub fn check_fractal_heap(&mut self, addr: Addr) -> Option<CheckedFractalHeap> {
        let bytes = self.read_up_to(NAME, addr, FractalHeapHeader::size_without_filters(self.widths) as u64)?;
        let size = match FractalHeapHeader::stated_size(&bytes, self.widths) {
            Ok(size) => size as u64,
            Err(error) => {
                self.report(NAME, addr, error.into());
                return None;
            }
        };
        let header = self.claim_and_decode(FractalHeapHeader::default(), addr, size)?;
        let mut heap = CheckedFractalHeap::unvisited(addr, header, self.widths);
        self.check_heap_blocks(&mut heap);
        if heap.header.huge_index.is_defined() {
            self.check_huge_objects(&mut heap);
        }
        Some(heap)
    }

    fn check_heap_blocks(&mut self, heap: &mut CheckedFractalHeap) {
        let (root, rows, table) = (heap.header.root, heap.header.root_rows, heap.header.table);
        let covered = if !root.is_defined() {
            0
        } else if rows == 0 {
            let filtered =
                heap.header.filter_info.as_ref().map(|filtered| (filtered.root_stored_size, filtered.root_filter_mask));
            self.check_direct_block(heap, 0, table.start_block_bytes, root, filtered);
            table.start_block_bytes
        } else {
            self.check_indirect_block(heap, 0, rows, root, 0);
            table.row_offset_in_parent(rows).unwrap_or(u64::MAX)
        };
        heap.blocks.sort_unstable_by_key(|block| block.offset);
        self.check_equal_or_note_if_live(NAME, heap.addr, "managed space", heap.header.managed_space, covered);
        if heap.whole {
            let allocated = heap.blocks.iter().fold(0u64, |n, block| n.saturating_add(block.size));
            self.check_heap_count(heap.addr, "allocated space", heap.header.allocated_space, allocated);
        }
        let end = heap.blocks.last().map_or(0, |block| block.offset.saturating_add(block.size));
        // A root that is a direct block is the only one; its place among others is not kept.
        if rows > 0 && heap.header.next_block_offset < end {
            let cause =
                FindingCause::NumberMismatch { what: "next block", stated: heap.header.next_block_offset, found: end };
            self.report_or_note_if_live(self.owner, NAME, heap.addr, cause);
        }
    }

    fn check_indirect_block(&mut self, heap: &mut CheckedFractalHeap, offset: u64, rows: u16, addr: Addr, depth: u32) {
        const NAME: &str = FractalHeapIndirectBlock::NAME;
        let context = heap.header.blank_indirect_block(rows, self.widths);
        let size = context.size(self.widths) as u64;
        let Some(block) = self.claim_and_decode(context, addr, size).filter(|_| depth < 64) else {
            heap.whole = false;
            return;
        };
        self.check_heap_owner(heap, NAME, addr, block.heap, block.offset_in_heap, offset);
        let table = heap.header.table;
        let place = |index: usize, first: u16| {
            let (row, column) = (index / usize::from(table.column_count), index % usize::from(table.column_count));
            let row = u16::try_from(row).ok()?.checked_add(first)?;
            let start = offset.checked_add(table.block_offset_in_parent(row, u16::try_from(column).ok()?)?)?;
            Some((row, start))
        };
        for (index, child) in block.direct.iter().enumerate().filter(|(_, child)| child.addr.is_defined()) {
            let Some((row, start)) = place(index, 0) else { break };
            let filtered = heap.header.filter_info.is_some().then_some((child.stored_size, child.filter_mask));
            self.check_direct_block(heap, start, table.row_block_size(row).unwrap_or(0), child.addr, filtered);
        }
        for (index, child) in block.indirect.iter().enumerate().filter(|(_, child)| child.is_defined()) {
            let Some((row, start)) = place(index, table.direct_rows()) else { break };
            if let Some(rows) = table.child_rows(row) {
                self.check_indirect_block(heap, start, rows, child, depth + 1);
            }
        }
    }

    fn check_heap_owner(
        &mut self,
        heap: &CheckedFractalHeap,
        name: &'static str,
        addr: Addr,
        owner: Addr,
        stated: u64,
        offset: u64,
    ) {
        if owner != heap.addr {
            self.report(name, addr, FindingCause::BrokenRule("a block states the address of its heap's header"));
        }
        self.check_equal(name, addr, "offset in heap", stated, offset);
    }

    /// A direct block. `filtered`: its bytes in the file and its filter mask, if it went through filters.
    fn check_direct_block(
        &mut self,
        heap: &mut CheckedFractalHeap,
        offset: u64,
        size: u64,
        addr: Addr,
        filtered: FilterInfo,
    ) {
        const NAME: &str = FractalHeapDirectBlock::NAME;
        let stored = filtered.map_or(size, |(stored, _)| stored);
        let block = CheckedBlock { offset, size, addr, stored, filtered: filtered.map(|(_, mask)| (size, mask)) };
        if self.claim_metadata(NAME, addr, stored).is_none() {
            heap.whole = false;
            return;
        }
        if !heap.header.has_direct_block_checksums {
            self.add_unchecksummed_bytes(stored);
        }
        heap.blocks.push(block);
        let Some(bytes) = self.read_direct_block(heap, &block) else { return };
        if let Some(decoded) = self.decode(heap.header.blank_direct_block(size), addr, &bytes) {
            self.check_heap_owner(heap, NAME, addr, decoded.heap, decoded.offset_in_heap, offset);
        }
    }

    /// The bytes of a block, before its filters.
    fn read_direct_block(&mut self, heap: &CheckedFractalHeap, block: &CheckedBlock) -> Option<Vec<u8>> {
        let bytes = self.read_if_within_limit(FractalHeapDirectBlock::NAME, block.addr, block.stored)?;
        self.unfilter_heap_bytes(heap, FractalHeapDirectBlock::NAME, block.addr, bytes, block.filtered)
    }

    fn unfilter_heap_bytes(
        &mut self,
        heap: &CheckedFractalHeap,
        name: &'static str,
        addr: Addr,
        bytes: Vec<u8>,
        filtered: FilterInfo,
    ) -> Option<Vec<u8>> {
        let Some((size, mask)) = filtered else { return Some(bytes) };
        let Some(filters) = self.options.filter_engine.filter(|_| size <= MAX_STRUCTURE_BYTES) else {
            self.incomplete = true;
            if size > MAX_STRUCTURE_BYTES {
                self.add_unverified_part(
                    name,
                    addr,
                    FindingCause::TooLargeToVerify { bytes: size, limit: MAX_STRUCTURE_BYTES },
                );
            }
            return None;
        };
        let pipeline = heap.header.filter_info.as_ref().map_or(&[][..], |filtered| &filtered.filters.filters);
        match filters.unfilter(pipeline, mask, bytes, size) {
            Ok(undone) => Some(undone),
            Err(error) => {
                self.incomplete = true;
                self.report_or_add_unverified_part(name, addr, &error);
                None
            }
        }
    }

    fn check_huge_objects(&mut self, heap: &mut CheckedFractalHeap) {
        let at = heap.header.huge_index;
        let direct = heap.shape.has_direct_huge_ids();
        let mut list: Vec<(u64, HugeObjectRef)> = Vec::new();
        let mut last: Option<(u64, u64)> = None;
        let mut add = |walk: &mut FileWalk<'_>, index: u64, key: (u64, u64), huge: HugeObjectRef| {
            if last.is_some_and(|last| last >= key) {
                walk.report("huge object record", at, FindingCause::OutOfOrder { what: "record", index });
            }
            last = Some(key);
            walk.add_unchecksummed_raw_data("huge object", huge.addr, huge.length);
            list.push((key.0, huge));
        };
        let place = |addr: Addr| addr.get().unwrap_or(u64::MAX);
        let header = match (direct, heap.header.filter_info.is_some()) {
            (false, false) => self.check_and_walk_btree2(at, HugeIndirectRecord::default(), &mut |walk, index, r| {
                add(walk, index, (r.id, 0), HugeObjectRef { addr: r.addr, length: r.length, filtered: None });
            }),
            (false, true) => {
                self.check_and_walk_btree2(at, HugeIndirectFilteredRecord::default(), &mut |walk, index, r| {
                    let filtered = Some((r.unfiltered_size, r.filter_mask));
                    add(walk, index, (r.id, 0), HugeObjectRef { addr: r.addr, length: r.length, filtered });
                })
            }
            (true, false) => self.check_and_walk_btree2(at, HugeDirectRecord::default(), &mut |walk, index, r| {
                add(
                    walk,
                    index,
                    (place(r.addr), r.length),
                    HugeObjectRef { addr: r.addr, length: r.length, filtered: None },
                );
            }),
            (true, true) => {
                self.check_and_walk_btree2(at, HugeDirectFilteredRecord::default(), &mut |walk, index, r| {
                    let filtered = Some((r.unfiltered_size, r.filter_mask));
                    add(
                        walk,
                        index,
                        (place(r.addr), r.length),
                        HugeObjectRef { addr: r.addr, length: r.length, filtered },
                    );
                })
            }
        };
        heap.whole &= header.is_some();
        heap.huge = list.into_iter().collect();
    }

    /// The place of an object of a heap.
    fn decode_heap_id(&mut self, heap: &CheckedFractalHeap, id: &[u8]) -> Option<HeapObjectLocation> {
        let context: FractalHeapId = heap.shape.id_of(HeapObjectLocation::default());
        match decode_prefix_with(context, id, self.widths) {
            Ok((id, _)) => Some(id.location),
            Err(error) => {
                self.report(FractalHeapId::NAME, heap.addr, error.into());
                None
            }
        }
    }

    /// The bytes of an object of a heap.
    pub fn read_heap_object(&mut self, heap: &mut CheckedFractalHeap, id: &[u8]) -> Option<Vec<u8>> {
        let place = self.decode_heap_id(heap, id)?;
        let found = self.read_heap_location(heap, &place);
        if found.is_none() && heap.whole && !self.incomplete {
            let object = match place {
                HeapObjectLocation::Managed { offset, .. } => offset,
                HeapObjectLocation::HugeIndirect(number) => number,
                HeapObjectLocation::HugeDirect { addr, .. } => addr.get().unwrap_or(u64::MAX),
                HeapObjectLocation::Tiny(_) => 0,
            };
            self.report(
                OBJECT,
                heap.addr,
                FindingCause::MissingHeapObject { heap: "fractal heap", at: self.file_offset(heap.addr), object },
            );
        }
        found
    }

    fn read_heap_location(&mut self, heap: &mut CheckedFractalHeap, place: &HeapObjectLocation) -> Option<Vec<u8>> {
        match place {
            HeapObjectLocation::Managed { offset, length } => self.read_managed_object(heap, *offset, *length),
            HeapObjectLocation::HugeIndirect(number) => {
                let huge = *heap.huge.get(number)?;
                self.read_huge_object(heap, huge)
            }
            HeapObjectLocation::HugeDirect { addr, length, filter_mask, size } => {
                let known = *heap.huge.get(&addr.get()?)?;
                let filtered = heap.header.filter_info.is_some().then_some((*size, *filter_mask));
                (known.length == *length).then_some(())?;
                self.read_huge_object(heap, HugeObjectRef { addr: *addr, length: *length, filtered })
            }
            HeapObjectLocation::Tiny(data) => Some(data.clone()),
        }
    }

    fn read_huge_object(&mut self, heap: &CheckedFractalHeap, huge: HugeObjectRef) -> Option<Vec<u8>> {
        self.check_and_report_range("huge object", huge.addr, huge.length)?;
        let bytes = self.read_if_within_limit("huge object", huge.addr, huge.length)?;
        self.unfilter_heap_bytes(heap, "huge object", huge.addr, bytes, huge.filtered)
    }

    fn read_managed_object(&mut self, heap: &mut CheckedFractalHeap, offset: u64, length: u64) -> Option<Vec<u8>> {
        let block = *heap.block_at(offset)?;
        let inside = offset - block.offset;
        let end = inside.checked_add(length).filter(|end| *end <= block.size)?;
        if inside < heap.block_overhead_bytes(self.widths) || length == 0 {
            return None;
        }
        let (from, to) = (usize::try_from(inside).ok()?, usize::try_from(end).ok()?);
        if block.filtered.is_none() {
            return self.read_if_within_limit(FractalHeapDirectBlock::NAME, block.addr.checked_add(inside)?, length);
        }
        if heap.unfiltered.as_ref().is_none_or(|(at, _)| *at != block.offset) {
            heap.unfiltered = self.read_direct_block(heap, &block).map(|bytes| (block.offset, bytes));
        }
        heap.unfiltered.as_ref()?.1.get(from..to).map(<[u8]>::to_vec)
    }

    /// The bytes of an object to which one record leads; notes that it is there.
    pub fn claim_and_read_heap_object(&mut self, heap: &mut CheckedFractalHeap, id: &[u8]) -> Option<Vec<u8>> {
        let place = self.decode_heap_id(heap, id)?;
        match &place {
            HeapObjectLocation::Managed { offset, length } => {
                heap.managed += 1;
                if *length > u64::from(heap.header.max_managed_object_bytes) {
                    let (what, limit) = ("bytes of an object in a block", heap.header.max_managed_object_bytes.into());
                    self.report(OBJECT, heap.addr, FindingCause::ExceedsLimit { what, found: *length, limit });
                }
                if !heap.used.try_claim(*offset, offset.saturating_add(*length)) {
                    self.report(OBJECT, heap.addr, FindingCause::BrokenRule("objects of a heap do not overlap"));
                    return None;
                }
            }
            HeapObjectLocation::HugeIndirect(number) => {
                let length =
                    heap.huge.get(number).map_or(0, |huge| huge.filtered.map_or(huge.length, |(size, _)| size));
                heap.huge_seen = (heap.huge_seen.0 + 1, heap.huge_seen.1.saturating_add(length));
            }
            HeapObjectLocation::HugeDirect { size, .. } => {
                heap.huge_seen = (heap.huge_seen.0 + 1, heap.huge_seen.1.saturating_add(*size));
            }
            HeapObjectLocation::Tiny(data) => {
                heap.tiny = (heap.tiny.0 + 1, heap.tiny.1.saturating_add(data.len() as u64))
            }
        }
        self.read_heap_object(heap, id)
    }

    /// Compares what the header counts with the objects that were found, once all have been.
    pub fn finish_heap_check(&mut self, heap: &CheckedFractalHeap) {
        let header = &heap.header;
        let space = match (header.root.is_defined(), header.root_rows) {
            (false, _) => 0,
            (true, 0) => header.table.start_block_bytes.saturating_sub(heap.block_overhead_bytes(self.widths)),
            (true, rows) => heap.object_space_bytes(rows, heap.block_overhead_bytes(self.widths), 0),
        };
        if heap.whole {
            self.check_equal_or_note_if_live(
                NAME,
                heap.addr,
                "managed objects",
                header.managed_object_count,
                heap.managed,
            );
            self.check_heap_count(
                heap.addr,
                "free space",
                header.free_bytes,
                space.saturating_sub(heap.used.total_bytes()),
            );
            self.check_equal_or_note_if_live(
                NAME,
                heap.addr,
                "huge objects",
                header.huge_object_count,
                heap.huge_seen.0,
            );
            self.check_equal_or_note_if_live(
                NAME,
                heap.addr,
                "bytes of huge objects",
                header.huge_bytes,
                heap.huge_seen.1,
            );
            self.check_equal_or_note_if_live(NAME, heap.addr, "tiny objects", header.tiny_object_count, heap.tiny.0);
            self.check_equal_or_note_if_live(NAME, heap.addr, "bytes of tiny objects", header.tiny_bytes, heap.tiny.1);
            self.check_equal_or_note_if_live(
                NAME,
                heap.addr,
                "huge objects of the index",
                heap.huge.len() as u64,
                heap.huge_seen.0,
            );
        }
        if header.free_space_manager.is_defined() {
            self.check_heap_free_space(heap);
        }
    }

    /// As [`FileWalk::check_equal_or_note_if_live`], of what libhdf5 gets wrong when a heap shrinks to its first block, and ever after.
    fn check_heap_count(&mut self, at: Addr, what: &'static str, stated: u64, found: u64) {
        if self.options.reports_harmless_mismatches || stated == found {
            self.check_equal_or_note_if_live(NAME, at, what, stated, found);
        } else {
            self.add_note(NAME, at, FindingCause::NumberMismatch { what, stated, found });
        }
    }

    /// The free-space manager of a heap.
    fn check_heap_free_space(&mut self, heap: &CheckedFractalHeap) {
        let at = heap.header.free_space_manager;
        let Some((_, sections)) = self.check_free_space_manager(at, FreeSpaceClient::FractalHeap) else { return };
        const NAME: &str = "free space sections";
        let mut free = ByteRanges::default();
        for (size, section) in sections {
            // Other classes stand for blocks that are not there.
            if section.class != 0 {
                continue;
            }
            let end = section.offset.saturating_add(size);
            if heap.block_at(section.offset).is_none_or(|block| end > block.offset.saturating_add(block.size)) {
                self.report(NAME, at, FindingCause::BrokenRule("a free section lies inside one block of its heap"));
            }
            if heap.used.overlaps(section.offset, end) {
                self.report(NAME, at, FindingCause::BrokenRule("a free section overlaps an object of the heap"));
            }
            if !free.try_claim(section.offset, end) {
                self.report(NAME, at, FindingCause::BrokenRule("free sections do not overlap"));
            }
        }
    }
}
