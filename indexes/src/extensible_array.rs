//! The extensible array: the index of datasets with one unlimited dimension.

mod delete;
mod element_block;
mod geometry;
mod last_block;

use std::ops::Range;
use std::sync::Arc;

use h5live_cache::{ChunkProxy, EdgeKind, Handle};
use h5live_format::{
    Addr, AddrTable, Bitmap, ChunkElement, ElementFormat, ElementTable, ExtensibleArrayDataBlock,
    ExtensibleArrayHeader, ExtensibleArrayIndexBlock, ExtensibleArrayPage, ExtensibleArrayParameters,
    ExtensibleArraySuperBlock, Width,
};
use h5live_model::ChunkCoord;
use parking_lot::Mutex;

use self::element_block::ElementBlock;
use self::geometry::{ArrayGeometry, DataBlockPath, ElementLocation};
use self::last_block::LastElementBlock;
use crate::{ChunkIndex, ChunkLine, Error, IndexRoot, ObjectMetadata, Result};

/// The way to a data block: the structure that leads there, and the format of its elements.
#[derive(Debug, Clone, Copy)]
struct DataBlockRef {
    super_block: u32,
    addr: Addr,
}

/// The extensible array of one dataset (format specification 4.0, III.H).
#[derive(Debug)]
pub struct ExtensibleArray {
    metadata: ObjectMetadata,
    root: Arc<dyn IndexRoot>,
    line: ChunkLine,
    format: ElementFormat,
    parameters: ExtensibleArrayParameters,
    geometry: ArrayGeometry,
    /// The creation of the header, which two writers must not do at once.
    creation: Mutex<()>,
    /// The block of the last write.
    last_block: Mutex<Option<LastElementBlock>>,
}

/// The result of a lookup.
enum ElementLookup {
    /// The element is in this slot of a block.
    Block(ElementBlock, usize),
    /// So many elements from here on were never set.
    Unset(u64),
}

type ExtensibleHeader = Handle<ExtensibleArrayHeader>;
type IndexBlock = Handle<ExtensibleArrayIndexBlock>;
type SuperBlock = Handle<ExtensibleArraySuperBlock>;

/// Signature, version, client.
const BLOCK_PREFIX_BYTES: u64 = 6;
const CHECKSUM_BYTES: u64 = 4;

impl ExtensibleArray {
    /// The array to which `root` leads, or will lead once a chunk is stored; `parameters` as the layout message has
    /// them.
    ///
    /// # Errors
    /// [`Error::Contradiction`] if the parameters describe no array.
    pub fn new(
        metadata: ObjectMetadata,
        root: Arc<dyn IndexRoot>,
        line: ChunkLine,
        format: ElementFormat,
        parameters: ExtensibleArrayParameters,
    ) -> Result<Self> {
        let geometry = ArrayGeometry::new(&parameters).ok_or(Error::Contradiction {
            record: "data layout message",
            at: metadata.owner().header(),
            other: "format",
            rule: "parameters of an extensible array",
        })?;
        Ok(ExtensibleArray {
            metadata,
            root,
            line,
            format,
            parameters,
            geometry,
            creation: Mutex::new(()),
            last_block: Mutex::default(),
        })
    }

    fn element_size(&self) -> u64 {
        self.format.size(self.metadata.offset()) as u64
    }

    fn addr_size(&self) -> u64 {
        self.metadata.offset().bytes() as u64
    }

    fn offset_width(&self) -> Width {
        Width::new(self.geometry.offset_bytes()).unwrap_or(Width::EIGHT)
    }

    fn header_len(&self) -> u64 {
        12 + 6 * self.metadata.widths().length.bytes() as u64 + self.addr_size() + CHECKSUM_BYTES
    }

    fn index_block_len(&self) -> u64 {
        let addrs = (self.geometry.direct_data_blocks() + self.geometry.super_block_slots()) as u64;
        let elements = self.geometry.index_elements() as u64 * self.element_size();
        BLOCK_PREFIX_BYTES + self.addr_size() + elements + addrs * self.addr_size() + CHECKSUM_BYTES
    }

    fn bitmap_len(&self, super_block: u32) -> u64 {
        self.geometry.data_blocks(super_block) * self.geometry.pages(super_block).div_ceil(8)
    }

