//! The table of an extensible array in which an element was set last. Appends come back to it.

use std::ops::Range;

use h5live_cache::{DependencyNode, EntryId};
use h5live_format::{Addr, ChunkIndexEntry};

use super::blocks::ExtensibleHeader;
use crate::element_block::ElementBlock;

/// A table, and the structures that lead to it. Everything that waits for the table has its flush dependency, and keeps
/// it while the table is held here.
#[derive(Debug)]
pub(super) struct LastWrittenBlock {
    header: ExtensibleHeader,
    table: ElementBlock,
    /// The range of its elements.
    elements: Range<u64>,
    /// The parts of the object header that wait.
    parents: [Option<EntryId>; 2],
}

impl LastWrittenBlock {
    pub fn new(
        header: ExtensibleHeader,
        table: ElementBlock,
        elements: Range<u64>,
        parents: [Option<EntryId>; 2],
    ) -> Self {
        LastWrittenBlock { header, table, elements, parents }
    }

    /// The slot of the element at `index`, if it is here, and no block has been put in the place of one that leads
    /// here.
    pub fn slot(&self, index: u64) -> Option<usize> {
        let is_current = !self.header.is_invalidated() && !self.table.is_invalidated();
        let is_here = self.elements.contains(&index) && index < self.header.read().used_index_end;
        (is_current && is_here).then(|| (index - self.elements.start) as usize)
    }

    /// As [`LastWrittenBlock::slot`], for a write. `None` if other `parents` must wait.
    pub fn slot_for_writing(&self, index: u64, parents: impl FnOnce() -> [Option<EntryId>; 2]) -> Option<usize> {
        self.slot(index).filter(|_| self.parents == parents())
    }

    pub fn get(&self, slot: usize) -> Option<ChunkIndexEntry> {
        self.table.get(slot)
    }

    pub fn set(&self, slot: usize, element: ChunkIndexEntry) -> bool {
        self.table.set(slot, element)
    }

    /// Sets the elements of unfiltered chunks from a slot on, as many as the array counts here, and returns their
    /// number.
    pub fn set_unfiltered_from(&self, slot: usize, addrs: &[Addr]) -> usize {
        let end = self.elements.end.min(self.header.read().used_index_end);
        let room = end.saturating_sub(self.elements.start).saturating_sub(slot as u64);
        let addrs = addrs.get(..addrs.len().min(usize::try_from(room).unwrap_or(usize::MAX))).unwrap_or_default();
        self.table.set_unfiltered_from(slot, addrs)
    }

    pub fn dependency_node(&self) -> &dyn DependencyNode {
        self.table.dependency_node()
    }
}
