//! Fixed arrays: the chunk index of datasets without an unlimited dimension.

use h5live_format::{
    Addr, ArrayDataBlockPage, ChunkEntryFormat, ChunkEntryTable, FixedArrayDataBlock, FixedArrayHeader, PageBitmap,
    Record,
};

use super::FindingCause;
use super::chunks::ChunkedDataset;
use super::walk::{FileWalk, MAX_STRUCTURE_BYTES};

const HEADER: &str = FixedArrayHeader::NAME;
const BLOCK: &str = FixedArrayDataBlock::NAME;

impl FileWalk<'_> {
    /// The fixed array of a dataset.
    pub fn check_fixed_array(&mut self, chunked: &ChunkedDataset, page_bits: u8) {
        let (at, widths) = (chunked.storage.addr, self.widths);
        let size = 12 + (widths.length.bytes() + widths.offset.bytes()) as u64;
        let Some(header) = self.claim_and_decode(FixedArrayHeader::default(), at, size) else { return };
        if !self.check_chunk_entry_format((HEADER, at), chunked, header.format) {
            return;
        }
        self.check_equal(HEADER, at, "page bits", header.page_bits.into(), page_bits.into());
        self.check_equal(HEADER, at, "elements", header.element_count, chunked.max_chunk_count().unwrap_or(u64::MAX));
        if header.data_block.is_defined() {
            self.check_fixed_array_block(chunked, at, &header);
        }
    }

    fn check_fixed_array_block(&mut self, chunked: &ChunkedDataset, array: Addr, header: &FixedArrayHeader) {
        let at = header.data_block;
        let element = header.format.size(self.widths.offset) as u64;
        let per_page = 1u64.checked_shl(header.page_bits.into()).unwrap_or(u64::MAX);
        let pages = if header.element_count > per_page { header.element_count.div_ceil(per_page) } else { 0 };
        let held = if pages == 0 { header.element_count.saturating_mul(element) } else { pages.div_ceil(8) };
        let head = (10 + self.widths.offset.bytes() as u64).saturating_add(held);
        let behind =
            if pages == 0 { 0 } else { header.element_count.saturating_mul(element).saturating_add(pages * 4) };
        let whole = head.saturating_add(behind);
        if self.claim_metadata(BLOCK, at, whole).is_none() {
            return;
        }
        if held > MAX_STRUCTURE_BYTES {
            self.report(
                BLOCK,
                at,
                FindingCause::ExceedsLimit { what: "bytes", found: held, limit: MAX_STRUCTURE_BYTES },
            );
            return;
        }
        let table =
            |len: u64| ChunkEntryTable::undefined(usize::try_from(len).unwrap_or(0), header.format, self.widths.offset);
        let (bitmap, elements) = if pages == 0 { (0, header.element_count) } else { (held, 0) };
        let bitmap = PageBitmap::zeros(usize::try_from(bitmap).unwrap_or(0));
        let context = FixedArrayDataBlock { header: Addr::UNDEFINED, written_pages: bitmap, elements: table(elements) };
        let Some(bytes) = self.read_if_within_limit(BLOCK, at, head) else { return };
        let Some(block) = self.decode(context, at, &bytes) else { return };
        if block.header != array {
            self.report(BLOCK, at, FindingCause::BrokenRule("a data block states the address of its header"));
        }
        self.check_chunks_and_used_len(chunked, BLOCK, at, 0, &block.elements);
        for page in (0..pages).filter(|page| block.written_pages.get(usize::try_from(*page).unwrap_or(usize::MAX))) {
            let first = page * per_page;
            let count = per_page.min(header.element_count - first);
            let start = head.saturating_add(first.saturating_mul(element)).saturating_add(page * 4);
            let Some(place) = at.checked_add(start) else { return };
            self.check_fixed_array_page(chunked, place, first, count, header.format);
            if self.report.has_max_findings() {
                return;
            }
        }
    }

    fn check_fixed_array_page(
        &mut self,
        chunked: &ChunkedDataset,
        at: Addr,
        first: u64,
        count: u64,
        format: ChunkEntryFormat,
    ) {
        let element = format.size(self.widths.offset) as u64;
        let Some(bytes) =
            self.read_if_within_limit(ArrayDataBlockPage::NAME, at, count.saturating_mul(element).saturating_add(4))
        else {
            return;
        };
        let elements = ChunkEntryTable::undefined(usize::try_from(count).unwrap_or(0), format, self.widths.offset);
        if let Some(page) = self.decode(ArrayDataBlockPage { elements }, at, &bytes) {
            self.check_chunks_and_used_len(chunked, ArrayDataBlockPage::NAME, at, first, &page.elements);
        }
    }

    /// The chunks to which a run of elements leads; returns how many there are up to the last, counted from the first.
    pub fn check_chunks_and_used_len(
        &mut self,
        chunked: &ChunkedDataset,
        structure: &'static str,
        at: Addr,
        first: u64,
        elements: &ChunkEntryTable,
    ) -> u64 {
        let mut set = 0;
        for (index, element) in (0u64..).zip(elements.iter()) {
            if element.addr.is_defined() {
                set = index + 1;
                self.check_chunk_of_entry(chunked, structure, at, first + index, element);
            }
        }
        set
    }
}