    fn super_block_len(&self, super_block: u32) -> u64 {
        let addrs = self.geometry.data_blocks(super_block) * self.addr_size();
        BLOCK_PREFIX_BYTES
            + self.addr_size()
            + u64::from(self.geometry.offset_bytes())
            + self.bitmap_len(super_block)
            + addrs
            + CHECKSUM_BYTES
    }

    /// Bytes of a data block without its pages.
    fn data_block_len(&self, super_block: u32) -> u64 {
        let elements = match self.geometry.pages(super_block) {
            0 => self.geometry.data_block_elements(super_block) * self.element_size(),
            _ => 0,
        };
        BLOCK_PREFIX_BYTES + self.addr_size() + u64::from(self.geometry.offset_bytes()) + elements + CHECKSUM_BYTES
    }

    fn page_len(&self) -> u64 {
        self.geometry.page_elements() * self.element_size() + CHECKSUM_BYTES
    }

    /// Bytes of a data block with its pages.
    fn data_block_space(&self, super_block: u32) -> u64 {
        self.data_block_len(super_block) + self.geometry.pages(super_block) * self.page_len()
    }

    fn undefined_elements(&self, len: u64) -> ElementTable {
        ElementTable::undefined(len as usize, self.format, self.metadata.offset())
    }

    fn header(&self) -> Result<Option<ExtensibleHeader>> {
        let addr = self.root.addr();
        if !addr.is_defined() {
            return Ok(None);
        }
        let header = self.metadata.load(addr, self.header_len(), ExtensibleArrayHeader::default)?;
        let agrees = {
            let header = header.read();
            header.format == self.format && header.parameters == self.parameters
        };
        if agrees {
            Ok(Some(header))
        } else {
            Err(self.contradiction(addr, "extensible array header", "element format"))
        }
    }

    fn contradiction(&self, at: Addr, record: &'static str, rule: &'static str) -> Error {
        Error::Contradiction { record, at, other: "data layout message", rule }
    }

    fn checked_owner(&self, at: Addr, record: &'static str, stated: Addr) -> Result<()> {
        if stated == self.root.addr() { Ok(()) } else { Err(self.contradiction(at, record, "it names the header")) }
    }

    fn index_block(&self, addr: Addr) -> Result<IndexBlock> {
        let block = self.metadata.load(addr, self.index_block_len(), || self.empty_index_block(Addr::UNDEFINED))?;
        let header = block.read().header;
        self.checked_owner(addr, "extensible array index block", header)?;
        Ok(block)
    }

    fn empty_index_block(&self, header: Addr) -> ExtensibleArrayIndexBlock {
        let g = &self.geometry;
        let (elements, data_blocks, super_blocks) = (g.index_elements(), g.direct_data_blocks(), g.super_block_slots());
        ExtensibleArrayIndexBlock::new(header, self.format, self.metadata.offset(), elements, data_blocks, super_blocks)
    }

    fn empty_super_block(&self, super_block: u32, header: Addr) -> ExtensibleArraySuperBlock {
        ExtensibleArraySuperBlock {
            format: self.format,
            header,
            offset_width: self.offset_width(),
            offset: self.geometry.start(super_block),
            pages: Bitmap::zeros(self.bitmap_len(super_block) as usize),
            data_blocks: AddrTable::undefined(self.geometry.data_blocks(super_block) as usize, self.metadata.offset()),
        }
    }

    fn super_block(&self, super_block: u32, addr: Addr) -> Result<SuperBlock> {
        let empty = || self.empty_super_block(super_block, Addr::UNDEFINED);
        let block = self.metadata.load(addr, self.super_block_len(super_block), empty)?;
        let header = block.read().header;
        self.checked_owner(addr, "extensible array super block", header)?;
        Ok(block)
    }

    fn empty_data_block(&self, super_block: u32, offset: u64, header: Addr) -> ExtensibleArrayDataBlock {
        let elements = match self.geometry.pages(super_block) {
            0 => self.geometry.data_block_elements(super_block),
            _ => 0,
        };
        let elements = self.undefined_elements(elements);
        ExtensibleArrayDataBlock { header, offset_width: self.offset_width(), offset, elements }
    }

    fn data_block(&self, block: DataBlockRef) -> Result<Handle<ExtensibleArrayDataBlock>> {
        let empty = || self.empty_data_block(block.super_block, 0, Addr::UNDEFINED);
        let loaded = self.metadata.load(block.addr, self.data_block_len(block.super_block), empty)?;
        let header = loaded.read().header;
        self.checked_owner(block.addr, "extensible array data block", header)?;
        Ok(loaded)
    }

