//! The blocks of an extensible array that hold elements.

use h5live_cache::{Handle, Node};
use h5live_format::{Addr, ChunkElement, ElementTable, ExtensibleArrayDataBlock, ExtensibleArrayPage};

use super::IndexBlock;

/// A block that holds elements.
#[derive(Debug)]
pub(super) enum Table {
    IndexBlock(IndexBlock),
    DataBlock(Handle<ExtensibleArrayDataBlock>),
    Page(Handle<ExtensibleArrayPage>),
}

impl Table {
    pub fn get(&self, slot: usize) -> Option<ChunkElement> {
        match self {
            Table::IndexBlock(block) => block.read().elements.get(slot),
            Table::DataBlock(block) => block.read().elements.get(slot),
            Table::Page(page) => page.read().elements.get(slot),
        }
    }

    pub fn set(&self, slot: usize, element: ChunkElement) -> bool {
        match self {
            Table::IndexBlock(block) => block.update(|block| block.elements.set(slot, element)),
            Table::DataBlock(block) => block.update(|block| block.elements.set(slot, element)),
            Table::Page(page) => page.update(|page| page.elements.set(slot, element)),
        }
    }

    /// Sets elements of unfiltered chunks from a slot on, up to the end of the table, and returns their number.
    pub fn set_all(&self, slot: usize, places: &[Addr]) -> usize {
        let set = |elements: &mut ElementTable| {
            let mut chunks = (slot..).zip(places);
            chunks.by_ref().take_while(|(slot, place)| elements.set(*slot, ChunkElement::at(**place))).count()
        };
        match self {
            Table::IndexBlock(block) => block.update(|block| set(&mut block.elements)),
            Table::DataBlock(block) => block.update(|block| set(&mut block.elements)),
            Table::Page(page) => page.update(|page| set(&mut page.elements)),
        }
    }

    pub fn node(&self) -> &dyn Node {
        match self {
            Table::IndexBlock(block) => block,
            Table::DataBlock(block) => block,
            Table::Page(page) => page,
        }
    }

    pub fn is_gone(&self) -> bool {
        match self {
            Table::IndexBlock(block) => block.is_gone(),
            Table::DataBlock(block) => block.is_gone(),
            Table::Page(page) => page.is_gone(),
        }
    }
}
