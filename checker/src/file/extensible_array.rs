//! Extensible arrays: the chunk index of datasets with one unlimited dimension.

use h5live_format::{
    Addr, AddrTable, ArrayDataBlockPage, ChunkEntryFormat, ChunkEntryTable, ExtensibleArrayDataBlock,
    ExtensibleArrayHeader, ExtensibleArrayIndexBlock, ExtensibleArrayParameters, ExtensibleArraySuperBlock, PageBitmap,
    Record, Width,
};

use super::FindingCause;
use super::chunks::ChunkedDataset;
use super::walk::{FileWalk, MAX_STRUCTURE_BYTES};

const HEADER: &str = ExtensibleArrayHeader::NAME;
const INDEX: &str = ExtensibleArrayIndexBlock::NAME;
const SUPER: &str = ExtensibleArraySuperBlock::NAME;
const DATA: &str = ExtensibleArrayDataBlock::NAME;
const PAGE: &str = ArrayDataBlockPage::NAME;

/// Signature, version, client and checksum of a block.
const BLOCK_FRAME_BYTES: u64 = 10;

/// An array while it is walked over.
struct ExtensibleArrayCheck<'c> {
    chunked: &'c ChunkedDataset,
    at: Addr,
    format: ChunkEntryFormat,
    parameters: ExtensibleArrayParameters,
    /// Bytes of an element, of an address, and of the offset of a block.
    element: u64,
    addr: u64,
    offset: Width,
    /// Counted on the way: super blocks and their bytes, data blocks and their bytes, elements with room.
    counted: [u64; 5],
    /// One more than the index of the last element that leads to a chunk.
    set: u64,
    whole: bool,
}

impl ExtensibleArrayCheck<'_> {
    /// Data blocks below a super block.
    fn data_block_count(&self, super_block: u32) -> u64 {
        1u64.checked_shl(super_block / 2).unwrap_or(u64::MAX)
    }

    /// Elements of each data block below a super block.
    fn elements_per_data_block(&self, super_block: u32) -> u64 {
        let factor = 1u64.checked_shl(super_block.div_ceil(2)).unwrap_or(u64::MAX);
        u64::from(self.parameters.data_block_min_elements).saturating_mul(factor)
    }

    /// Elements before a super block, those of the index block left out.
    fn elements_before(&self, super_block: u32) -> u64 {
        (0..super_block)
            .fold(0, |n, u| self.data_block_count(u).saturating_mul(self.elements_per_data_block(u)).saturating_add(n))
    }

    fn elements_per_page(&self) -> u64 {
        1u64.checked_shl(self.parameters.page_bits.into()).unwrap_or(u64::MAX)
    }

    /// Pages of a data block below a super block; 0 if it is not paged.
    fn pages_per_data_block(&self, super_block: u32) -> u64 {
        let elements = self.elements_per_data_block(super_block);
        if elements > self.elements_per_page() { elements / self.elements_per_page() } else { 0 }
    }

    /// Super blocks whose data blocks are listed in the index block itself.
    fn direct_super_block_count(&self) -> u32 {
        2 * self.parameters.super_block_min_pointers.max(1).ilog2()
    }

    /// Super blocks of the whole array.
    fn super_block_count(&self) -> u32 {
        let smallest = self.parameters.data_block_min_elements.max(1).ilog2();
        (1 + u32::from(self.parameters.element_index_bits)).saturating_sub(smallest)
    }

    fn element_table(&self, len: u64) -> Option<ChunkEntryTable> {
        let fits = len.checked_mul(self.element).is_some_and(|bytes| bytes <= MAX_STRUCTURE_BYTES);
        let len = usize::try_from(len).ok().filter(|_| fits)?;
        Some(ChunkEntryTable::undefined(len, self.format, Width::new(u8::try_from(self.addr).ok()?)?))
    }

    fn addr_table(&self, len: u64) -> Option<AddrTable> {
        let len = usize::try_from(len).ok().filter(|_| len <= MAX_STRUCTURE_BYTES / 8)?;
        Some(AddrTable::undefined(len, Width::new(u8::try_from(self.addr).ok()?)?))
    }
}

