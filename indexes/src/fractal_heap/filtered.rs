//! Direct blocks of filtered heaps. The stored size of a block depends on its contents, so each change stores it at a
//! new place.

use h5live_cache::{DependencyNode, Handle};
use h5live_format::{
    ChunkIndexEntry, FractalHeapDirectBlock, FractalHeapFilterInfo, FractalHeapHeader, HeapBlockSlot, Record, Wire,
    decode_with, encode,
};
use h5live_model::FilterSpec;

use super::block_path::BlockPath;
use super::{FractalHeap, HeapHeader, HugeLocation};
use crate::{Error, Result};

/// A direct block, and the bytes that it has become behind the filters.
#[derive(Debug, Clone)]
pub(super) struct FilteredDirectBlock {
    pub block: FractalHeapDirectBlock,
    bytes: Vec<u8>,
}

impl Record for FilteredDirectBlock {
    const NAME: &'static str = FractalHeapDirectBlock::NAME;

    fn memory_bytes(&self) -> usize {
        self.block.memory_bytes().saturating_add(self.bytes.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> h5live_format::Result<()> {
        let len = self.bytes.len();
        w.bytes("bytes", len, &mut self.bytes)
    }
}

impl FractalHeap {
    /// Applies the filters to `bytes`. Returns the result and the mask of the skipped filters.
    pub(super) fn apply_filters(&self, filters: &[FilterSpec], bytes: &[u8]) -> Result<(Vec<u8>, u32)> {
        self.unfilter.filter(filters, bytes).map_err(|source| Error::FilterFailed { at: self.addr, source })
    }

    /// The direct block at a place.
    pub(super) fn load_filtered_block(
        &self,
        header: &FractalHeapHeader,
        filtered: &FractalHeapFilterInfo,
        place: &BlockPath,
    ) -> Result<Handle<FilteredDirectBlock>> {
        let (cache, widths, element) = (self.metadata.cache(), self.metadata.widths(), place.element);
        let (HeapBlockSlot { start, size }, at) = (place.slot, element.addr);
        let stored = cache.load(at, self.metadata.owner(), || {
            let bytes = cache.read_block_uncached(at, usize::try_from(element.stored_size).unwrap_or(usize::MAX))?;
            let place = HugeLocation {
                addr: at,
                stored_bytes: element.stored_size,
                filter_mask: element.filter_mask,
                object_bytes: size,
            };
            let plain = self.unfilter_huge(&filtered.filters.filters, place, bytes.clone())?;
            let block = decode_with(header.blank_direct_block(size), &plain, widths);
            let block = block.map_err(|source| Error::Cache(h5live_cache::Error::Decode { at, source }))?;
            Ok::<_, Error>(FilteredDirectBlock { block, bytes })
        })?;
        let (heap, offset) = {
            let stored = stored.read();
            (stored.block.heap, stored.block.offset_in_heap)
        };
        self.check_block_owner(at, FractalHeapDirectBlock::NAME, (heap, offset), start)?;
        Ok(stored)
    }

    /// Stores a direct block in new space, before `parent`.
    pub(super) fn store_filtered_block(
        &self,
        parent: &impl DependencyNode,
        filters: &[FilterSpec],
        block: FractalHeapDirectBlock,
    ) -> Result<ChunkIndexEntry> {
        let plain = encode(&block, self.metadata.widths());
        let plain = plain.map_err(|source| h5live_cache::Error::Encode { at: self.addr, source })?;
        let (bytes, filter_mask) = self.apply_filters(filters, &plain)?;
        let size = bytes.len() as u64;
        let stored = self.metadata.create(size, FilteredDirectBlock { block, bytes })?;
        self.add_dependency(parent, &stored)?;
        Ok(ChunkIndexEntry { addr: stored.addr(), stored_size: size, filter_mask })
    }

    /// Stores a direct block at a new place, and makes the heap lead there.
    pub(super) fn replace_filtered_block(
        &self,
        header: &HeapHeader,
        filters: &[FilterSpec],
        place: &BlockPath,
        block: FractalHeapDirectBlock,
    ) -> Result<()> {
        let element = match place.ancestors.last() {
            None => {
                let element = self.store_filtered_block(header, filters, block)?;
                header.update(|header| header.set_direct_root(element));
                element
            }
            Some((parent, entry)) => {
                let element = self.store_filtered_block(parent, filters, block)?;
                parent.update(|parent| parent.set_child_entry(*entry, element));
                element
            }
        };
        debug_assert!(element.addr.is_defined());
        self.add_path_dependencies(header, place)?;
        self.free_structure(place.element.addr, place.element.stored_size);
        Ok(())
    }
}
