//! What the logs have of one dataset.

use crate::entry::{DimVec, EntryChange, EntryHead, RowShift};
use crate::entry_box_index::EntryBoxIndex;
use crate::index_table::{IndexTableRow, UNENDED_BATCH_ORDER};
use crate::row_shift::shift_entry;

/// What the logs have of one dataset.
#[derive(Debug)]
pub struct LoggedDataset {
    /// Which entries have its elements: those before `indexed`.
    pub index: EntryBoxIndex,
    /// The extent that entries have set (`[rank]`, elements); `None` if none has.
    pub extent: Option<DimVec>,
    /// The same without the batch that is gathered.
    published: Option<DimVec>,
    /// All its entries. The index is made of them when the dataset is read.
    rows: Vec<IndexTableRow>,
    /// Rows that are in the index.
    indexed: usize,
    /// Rows whose batch has not ended.
    not_ended: Vec<u32>,
    /// Elements of the extent, as the session knows that writes them; 0 before it has written any.
    pub expected_element_count: u64,
    /// Elements in entries. Those that were written twice count twice.
    covered: u64,
    /// Bytes of these entries in the log.
    stored: u64,
    /// The highest order of an entry.
    last_order: u64,
    /// Whether an entry makes the dataset smaller. Then the order of growth counts.
    shrinks: bool,
}

/// Takes up what an entry says of an extent.
fn apply_extent(extent: &mut Option<DimVec>, head: &EntryHead) {
    match &head.change {
        EntryChange::GrowToAtLeast(dims) => match extent {
            Some(extent) => extent.iter_mut().zip(dims).for_each(|(now, dim)| *now = (*now).max(*dim)),
            none => *none = Some(dims.clone()),
        },
        EntryChange::ShrinkTo(dims) => *extent = Some(dims.clone()),
        EntryChange::Block { .. } | EntryChange::PointCoords(_) | EntryChange::EndOfBatch { .. } => {}
    }
}

impl LoggedDataset {
    /// One without entries.
    pub fn new(rank: usize) -> Self {
        LoggedDataset::with_box_index(EntryBoxIndex::new(rank))
    }

    /// One whose entries are in an index already.
    pub fn with_box_index(index: EntryBoxIndex) -> Self {
        LoggedDataset {
            index,
            extent: None,
            published: None,
            rows: Vec::new(),
            indexed: 0,
            not_ended: Vec::new(),
            expected_element_count: 0,
            covered: 0,
            stored: 0,
            last_order: 0,
            shrinks: false,
        }
    }

    /// Adds an entry. Those of other writers may come behind later ones. Says whether it is the first one whose batch
    /// has not ended.
    pub fn push(&mut self, row: IndexTableRow) -> bool {
        self.shrinks |= matches!(row.head.change, EntryChange::ShrinkTo(_));
        let (is_late, has_ended) = (row.batch_order < self.last_order, row.batch_order != UNENDED_BATCH_ORDER);
        self.last_order = self.last_order.max(row.batch_order);
        self.note_coverage(&row.head);
        if !has_ended {
            self.not_ended.push(self.rows.len() as u32);
        }
        if is_late && self.shrinks {
            self.rows.push(row);
            self.find_extent();
        } else {
            apply_extent(&mut self.extent, &row.head);
            if has_ended {
                apply_extent(&mut self.published, &row.head);
            }
            self.rows.push(row);
        }
        !has_ended && self.not_ended.len() == 1
    }

    /// The rows that it has without the batch that is gathered; `None` if no entry says it.
    pub fn published_first_dim(&self) -> Option<u64> {
        self.published.as_ref()?.first().copied()
    }

    /// Moves rows of the batch that is gathered.
    pub fn shift_unended_entries(&mut self, shifts: &[RowShift]) {
        let mut extent = self.published.clone();
        for row in &self.not_ended {
            let head = &mut self.rows[*row as usize].head;
            shift_entry(shifts, head);
            apply_extent(&mut extent, head);
        }
        self.extent = extent;
        // Those that were looked for are at other places now.
        if self.not_ended.first().is_some_and(|first| (*first as usize) < self.indexed) {
            self.index = EntryBoxIndex::new(self.index.rank());
            self.indexed = 0;
        }
    }

    fn note_coverage(&mut self, head: &EntryHead) {
        let elements = match &head.change {
            EntryChange::Block { count, .. } => count.iter().fold(1, |n: u64, count| n.saturating_mul(*count)),
            EntryChange::PointCoords(coords) => (coords.len() / self.index.rank().max(1)) as u64,
            EntryChange::GrowToAtLeast(_) | EntryChange::ShrinkTo(_) | EntryChange::EndOfBatch { .. } => return,
        };
        self.covered = self.covered.saturating_add(elements);
        self.stored = self.stored.saturating_add(head.lengths().len);
    }