    fn page_addr(&self, block: DataBlockRef, page: u64) -> Result<Addr> {
        let before = self.data_block_len(block.super_block) + page * self.page_len();
        let addr = block.addr.checked_add(before);
        addr.ok_or_else(|| self.contradiction(block.addr, "extensible array data block", "its pages lie in the file"))
    }

    fn page(&self, addr: Addr) -> Result<Handle<ExtensibleArrayPage>> {
        let empty = || ExtensibleArrayPage { elements: self.undefined_elements(self.geometry.page_elements()) };
        self.metadata.load(addr, self.page_len(), empty)
    }

    /// The number of the bit that says whether a page is in use.
    fn page_bit(&self, super_block: u32, within: usize, page: u64) -> usize {
        within * self.geometry.pages(super_block) as usize + page as usize
    }

    /// The place of the element at `index`; `None` if the array cannot have one.
    fn find(&self, index_block: &IndexBlock, index: u64) -> Result<Option<ElementLookup>> {
        let Some(place) = self.geometry.locate(index) else { return Ok(None) };
        match place {
            ElementLocation::IndexBlock(slot) => {
                Ok(Some(ElementLookup::Block(ElementBlock::IndexBlock(index_block.clone()), slot)))
            }
            ElementLocation::DataBlock { super_block, branch, slot } => {
                self.find_below(index_block, super_block, branch, slot).map(Some)
            }
        }
    }

    fn find_below(
        &self,
        index_block: &IndexBlock,
        super_block: u32,
        branch: DataBlockPath,
        slot: u64,
    ) -> Result<ElementLookup> {
        let elements = self.geometry.data_block_elements(super_block);
        let pages = self.geometry.pages(super_block);
        let page = slot / self.geometry.page_elements();
        let in_page = slot % self.geometry.page_elements();
        let addr = match branch {
            DataBlockPath::Direct(at) => index_block.read().data_blocks.get(at),
            DataBlockPath::SuperBlock { slot: at, within } => {
                let addr = index_block.read().super_blocks.get(at).unwrap_or_default();
                if !addr.is_defined() {
                    let before = within as u64 * elements + slot;
                    return Ok(ElementLookup::Unset(self.geometry.data_blocks(super_block) * elements - before));
                }
                let block = self.super_block(super_block, addr)?;
                let block = block.read();
                if pages > 0 && !block.pages.get(self.page_bit(super_block, within, page)) {
                    return Ok(ElementLookup::Unset(self.geometry.page_elements() - in_page));
                }
                block.data_blocks.get(within)
            }
        };
        let addr = addr.unwrap_or_default();
        if !addr.is_defined() {
            return Ok(ElementLookup::Unset(elements - slot));
        }
        let block = DataBlockRef { super_block, addr };
        if pages == 0 {
            return Ok(ElementLookup::Block(ElementBlock::DataBlock(self.data_block(block)?), slot as usize));
        }
        Ok(ElementLookup::Block(ElementBlock::Page(self.page(self.page_addr(block, page)?)?), in_page as usize))
    }

    /// The index block, and one more than the largest index that was ever set.
    fn contents(&self) -> Result<Option<(IndexBlock, u64)>> {
        let Some(header) = self.header()? else { return Ok(None) };
        let (end, index_block) = {
            let header = header.read();
            (header.max_index_set, header.index_block)
        };
        if end == 0 || !index_block.is_defined() {
            return Ok(None);
        }
        Ok(Some((self.index_block(index_block)?, end)))
    }

    /// The index block, whatever the header counts.
    fn index_block_uncounted(&self) -> Result<Option<IndexBlock>> {
        let Some(header) = self.header()? else { return Ok(None) };
        let addr = header.read().index_block;
        if addr.is_defined() { self.index_block(addr).map(Some) } else { Ok(None) }
    }

    fn element(&self, index_block: &IndexBlock, index: u64) -> Result<Option<ChunkElement>> {
        let element = match self.find(index_block, index)? {
            Some(ElementLookup::Block(table, slot)) => table.get(slot),
            _ => None,
        };
        Ok(element.filter(|element| element.addr.is_defined()))
    }

