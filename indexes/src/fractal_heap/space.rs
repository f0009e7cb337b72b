//! The free space inside a fractal heap.

use std::collections::{BTreeMap, BTreeSet};

use h5live_cache::{FileSpaceAllocator, FreeEpoch};
use h5live_format::{HeapBlockSlot, HeapObjectLocation};
use parking_lot::{Mutex, MutexGuard};

/// The free space inside one heap, as this session knows it. Keep it as long as the session, for all
/// [`FractalHeap`](crate::FractalHeap)s at the same address.
///
/// The first change gives up the heap's own list of free space. Free is everything that no object takes, and the index
/// of the objects lists them.
#[derive(Debug, Default)]
pub struct FractalHeapFreeSpace(Mutex<HeapSections>);

impl FractalHeapFreeSpace {
    pub(super) fn lock(&self) -> MutexGuard<'_, HeapSections> {
        self.0.lock()
    }
}

/// Free sections. Offsets are in heap space, sizes in bytes.
#[derive(Debug, Default)]
pub(super) struct HeapSections {
    /// Whether everything that is neither listed here nor taken by an object is known to be no space at all.
    pub is_known: bool,
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    /// One more section, its offset and size, which is in neither: what the last object left of the one it went into.
    open_section: (u64, u64),
    /// The space of removed objects that readers of the file may still find.
    removed: Vec<(FreeEpoch, u64, u64)>,
    /// Removed huge objects.
    removed_huge: Vec<(FreeEpoch, HeapObjectLocation)>,
    /// Blocks that do not exist before others that do, by size.
    missing_blocks: BTreeSet<(u64, u64)>,
}

impl HeapSections {
    /// Nothing is free; or, without `is_complete`, there is nothing to be said.
    pub fn empty(is_complete: bool) -> Self {
        HeapSections { is_known: is_complete, ..HeapSections::default() }
    }

    /// Adds a free section, and returns it with its free neighbours. Neighbours are always of the same direct block,
    /// because each block begins with its own fields.
    pub fn insert_coalesced(&mut self, offset: u64, len: u64) -> (u64, u64) {
        self.index_open_section();
        let (mut start, mut end) = (offset, offset.saturating_add(len));
        while let Some((&near, &size)) = self.by_offset.range(..=end).next_back() {
            if near.saturating_add(size) < start {
                break;
            }
            self.remove_section(near, size);
            start = start.min(near);
            end = end.max(near.saturating_add(size));
        }
        self.index_section(start, end - start);
        (start, end - start)
    }

    fn index_section(&mut self, offset: u64, len: u64) {
        if len > 0 {
            self.by_offset.insert(offset, len);
            self.by_size.insert((len, offset));
        }
    }

    /// Lists the section that was begun.
    fn index_open_section(&mut self) {
        let (offset, len) = std::mem::take(&mut self.open_section);
        self.index_section(offset, len);
    }

