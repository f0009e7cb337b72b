//! The fixed array: the index of datasets without an unlimited dimension.

use std::ops::Range;
use std::sync::Arc;

use h5live_cache::{ChunkProxy, EdgeKind, Handle};
use h5live_format::{
    Addr, Bitmap, ChunkElement, ElementFormat, ElementTable, FixedArrayDataBlock, FixedArrayHeader, FixedArrayPage,
};
use h5live_model::ChunkCoord;
use parking_lot::{Mutex, RwLock};

use crate::{ChunkIndex, ChunkLine, Error, IndexRoot, ObjectMetadata, Result};

/// The fixed array of one dataset (format specification 4.0, III.G).
#[derive(Debug)]
pub struct FixedArray {
    metadata: ObjectMetadata,
    root: Arc<dyn IndexRoot>,
    line: ChunkLine,
    format: ElementFormat,
    page_bits: u8,
    elements: u64,
    /// The creation of the header, which two writers must not do at once.
    creation: Mutex<()>,
    /// The block of the last lookup.
    last_block: RwLock<Option<LastFixedBlock>>,
}

type FixedHeader = Handle<FixedArrayHeader>;
type FixedDataBlock = Handle<FixedArrayDataBlock>;
type FixedPage = Handle<FixedArrayPage>;

/// Signature, version, client.
const BLOCK_PREFIX_BYTES: u64 = 6;
const CHECKSUM_BYTES: u64 = 4;

/// Most elements of a table that is held on to: as many as a page of ours has.
const MAX_HELD_ELEMENTS: u64 = 1 << 10;

/// A block that holds elements.
#[derive(Debug)]
enum FixedElementBlock {
    DataBlock(FixedDataBlock),
    Page(FixedPage),
}

impl FixedElementBlock {
    fn get(&self, slot: usize) -> Option<ChunkElement> {
        match self {
            FixedElementBlock::DataBlock(block) => block.read().elements.get(slot),
            FixedElementBlock::Page(page) => page.read().elements.get(slot),
        }
    }

    fn is_invalidated(&self) -> bool {
        match self {
            FixedElementBlock::DataBlock(block) => block.is_invalidated(),
            FixedElementBlock::Page(page) => page.is_invalidated(),
        }
    }
}