    /// Calls `each` with the chunks of a part of the array, until it returns `false`.
    fn visit(
        &self,
        index_block: &IndexBlock,
        part: Range<u64>,
        each: &mut dyn FnMut(ChunkCoord, ChunkElement) -> bool,
    ) -> Result<()> {
        let Range { start: mut index, end } = part;
        while index < end {
            let (table, first) = match self.find(index_block, index)? {
                None => break,
                Some(ElementLookup::Unset(len)) => {
                    index = index.saturating_add(len);
                    continue;
                }
                Some(ElementLookup::Block(table, slot)) => (table, slot),
            };
            for element in (first..).map_while(|slot| table.get(slot)) {
                if index >= end {
                    return Ok(());
                }
                if element.addr.is_defined() && !each(self.line.coord(index), element) {
                    return Ok(());
                }
                index += 1;
            }
        }
        Ok(())
    }

    fn header_for_writing(&self) -> Result<ExtensibleHeader> {
        let _creation = self.creation.lock();
        let header = match self.header()? {
            Some(header) => header,
            None => {
                let (format, parameters) = (self.format, self.parameters);
                let header = ExtensibleArrayHeader { format, parameters, ..Default::default() };
                let header = self.metadata.create(self.header_len(), header)?;
                self.root.set_addr(header.addr())?;
                header
            }
        };
        self.root.depend_on(&header)?;
        Ok(header)
    }

    fn index_block_for_writing(&self, header: &ExtensibleHeader) -> Result<IndexBlock> {
        let addr = header.read().index_block;
        let block = if addr.is_defined() {
            self.index_block(addr)?
        } else {
            let block =
                self.metadata.create_shaped(self.index_block_len(), || self.empty_index_block(header.addr()))?;
            header.update(|header| {
                header.index_block = block.addr();
                header.realized_elements += self.geometry.index_elements() as u64;
            });
            block
        };
        self.metadata.add_dependency(header, &block, EdgeKind::ExtensibleArrayIndexBlock)?;
        self.root.depend_on(&block)?;
        Ok(block)
    }

    fn super_block_for_writing(
        &self,
        header: &ExtensibleHeader,
        index_block: &IndexBlock,
        number: u32,
        slot: usize,
    ) -> Result<SuperBlock> {
        let addr = index_block.read().super_blocks.get(slot).unwrap_or_default();
        let block = if addr.is_defined() {
            self.super_block(number, addr)?
        } else {
            let len = self.super_block_len(number);
            let block = self.metadata.create_shaped(len, || self.empty_super_block(number, header.addr()))?;
            index_block.update(|index_block| index_block.super_blocks.set(slot, block.addr()));
            header.update(|header| {
                header.super_blocks += 1;
                header.super_block_bytes += len;
            });
            block
        };
        self.metadata.add_dependency(index_block, &block, EdgeKind::ExtensibleArraySuperBlock)?;
        self.metadata.add_dependency(header, &block, EdgeKind::ExtensibleArraySuperBlock)?;
        self.root.depend_on(&block)?;
        Ok(block)
    }

    fn create_data_block(
        &self,
        header: &ExtensibleHeader,
        number: u32,
        in_line: u64,
    ) -> Result<Handle<ExtensibleArrayDataBlock>> {
        let elements = self.geometry.data_block_elements(number);
        let offset = self.geometry.start(number) + in_line * elements;
        let space = self.data_block_space(number);
        self.metadata.cache().check_allocation(header.addr(), self.data_block_len(number))?;
        let block = self.metadata.create(space, self.empty_data_block(number, offset, header.addr()))?;
        header.update(|header| {
            header.data_blocks += 1;
            header.data_block_bytes += space;
            header.realized_elements += elements;
        });
        Ok(block)
    }

