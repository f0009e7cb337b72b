//! Direct blocks of heaps with filters: how many bytes one takes depends on what it holds, so that each change stores it
//! elsewhere.

use h5live_cache::{Handle, Node};
use h5live_format::{
    ChunkElement, FilteredRoot, FractalHeapDirectBlock, FractalHeapHeader, HeapSlot, Record, Wire, decode_with, encode,
};
use h5live_model::FilterSpec;

use super::place::Place;
use super::{FractalHeap, Header, Outside};
use crate::{Error, Result};

/// A direct block, and the bytes that it has become behind the filters.
#[derive(Debug, Clone)]
pub(super) struct StoredBlock {
    pub block: FractalHeapDirectBlock,
    bytes: Vec<u8>,
}

impl Record for StoredBlock {
    const NAME: &'static str = FractalHeapDirectBlock::NAME;

    fn weight(&self) -> usize {
        self.block.weight().saturating_add(self.bytes.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> h5live_format::Result<()> {
        let len = self.bytes.len();
        w.bytes("bytes", len, &mut self.bytes)
    }
}

impl FractalHeap {
    /// What `bytes` become behind the filters, and the mask of those that were skipped.
    pub(super) fn apply(&self, filters: &[FilterSpec], bytes: &[u8]) -> Result<(Vec<u8>, u32)> {
        self.unfilter.filter(filters, bytes).map_err(|source| Error::Filters { at: self.addr, source })
    }

    /// The direct block at a place.
    pub(super) fn stored_block(
        &self,
        header: &FractalHeapHeader,
        filtered: &FilteredRoot,
        place: &Place,
    ) -> Result<Handle<StoredBlock>> {
        let (cache, widths, element) = (self.metadata.cache(), self.metadata.widths(), place.element);
        let (HeapSlot { start, size }, at) = (place.slot, element.addr);
        let stored = cache.load(at, self.metadata.owner(), || {
            let bytes = cache.read_block(at, usize::try_from(element.size).unwrap_or(usize::MAX))?;
            let place = Outside { addr: at, length: element.size, filter_mask: element.filter_mask, size };
            let plain = self.undo(&filtered.filters.filters, place, bytes.clone())?;
            let block = decode_with(header.direct_block(size), &plain, widths);
            let block = block.map_err(|source| Error::Cache(h5live_cache::Error::Decode { at, source }))?;
            Ok::<_, Error>(StoredBlock { block, bytes })
        })?;
        let (heap, offset) = {
            let stored = stored.read();
            (stored.block.heap, stored.block.offset)
        };
        self.check_place(at, FractalHeapDirectBlock::NAME, (heap, offset), start)?;
        Ok(stored)
    }

    /// Stores a direct block in new space, before `parent`.
    pub(super) fn store_block(
        &self,
        parent: &impl Node,
        filters: &[FilterSpec],
        block: FractalHeapDirectBlock,
    ) -> Result<ChunkElement> {
        let plain = encode(&block, self.metadata.widths());
        let plain = plain.map_err(|source| h5live_cache::Error::Encode { at: self.addr, source })?;
        let (bytes, filter_mask) = self.apply(filters, &plain)?;
        let size = bytes.len() as u64;
        let stored = self.metadata.create(size, StoredBlock { block, bytes })?;
        self.depend(parent, &stored)?;
        Ok(ChunkElement { addr: stored.addr(), size, filter_mask })
    }

    /// Stores a direct block anew, and has the heap lead there instead of where it was.
    pub(super) fn replace_block(
        &self,
        header: &Header,
        filters: &[FilterSpec],
        place: &Place,
        block: FractalHeapDirectBlock,
    ) -> Result<()> {
        let element = match place.above.last() {
            None => {
                let element = self.store_block(header, filters, block)?;
                header.update(|header| header.set_root_block(element));
                element
            }
            Some((parent, entry)) => {
                let element = self.store_block(parent, filters, block)?;
                parent.update(|parent| parent.set_block(*entry, element));
                element
            }
        };
        debug_assert!(element.addr.is_defined());
        self.depend_down(header, place)?;
        self.release(place.element.addr, place.element.size);
        Ok(())
    }
}
