//! The fixed array: the index of datasets without an unlimited dimension.

use std::ops::Range;
use std::sync::Arc;

use h5live_cache::{ChunkProxy, DependencyKind, Handle};
use h5live_format::{
    Addr, ArrayDataBlockPage, ChunkEntryFormat, ChunkIndexEntry, FixedArrayDataBlock, FixedArrayHeader, PageBitmap,
    Record, Widths,
};
use h5live_model::ChunkCoord;
use parking_lot::RwLock;

use crate::element_array::{ArrayHeader, ElementArray, ElementLookup};
use crate::element_block::ElementBlock;
use crate::{ChunkIndex, Error, IndexAddrSlot, LinearChunkOrder, ObjectMetadataAccess, Result};

/// The fixed array of one dataset (format specification 4.0, III.G).
#[derive(Debug)]
pub struct FixedArray {
    array: ElementArray<FixedArrayHeader>,
    /// The block of the last lookup.
    last_block: RwLock<Option<LastFixedBlock>>,
}

type FixedHeader = Handle<FixedArrayHeader>;
type FixedDataBlock = Handle<FixedArrayDataBlock>;
type FixedPage = Handle<ArrayDataBlockPage>;

/// Most elements of a table that is held on to: as many as a page of ours has.
const MAX_HELD_ELEMENTS: u64 = 1 << 10;

/// The shape of a fixed array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FixedArrayShape {
    elements: u64,
    page_bits: u8,
}

impl ArrayHeader for FixedArrayHeader {
    type Shape = FixedArrayShape;

    fn new_header(format: ChunkEntryFormat, FixedArrayShape { elements, page_bits }: FixedArrayShape) -> Self {
        FixedArrayHeader { format, page_bits, element_count: elements, data_block: Addr::UNDEFINED }
    }

    fn format_and_shape(&self) -> (ChunkEntryFormat, FixedArrayShape) {
        (self.format, FixedArrayShape { elements: self.element_count, page_bits: self.page_bits })
    }

    fn body_len(widths: Widths) -> u64 {
        2 + (widths.length.bytes() + widths.offset.bytes()) as u64
    }
}

/// A table, and the structure that leads to it.
#[derive(Debug)]
struct LastFixedBlock {
    header: FixedHeader,
    data_block: FixedDataBlock,
    table: ElementBlock,
    /// The range of its elements.
    elements: Range<u64>,
}

impl LastFixedBlock {
    /// The slot of the element at `index`, if it is here, and if the structure at `root` is still the one that leads
    /// here.
    fn slot(&self, index: u64, root: Addr) -> Option<usize> {
        let is_gone = self.header.is_invalidated() || self.data_block.is_invalidated() || self.table.is_invalidated();
        let is_here = self.header.addr() == root && !is_gone && self.elements.contains(&index);
        is_here.then(|| (index - self.elements.start) as usize)
    }
}

impl FixedArray {
    /// The array to which `root` leads, or will lead once a chunk is stored; `page_bits` as the layout message has
    /// them.
    ///
    /// # Errors
    /// [`Error::Contradiction`] if the dataset cannot have such an array.
    pub fn new(
        metadata: ObjectMetadataAccess,
        root: Arc<dyn IndexAddrSlot>,
        line: LinearChunkOrder,
        format: ChunkEntryFormat,
        page_bits: u8,
    ) -> Result<Self> {
        let at = metadata.owner().object_header_addr();
        let contradiction = |rule| Error::Contradiction { record: "data layout message", at, other: "dataspace", rule };
        let elements = line.chunk_count().ok_or_else(|| contradiction("a fixed array has no unlimited dimension"))?;
        let fits = elements.checked_mul(32).is_some() && (1..32).contains(&page_bits);
        if !fits {
            return Err(contradiction("a fixed array can hold an element for each chunk"));
        }
        let shape = FixedArrayShape { elements, page_bits };
        let array = ElementArray::new(metadata, root, line, format, shape);
        Ok(FixedArray { array, last_block: RwLock::default() })
    }

