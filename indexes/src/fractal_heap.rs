//! Fractal heaps: dense links and attributes, shared messages.

use std::sync::Arc;

use h5live_cache::Handle;
use h5live_format::{
    Addr, ChunkElement, FractalHeapDirectBlock, FractalHeapHeader, FractalHeapIndirectBlock, HeapPlace,
    HugeIndirectFilteredRecord, HugeIndirectRecord, decode_with,
};
use h5live_model::{FilterSpec, Unfilter};

use crate::{Btree2, Error, ObjectMetadata, Result};

/// The heap of one object (format specification 4.0, III.G).
#[derive(Debug, Clone)]
pub struct FractalHeap {
    metadata: ObjectMetadata,
    addr: Addr,
    unfilter: Arc<dyn Unfilter>,
}

/// Bytes that lie outside of the heap's blocks.
#[derive(Debug, Clone, Copy)]
struct Outside {
    addr: Addr,
    /// Stored bytes.
    length: u64,
    filter_mask: u32,
    /// Bytes after the filters are undone.
    size: u64,
}

impl FractalHeap {
    /// The heap with its header at `addr`; `unfilter` undoes the filters of heaps that have some.
    pub fn new(metadata: ObjectMetadata, addr: Addr, unfilter: Arc<dyn Unfilter>) -> Self {
        FractalHeap { metadata, addr, unfilter }
    }

    fn contradiction(&self, at: Addr, record: &'static str, rule: &'static str) -> Error {
        Error::Contradiction { record, at, other: "fractal heap", rule }
    }

    fn header(&self) -> Result<Handle<FractalHeapHeader>> {
        let (cache, widths) = (self.metadata.cache(), self.metadata.widths());
        let wrong = |source| h5live_cache::Error::Decode { at: self.addr, source };
        let load = || {
            let start = cache.read_block(self.addr, FractalHeapHeader::base_size(widths))?;
            let len = FractalHeapHeader::stated_size(&start, widths).map_err(wrong)?;
            let bytes = cache.read_block(self.addr, len)?;
            decode_with(FractalHeapHeader::default(), &bytes, widths).map_err(wrong)
        };
        Ok(cache.load(self.addr, self.metadata.owner(), load)?)
    }

    /// The bytes of the object with this heap ID.
    ///
    /// # Errors
    /// [`Error::Contradiction`] if the heap has no such object; if a block cannot be read or its filters be undone.
    pub fn get(&self, id: &[u8]) -> Result<Vec<u8>> {
        let header = self.header()?.read().clone();
        let widths = self.metadata.widths();
        let shape = header.id_shape(widths);
        let id = id.get(..usize::from(header.id_len)).unwrap_or(id);
        let id = decode_with(shape.id(HeapPlace::default()), id, widths)
            .map_err(|source| Error::Cache(h5live_cache::Error::Decode { at: self.addr, source }))?;
        match id.place {
            HeapPlace::Tiny(bytes) => Ok(bytes),
            HeapPlace::Managed { offset, length } => self.managed(&header, offset, length),
            HeapPlace::Huge { addr, length, filter_mask, size } => {
                self.outside(&header, Outside { addr, length, filter_mask, size })
            }
            HeapPlace::HugeNumber(number) => self.outside(&header, self.numbered(&header, number)?),
        }
    }

    /// Where the huge object of this number is.
    fn numbered(&self, header: &FractalHeapHeader, number: u64) -> Result<Outside> {
        let missing =
            || self.contradiction(self.addr, "fractal heap header", "a huge object that is referred to exists");
        if !header.huge_index.is_defined() {
            return Err(missing());
        }
        let metadata = self.metadata.clone();
        if header.filtered.is_some() {
            let tree = Btree2::new(metadata, header.huge_index, HugeIndirectFilteredRecord::default());
            let found = tree.find(|record| Ok::<_, Error>(record.id.cmp(&number)))?.ok_or_else(missing)?;
            let HugeIndirectFilteredRecord { addr, length, filter_mask, size, .. } = found;
            Ok(Outside { addr, length, filter_mask, size })
        } else {
            let tree = Btree2::new(metadata, header.huge_index, HugeIndirectRecord::default());
            let found = tree.find(|record| Ok::<_, Error>(record.id.cmp(&number)))?.ok_or_else(missing)?;
            Ok(Outside { addr: found.addr, length: found.length, filter_mask: 0, size: found.length })
        }
    }

    fn outside(&self, header: &FractalHeapHeader, place: Outside) -> Result<Vec<u8>> {
        let bytes =
            self.metadata.cache().read_block(place.addr, usize::try_from(place.length).unwrap_or(usize::MAX))?;
        match &header.filtered {
            None => Ok(bytes),
            Some(filtered) => self.undo(&filtered.filters.filters, place, bytes),
        }
    }