/// A table, and the structure that leads to it.
#[derive(Debug)]
struct LastFixedBlock {
    header: FixedHeader,
    data_block: FixedDataBlock,
    table: FixedElementBlock,
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
        metadata: ObjectMetadata,
        root: Arc<dyn IndexRoot>,
        line: ChunkLine,
        format: ElementFormat,
        page_bits: u8,
    ) -> Result<Self> {
        let at = metadata.owner().header();
        let contradiction = |rule| Error::Contradiction { record: "data layout message", at, other: "dataspace", rule };
        let elements = line.chunks().ok_or_else(|| contradiction("a fixed array has no unlimited dimension"))?;
        let fits = elements.checked_mul(32).is_some() && (1..32).contains(&page_bits);
        if !fits {
            return Err(contradiction("a fixed array can hold an element for each chunk"));
        }
        Ok(FixedArray {
            metadata,
            root,
            line,
            format,
            page_bits,
            elements,
            creation: Mutex::new(()),
            last_block: RwLock::default(),
        })
    }

    fn element_size(&self) -> u64 {
        self.format.size(self.metadata.offset()) as u64
    }

    fn page_elements(&self) -> u64 {
        1 << self.page_bits
    }

    /// The number of pages; 0 if the elements lie in the data block itself.
    fn pages(&self) -> u64 {
        if self.elements > self.page_elements() { self.elements.div_ceil(self.page_elements()) } else { 0 }
    }

    fn header_len(&self) -> u64 {
        let widths = self.metadata.widths();
        8 + (widths.length.bytes() + widths.offset.bytes()) as u64 + CHECKSUM_BYTES
    }

    /// Bytes of the data block without its pages.
    fn data_block_len(&self) -> u64 {
        let held = match self.pages() {
            0 => self.elements * self.element_size(),
            pages => pages.div_ceil(8),
        };
        BLOCK_PREFIX_BYTES + self.metadata.offset().bytes() as u64 + held + CHECKSUM_BYTES
    }

    fn elements_in_page(&self, page: u64) -> u64 {
        (self.elements - page * self.page_elements()).min(self.page_elements())
    }

    fn page_len(&self, page: u64) -> u64 {
        self.elements_in_page(page) * self.element_size() + CHECKSUM_BYTES
    }

    /// Bytes of the data block with its pages.
    fn data_block_space(&self) -> u64 {
        let pages = match self.pages() {
            0 => 0,
            pages => self.elements * self.element_size() + pages * CHECKSUM_BYTES,
        };
        self.data_block_len() + pages
    }

    fn undefined_elements(&self, len: u64) -> ElementTable {
        ElementTable::undefined(len as usize, self.format, self.metadata.offset())
    }

    fn empty_data_block(&self, header: Addr) -> FixedArrayDataBlock {
        let (bitmap, elements) = match self.pages() {
            0 => (0, self.elements),
            pages => (pages.div_ceil(8), 0),
        };
        FixedArrayDataBlock {
            header,
            pages: Bitmap::zeros(bitmap as usize),
            elements: self.undefined_elements(elements),
        }
    }

    fn contradiction(&self, at: Addr, record: &'static str, rule: &'static str) -> Error {
        Error::Contradiction { record, at, other: "data layout message", rule }
    }

    fn header(&self) -> Result<Option<FixedHeader>> {
        let addr = self.root.addr();
        if !addr.is_defined() {
            return Ok(None);
        }
        let header = self.metadata.load(addr, self.header_len(), FixedArrayHeader::default)?;
        let agrees = {
            let header = header.read();
            header.format == self.format && header.elements == self.elements && header.page_bits == self.page_bits
        };
        if agrees {
            Ok(Some(header))
        } else {
            Err(self.contradiction(addr, "fixed array header", "shape of the array"))
        }
    }

    fn data_block(&self, addr: Addr) -> Result<FixedDataBlock> {
        let block = self.metadata.load(addr, self.data_block_len(), || self.empty_data_block(Addr::UNDEFINED))?;
        let owner = block.read().header;
        if owner == self.root.addr() {
            Ok(block)
        } else {
            Err(self.contradiction(addr, "fixed array data block", "it names the header"))
        }
    }

    fn page_addr(&self, data_block: Addr, page: u64) -> Result<Addr> {
        let full = self.page_elements() * self.element_size() + CHECKSUM_BYTES;
        let addr = data_block.checked_add(self.data_block_len() + page * full);
        addr.ok_or_else(|| self.contradiction(data_block, "fixed array data block", "its pages lie in the file"))
    }

    fn page(&self, data_block: Addr, page: u64) -> Result<FixedPage> {
        let empty = || FixedArrayPage { elements: self.undefined_elements(self.elements_in_page(page)) };
        self.metadata.load(self.page_addr(data_block, page)?, self.page_len(page), empty)
    }

    fn contents(&self) -> Result<Option<(FixedHeader, FixedDataBlock)>> {
        let Some(header) = self.header()? else { return Ok(None) };
        let addr = header.read().data_block;
        if addr.is_defined() { self.data_block(addr).map(|block| Some((header, block))) } else { Ok(None) }
    }

    /// The table that holds the element at `index`, and its slot; `None` if its page was never written.
    fn find(&self, data_block: &FixedDataBlock, index: u64) -> Result<Option<(FixedElementBlock, usize)>> {
        if self.pages() == 0 {
            return Ok(Some((FixedElementBlock::DataBlock(data_block.clone()), index as usize)));
        }
        let page = index / self.page_elements();
        if !data_block.read().pages.get(page as usize) {
            return Ok(None);
        }
        let slot = (index % self.page_elements()) as usize;
        Ok(Some((FixedElementBlock::Page(self.page(data_block.addr(), page)?), slot)))
    }

    fn header_for_writing(&self) -> Result<FixedHeader> {
        let _creation = self.creation.lock();
        let header = match self.header()? {
            Some(header) => header,
            None => {
                let (format, page_bits, elements) = (self.format, self.page_bits, self.elements);
                let header = FixedArrayHeader { format, page_bits, elements, data_block: Addr::UNDEFINED };
                let header = self.metadata.create(self.header_len(), header)?;
                self.root.set_addr(header.addr())?;
                header
            }
        };
        self.root.depend_on(&header)?;
        Ok(header)
    }

    fn data_block_for_writing(&self, header: &FixedHeader) -> Result<FixedDataBlock> {
        let addr = header.read().data_block;
        let block = if addr.is_defined() {
            self.data_block(addr)?
        } else {
            self.metadata.cache().check_allocation(header.addr(), self.data_block_len())?;
            let block = self.metadata.create(self.data_block_space(), self.empty_data_block(header.addr()))?;
            header.update(|header| header.data_block = block.addr());
            block
        };
        self.metadata.add_dependency(header, &block, EdgeKind::FixedArrayDataBlock)?;
        self.root.depend_on(&block)?;
        Ok(block)
    }

    fn page_for_writing(&self, data_block: &FixedDataBlock, number: u64) -> Result<FixedPage> {
        let addr = self.page_addr(data_block.addr(), number)?;
        let in_use = data_block.read().pages.get(number as usize);
        let page = if in_use {
            self.page(data_block.addr(), number)?
        } else {
            self.metadata.cache().check_allocation(addr, self.page_len(number))?;
            let empty = FixedArrayPage { elements: self.undefined_elements(self.elements_in_page(number)) };
            let page = self.metadata.cache().insert(addr, self.metadata.owner(), empty);
            data_block.update(|block| block.pages.set(number as usize));
            page
        };
        self.metadata.add_dependency(data_block, &page, EdgeKind::FixedArrayPage)?;
        self.root.depend_on(&page)?;
        Ok(page)
    }
}

