//! Giving back the space of an extensible array.

use h5live_format::Addr;

use super::{Block, ExtensibleArray};
use crate::Result;

/// What is to be given back.
#[derive(Default)]
struct Found {
    /// Blocks and their bytes.
    blocks: Vec<(Addr, u64)>,
    /// Pages, whose bytes are part of data blocks.
    pages: Vec<Addr>,
}

impl ExtensibleArray {
    pub(super) fn delete_blocks(&self) -> Result<()> {
        let Some(header) = self.header()? else { return Ok(()) };
        let mut found = Found::default();
        found.blocks.push((header.addr(), self.header_len()));
        let index_block = header.read().index_block;
        if index_block.is_defined() {
            self.gather(index_block, &mut found)?;
        }
        found.pages.iter().for_each(|page| self.metadata.cache().remove(*page));
        found.blocks.iter().for_each(|(addr, len)| self.metadata.free(*addr, *len));
        Ok(())
    }

    fn gather(&self, index_block: Addr, found: &mut Found) -> Result<()> {
        found.blocks.push((index_block, self.index_block_len()));
        let index_block = self.index_block(index_block)?;
        let (data_blocks, super_blocks) = {
            let index_block = index_block.read();
            let data_blocks: Vec<Addr> = index_block.data_blocks.iter().collect();
            let super_blocks: Vec<Addr> = index_block.super_blocks.iter().collect();
            (data_blocks, super_blocks)
        };
        let direct = self.geometry.direct_super_blocks();
        let numbers = (0..direct).flat_map(|number| (0..self.geometry.data_blocks(number)).map(move |_| number));
        for (super_block, addr) in numbers.zip(data_blocks) {
            self.gather_data_block(Block { super_block, addr }, found)?;
        }
        for (number, addr) in (direct..).zip(super_blocks).filter(|(_, addr)| addr.is_defined()) {
            found.blocks.push((addr, self.super_block_len(number)));
            let block = self.super_block(number, addr)?;
            let data_blocks: Vec<Addr> = block.read().data_blocks.iter().collect();
            for addr in data_blocks {
                self.gather_data_block(Block { super_block: number, addr }, found)?;
            }
        }
        Ok(())
    }

    fn gather_data_block(&self, block: Block, found: &mut Found) -> Result<()> {
        if block.addr.is_defined() {
            found.blocks.push((block.addr, self.data_block_space(block.super_block)));
            for page in 0..self.geometry.pages(block.super_block) {
                found.pages.push(self.page_addr(block, page)?);
            }
        }
        Ok(())
    }
}