    /// The table in which to set the element at `slot` of a data block.
    fn table_below(
        &self,
        header: &ExtensibleHeader,
        index_block: &IndexBlock,
        number: u32,
        branch: DataBlockPath,
        slot: u64,
    ) -> Result<(ElementBlock, usize)> {
        match branch {
            DataBlockPath::Direct(at) => {
                let addr = index_block.read().data_blocks.get(at).unwrap_or_default();
                let block = if addr.is_defined() {
                    self.data_block(DataBlockRef { super_block: number, addr })?
                } else {
                    let block = self.create_data_block(header, number, at as u64)?;
                    index_block.update(|index_block| index_block.data_blocks.set(at, block.addr()));
                    block
                };
                self.metadata.add_dependency(index_block, &block, EdgeKind::ExtensibleArrayDataBlock)?;
                self.data_block_for_writing(header, block, slot)
            }
            DataBlockPath::SuperBlock { slot: at, within } => {
                let super_block = self.super_block_for_writing(header, index_block, number, at)?;
                let addr = super_block.read().data_blocks.get(within).unwrap_or_default();
                let block = if addr.is_defined() {
                    self.data_block(DataBlockRef { super_block: number, addr })?
                } else {
                    let block = self.create_data_block(header, number, within as u64)?;
                    super_block.update(|super_block| super_block.data_blocks.set(within, block.addr()));
                    block
                };
                self.metadata.add_dependency(&super_block, &block, EdgeKind::ExtensibleArrayDataBlock)?;
                if self.geometry.pages(number) == 0 {
                    return self.data_block_for_writing(header, block, slot);
                }
                let page = slot / self.geometry.page_elements();
                let addr = self.page_addr(DataBlockRef { super_block: number, addr: block.addr() }, page)?;
                let bit = self.page_bit(number, within, page);
                let in_use = super_block.read().pages.get(bit);
                let page = if in_use {
                    self.page(addr)?
                } else {
                    self.metadata.cache().check_allocation(addr, self.page_len())?;
                    let empty =
                        ExtensibleArrayPage { elements: self.undefined_elements(self.geometry.page_elements()) };
                    let page = self.metadata.cache().insert(addr, self.metadata.owner(), empty);
                    super_block.update(|super_block| super_block.pages.set(bit));
                    page
                };
                self.metadata.add_dependency(&super_block, &page, EdgeKind::ExtensibleArrayPage)?;
                self.metadata.add_dependency(header, &page, EdgeKind::ExtensibleArrayPage)?;
                self.metadata.add_dependency(&super_block, &block, EdgeKind::ExtensibleArrayDataBlock)?;
                self.root.depend_on(&page)?;
                Ok((ElementBlock::Page(page), (slot % self.geometry.page_elements()) as usize))
            }
        }
    }

    fn data_block_for_writing(
        &self,
        header: &ExtensibleHeader,
        block: Handle<ExtensibleArrayDataBlock>,
        slot: u64,
    ) -> Result<(ElementBlock, usize)> {
        self.metadata.add_dependency(header, &block, EdgeKind::ExtensibleArrayDataBlock)?;
        self.root.depend_on(&block)?;
        Ok((ElementBlock::DataBlock(block), slot as usize))
    }

    fn set_in_last_block(
        &self,
        recent: &LastElementBlock,
        slot: usize,
        element: ChunkElement,
        proxy: Option<&ChunkProxy>,
    ) -> Result<()> {
        if let Some(proxy) = proxy {
            self.metadata.add_dependency(recent.node(), proxy, EdgeKind::ExtensibleArrayChunk)?;
        }
        let done = recent.set(slot, element);
        debug_assert!(done, "every place of the geometry is in its block");
        Ok(())
    }

    /// Sets the elements of chunks that follow `coord` along a dimension, as many as are in the table that was used
    /// last. Returns their number.
    fn set_neighbors(
        &self,
        coord: &ChunkCoord,
        axis: usize,
        places: &[Addr],
        proxy: Option<&ChunkProxy>,
    ) -> Result<usize> {
        let next = coord.scaled().get(axis).and_then(|at| at.checked_add(1)).map(|at| coord.with_index(axis, at));
        let indexes = self.line.index(coord).zip(next.and_then(|next| self.line.index(&next)));
        // Along other dimensions they do not follow each other in the array.
        let Some((_, index)) = indexes.filter(|(index, next)| index.checked_add(1) == Some(*next)) else {
            return Ok(0);
        };
        let recent = self.last_block.lock();
        let Some(recent) = &*recent else { return Ok(0) };
        let Some(slot) = recent.slot_for_writing(index, || self.root.parents()) else { return Ok(0) };
        if let Some(proxy) = proxy {
            self.metadata.add_dependency(recent.node(), proxy, EdgeKind::ExtensibleArrayChunk)?;
        }
        Ok(recent.set_all(slot, places))
    }

    /// The table in which to set the element at `place`.
    fn table_for_writing(&self, header: &ExtensibleHeader, place: ElementLocation) -> Result<(ElementBlock, usize)> {
        let index_block = self.index_block_for_writing(header)?;
        match place {
            ElementLocation::IndexBlock(slot) => Ok((ElementBlock::IndexBlock(index_block), slot)),
            ElementLocation::DataBlock { super_block, branch, slot } => {
                self.table_below(header, &index_block, super_block, branch, slot)
            }
        }
    }
}

