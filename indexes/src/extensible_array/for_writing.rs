//! The structures that a new element goes into, made where they are not there yet.

use h5live_cache::{ChunkProxy, DependencyKind};
use h5live_format::{Addr, ChunkIndexEntry};
use h5live_model::ChunkCoord;

use super::ExtensibleArray;
use super::blocks::{DataBlock, DataBlockRef, ExtensibleHeader, IndexBlock, SuperBlock};
use super::geometry::{DataBlockPath, ElementLocation};
use super::last_block::LastWrittenBlock;
use crate::Result;
use crate::element_block::ElementBlock;

impl ExtensibleArray {
    fn index_block_for_writing(&self, header: &ExtensibleHeader) -> Result<IndexBlock> {
        let addr = header.read().index_block;
        let block = if addr.is_defined() {
            self.load_index_block(addr)?
        } else {
            let block = self
                .array
                .metadata
                .create_with_stated_len(self.index_block_len(), || self.empty_index_block(header.addr()))?;
            header.update(|header| {
                header.index_block = block.addr();
                header.allocated_element_count += self.geometry.index_block_element_count() as u64;
            });
            block
        };
        self.array.metadata.add_dependency(header, &block, DependencyKind::ExtensibleArrayIndexBlock)?;
        self.array.root.depend_on(&block)?;
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
            self.load_super_block(number, addr)?
        } else {
            let len = self.super_block_len(number);
            let block =
                self.array.metadata.create_with_stated_len(len, || self.empty_super_block(number, header.addr()))?;
            index_block.update(|index_block| index_block.super_blocks.set(slot, block.addr()));
            header.update(|header| {
                header.super_block_count += 1;
                header.total_super_block_bytes += len;
            });
            block
        };
        self.array.metadata.add_dependency(index_block, &block, DependencyKind::ExtensibleArraySuperBlock)?;
        self.array.metadata.add_dependency(header, &block, DependencyKind::ExtensibleArraySuperBlock)?;
        self.array.root.depend_on(&block)?;
        Ok(block)
    }

    fn create_data_block(&self, header: &ExtensibleHeader, number: u32, in_line: u64) -> Result<DataBlock> {
        let elements = self.geometry.elements_per_data_block(number);
        let offset = self.geometry.data_block_elements_before(number) + in_line * elements;
        let space = self.data_block_space(number);
        self.array.metadata.cache().check_memory_allocation(header.addr(), self.data_block_len(number))?;
        let block = self.array.metadata.create(space, self.empty_data_block(number, offset, header.addr()))?;
        header.update(|header| {
            header.data_block_count += 1;
            header.total_data_block_bytes += space;
            header.allocated_element_count += elements;
        });
        Ok(block)
    }

    /// The table in which to set the element at `slot` of a data block.
    fn table_below_super_block(
        &self,
        header: &ExtensibleHeader,
        index_block: &IndexBlock,
        number: u32,
        branch: DataBlockPath,
        slot: u64,
    ) -> Result<(ElementBlock, usize)> {
        match branch {
            DataBlockPath::Direct(at) => {
                let addr = index_block.read().direct_data_blocks.get(at).unwrap_or_default();
                let block = if addr.is_defined() {
                    self.load_data_block(DataBlockRef { super_block: number, addr })?
                } else {
                    let block = self.create_data_block(header, number, at as u64)?;
                    index_block.update(|index_block| index_block.direct_data_blocks.set(at, block.addr()));
                    block
                };
                self.array.metadata.add_dependency(index_block, &block, DependencyKind::ExtensibleArrayDataBlock)?;
                self.data_block_for_writing(header, block, slot)
            }
            DataBlockPath::SuperBlock { slot: at, within } => {
                let super_block = self.super_block_for_writing(header, index_block, number, at)?;
                let addr = super_block.read().data_blocks.get(within).unwrap_or_default();
                let block = if addr.is_defined() {
                    self.load_data_block(DataBlockRef { super_block: number, addr })?
                } else {
                    let block = self.create_data_block(header, number, within as u64)?;
                    super_block.update(|super_block| super_block.data_blocks.set(within, block.addr()));
                    block
                };
                self.array.metadata.add_dependency(&super_block, &block, DependencyKind::ExtensibleArrayDataBlock)?;
                if self.geometry.pages_per_data_block(number) == 0 {
                    return self.data_block_for_writing(header, block, slot);
                }
                let page = slot / self.geometry.elements_per_page();
                let addr = self.page_addr(DataBlockRef { super_block: number, addr: block.addr() }, page)?;
                let bit = self.page_bit_index(number, within, page);
                let in_use = super_block.read().written_pages.get(bit);
                let page = if in_use {
                    self.load_page(addr)?
                } else {
                    let page = self.array.create_page(addr, self.geometry.elements_per_page())?;
                    super_block.update(|super_block| super_block.written_pages.set_if_clear(bit));
                    page
                };
                self.array.metadata.add_dependency(&super_block, &page, DependencyKind::ExtensibleArrayPage)?;
                self.array.metadata.add_dependency(header, &page, DependencyKind::ExtensibleArrayPage)?;
                self.array.metadata.add_dependency(&super_block, &block, DependencyKind::ExtensibleArrayDataBlock)?;
                self.array.root.depend_on(&page)?;
                Ok((ElementBlock::Page(page), (slot % self.geometry.elements_per_page()) as usize))
            }
        }
    }

    fn data_block_for_writing(
        &self,
        header: &ExtensibleHeader,
        block: DataBlock,
        slot: u64,
    ) -> Result<(ElementBlock, usize)> {
        self.array.metadata.add_dependency(header, &block, DependencyKind::ExtensibleArrayDataBlock)?;
        self.array.root.depend_on(&block)?;
        Ok((ElementBlock::DataBlock(block), slot as usize))
    }

    pub(super) fn set_in_last_block(
        &self,
        recent: &LastWrittenBlock,
        slot: usize,
        element: ChunkIndexEntry,
        proxy: Option<&ChunkProxy>,
    ) -> Result<()> {
        if let Some(proxy) = proxy {
            self.array.metadata.add_dependency(
                recent.dependency_node(),
                proxy,
                DependencyKind::ExtensibleArrayChunk,
            )?;
        }
        let done = recent.set(slot, element);
        debug_assert!(done, "every place of the geometry is in its block");
        Ok(())
    }

    /// Sets the elements of chunks that follow `coord` along a dimension, as many as are in the table that was used
    /// last. Returns their number.
    pub(super) fn set_next_in_last_block(
        &self,
        coord: &ChunkCoord,
        axis: usize,
        addrs: &[Addr],
        proxy: Option<&ChunkProxy>,
    ) -> Result<usize> {
        let next = coord.scaled().get(axis).and_then(|at| at.checked_add(1)).map(|at| coord.with_index(axis, at));
        let indexes = self.array.line.index_of(coord).zip(next.and_then(|next| self.array.line.index_of(&next)));
        // Along other dimensions they do not follow each other in the array.
        let Some((_, index)) = indexes.filter(|(index, next)| index.checked_add(1) == Some(*next)) else {
            return Ok(0);
        };
        let recent = self.last_block.lock();
        let Some(recent) = &*recent else { return Ok(0) };
        let Some(slot) = recent.slot_for_writing(index, || self.array.root.flush_parent_ids()) else { return Ok(0) };
        if let Some(proxy) = proxy {
            self.array.metadata.add_dependency(
                recent.dependency_node(),
                proxy,
                DependencyKind::ExtensibleArrayChunk,
            )?;
        }
        Ok(recent.set_unfiltered_from(slot, addrs))
    }

    /// The table in which to set the element at `place`.
    pub(super) fn block_for_writing(
        &self,
        header: &ExtensibleHeader,
        place: ElementLocation,
    ) -> Result<(ElementBlock, usize)> {
        let index_block = self.index_block_for_writing(header)?;
        match place {
            ElementLocation::IndexBlock(slot) => Ok((ElementBlock::IndexBlock(index_block), slot)),
            ElementLocation::DataBlock { super_block, branch, slot } => {
                self.table_below_super_block(header, &index_block, super_block, branch, slot)
            }
        }
    }
}