    fn element_count(&self) -> u64 {
        self.array.shape.elements
    }

    fn elements_per_page(&self) -> u64 {
        1 << self.array.shape.page_bits
    }

    /// The number of pages; 0 if the elements lie in the data block itself.
    fn page_count(&self) -> u64 {
        if self.element_count() > self.elements_per_page() {
            self.element_count().div_ceil(self.elements_per_page())
        } else {
            0
        }
    }

    /// Bytes of the data block without its pages.
    fn data_block_len(&self) -> u64 {
        let held = match self.page_count() {
            0 => self.element_count() * self.array.element_len(),
            pages => pages.div_ceil(8),
        };
        self.array.block_len(held)
    }

    fn elements_in_page(&self, page: u64) -> u64 {
        (self.element_count() - page * self.elements_per_page()).min(self.elements_per_page())
    }

    fn page_len(&self, page: u64) -> u64 {
        self.array.page_len(self.elements_in_page(page))
    }

    /// Bytes of the data block with its pages.
    fn data_block_space(&self) -> u64 {
        let pages = match self.page_count() {
            0 => 0,
            pages => (pages - 1) * self.array.page_len(self.elements_per_page()) + self.page_len(pages - 1),
        };
        self.data_block_len() + pages
    }

    fn empty_data_block(&self, header: Addr) -> FixedArrayDataBlock {
        let (bitmap, elements) = match self.page_count() {
            0 => (0, self.element_count()),
            pages => (pages.div_ceil(8), 0),
        };
        FixedArrayDataBlock {
            header,
            written_pages: PageBitmap::zeros(bitmap as usize),
            elements: self.array.undefined_elements(elements),
        }
    }

    fn load_data_block(&self, addr: Addr) -> Result<FixedDataBlock> {
        self.array.load_block(
            addr,
            self.data_block_len(),
            || self.empty_data_block(Addr::UNDEFINED),
            |block| block.header,
        )
    }

    fn page_addr(&self, data_block: Addr, page: u64) -> Result<Addr> {
        let before = self.data_block_len() + page * self.array.page_len(self.elements_per_page());
        let addr = data_block.checked_add(before);
        let rule = "its pages lie in the file";
        addr.ok_or_else(|| self.array.layout_contradiction_error(data_block, FixedArrayDataBlock::NAME, rule))
    }

    fn load_page(&self, data_block: Addr, page: u64) -> Result<FixedPage> {
        self.array.load_page(self.page_addr(data_block, page)?, self.elements_in_page(page))
    }

    fn header_and_data_block(&self) -> Result<Option<(FixedHeader, FixedDataBlock)>> {
        let Some(header) = self.array.header()? else { return Ok(None) };
        let addr = header.read().data_block;
        if addr.is_defined() { self.load_data_block(addr).map(|block| Some((header, block))) } else { Ok(None) }
    }

    /// The place of the element at `index`.
    fn find_slot(&self, data_block: &FixedDataBlock, index: u64) -> Result<ElementLookup> {
        if self.page_count() == 0 {
            return Ok(ElementLookup::Block(ElementBlock::FixedDataBlock(data_block.clone()), index as usize));
        }
        let (page, slot) = (index / self.elements_per_page(), index % self.elements_per_page());
        if !data_block.read().written_pages.get(page as usize) {
            return Ok(ElementLookup::Unset(self.elements_per_page() - slot));
        }
        Ok(ElementLookup::Block(ElementBlock::Page(self.load_page(data_block.addr(), page)?), slot as usize))
    }

    fn data_block_for_writing(&self, header: &FixedHeader) -> Result<FixedDataBlock> {
        let addr = header.read().data_block;
        let block = if addr.is_defined() {
            self.load_data_block(addr)?
        } else {
            self.array.metadata.cache().check_memory_allocation(header.addr(), self.data_block_len())?;
            let block = self.array.metadata.create(self.data_block_space(), self.empty_data_block(header.addr()))?;
            header.update(|header| header.data_block = block.addr());
            block
        };
        self.array.metadata.add_dependency(header, &block, DependencyKind::FixedArrayDataBlock)?;
        self.array.root.depend_on(&block)?;
        Ok(block)
    }

