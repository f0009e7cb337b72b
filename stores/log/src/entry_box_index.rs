//! The index of one dataset in memory: which entries of the log have an element.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::box_tree::BoxTree;
use crate::boxes::BoxRange;
use crate::coverage::is_provably_covered;
use crate::entry::{DimVec, EntryChange};
use crate::index_table::{IndexTableRow, UNENDED_BATCH_ORDER};
use crate::position::LogPosition;

/// Where the log has the data of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryDataLocation {
    /// Where the data begins.
    pub at: LogPosition,
    /// Bytes of it, as stored.
    pub len: u64,
    /// The filter through which it went: its registered number, or 0.
    pub filter_id: i32,
    /// The CRC-32C of it, if the log has one.
    pub crc: Option<u32>,
    /// What the data is of.
    pub kind: EntrySelectionKind,
}

/// What the data of an entry is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntrySelectionKind {
    /// The box that the index has.
    Block,
    /// Points in that box, so many. Their coordinates lie before the data, with a byte order and a filter between.
    Points(u64),
}

/// The entries of one dataset.
#[derive(Debug)]
pub struct EntryBoxIndex {
    rank: usize,
    boxes: BoxTree,
    places: Vec<EntryDataLocation>,
    /// Whether the data of each entry was compared with its checksum. Nobody changes it later.
    are_verified: Vec<AtomicBool>,
    /// For each entry the order of its batch.
    orders: Vec<u64>,
    /// Extents to which the dataset shrank, each with the order of its batch, and the number of entries that were added
    /// before it.
    shrinks: Vec<(u64, u32, DimVec)>,
    /// Entries whose batch has not ended.
    not_ended: Vec<u32>,
    /// Whether each entry was added behind those before it in the order of batches.
    is_ordered: bool,
    last_order: u64,
    /// An extent, and whether the boxes cover all of it.
    covered: OnceLock<(DimVec, bool)>,
}

/// An entry that has elements of a box.
#[derive(Debug, Clone, Copy)]
pub struct FoundEntry<'a> {
    /// Its box: the first element, and one past the last one.
    pub start: &'a [u64],
    /// One past the last element of its box (`[rank]`).
    pub end: &'a [u64],
    /// Its data.
    pub place: EntryDataLocation,
    is_verified: &'a AtomicBool,
}

/// What is found of a box, in the order of the log.
#[derive(Debug, Clone, Copy)]
pub enum FoundChange<'a> {
    /// Elements were written.
    Written(FoundEntry<'a>),
    /// All elements outside of this extent are gone.
    ShrunkTo(&'a [u64]),
}

impl<'a> FoundEntry<'a> {
    /// Its box.
    pub fn bounding_box(&self) -> BoxRange<'a> {
        BoxRange { start: self.start, end: self.end }
    }

    /// Whether its data has to be compared with its checksum.
    pub fn needs_verification(&self) -> bool {
        self.place.crc.is_some() && !self.is_verified.load(Relaxed)
    }

    /// Notes that all its data fits its checksum.
    pub fn mark_verified(&self) {
        self.is_verified.store(true, Relaxed);
    }
}

impl<'a> FoundChange<'a> {
    /// The box, if all its elements were written.
    pub fn written_block(&self) -> Option<BoxRange<'a>> {
        match self {
            FoundChange::Written(entry) if entry.place.kind == EntrySelectionKind::Block => Some(entry.bounding_box()),
            _ => None,
        }
    }
}

/// The smallest box around points: its first corner, and one past its last one.
fn box_of_points(rank: usize, coords: &[u64]) -> (DimVec, DimVec) {
    let (mut low, mut high) = (DimVec::from_elem(u64::MAX, rank), DimVec::from_elem(0, rank));
    for point in coords.chunks_exact(rank.max(1)) {
        low.iter_mut().zip(point).for_each(|(low, at)| *low = (*low).min(*at));
        high.iter_mut().zip(point).for_each(|(high, at)| *high = (*high).max(at.saturating_add(1)));
    }
    (low, high)
}

impl EntryBoxIndex {
    /// No entries.
    pub fn new(rank: usize) -> Self {
        EntryBoxIndex {
            rank,
            boxes: BoxTree::new(rank),
            places: Vec::new(),
            are_verified: Vec::new(),
            orders: Vec::new(),
            shrinks: Vec::new(),
            not_ended: Vec::new(),
            is_ordered: true,
            last_order: 0,
            covered: OnceLock::new(),
        }
    }

    /// Dimensions of the dataset.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Adds an entry of the dataset.
    pub fn push(&mut self, row: &IndexTableRow) {
        self.push_with(row, Some(row.head.data_crc));
    }

    /// As [`EntryBoxIndex::push`], of an entry whose data has no checksum.
    pub fn push_without_checksum(&mut self, row: &IndexTableRow) {
        self.push_with(row, None);
    }

