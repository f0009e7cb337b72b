//! Giving back the space of an extensible array, and counting its blocks.

use h5live_format::{Addr, ExtensibleArrayHeader};

use super::ExtensibleArray;
use super::blocks::DataBlockRef;
use crate::Result;

/// The blocks of an array.
#[derive(Default)]
struct ArrayBlocks {
    /// Blocks and their bytes.
    blocks: Vec<(Addr, u64)>,
    /// Pages, whose bytes are part of data blocks.
    pages: Vec<Addr>,
    super_blocks: u64,
    super_block_bytes: u64,
    data_blocks: u64,
    data_block_bytes: u64,
    /// Elements for which there is space.
    elements: u64,
}

impl ExtensibleArray {
    pub(super) fn delete_all_blocks(&self) -> Result<()> {
        let Some(header) = self.array.header()? else { return Ok(()) };
        let mut found = ArrayBlocks::default();
        found.blocks.push((header.addr(), self.array.header_len()));
        let index_block = header.read().index_block;
        if index_block.is_defined() {
            self.gather_blocks(index_block, &mut found)?;
        }
        found.pages.iter().for_each(|page| self.array.metadata.cache().forget_entry(*page));
        found.blocks.iter().for_each(|(addr, len)| self.array.metadata.free_structure(*addr, *len));
        Ok(())
    }

    /// Whether the header does not state how many blocks there are, and how many elements may be set; with `repair`, it
    /// does afterwards.
    pub(super) fn find_or_fix_all_block_counts(&self, repair: bool) -> Result<bool> {
        let Some(header) = self.array.header()? else { return Ok(false) };
        let stated = header.read().clone();
        let mut found = ArrayBlocks::default();
        let mut end = stated.used_index_end;
        if stated.index_block.is_defined() {
            self.gather_blocks(stated.index_block, &mut found)?;
            // Elements that are set and not counted would come back when others are set behind them.
            let index_block = self.load_index_block(stated.index_block)?;
            self.for_each_chunk_in(&index_block, end..u64::MAX, &mut |coord, _| {
                end = self.array.line.index_of(&coord).map_or(end, |index| end.max(index.saturating_add(1)));
                true
            })?;
        }
        let right = ExtensibleArrayHeader {
            used_index_end: end,
            super_block_count: found.super_blocks,
            total_super_block_bytes: found.super_block_bytes,
            data_block_count: found.data_blocks,
            total_data_block_bytes: found.data_block_bytes,
            allocated_element_count: found.elements,
            ..stated.clone()
        };
        let is_wrong = right != stated;
        if is_wrong && repair {
            header.update(|header| *header = right);
        }
        Ok(is_wrong)
    }

    fn gather_blocks(&self, index_block: Addr, found: &mut ArrayBlocks) -> Result<()> {
        found.blocks.push((index_block, self.index_block_len()));
        found.elements += self.geometry.index_block_element_count() as u64;
        let index_block = self.load_index_block(index_block)?;
        let (data_blocks, super_blocks) = {
            let index_block = index_block.read();
            let data_blocks: Vec<Addr> = index_block.direct_data_blocks.iter().collect();
            let super_blocks: Vec<Addr> = index_block.super_blocks.iter().collect();
            (data_blocks, super_blocks)
        };
        let direct = self.geometry.unstored_super_block_count();
        let numbers = (0..direct).flat_map(|number| (0..self.geometry.data_block_count(number)).map(move |_| number));
        for (super_block, addr) in numbers.zip(data_blocks) {
            self.gather_data_block(DataBlockRef { super_block, addr }, found)?;
        }
        for (number, addr) in (direct..).zip(super_blocks).filter(|(_, addr)| addr.is_defined()) {
            found.blocks.push((addr, self.super_block_len(number)));
            found.super_blocks += 1;
            found.super_block_bytes = found.super_block_bytes.saturating_add(self.super_block_len(number));
            let block = self.load_super_block(number, addr)?;
            let data_blocks: Vec<Addr> = block.read().data_blocks.iter().collect();
            for addr in data_blocks {
                self.gather_data_block(DataBlockRef { super_block: number, addr }, found)?;
            }
        }
        Ok(())
    }

    fn gather_data_block(&self, block: DataBlockRef, found: &mut ArrayBlocks) -> Result<()> {
        if block.addr.is_defined() {
            let (number, bytes) = (block.super_block, self.data_block_space(block.super_block));
            found.blocks.push((block.addr, bytes));
            found.data_blocks += 1;
            found.data_block_bytes = found.data_block_bytes.saturating_add(bytes);
            found.elements = found.elements.saturating_add(self.geometry.elements_per_data_block(number));
            for page in 0..self.geometry.pages_per_data_block(block.super_block) {
                found.pages.push(self.page_addr(block, page)?);
            }
        }
        Ok(())
    }
}