    fn page_for_writing(&self, data_block: &FixedDataBlock, number: u64) -> Result<FixedPage> {
        let addr = self.page_addr(data_block.addr(), number)?;
        let in_use = data_block.read().written_pages.get(number as usize);
        let page = if in_use {
            self.load_page(data_block.addr(), number)?
        } else {
            let page = self.array.create_page(addr, self.elements_in_page(number))?;
            data_block.update(|block| block.written_pages.set_if_clear(number as usize));
            page
        };
        self.array.metadata.add_dependency(data_block, &page, DependencyKind::FixedArrayPage)?;
        self.array.root.depend_on(&page)?;
        Ok(page)
    }
}

impl ChunkIndex for FixedArray {
    fn get_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        let Some(index) = self.array.line.index_of(coord) else { return Ok(None) };
        let is_there = |element: &ChunkIndexEntry| element.addr.is_defined();
        if let Some(recent) = &*self.last_block.read()
            && let Some(slot) = recent.slot(index, self.array.root.addr())
        {
            return Ok(recent.table.get(slot).filter(is_there));
        }
        let Some((header, data_block)) = self.header_and_data_block()? else { return Ok(None) };
        let ElementLookup::Block(table, slot) = self.find_slot(&data_block, index)? else { return Ok(None) };
        let element = table.get(slot).filter(is_there);
        let first = index - slot as u64;
        let elements = first..self.element_count().min(first.saturating_add(self.elements_per_page()));
        if elements.end - elements.start <= MAX_HELD_ELEMENTS
            && let Some(mut recent) = self.last_block.try_write()
        {
            *recent = Some(LastFixedBlock { header, data_block, table, elements });
        }
        Ok(element)
    }

    fn set_chunk_entry(&self, coord: &ChunkCoord, entry: ChunkIndexEntry, proxy: Option<&ChunkProxy>) -> Result<()> {
        let index = self.array.line.index_of(coord).ok_or_else(|| Error::ChunkOutOfBounds(coord.clone()))?;
        self.array.check_stored_size(&entry)?;
        let header = self.array.get_or_create_header()?;
        let block = self.data_block_for_writing(&header)?;
        let (table, slot) = match self.page_count() {
            0 => (ElementBlock::FixedDataBlock(block), index),
            _ => {
                let page = self.page_for_writing(&block, index / self.elements_per_page())?;
                (ElementBlock::Page(page), index % self.elements_per_page())
            }
        };
        if let Some(proxy) = proxy {
            self.array.metadata.add_dependency(table.dependency_node(), proxy, DependencyKind::FixedArrayChunk)?;
        }
        table.set(slot as usize, entry);
        Ok(())
    }

    fn delete_index(&self) -> Result<()> {
        let Some(header) = self.array.header()? else { return Ok(()) };
        *self.last_block.write() = None;
        if let Some((_, block)) = self.header_and_data_block()? {
            // All of them lie in the file if the last one does.
            self.page_addr(block.addr(), self.page_count().saturating_sub(1))?;
            let is_used = |page: &u64| block.read().written_pages.get(*page as usize);
            for page in (0..self.page_count()).filter(is_used) {
                self.array.metadata.cache().forget_entry(self.page_addr(block.addr(), page)?);
            }
            self.array.metadata.free_structure(block.addr(), self.data_block_space());
        }
        self.array.metadata.free_structure(header.addr(), self.array.header_len());
        Ok(())
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        let Some((_, block)) = self.header_and_data_block()? else { return Ok(()) };
        self.array.for_each_chunk_in(0..self.element_count(), |index| self.find_slot(&block, index).map(Some), each)
    }
}