    fn push_with(&mut self, IndexTableRow { head, batch_order: order, data_at: at }: &IndexTableRow, crc: Option<u32>) {
        self.covered = OnceLock::new();
        self.is_ordered &= *order >= self.last_order;
        self.last_order = self.last_order.max(*order);
        let place = |kind| EntryDataLocation { at: *at, len: head.data_len, filter_id: head.filter_id, crc, kind };
        match &head.change {
            EntryChange::Block { start, count } => {
                let end = start.iter().zip(count).map(|(start, count)| start.saturating_add(*count));
                self.boxes.push(start, end);
                self.push_place(place(EntrySelectionKind::Block), *order);
            }
            EntryChange::PointCoords(coords) if !coords.is_empty() => {
                let (low, high) = box_of_points(self.rank, coords);
                self.boxes.push(&low, high.into_iter());
                self.push_place(place(EntrySelectionKind::Points((coords.len() / self.rank.max(1)) as u64)), *order);
            }
            EntryChange::ShrinkTo(dims) => self.shrinks.push((*order, self.places.len() as u32, dims.clone())),
            EntryChange::PointCoords(_) | EntryChange::GrowToAtLeast(_) | EntryChange::EndOfBatch { .. } => {}
        }
    }

    fn push_place(&mut self, place: EntryDataLocation, order: u64) {
        if order == UNENDED_BATCH_ORDER {
            self.not_ended.push(self.places.len() as u32);
        }
        self.places.push(place);
        self.are_verified.push(AtomicBool::new(false));
        self.orders.push(order);
    }

    /// The batch of the entries whose batch had not ended has ended, with this order.
    pub fn set_unended_batch_order(&mut self, batch_order: u64) {
        for number in self.not_ended.drain(..) {
            self.orders[number as usize] = batch_order;
        }
        self.shrinks
            .iter_mut()
            .filter(|shrink| shrink.0 == UNENDED_BATCH_ORDER)
            .for_each(|shrink| shrink.0 = batch_order);
        self.last_order = batch_order;
    }

    /// Makes finding fast again after many entries were added.
    pub fn rebuild_if_due(&mut self) {
        if self.boxes.is_rebuild_due() {
            self.boxes.rebuild();
        }
    }

    /// Whether [`EntryBoxIndex::rebuild_if_due`] has something to do.
    pub fn is_rebuild_due(&self) -> bool {
        self.boxes.is_rebuild_due()
    }

