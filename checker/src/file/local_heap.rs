//! Local heaps: strings, and free blocks between them.

use h5live_format::{Addr, LocalHeapData, LocalHeapPrefix, Record};

use super::FindingCause;
use super::byte_ranges::ByteRanges;
use super::walk::FileWalk;

/// The data segment of a local heap, and its used ranges.
#[derive(Debug)]
pub(super) struct CheckedLocalHeap {
    pub heap: Addr,
    data: LocalHeapData,
    /// The ranges that are free or used by a string.
    taken: ByteRanges,
}

impl CheckedLocalHeap {
    /// The bytes of the data segment.
    pub fn data_segment(&self) -> &[u8] {
        &self.data.bytes
    }
}

impl FileWalk<'_> {
    /// A local heap with its data segment.
    pub fn check_local_heap(&mut self, addr: Addr) -> Option<CheckedLocalHeap> {
        const NAME: &str = LocalHeapData::NAME;
        let heap =
            self.claim_and_decode(LocalHeapPrefix::default(), addr, LocalHeapPrefix::prefix_size(self.widths) as u64)?;
        if heap.data_size == 0 {
            return Some(CheckedLocalHeap { heap: addr, data: LocalHeapData::default(), taken: ByteRanges::default() });
        }
        let data = self.claim_and_decode(LocalHeapData::default(), heap.data, heap.data_size)?;
        let free = match data.free_ranges(heap.free_list_head, self.widths.length) {
            Ok(free) => free,
            Err(error) => {
                self.report(NAME, heap.data, error.into());
                Vec::new()
            }
        };
        let mut strings = CheckedLocalHeap { heap: addr, data, taken: ByteRanges::default() };
        for block in free {
            if block.size > 0 && !strings.taken.try_claim(block.offset, block.offset.saturating_add(block.size)) {
                self.report(NAME, heap.data, FindingCause::BrokenRule("free blocks do not overlap"));
            }
        }
        Some(strings)
    }

    /// A string of a local heap, which nothing else uses.
    pub fn claim_and_read_local_string(&mut self, heap: &mut CheckedLocalHeap, offset: u64) -> Option<Vec<u8>> {
        let overlap = FindingCause::BrokenRule("a string overlaps free space or another string");
        if heap.taken.overlaps(offset, offset.saturating_add(1)) {
            self.report(LocalHeapData::NAME, heap.heap, overlap);
            return None;
        }
        let text = match heap.data.string_bytes(offset) {
            Ok(text) => text.to_vec(),
            Err(error) => {
                self.report(LocalHeapData::NAME, heap.heap, error.into());
                return None;
            }
        };
        if !text.is_empty() && !heap.taken.try_claim(offset, offset.saturating_add(text.len() as u64 + 1)) {
            self.report(LocalHeapData::NAME, heap.heap, overlap);
        }
        Some(text)
    }
}
