//! The extensible array: the index of datasets with one unlimited dimension.

mod delete;
mod element_block;
mod for_writing;
mod geometry;
mod last_block;

use std::ops::Range;
use std::sync::Arc;

use h5live_cache::{ChunkProxy, Handle};
use h5live_format::{
    Addr, AddrTable, Bitmap, ChunkElement, ElementFormat, ElementTable, ExtensibleArrayDataBlock,
    ExtensibleArrayHeader, ExtensibleArrayIndexBlock, ExtensibleArrayPage, ExtensibleArrayParameters,
    ExtensibleArraySuperBlock, Width,
};
use h5live_model::ChunkCoord;
use parking_lot::Mutex;

use self::element_block::{DataBlockRef, ElementBlock, ExtensibleHeader, IndexBlock, SuperBlock};
use self::geometry::{ArrayGeometry, DataBlockPath, ElementLocation};
use self::last_block::LastElementBlock;
use crate::{ChunkIndex, ChunkLine, Error, IndexRoot, ObjectMetadata, Result};

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
    /// This many elements from here on were never set.
    Unset(u64),
}

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

    /// The index block. Ignores the counts of the header.
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