impl ChunkIndex for FixedArray {
    fn get(&self, coord: &ChunkCoord) -> Result<Option<ChunkElement>> {
        let Some(index) = self.line.index(coord) else { return Ok(None) };
        let is_there = |element: &ChunkElement| element.addr.is_defined();
        if let Some(recent) = &*self.last_block.read()
            && let Some(slot) = recent.slot(index, self.root.addr())
        {
            return Ok(recent.table.get(slot).filter(is_there));
        }
        let Some((header, data_block)) = self.contents()? else { return Ok(None) };
        let Some((table, slot)) = self.find(&data_block, index)? else { return Ok(None) };
        let element = table.get(slot).filter(is_there);
        let first = index - slot as u64;
        let elements = first..self.elements.min(first.saturating_add(self.page_elements()));
        if elements.end - elements.start <= MAX_HELD_ELEMENTS
            && let Some(mut recent) = self.last_block.try_write()
        {
            *recent = Some(LastFixedBlock { header, data_block, table, elements });
        }
        Ok(element)
    }

    fn set(&self, coord: &ChunkCoord, element: ChunkElement, proxy: Option<&ChunkProxy>) -> Result<()> {
        let index = self.line.index(coord).ok_or_else(|| Error::ChunkOutOfBounds(coord.clone()))?;
        if let ElementFormat::Filtered(width) = self.format
            && element.size > width.max()
        {
            return Err(Error::ChunkTooLarge { size: element.size });
        }
        let header = self.header_for_writing()?;
        let block = self.data_block_for_writing(&header)?;
        if self.pages() == 0 {
            if let Some(proxy) = proxy {
                self.metadata.add_dependency(&block, proxy, EdgeKind::FixedArrayChunk)?;
            }
            block.update(|block| block.elements.set(index as usize, element));
            return Ok(());
        }
        let page = self.page_for_writing(&block, index / self.page_elements())?;
        if let Some(proxy) = proxy {
            self.metadata.add_dependency(&page, proxy, EdgeKind::FixedArrayChunk)?;
        }
        page.update(|page| page.elements.set((index % self.page_elements()) as usize, element));
        Ok(())
    }

    fn delete(&self) -> Result<()> {
        let Some(header) = self.header()? else { return Ok(()) };
        *self.last_block.write() = None;
        if let Some((_, block)) = self.contents()? {
            // All of them lie in the file if the last one does.
            self.page_addr(block.addr(), self.pages().saturating_sub(1))?;
            let is_used = |page: &u64| block.read().pages.get(*page as usize);
            for page in (0..self.pages()).filter(is_used) {
                self.metadata.cache().remove(self.page_addr(block.addr(), page)?);
            }
            self.metadata.free(block.addr(), self.data_block_space());
        }
        self.metadata.free(header.addr(), self.header_len());
        Ok(())
    }

    fn for_each(&self, each: &mut dyn FnMut(ChunkCoord, ChunkElement) -> bool) -> Result<()> {
        let Some((_, block)) = self.contents()? else { return Ok(()) };
        let mut index = 0;
        while index < self.elements {
            let Some((table, first)) = self.find(&block, index)? else {
                index = (index / self.page_elements() + 1) * self.page_elements();
                continue;
            };
            for element in (first..).map_while(|slot| table.get(slot)) {
                if element.addr.is_defined() && !each(self.line.coord(index), element) {
                    return Ok(());
                }
                index += 1;
            }
        }
        Ok(())
    }
}