    fn undo(&self, filters: &[FilterSpec], place: Outside, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let undone = self.unfilter.unfilter(filters, place.filter_mask, bytes, place.size);
        undone.map_err(|source| Error::Filters { at: place.addr, source })
    }

    fn managed(&self, header: &FractalHeapHeader, offset: u64, length: u64) -> Result<Vec<u8>> {
        let block = self.direct_block(header, offset)?;
        let block = block.read();
        let object = block.object(offset, length).map(<[u8]>::to_vec);
        object.ok_or_else(|| self.contradiction(self.addr, "heap ID", "an object lies inside a direct block"))
    }

    /// The direct block that holds an offset in heap space.
    fn direct_block(&self, header: &FractalHeapHeader, offset: u64) -> Result<Handle<FractalHeapDirectBlock>> {
        let table = &header.table;
        let lost = || self.contradiction(self.addr, "heap ID", "an object lies where the heap has a block");
        let (mut at, mut rows, mut start, mut inside) = (header.root, header.root_rows, 0u64, offset);
        if rows == 0 {
            let filtered = header.filtered.as_ref();
            let element = ChunkElement {
                addr: at,
                size: filtered.map_or(table.start_size, |root| root.size),
                filter_mask: filtered.map_or(0, |root| root.filter_mask),
            };
            return self.load_direct(header, element, 0, table.start_size);
        }
        // Each indirect block has fewer rows than the one above it.
        loop {
            let block = self.indirect_block(header, at, rows, start)?;
            let (row, column, rest) = table.locate(inside).filter(|(row, ..)| *row < rows).ok_or_else(lost)?;
            let entry = usize::from(row) * usize::from(table.width) + usize::from(column);
            let before = table.offset_of(row, column).and_then(|before| start.checked_add(before)).ok_or_else(lost)?;
            let Some(below) = table.child_rows(row) else {
                let element = block.read().direct.get(entry).ok_or_else(lost)?;
                return self.load_direct(header, element, before, table.row_size(row).ok_or_else(lost)?);
            };
            let direct = usize::from(table.direct_rows()) * usize::from(table.width);
            let child = entry.checked_sub(direct).and_then(|entry| block.read().indirect.get(entry));
            at = child.filter(|addr| addr.is_defined()).ok_or_else(lost)?;
            (rows, start, inside) = (below, before, rest);
        }
    }

    fn indirect_block(
        &self,
        header: &FractalHeapHeader,
        at: Addr,
        rows: u16,
        start: u64,
    ) -> Result<Handle<FractalHeapIndirectBlock>> {
        let widths = self.metadata.widths();
        let empty = header.indirect_block(rows, widths);
        let block = self.metadata.load(at, empty.size(widths) as u64, || empty)?;
        let (heap, offset) = {
            let block = block.read();
            (block.heap, block.offset)
        };
        self.check_place(at, "fractal heap indirect block", (heap, offset), start)?;
        Ok(block)
    }

    /// The direct block of `size` bytes that `element` leads to, and that begins at `start` in heap space.
    fn load_direct(
        &self,
        header: &FractalHeapHeader,
        element: ChunkElement,
        start: u64,
        size: u64,
    ) -> Result<Handle<FractalHeapDirectBlock>> {
        let (cache, widths, at) = (self.metadata.cache(), self.metadata.widths(), element.addr);
        let block = match &header.filtered {
            None => self.metadata.load(at, size, || header.direct_block(size))?,
            Some(filtered) => cache.load(at, self.metadata.owner(), || {
                let bytes = cache.read_block(at, usize::try_from(element.size).unwrap_or(usize::MAX))?;
                let place = Outside { addr: at, length: element.size, filter_mask: element.filter_mask, size };
                let bytes = self.undo(&filtered.filters.filters, place, bytes)?;
                let block = decode_with(header.direct_block(size), &bytes, widths);
                block.map_err(|source| Error::Cache(h5live_cache::Error::Decode { at, source }))
            })?,
        };
        let (heap, offset) = {
            let block = block.read();
            (block.heap, block.offset)
        };
        self.check_place(at, "fractal heap direct block", (heap, offset), start)?;
        Ok(block)
    }

    fn check_place(&self, at: Addr, record: &'static str, stated: (Addr, u64), start: u64) -> Result<()> {
        match stated == (self.addr, start) {
            true => Ok(()),
            false => Err(self.contradiction(at, record, "it names its heap and its place in it")),
        }
    }
}