impl FileWalk<'_> {
    /// The extensible array of a dataset.
    pub fn check_extensible_array(&mut self, chunked: &ChunkedDataset, stated: ExtensibleArrayParameters) {
        let (at, widths) = (chunked.storage.addr, self.widths);
        let size = 16 + (6 * widths.length.bytes() + widths.offset.bytes()) as u64;
        let Some(header) = self.claim_and_decode(ExtensibleArrayHeader::default(), at, size) else { return };
        let format = header.format;
        if !self.check_chunk_entry_format((HEADER, at), chunked, format) {
            return;
        }
        let parameters = header.parameters;
        if parameters != stated {
            self.report(HEADER, at, FindingCause::BrokenRule("the parameters are those of the layout message"));
            return;
        }
        let offset = Width::new(parameters.element_index_bits.div_ceil(8)).unwrap_or(Width::EIGHT);
        let mut array = ExtensibleArrayCheck {
            chunked,
            at,
            format,
            parameters,
            element: format.size(widths.offset) as u64,
            addr: widths.offset.bytes() as u64,
            offset,
            counted: [0; 5],
            set: 0,
            whole: true,
        };
        if header.index_block.is_defined() {
            self.check_index_block(&mut array, header.index_block);
        }
        if array.set > header.used_index_end {
            let cause = FindingCause::NumberMismatch {
                what: "largest index set",
                stated: header.used_index_end,
                found: array.set,
            };
            self.report_or_note_if_live(self.owner, HEADER, at, cause);
        }
        if array.whole {
            let [supers, super_bytes, blocks, block_bytes, realized] = array.counted;
            self.check_equal_or_note_if_live(HEADER, at, "super blocks", header.super_block_count, supers);
            self.check_equal_or_note_if_live(
                HEADER,
                at,
                "bytes of super blocks",
                header.total_super_block_bytes,
                super_bytes,
            );
            self.check_equal_or_note_if_live(HEADER, at, "data blocks", header.data_block_count, blocks);
            self.check_equal_or_note_if_live(
                HEADER,
                at,
                "bytes of data blocks",
                header.total_data_block_bytes,
                block_bytes,
            );
            self.check_equal_or_note_if_live(HEADER, at, "elements realized", header.allocated_element_count, realized);
        }
    }

    fn check_index_block(&mut self, array: &mut ExtensibleArrayCheck<'_>, at: Addr) {
        let elements = u64::from(array.parameters.index_block_elements);
        let data_blocks =
            (0..array.direct_super_block_count()).fold(0u64, |n, u| n.saturating_add(array.data_block_count(u)));
        let Some(super_blocks) = array.super_block_count().checked_sub(array.direct_super_block_count()) else {
            self.report(
                HEADER,
                array.at,
                FindingCause::BrokenRule("the index block leads to no more super blocks than there are"),
            );
            return;
        };
        let size = BLOCK_FRAME_BYTES
            + array.addr
            + elements * array.element
            + (data_blocks + u64::from(super_blocks)) * array.addr;
        let tables =
            (array.element_table(elements), array.addr_table(data_blocks), array.addr_table(super_blocks.into()));
        let (Some(table), Some(direct), Some(supers)) = tables else { return };
        let context = ExtensibleArrayIndexBlock {
            header: Addr::UNDEFINED,
            elements: table,
            direct_data_blocks: direct,
            super_blocks: supers,
        };
        let Some(block) = self.claim_and_decode(context, at, size) else {
            array.whole = false;
            return;
        };
        self.check_array_owner(array, INDEX, at, block.header);
        array.counted[4] += elements;
        array.set = array.set.max(self.check_chunks_and_used_len(array.chunked, INDEX, at, 0, &block.elements));
        let mut slot = 0;
        let mut blocks = block.direct_data_blocks.iter();
        for u in 0..array.direct_super_block_count() {
            for number in 0..array.data_block_count(u) {
                let first = array.elements_before(u) + number * array.elements_per_data_block(u);
                // libhdf5 states the offset of these blocks with the position in the index block.
                let quirk =
                    array.elements_before(u).saturating_add(array.elements_per_data_block(u).saturating_mul(slot));
                let Some(child) = blocks.next() else { return };
                self.check_data_block(array, u, child, first, Some(quirk), |_| true);
                slot += 1;
            }
        }
        for (u, child) in (array.direct_super_block_count()..).zip(block.super_blocks.iter()) {
            if child.is_defined() {
                self.check_super_block(array, u, child);
            }
        }
    }

    fn check_array_owner(&mut self, array: &ExtensibleArrayCheck<'_>, name: &'static str, at: Addr, header: Addr) {
        if header != array.at {
            self.report(name, at, FindingCause::BrokenRule("a block states the address of its array's header"));
        }
    }

    fn check_super_block(&mut self, array: &mut ExtensibleArrayCheck<'_>, u: u32, at: Addr) {
        let (blocks, pages) = (array.data_block_count(u), array.pages_per_data_block(u));
        let bitmap = blocks.saturating_mul(pages.div_ceil(8));
        let head = BLOCK_FRAME_BYTES + array.addr + array.offset.bytes() as u64;
        let size = head.saturating_add(bitmap).saturating_add(blocks.saturating_mul(array.addr));
        if size > MAX_STRUCTURE_BYTES {
            self.report(
                SUPER,
                at,
                FindingCause::BeyondEnd { len: size, end: self.source.base.saturating_add(self.end) },
            );
            return;
        }
        let Some(data_blocks) = array.addr_table(blocks) else { return };
        let context = ExtensibleArraySuperBlock {
            format: array.format,
            header: Addr::UNDEFINED,
            block_offset_width: array.offset,
            block_offset: 0,
            written_pages: PageBitmap::zeros(usize::try_from(bitmap).unwrap_or(0)),
            data_blocks,
        };
        let Some(block) = self.claim_and_decode(context, at, size) else {
            array.whole = false;
            return;
        };
        self.check_array_owner(array, SUPER, at, block.header);
        self.check_equal(SUPER, at, "block offset", block.block_offset, array.elements_before(u));
        array.counted[0] += 1;
        array.counted[1] += size;
        for (number, child) in (0u64..).zip(block.data_blocks.iter()) {
            let first =
                array.elements_before(u).saturating_add(number.saturating_mul(array.elements_per_data_block(u)));
            let written = |page: u64| {
                let bit = number.saturating_mul(pages).saturating_add(page);
                block.written_pages.get(usize::try_from(bit).unwrap_or(usize::MAX))
            };
            self.check_data_block(array, u, child, first, None, written);
            if self.report.has_max_findings() {
                return;
            }
        }
    }

    /// A data block. Its first element has the index `first`, counted after the index block.
    fn check_data_block(
        &mut self,
        array: &mut ExtensibleArrayCheck<'_>,
        u: u32,
        at: Addr,
        first: u64,
        quirk: Option<u64>,
        written: impl Fn(u64) -> bool,
    ) {
        if !at.is_defined() {
            return;
        }
        let (elements, pages) = (array.elements_per_data_block(u), array.pages_per_data_block(u));
        let held = if pages == 0 { elements } else { 0 };
        let head = BLOCK_FRAME_BYTES + array.addr + array.offset.bytes() as u64 + held.saturating_mul(array.element);
        let page = array.elements_per_page().saturating_mul(array.element).saturating_add(4);
        let size = head.saturating_add(pages.saturating_mul(page));
        let Some(table) = array.element_table(held) else { return };
        if self.claim_metadata(DATA, at, size).is_none() {
            array.whole = false;
            return;
        }
        array.counted[2] += 1;
        array.counted[3] += size;
        array.counted[4] += elements;
        let Some(bytes) = self.read_if_within_limit(DATA, at, head) else { return };
        let context = ExtensibleArrayDataBlock {
            header: Addr::UNDEFINED,
            block_offset_width: array.offset,
            block_offset: 0,
            elements: table,
        };
        let Some(block) = self.decode(context, at, &bytes) else {
            array.whole = false;
            return;
        };
        self.check_array_owner(array, DATA, at, block.header);
        if quirk != Some(block.block_offset) {
            self.check_equal(DATA, at, "block offset", block.block_offset, first);
        }
        let first = first.saturating_add(array.parameters.index_block_elements.into());
        self.check_array_elements(array, DATA, at, first, &block.elements);
        for number in (0..pages).filter(|page| written(*page)) {
            let Some(place) = at.checked_add(head.saturating_add(number.saturating_mul(page))) else { return };
            let Some(bytes) = self.read_if_within_limit(PAGE, place, page) else { return };
            let Some(elements) = array.element_table(array.elements_per_page()) else { return };
            if let Some(decoded) = self.decode(ArrayDataBlockPage { elements }, place, &bytes) {
                let first = first.saturating_add(number.saturating_mul(array.elements_per_page()));
                self.check_array_elements(array, PAGE, place, first, &decoded.elements);
            }
        }
    }

    fn check_array_elements(
        &mut self,
        array: &mut ExtensibleArrayCheck<'_>,
        name: &'static str,
        at: Addr,
        first: u64,
        table: &ChunkEntryTable,
    ) {
        let set = self.check_chunks_and_used_len(array.chunked, name, at, first, table);
        if set > 0 {
            array.set = array.set.max(first.saturating_add(set));
        }
    }
}
