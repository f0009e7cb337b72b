//! The table of an extensible array in which an element was set last: who appends comes back to it.

use std::ops::Range;

use h5live_cache::{DependencyNode, EntryId};
use h5live_format::{Addr, ChunkElement};

use super::ExtensibleHeader;
use super::element_block::ElementBlock;

/// A table, and what leads to it: all that waits for it was told so, and still knows it while the table is held here.
#[derive(Debug)]
pub(super) struct LastElementBlock {
    header: ExtensibleHeader,
    table: ElementBlock,
    /// Of which elements.
    elements: Range<u64>,
    /// What of the object header waits.
    parents: [Option<EntryId>; 2],
}

impl LastElementBlock {
    pub fn new(
        header: ExtensibleHeader,
        table: ElementBlock,
        elements: Range<u64>,
        parents: [Option<EntryId>; 2],
    ) -> Self {
        LastElementBlock { header, table, elements, parents }
    }

    /// The slot of the element at `index`, if it is here, and no block has been put in the place of one that leads
    /// here.
    pub fn slot(&self, index: u64) -> Option<usize> {
        let is_current = !self.header.is_invalidated() && !self.table.is_invalidated();
        let is_here = self.elements.contains(&index) && index < self.header.read().max_index_set;
        (is_current && is_here).then(|| (index - self.elements.start) as usize)
    }

    /// As [`LastElementBlock::slot`], to be set: if also `parents` are what waits.
    pub fn slot_for_writing(&self, index: u64, parents: impl FnOnce() -> [Option<EntryId>; 2]) -> Option<usize> {
        self.slot(index).filter(|_| self.parents == parents())
    }

    pub fn get(&self, slot: usize) -> Option<ChunkElement> {
        self.table.get(slot)
    }

    pub fn set(&self, slot: usize, element: ChunkElement) -> bool {
        self.table.set(slot, element)
    }

    /// Sets the elements of unfiltered chunks from a slot on, as many as the array counts here, and returns their
    /// number.
    pub fn set_all(&self, slot: usize, places: &[Addr]) -> usize {
        let end = self.elements.end.min(self.header.read().max_index_set);
        let room = end.saturating_sub(self.elements.start).saturating_sub(slot as u64);
        let places = places.get(..places.len().min(usize::try_from(room).unwrap_or(usize::MAX))).unwrap_or_default();
        self.table.set_all(slot, places)
    }

    pub fn node(&self) -> &dyn DependencyNode {
        self.table.node()
    }
}
