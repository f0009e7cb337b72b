//! The extensible array: the index of datasets with one unlimited dimension.

mod blocks;
mod delete;
mod for_writing;
mod geometry;
mod last_block;

use std::ops::Range;
use std::sync::Arc;

use h5live_cache::{ChunkProxy, Handle};
use h5live_format::{
    Addr, AddrTable, ArrayDataBlockPage, ChunkEntryFormat, ChunkIndexEntry, ExtensibleArrayDataBlock,
    ExtensibleArrayHeader, ExtensibleArrayIndexBlock, ExtensibleArrayParameters, ExtensibleArraySuperBlock, PageBitmap,
    Record, Width,
};
use h5live_model::ChunkCoord;
use parking_lot::Mutex;

use self::blocks::{DataBlock, DataBlockRef, IndexBlock, SuperBlock};
use self::geometry::{DataBlockPath, ElementLocation, ExtensibleArrayGeometry};
use self::last_block::LastWrittenBlock;
use crate::element_array::{ElementArray, ElementLookup};
use crate::element_block::ElementBlock;
use crate::{ChunkIndex, Error, IndexAddrSlot, LinearChunkOrder, ObjectMetadataAccess, Result};

/// The extensible array of one dataset (format specification 4.0, III.H).
#[derive(Debug)]
pub struct ExtensibleArray {
    array: ElementArray<ExtensibleArrayHeader>,
    geometry: ExtensibleArrayGeometry,
    /// The block of the last write.
    last_block: Mutex<Option<LastWrittenBlock>>,
}

impl ExtensibleArray {
    /// The array to which `root` leads, or will lead once a chunk is stored; `parameters` as the layout message has
    /// them.
    ///
    /// # Errors
    /// [`Error::Contradiction`] if the parameters describe no array.
    pub fn new(
        metadata: ObjectMetadataAccess,
        root: Arc<dyn IndexAddrSlot>,
        line: LinearChunkOrder,
        format: ChunkEntryFormat,
        parameters: ExtensibleArrayParameters,
    ) -> Result<Self> {
        let geometry = ExtensibleArrayGeometry::new(&parameters).ok_or(Error::Contradiction {
            record: "data layout message",
            at: metadata.owner().object_header_addr(),
            other: "format",
            rule: "parameters of an extensible array",
        })?;
        let array = ElementArray::new(metadata, root, line, format, parameters);
        Ok(ExtensibleArray { array, geometry, last_block: Mutex::default() })
    }

    fn offset_width(&self) -> Width {
        Width::new(self.geometry.block_offset_size()).unwrap_or(Width::EIGHT)
    }

    fn index_block_len(&self) -> u64 {
        let addrs = (self.geometry.direct_data_block_count() + self.geometry.stored_super_block_count()) as u64;
        let elements = self.geometry.index_block_element_count() as u64;
        self.array.block_len(elements * self.array.element_len() + addrs * self.array.addr_len())
    }

    fn bitmap_len(&self, super_block: u32) -> u64 {
        self.geometry.data_block_count(super_block) * self.geometry.pages_per_data_block(super_block).div_ceil(8)
    }

    fn super_block_len(&self, super_block: u32) -> u64 {
        let addrs = self.geometry.data_block_count(super_block) * self.array.addr_len();
        self.array.block_len(u64::from(self.geometry.block_offset_size()) + self.bitmap_len(super_block) + addrs)
    }

    /// Elements in a data block itself, beside its pages.
    fn unpaged_element_count(&self, super_block: u32) -> u64 {
        match self.geometry.pages_per_data_block(super_block) {
            0 => self.geometry.elements_per_data_block(super_block),
            _ => 0,
        }
    }

    /// Bytes of a data block without its pages.
    fn data_block_len(&self, super_block: u32) -> u64 {
        let elements = self.unpaged_element_count(super_block) * self.array.element_len();
        self.array.block_len(u64::from(self.geometry.block_offset_size()) + elements)
    }

    fn page_len(&self) -> u64 {
        self.array.page_len(self.geometry.elements_per_page())
    }

    /// Bytes of a data block with its pages.
    fn data_block_space(&self, super_block: u32) -> u64 {
        self.data_block_len(super_block) + self.geometry.pages_per_data_block(super_block) * self.page_len()
    }

    fn load_index_block(&self, addr: Addr) -> Result<IndexBlock> {
        self.array.load_block(
            addr,
            self.index_block_len(),
            || self.empty_index_block(Addr::UNDEFINED),
            |block| block.header,
        )
    }

    fn empty_index_block(&self, header: Addr) -> ExtensibleArrayIndexBlock {
        let g = &self.geometry;
        let (elements, data_blocks, super_blocks) =
            (g.index_block_element_count(), g.direct_data_block_count(), g.stored_super_block_count());
        ExtensibleArrayIndexBlock::new(
            header,
            self.array.format,
            self.array.metadata.addr_width(),
            elements,
            data_blocks,
            super_blocks,
        )
    }