    /// Bytes that the log will have for the elements that no entry has yet, if they are written like those so far.
    pub fn expected_remaining_bytes(&self) -> u64 {
        let missing = self.expected_element_count.saturating_sub(self.covered);
        let bytes = u128::from(missing) * u128::from(self.stored) / u128::from(self.covered.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Finds the extent anew from all entries, in their order.
    fn find_extent(&mut self) {
        let mut ordered: Vec<&IndexTableRow> = self.rows.iter().collect();
        ordered.sort_by_key(|row| row.batch_order);
        let (mut extent, mut published) = (None, None);
        for row in ordered {
            apply_extent(&mut extent, &row.head);
            if row.batch_order != UNENDED_BATCH_ORDER {
                apply_extent(&mut published, &row.head);
            }
        }
        (self.extent, self.published) = (extent, published);
    }

    /// The rows whose entries are in a file.
    pub fn rows_of_file(&self, file: u32) -> impl Iterator<Item = &IndexTableRow> {
        self.rows.iter().filter(move |row| row.data_at.file() == file)
    }

    /// The batch that is gathered has ended, with this order.
    pub fn assign_batch_order(&mut self, batch_order: u64) {
        for row in self.not_ended.drain(..) {
            self.rows[row as usize].batch_order = batch_order;
        }
        self.index.set_unended_batch_order(batch_order);
        self.published.clone_from(&self.extent);
        self.last_order = batch_order;
    }

    /// Puts all entries into the index, and makes it fast to find them.
    pub fn update_index(&mut self) {
        let LoggedDataset { index, rows, indexed, .. } = self;
        rows[*indexed..].iter().for_each(|row| index.push(row));
        *indexed = rows.len();
        index.rebuild_if_due();
    }

    /// Whether [`LoggedDataset::update_index`] has nothing to do.
    pub fn is_index_current(&self) -> bool {
        self.indexed == self.rows.len() && !self.index.is_rebuild_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::LogPosition;

    fn row(order: u64, change: EntryChange) -> IndexTableRow {
        let head = EntryHead { batch_number: 1, file: 0, dataset: 0, change, filter_id: 0, data_len: 0, data_crc: 0 };
        IndexTableRow { head, batch_order: order, data_at: LogPosition::new(0, 0) }
    }

    fn dims(side: u64) -> DimVec {
        DimVec::from_slice(&[side])
    }

    #[test]
    fn what_is_missing_takes_what_the_entries_so_far_took() {
        let mut dataset = LoggedDataset::new(1);
        assert_eq!(dataset.expected_remaining_bytes(), 0);
        dataset.expected_element_count = 1000;
        for at in [0, 100] {
            let change = EntryChange::Block { start: dims(at), count: dims(100) };
            let mut entry = row(1, change);
            entry.head.data_len = 400;
            dataset.push(entry);
        }
        let entry = dataset.rows[0].head.lengths().len;
        assert!(entry > 400);
        assert_eq!(dataset.expected_remaining_bytes(), 8 * entry);
        dataset.expected_element_count = 200;
        assert_eq!(dataset.expected_remaining_bytes(), 0);
    }

    #[test]
    fn the_extent_follows_the_order_of_batches_and_not_that_of_arrival() {
        let changes = [
            row(1, EntryChange::GrowToAtLeast(dims(10))),
            row(2, EntryChange::ShrinkTo(dims(4))),
            row(3, EntryChange::GrowToAtLeast(dims(6))),
        ];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut dataset = LoggedDataset::new(1);
            for number in order {
                dataset.push(changes[number].clone());
            }
            assert_eq!(dataset.extent, Some(dims(6)), "{order:?}");
        }
    }

    #[test]
    fn a_batch_that_has_not_ended_stays_behind_those_of_others_until_it_ends() {
        let mut dataset = LoggedDataset::new(1);
        dataset.push(row(UNENDED_BATCH_ORDER, EntryChange::ShrinkTo(dims(2))));
        dataset.push(row(5, EntryChange::GrowToAtLeast(dims(9))));
        assert_eq!(dataset.extent, Some(dims(2)));
        dataset.assign_batch_order(6);
        dataset.push(row(7, EntryChange::GrowToAtLeast(dims(8))));
        assert_eq!(dataset.extent, Some(dims(8)));
    }
}
