//! The blocks of fixed and extensible arrays that hold elements.

use h5live_cache::{DependencyNode, Handle};
use h5live_format::{
    Addr, ArrayDataBlockPage, ChunkEntryTable, ChunkIndexEntry, ExtensibleArrayDataBlock, ExtensibleArrayIndexBlock,
    FixedArrayDataBlock,
};

/// A block that holds elements.
#[derive(Debug)]
pub(crate) enum ElementBlock {
    FixedDataBlock(Handle<FixedArrayDataBlock>),
    IndexBlock(Handle<ExtensibleArrayIndexBlock>),
    DataBlock(Handle<ExtensibleArrayDataBlock>),
    Page(Handle<ArrayDataBlockPage>),
}

impl ElementBlock {
    pub fn get(&self, slot: usize) -> Option<ChunkIndexEntry> {
        match self {
            ElementBlock::FixedDataBlock(block) => block.read().elements.get(slot),
            ElementBlock::IndexBlock(block) => block.read().elements.get(slot),
            ElementBlock::DataBlock(block) => block.read().elements.get(slot),
            ElementBlock::Page(page) => page.read().elements.get(slot),
        }
    }

    pub fn set(&self, slot: usize, element: ChunkIndexEntry) -> bool {
        match self {
            ElementBlock::FixedDataBlock(block) => block.update(|block| block.elements.set(slot, element)),
            ElementBlock::IndexBlock(block) => block.update(|block| block.elements.set(slot, element)),
            ElementBlock::DataBlock(block) => block.update(|block| block.elements.set(slot, element)),
            ElementBlock::Page(page) => page.update(|page| page.elements.set(slot, element)),
        }
    }

    /// Sets elements of unfiltered chunks from a slot on, up to the end of the table, and returns their number.
    pub fn set_unfiltered_from(&self, slot: usize, addrs: &[Addr]) -> usize {
        let set = |elements: &mut ChunkEntryTable| {
            let mut chunks = (slot..).zip(addrs);
            chunks
                .by_ref()
                .take_while(|(slot, place)| elements.set(*slot, ChunkIndexEntry::unfiltered(**place)))
                .count()
        };
        match self {
            ElementBlock::FixedDataBlock(block) => block.update(|block| set(&mut block.elements)),
            ElementBlock::IndexBlock(block) => block.update(|block| set(&mut block.elements)),
            ElementBlock::DataBlock(block) => block.update(|block| set(&mut block.elements)),
            ElementBlock::Page(page) => page.update(|page| set(&mut page.elements)),
        }
    }

    pub fn dependency_node(&self) -> &dyn DependencyNode {
        match self {
            ElementBlock::FixedDataBlock(block) => block,
            ElementBlock::IndexBlock(block) => block,
            ElementBlock::DataBlock(block) => block,
            ElementBlock::Page(page) => page,
        }
    }

    pub fn is_invalidated(&self) -> bool {
        match self {
            ElementBlock::FixedDataBlock(block) => block.is_invalidated(),
            ElementBlock::IndexBlock(block) => block.is_invalidated(),
            ElementBlock::DataBlock(block) => block.is_invalidated(),
            ElementBlock::Page(page) => page.is_invalidated(),
        }
    }
}