    fn empty_super_block(&self, super_block: u32, header: Addr) -> ExtensibleArraySuperBlock {
        ExtensibleArraySuperBlock {
            format: self.array.format,
            header,
            block_offset_width: self.offset_width(),
            block_offset: self.geometry.data_block_elements_before(super_block),
            written_pages: PageBitmap::zeros(self.bitmap_len(super_block) as usize),
            data_blocks: AddrTable::undefined(
                self.geometry.data_block_count(super_block) as usize,
                self.array.metadata.addr_width(),
            ),
        }
    }

    fn load_super_block(&self, super_block: u32, addr: Addr) -> Result<SuperBlock> {
        let empty = || self.empty_super_block(super_block, Addr::UNDEFINED);
        self.array.load_block(addr, self.super_block_len(super_block), empty, |block| block.header)
    }

    fn empty_data_block(&self, super_block: u32, offset: u64, header: Addr) -> ExtensibleArrayDataBlock {
        let elements = self.array.undefined_elements(self.unpaged_element_count(super_block));
        ExtensibleArrayDataBlock { header, block_offset_width: self.offset_width(), block_offset: offset, elements }
    }

    fn load_data_block(&self, block: DataBlockRef) -> Result<DataBlock> {
        let empty = || self.empty_data_block(block.super_block, 0, Addr::UNDEFINED);
        self.array.load_block(block.addr, self.data_block_len(block.super_block), empty, |block| block.header)
    }

    fn page_addr(&self, block: DataBlockRef, page: u64) -> Result<Addr> {
        let before = self.data_block_len(block.super_block) + page * self.page_len();
        let addr = block.addr.checked_add(before);
        let rule = "its pages lie in the file";
        addr.ok_or_else(|| self.array.layout_contradiction_error(block.addr, ExtensibleArrayDataBlock::NAME, rule))
    }

    fn load_page(&self, addr: Addr) -> Result<Handle<ArrayDataBlockPage>> {
        self.array.load_page(addr, self.geometry.elements_per_page())
    }

    /// The number of the bit that says whether a page is in use.
    fn page_bit_index(&self, super_block: u32, within: usize, page: u64) -> usize {
        within * self.geometry.pages_per_data_block(super_block) as usize + page as usize
    }

    /// The place of the element at `index`; `None` if the array cannot have one.
    fn find_slot(&self, index_block: &IndexBlock, index: u64) -> Result<Option<ElementLookup>> {
        let Some(place) = self.geometry.locate(index) else { return Ok(None) };
        match place {
            ElementLocation::IndexBlock(slot) => {
                Ok(Some(ElementLookup::Block(ElementBlock::IndexBlock(index_block.clone()), slot)))
            }
            ElementLocation::DataBlock { super_block, branch, slot } => {
                self.find_slot_below(index_block, super_block, branch, slot).map(Some)
            }
        }
    }