    /// Takes a section as [`HeapSections::insert_coalesced`] returned it out of the list.
    pub fn remove_section(&mut self, offset: u64, len: u64) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(len, offset));
    }

    /// Takes `len` bytes from the smallest section that has them.
    pub fn alloc_best_fit(&mut self, len: u64) -> Option<u64> {
        let listed = self.by_size.range((len, 0)..).next().copied();
        let fits = self.open_section.1 >= len;
        if let Some((size, offset)) = listed.filter(|(size, _)| !fits || *size < self.open_section.1) {
            self.remove_section(offset, size);
            self.index_open_section();
            self.open_section = (offset, size);
        }
        let (offset, size) = self.open_section;
        let left = size.checked_sub(len)?;
        self.open_section = (offset.saturating_add(len), left);
        Some(offset)
    }

    /// Removes a range from the free space.
    pub fn remove_range(&mut self, offset: u64, len: u64) {
        self.index_open_section();
        let end = offset.saturating_add(len);
        while let Some((&start, &size)) = self.by_offset.range(..end).next_back() {
            let old_end = start.saturating_add(size);
            if old_end <= offset {
                break;
            }
            self.remove_section(start, size);
            self.index_section(start, offset.saturating_sub(start));
            self.index_section(end, old_end.saturating_sub(end));
        }
    }

    /// An object was removed now.
    pub fn add_removed_object(&mut self, space: &FileSpaceAllocator, offset: u64, len: u64) {
        self.removed.push((space.current_epoch(), offset, len));
    }

    /// A huge object was removed now.
    pub fn add_removed_huge_object(&mut self, space: &FileSpaceAllocator, place: HeapObjectLocation) {
        self.removed_huge.push((space.current_epoch(), place));
    }

    /// Removed huge objects to which nothing in the file leads any more.
    pub fn take_reclaimable_huge_objects(&mut self, space: &FileSpaceAllocator) -> Vec<HeapObjectLocation> {
        if self.removed_huge.first().is_none_or(|(moment, _)| !space.is_reclaimable(*moment)) {
            return Vec::new();
        }
        let (settled, waiting) = self.removed_huge.drain(..).partition(|(moment, _)| space.is_reclaimable(*moment));
        self.removed_huge = waiting;
        settled.into_iter().map(|(_, place)| place).collect()
    }

    /// Whether removed objects are still in the file.
    pub fn has_unreclaimed_objects(&self) -> bool {
        !self.removed.is_empty() || !self.removed_huge.is_empty()
    }

    /// Removed objects to which nothing in the file leads any more.
    pub fn take_reclaimable_ranges(&mut self, space: &FileSpaceAllocator) -> Vec<(u64, u64)> {
        // The first has waited longest.
        if self.removed.first().is_none_or(|(moment, ..)| !space.is_reclaimable(*moment)) {
            return Vec::new();
        }
        let (settled, waiting) = self.removed.drain(..).partition(|(moment, ..)| space.is_reclaimable(*moment));
        self.removed = waiting;
        settled.into_iter().map(|(_, offset, len)| (offset, len)).collect()
    }

    /// The space of removed objects that are still in the file.
    pub fn unreclaimed_ranges(&self) -> Vec<(u64, u64)> {
        self.removed.iter().map(|(_, offset, len)| (*offset, *len)).collect()
    }

    /// Adds the place of a block that does not exist.
    pub fn add_unallocated_slot(&mut self, slot: HeapBlockSlot) {
        self.missing_blocks.insert((slot.size, slot.start));
    }

    /// Takes places of blocks out of the list that lie between `from` and `to`.
    pub fn remove_unallocated_slots(&mut self, from: u64, to: u64) {
        self.missing_blocks.retain(|(_, start)| !(from..to).contains(start));
    }

    /// Places of blocks that stand for `min_size` bytes of heap space or more, the smallest first.
    pub fn unallocated_slots(&self, min_size: u64) -> impl Iterator<Item = HeapBlockSlot> + '_ {
        self.missing_blocks.range((min_size, 0)..).map(|&(size, start)| HeapBlockSlot { start, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_neighbours_become_one_section() {
        let mut sections = HeapSections::default();
        assert_eq!(sections.insert_coalesced(100, 10), (100, 10));
        assert_eq!(sections.insert_coalesced(120, 10), (120, 10));
        assert_eq!(sections.insert_coalesced(110, 10), (100, 30));
        assert_eq!(sections.alloc_best_fit(31), None);
        assert_eq!(sections.alloc_best_fit(10), Some(100));
        sections.remove_range(115, 5);
        assert_eq!(
            (sections.alloc_best_fit(10), sections.alloc_best_fit(5), sections.alloc_best_fit(1)),
            (Some(120), Some(110), None)
        );
    }

    #[test]
    fn objects_go_into_the_smallest_section_that_has_room_for_them() {
        let mut sections = HeapSections::default();
        sections.insert_coalesced(0, 100);
        assert_eq!([sections.alloc_best_fit(30), sections.alloc_best_fit(30)], [Some(0), Some(30)]);
        sections.insert_coalesced(200, 20);
        sections.insert_coalesced(300, 50);
        assert_eq!(
            [sections.alloc_best_fit(25), sections.alloc_best_fit(20), sections.alloc_best_fit(15)],
            [Some(60), Some(200), Some(85)]
        );
        assert_eq!(
            [sections.alloc_best_fit(25), sections.alloc_best_fit(25), sections.alloc_best_fit(1)],
            [Some(300), Some(325), None]
        );
        assert_eq!(sections.insert_coalesced(0, 350), (0, 350), "all of it was taken");
        assert_eq!([sections.alloc_best_fit(350), sections.alloc_best_fit(1)], [Some(0), None]);
    }

    #[test]
    fn what_is_left_of_a_section_is_still_free() {
        let mut sections = HeapSections::default();
        sections.insert_coalesced(0, 100);
        assert_eq!(sections.alloc_best_fit(30), Some(0));
        assert_eq!(sections.insert_coalesced(10, 20), (10, 90));
        assert_eq!(sections.alloc_best_fit(5), Some(10));
        sections.remove_range(50, 10);
        assert_eq!(
            [sections.alloc_best_fit(36), sections.alloc_best_fit(35), sections.alloc_best_fit(35)],
            [Some(60), Some(15), None]
        );
    }
}