    /// What has happened to the elements of the box from `start` to before `end`, in the order of batches.
    pub fn find_changes(&self, start: &[u64], end: &[u64]) -> Vec<FoundChange<'_>> {
        let entry = |number: u32| {
            let (start, end) = self.boxes.corners(number as usize);
            let (place, is_verified) = (self.places[number as usize], &self.are_verified[number as usize]);
            FoundChange::Written(FoundEntry { start, end, place, is_verified })
        };
        let mut numbers = self.boxes.find_intersecting(start, end);
        let is_cut = |dims: &DimVec| end.iter().zip(dims).any(|(end, dim)| end > dim);
        let mut shrinks: Vec<_> = self.shrinks.iter().filter(|(.., dims)| is_cut(dims)).collect();
        if !self.is_ordered {
            numbers.sort_unstable_by_key(|number| (self.orders[*number as usize], *number));
            shrinks.sort_by_key(|(order, before, _)| (*order, *before));
        }
        let mut shrinks = shrinks.into_iter().peekable();
        let mut found = Vec::with_capacity(numbers.len());
        for number in numbers {
            let written = (self.orders[number as usize], number);
            while let Some((.., dims)) = shrinks.next_if(|(order, before, _)| (*order, *before) <= written) {
                found.push(FoundChange::ShrunkTo(dims));
            }
            found.push(entry(number));
        }
        found.extend(shrinks.map(|(.., dims)| FoundChange::ShrunkTo(dims)));
        found
    }

    /// Whether boxes that were written cover an extent, whose elements have so many bytes. It is found out once, until an
    /// entry is added. May say no where it takes long to see.
    pub fn provably_covers(&self, extent: &[u64], extent_bytes: usize) -> bool {
        let find = || {
            let is_box = |number: &usize| self.places[*number].kind == EntrySelectionKind::Block;
            let corners = (0..self.places.len()).filter(is_box).map(|number| self.boxes.corners(number));
            let boxes: Vec<_> = corners.map(|(start, end)| BoxRange { start, end }).collect();
            let start = DimVec::from_elem(0, extent.len());
            let is_covered = self.shrinks.is_empty()
                && is_provably_covered(&BoxRange { start: &start, end: extent }, &boxes, extent_bytes);
            (DimVec::from_slice(extent), is_covered)
        };
        let (found, is_covered) = self.covered.get_or_init(find);
        *is_covered && **found == *extent
    }

    /// Whether elements of the box from `start` to before `end` may have been written, and not be gone since. Points that were
    /// written count as the box around them.
    pub fn may_have_elements(&self, start: &[u64], end: &[u64]) -> bool {
        if self.shrinks.is_empty() {
            return self.boxes.intersects_any(start, end);
        }
        // The part of the box that no later shrink took away.
        let mut kept = DimVec::from_slice(end);
        self.find_changes(start, end).iter().rev().any(|change| match change {
            FoundChange::ShrunkTo(dims) => {
                kept.iter_mut().zip(*dims).for_each(|(kept, dim)| *kept = (*kept).min(*dim));
                false
            }
            FoundChange::Written(entry) => {
                let sides = entry.start.iter().zip(entry.end).zip(start.iter().zip(&kept));
                sides.into_iter().all(|((low, high), (start, end))| low.max(start) < high.min(end))
            }
        })
    }

    /// Calls `each` with the box of each entry (the first element, and one past the last one) and its data, until it returns
    /// `false`.
    pub fn for_each_data_entry(&self, mut each: impl FnMut(&[u64], &[u64], &EntryDataLocation) -> bool) {
        (0..self.places.len()).all(|number| {
            let (start, end) = self.boxes.corners(number);
            each(start, end, &self.places[number])
        });
    }

    /// How many entries have elements.
    pub fn data_entry_count(&self) -> usize {
        self.places.len()
    }

    /// How many entries have elements, and bytes of their data.
    pub fn data_entry_count_and_bytes(&self) -> (u64, u64) {
        (self.places.len() as u64, self.places.iter().map(|place| place.len).fold(0, u64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::EntryHead;

    fn push_ordered(index: &mut EntryBoxIndex, order: u64, change: EntryChange, at: u64) {
        let head = EntryHead { batch_number: 0, file: 0, dataset: 0, change, filter_id: 0, data_len: 8, data_crc: 0 };
        index.push(&IndexTableRow { head, batch_order: order, data_at: LogPosition::new(0, at) });
    }

    fn push(index: &mut EntryBoxIndex, change: EntryChange, at: u64) {
        push_ordered(index, 1, change, at);
    }

    fn block(start: &[u64], count: &[u64]) -> EntryChange {
        EntryChange::Block { start: DimVec::from_slice(start), count: DimVec::from_slice(count) }
    }

    #[test]
    fn what_was_written_before_a_shrink_is_gone_outside_of_it() {
        let mut index = EntryBoxIndex::new(1);
        push(&mut index, block(&[0], &[10]), 100);
        push(&mut index, EntryChange::ShrinkTo(DimVec::from_slice(&[4])), 0);
        push(&mut index, EntryChange::GrowToAtLeast(DimVec::from_slice(&[20])), 0);
        assert!(index.may_have_elements(&[3], &[5]));
        assert!(!index.may_have_elements(&[4], &[10]));
        push(&mut index, block(&[6], &[1]), 200);
        assert!(index.may_have_elements(&[4], &[10]));
        let found = index.find_changes(&[2], &[8]);
        let [FoundChange::Written(first), FoundChange::ShrunkTo(dims), FoundChange::Written(last)] = found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((first.place.at.offset(), dims, last.place.at.offset()), (100, &[4][..], 200));
        assert_eq!(index.find_changes(&[0], &[2]).len(), 1, "a shrink beyond the box does not count");
    }

    #[test]
    fn batches_of_several_writers_are_found_in_their_order() {
        let mut index = EntryBoxIndex::new(1);
        push_ordered(&mut index, UNENDED_BATCH_ORDER, block(&[0], &[4]), 100);
        push_ordered(&mut index, 5, block(&[2], &[4]), 200);
        push_ordered(&mut index, 3, EntryChange::ShrinkTo(DimVec::from_slice(&[1])), 0);
        push_ordered(&mut index, 2, block(&[0], &[9]), 300);
        let at = |index: &EntryBoxIndex| -> Vec<Option<u64>> {
            let offset = |change: &FoundChange<'_>| match change {
                FoundChange::Written(entry) => Some(entry.place.at.offset()),
                FoundChange::ShrunkTo(_) => None,
            };
            index.find_changes(&[0], &[10]).iter().map(offset).collect()
        };
        assert_eq!(at(&index), [Some(300), None, Some(200), Some(100)]);
        index.set_unended_batch_order(6);
        push_ordered(&mut index, 7, block(&[0], &[2]), 400);
        assert_eq!(at(&index), [Some(300), None, Some(200), Some(100), Some(400)]);
    }

    #[test]
    fn points_are_found_by_the_box_around_them() {
        let mut index = EntryBoxIndex::new(2);
        push(&mut index, EntryChange::PointCoords(vec![3, 4, 1, 9]), 7);
        let [FoundChange::Written(entry)] = index.find_changes(&[2, 5], &[3, 6])[..] else { panic!("the box is met") };
        assert_eq!(
            (entry.start, entry.end, entry.place.kind),
            (&[1, 4][..], &[4, 10][..], EntrySelectionKind::Points(2))
        );
        assert!(index.find_changes(&[4, 0], &[9, 9]).is_empty());
    }
}