impl ChunkIndex for ExtensibleArray {
    fn get(&self, coord: &ChunkCoord) -> Result<Option<ChunkElement>> {
        let Some(index) = self.line.index(coord) else { return Ok(None) };
        if let Some(recent) = &*self.last_block.lock()
            && let Some(slot) = recent.slot(index)
        {
            return Ok(recent.get(slot).filter(|element| element.addr.is_defined()));
        }
        match self.contents()? {
            Some((index_block, end)) if index < end => self.element(&index_block, index),
            _ => Ok(None),
        }
    }

    fn has_any(&self, first: &ChunkCoord, axis: usize, number: u64) -> Result<bool> {
        let at = first.scaled().get(axis).copied().unwrap_or_default();
        let (mut any, last) = (false, first.with_index(axis, at.saturating_add(number.saturating_sub(1))));
        if let (Some(begin), Some(last), Some((index_block, end))) =
            (self.line.index(first), self.line.index(&last), self.contents()?)
        {
            // Along other dimensions than the unlimited one there are others between them.
            let part = begin..end.min(last.saturating_add(1));
            self.visit(&index_block, part, &mut |coord, _| {
                any = first.with_index(axis, coord.scaled().get(axis).copied().unwrap_or_default()) == coord;
                !any
            })?;
        }
        Ok(any)
    }

    /// Also removes elements that are not counted.
    fn remove(&self, coord: &ChunkCoord) -> Result<Option<ChunkElement>> {
        let (Some(index), Some(index_block)) = (self.line.index(coord), self.index_block_uncounted()?) else {
            return Ok(None);
        };
        let old = self.element(&index_block, index)?;
        if old.is_some() {
            self.set(coord, ChunkElement::default(), None)?;
        }
        Ok(old)
    }

    fn set(&self, coord: &ChunkCoord, element: ChunkElement, proxy: Option<&ChunkProxy>) -> Result<()> {
        let outside = || Error::ChunkOutOfBounds(coord.clone());
        let index = self.line.index(coord).ok_or_else(outside)?;
        if let ElementFormat::Filtered(width) = self.format
            && element.size > width.max()
        {
            return Err(Error::ChunkTooLarge { size: element.size });
        }
        if let Some(recent) = &*self.last_block.lock()
            && let Some(slot) = recent.slot_for_writing(index, || self.root.parents())
        {
            return self.set_in_last_block(recent, slot, element, proxy);
        }
        let place = self.geometry.locate(index).ok_or_else(outside)?;
        let header = self.header_for_writing()?;
        let (table, slot) = self.table_for_writing(&header, place)?;
        let last = self.geometry.last_in_block(index, place);
        if header.read().max_index_set <= index {
            // While chunks come one after the other, the header is written once for each table.
            let end = if header.is_new() { index } else { last };
            header.update(|header| header.max_index_set = end + 1);
        }
        let recent = LastElementBlock::new(header, table, index - slot as u64..last + 1, self.root.parents());
        self.set_in_last_block(&recent, slot, element, proxy)?;
        *self.last_block.lock() = Some(recent);
        Ok(())
    }

    fn set_row(&self, first: &ChunkCoord, axis: usize, places: &[Addr], proxy: Option<&ChunkProxy>) -> Result<()> {
        let at = first.scaled().get(axis).copied().unwrap_or_default();
        let mut number = 0;
        while let Some(place) = places.get(number) {
            let coord = first.with_index(axis, at.saturating_add(number as u64));
            self.set(&coord, ChunkElement::unfiltered(*place), proxy)?;
            number += 1;
            number += self.set_neighbors(&coord, axis, places.get(number..).unwrap_or_default(), proxy)?;
        }
        Ok(())
    }

    fn delete(&self) -> Result<()> {
        self.delete_blocks()
    }

    fn recount(&self, mend: bool) -> Result<bool> {
        self.recount_blocks(mend)
    }

    fn for_each(&self, each: &mut dyn FnMut(ChunkCoord, ChunkElement) -> bool) -> Result<()> {
        match self.contents()? {
            Some((index_block, end)) => self.visit(&index_block, 0..end, each),
            None => Ok(()),
        }
    }

    fn for_each_with_unpublished(&self, each: &mut dyn FnMut(ChunkCoord, ChunkElement) -> bool) -> Result<()> {
        self.index_block_uncounted()?.map_or(Ok(()), |index_block| self.visit(&index_block, 0..u64::MAX, each))
    }
}