    fn find_slot_below(
        &self,
        index_block: &IndexBlock,
        super_block: u32,
        branch: DataBlockPath,
        slot: u64,
    ) -> Result<ElementLookup> {
        let elements = self.geometry.elements_per_data_block(super_block);
        let pages = self.geometry.pages_per_data_block(super_block);
        let page = slot / self.geometry.elements_per_page();
        let in_page = slot % self.geometry.elements_per_page();
        let addr = match branch {
            DataBlockPath::Direct(at) => index_block.read().direct_data_blocks.get(at),
            DataBlockPath::SuperBlock { slot: at, within } => {
                let addr = index_block.read().super_blocks.get(at).unwrap_or_default();
                if !addr.is_defined() {
                    let before = within as u64 * elements + slot;
                    return Ok(ElementLookup::Unset(self.geometry.data_block_count(super_block) * elements - before));
                }
                let block = self.load_super_block(super_block, addr)?;
                let block = block.read();
                if pages > 0 && !block.written_pages.get(self.page_bit_index(super_block, within, page)) {
                    return Ok(ElementLookup::Unset(self.geometry.elements_per_page() - in_page));
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
            return Ok(ElementLookup::Block(ElementBlock::DataBlock(self.load_data_block(block)?), slot as usize));
        }
        Ok(ElementLookup::Block(ElementBlock::Page(self.load_page(self.page_addr(block, page)?)?), in_page as usize))
    }

    /// The index block, and one more than the largest index that was ever set.
    fn index_block_and_end(&self) -> Result<Option<(IndexBlock, u64)>> {
        let Some(header) = self.array.header()? else { return Ok(None) };
        let (end, index_block) = {
            let header = header.read();
            (header.used_index_end, header.index_block)
        };
        if end == 0 || !index_block.is_defined() {
            return Ok(None);
        }
        Ok(Some((self.load_index_block(index_block)?, end)))
    }

    /// The index block. Ignores the counts of the header.
    fn index_block_of_any_count(&self) -> Result<Option<IndexBlock>> {
        let Some(header) = self.array.header()? else { return Ok(None) };
        let addr = header.read().index_block;
        if addr.is_defined() { self.load_index_block(addr).map(Some) } else { Ok(None) }
    }

    fn element(&self, index_block: &IndexBlock, index: u64) -> Result<Option<ChunkIndexEntry>> {
        let element = match self.find_slot(index_block, index)? {
            Some(ElementLookup::Block(table, slot)) => table.get(slot),
            _ => None,
        };
        Ok(element.filter(|element| element.addr.is_defined()))
    }

    /// Calls `each` with the chunks of a part of the array, until it returns `false`.
    fn for_each_chunk_in(
        &self,
        index_block: &IndexBlock,
        part: Range<u64>,
        each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool,
    ) -> Result<()> {
        self.array.for_each_chunk_in(part, |index| self.find_slot(index_block, index), each)
    }
}

impl ChunkIndex for ExtensibleArray {
    fn can_hold_chunk(&self, coord: &ChunkCoord) -> bool {
        self.array.line.index_of(coord).is_some_and(|index| self.geometry.locate(index).is_some())
    }

    fn get_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        let Some(index) = self.array.line.index_of(coord) else { return Ok(None) };
        if let Some(recent) = &*self.last_block.lock()
            && let Some(slot) = recent.slot(index)
        {
            return Ok(recent.get(slot).filter(|element| element.addr.is_defined()));
        }
        match self.index_block_and_end()? {
            Some((index_block, end)) if index < end => self.element(&index_block, index),
            _ => Ok(None),
        }
    }

    fn has_any_chunk_along_axis(&self, first: &ChunkCoord, axis: usize, count: u64) -> Result<bool> {
        let at = first.scaled().get(axis).copied().unwrap_or_default();
        let (mut any, last) = (false, first.with_index(axis, at.saturating_add(count.saturating_sub(1))));
        if let (Some(begin), Some(last), Some((index_block, end))) =
            (self.array.line.index_of(first), self.array.line.index_of(&last), self.index_block_and_end()?)
        {
            // Along other dimensions than the unlimited one there are others between them.
            let part = begin..end.min(last.saturating_add(1));
            self.for_each_chunk_in(&index_block, part, &mut |coord, _| {
                any = first.with_index(axis, coord.scaled().get(axis).copied().unwrap_or_default()) == coord;
                !any
            })?;
        }
        Ok(any)
    }

    /// Also removes elements that are not counted.
    fn remove_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        let (Some(index), Some(index_block)) = (self.array.line.index_of(coord), self.index_block_of_any_count()?)
        else {
            return Ok(None);
        };
        let old = self.element(&index_block, index)?;
        if old.is_some() {
            self.set_chunk_entry(coord, ChunkIndexEntry::default(), None)?;
        }
        Ok(old)
    }

    fn set_chunk_entry(&self, coord: &ChunkCoord, entry: ChunkIndexEntry, proxy: Option<&ChunkProxy>) -> Result<()> {
        let outside = || Error::ChunkOutOfBounds(coord.clone());
        let index = self.array.line.index_of(coord).ok_or_else(outside)?;
        self.array.check_stored_size(&entry)?;
        if let Some(recent) = &*self.last_block.lock()
            && let Some(slot) = recent.slot_for_writing(index, || self.array.root.flush_parent_ids())
        {
            return self.set_in_last_block(recent, slot, entry, proxy);
        }
        let place = self.geometry.locate(index).ok_or_else(outside)?;
        let header = self.array.get_or_create_header()?;
        let (table, slot) = self.block_for_writing(&header, place)?;
        let last = self.geometry.last_index_in_block(index, place);
        if header.read().used_index_end <= index {
            // While chunks come one after the other, the header is written once for each table.
            let end = if header.is_new() { index } else { last };
            header.update(|header| header.used_index_end = end + 1);
        }
        let recent =
            LastWrittenBlock::new(header, table, index - slot as u64..last + 1, self.array.root.flush_parent_ids());
        self.set_in_last_block(&recent, slot, entry, proxy)?;
        *self.last_block.lock() = Some(recent);
        Ok(())
    }

    fn set_unfiltered_entries_along_axis(
        &self,
        first: &ChunkCoord,
        axis: usize,
        addrs: &[Addr],
        proxy: Option<&ChunkProxy>,
    ) -> Result<()> {
        let at = first.scaled().get(axis).copied().unwrap_or_default();
        let mut number = 0;
        while let Some(place) = addrs.get(number) {
            let coord = first.with_index(axis, at.saturating_add(number as u64));
            self.set_chunk_entry(&coord, ChunkIndexEntry::unfiltered(*place), proxy)?;
            number += 1;
            number += self.set_next_in_last_block(&coord, axis, addrs.get(number..).unwrap_or_default(), proxy)?;
        }
        Ok(())
    }

    fn delete_index(&self) -> Result<()> {
        self.delete_all_blocks()
    }

    fn find_or_fix_block_count_errors(&self, repair: bool) -> Result<bool> {
        self.find_or_fix_all_block_counts(repair)
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        match self.index_block_and_end()? {
            Some((index_block, end)) => self.for_each_chunk_in(&index_block, 0..end, each),
            None => Ok(()),
        }
    }

    fn for_each_chunk_with_uncounted(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        self.index_block_of_any_count()?
            .map_or(Ok(()), |index_block| self.for_each_chunk_in(&index_block, 0..u64::MAX, each))
    }
}
