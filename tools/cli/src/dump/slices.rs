//! Slices of a dataset as Python writes them: `0:10:2, -5:, 3, ::-1`, and the rows of `--rows`.

use std::str::FromStr;

use crate::counted::counted;
use crate::model::{Hyperslab, Selection};

/// What is taken of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DimSlice {
    /// One index, counted from the end if it is negative. The result does not have the dimension.
    Index(i64),
    /// `START:STOP:STEP`.
    Range {
        /// From here on.
        start: Option<i64>,
        /// Up to the one before this.
        stop: Option<i64>,
        /// From one to the next; not zero.
        step: i64,
    },
    /// All of as many dimensions as the others leave.
    Ellipsis,
}

const ALL: DimSlice = DimSlice::Range { start: None, stop: None, step: 1 };

/// Which elements of a dataset are meant, dimension by dimension. Dimensions that are not named are taken whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimSlices(Vec<DimSlice>);

/// A text that is no slice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SliceParseError {
    /// A part is neither an index nor a range.
    #[error("{0:?} is not a slice: for each dimension an index or START:STOP:STEP, as in 0:10:2,-5:,3")]
    Syntax(String),
    /// The step is zero.
    #[error("{0:?}: a step is not 0")]
    ZeroStep(String),
    /// `...` stands there twice.
    #[error("{0:?}: \"...\" stands for the other dimensions once")]
    RepeatedEllipsis(String),
}

/// Slices that a dataset does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SliceBoundsError {
    /// More dimensions than the dataset has.
    #[error("the slice has {}, the dataset {rank}", counted(*given, "dimension"))]
    TooManyDimensions {
        /// Dimensions of the slice.
        given: usize,
        /// Dimensions of the dataset.
        rank: usize,
    },
    /// There is no such index.
    #[error("index {index} is out of range: dimension {dim} has {}", counted(*length, "element"))]
    IndexOutOfBounds {
        /// The index as it was given.
        index: i64,
        /// The dimension, counted from 0.
        dim: usize,
        /// Its length (elements).
        length: u64,
    },
}

impl FromStr for DimSlices {
    type Err = SliceParseError;

    fn from_str(text: &str) -> Result<Self, SliceParseError> {
        let inner = text.trim();
        let inner = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(inner);
        let dims = inner.split(',').map(|part| dim(part.trim())).collect::<Result<Vec<_>, _>>()?;
        match dims.iter().filter(|dim| **dim == DimSlice::Ellipsis).count() {
            0 | 1 => Ok(DimSlices(dims)),
            _ => Err(SliceParseError::RepeatedEllipsis(text.to_owned())),
        }
    }
}

fn dim(text: &str) -> Result<DimSlice, SliceParseError> {
    let number = |part: &str| part.trim().parse().map_err(|_| SliceParseError::Syntax(text.to_owned()));
    let optional = |part: &str| if part.trim().is_empty() { Ok(None) } else { number(part).map(Some) };
    match *text.split(':').collect::<Vec<_>>() {
        ["..."] => Ok(DimSlice::Ellipsis),
        [index] => number(index).map(DimSlice::Index),
        [start, stop] => Ok(DimSlice::Range { start: optional(start)?, stop: optional(stop)?, step: 1 }),
        [start, stop, step] => match optional(step)?.unwrap_or(1) {
            0 => Err(SliceParseError::ZeroStep(text.to_owned())),
            step => Ok(DimSlice::Range { start: optional(start)?, stop: optional(stop)?, step }),
        },
        _ => Err(SliceParseError::Syntax(text.to_owned())),
    }
}

impl DimSlices {
    /// All elements.
    pub fn all() -> Self {
        DimSlices(Vec::new())
    }

    /// One slice for each of `rank` dimensions.
    fn each(&self, rank: usize) -> Result<Vec<DimSlice>, SliceBoundsError> {
        let given = self.0.iter().filter(|dim| **dim != DimSlice::Ellipsis).count();
        let rest = rank.checked_sub(given).ok_or(SliceBoundsError::TooManyDimensions { given, rank })?;
        let mut slices = Vec::with_capacity(rank);
        for dim in &self.0 {
            match dim {
                DimSlice::Ellipsis => slices.extend(std::iter::repeat_n(ALL, rest)),
                dim => slices.push(*dim),
            }
        }
        slices.resize(rank, ALL);
        Ok(slices)
    }

    /// The slices of a dataset of these dimensions.
    ///
    /// # Errors
    /// [`SliceBoundsError`].
    pub fn bind(&self, dims: &[u64]) -> Result<Vec<DimRange>, SliceBoundsError> {
        let slices = self.each(dims.len())?.into_iter().zip(dims).enumerate();
        slices.map(|(dim, (slice, length))| slice.bind(dim, *length)).collect()
    }

    /// What follows when `shown` of a dataset of these dimensions was shown, which may grow. `None` if nothing can
    /// follow.
    pub fn remaining_after(&self, shown: &[DimRange], dims: &[u64]) -> Option<Self> {
        let mut slices = self.each(dims.len()).ok()?;
        let (Some(DimSlice::Range { start, stop, step }), Some(shown), Some(length)) =
            (slices.first_mut(), shown.first(), dims.first())
        else {
            return None;
        };
        if *step < 0 {
            return None;
        }
        match *start {
            // Nothing yet of what is meant.
            Some(0..) | None if shown.count == 0 => {}
            Some(..0) if shown.count == 0 => {
                let from_end = start.unwrap_or(0).unsigned_abs();
                *start = i64::try_from(length.saturating_sub(from_end)).ok();
            }
            _ => *start = i64::try_from(shown.low.saturating_add(shown.count.saturating_mul(shown.step))).ok(),
        }
        let is_over = matches!((*start, *stop), (Some(start @ 0..), Some(stop @ 0..)) if start >= stop);
        (!is_over).then_some(DimSlices(slices))
    }
}

impl DimSlice {
    fn bind(self, dim: usize, length: u64) -> Result<DimRange, SliceBoundsError> {
        let len = i128::from(length);
        let from_start = |index: i64| if index < 0 { len + i128::from(index) } else { i128::from(index) };
        match self {
            DimSlice::Index(index) => match u64::try_from(from_start(index)) {
                Ok(low) if low < length => Ok(DimRange { low, step: 1, count: 1, is_reversed: false, is_index: true }),
                _ => Err(SliceBoundsError::IndexOutOfBounds { index, dim, length }),
            },
            DimSlice::Ellipsis => ALL.bind(dim, length),
            DimSlice::Range { start, stop, step } if step > 0 => {
                let start = start.map_or(0, from_start).clamp(0, len);
                let stop = stop.map_or(len, from_start).clamp(0, len);
                let step = step.unsigned_abs();
                let count = (stop - start).max(0).unsigned_abs().div_ceil(u128::from(step));
                Ok(DimRange::new(start, step, count, false))
            }
            DimSlice::Range { start, stop, step } => {
                // Downwards: the last one that is taken is the lowest.
                let start = start.map_or(len - 1, from_start).clamp(-1, len - 1);
                let stop = stop.map_or(-1, from_start).clamp(-1, len - 1);
                let step = step.unsigned_abs();
                let count = (start - stop).max(0).unsigned_abs().div_ceil(u128::from(step));
                let low = start - i128::from(step) * (count as i128 - 1).max(0);
                Ok(DimRange::new(low, step, count, true))
            }
        }
    }
}

/// What is taken of one dimension of a dataset: `count` indices from `low` on, each `step` after the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DimRange {
    /// The lowest index.
    pub low: u64,
    /// From one index to the next.
    pub step: u64,
    /// Indices.
    pub count: u64,
    /// Whether the highest index comes first.
    pub is_reversed: bool,
    /// Whether it is one index, and the result does not have the dimension.
    pub is_index: bool,
}

impl DimRange {
    fn new(low: i128, step: u64, count: u128, is_reversed: bool) -> Self {
        let low = u64::try_from(low).unwrap_or(0);
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        DimRange { low, step, count, is_reversed, is_index: false }
    }

    /// Some of the indices, by their places in the result.
    pub fn sub_range(self, first: u64, count: u64) -> Self {
        let before = if self.is_reversed { self.count.saturating_sub(first.saturating_add(count)) } else { first };
        DimRange { low: self.low.saturating_add(before.saturating_mul(self.step)), count, ..self }
    }

    /// The index at a place in the result.
    pub fn index_at(self, position: u64) -> u64 {
        let place = if self.is_reversed { self.count.saturating_sub(position.saturating_add(1)) } else { position };
        self.low.saturating_add(place.saturating_mul(self.step))
    }
}

/// The selection of all that is taken, in ascending order.
pub fn ascending_selection(ranges: &[DimRange]) -> Selection {
    if ranges.is_empty() {
        return Selection::All;
    }
    let each = |of: fn(&DimRange) -> u64| ranges.iter().map(of).collect();
    Selection::Hyperslab(Hyperslab {
        start: each(|range| range.low),
        stride: each(|range| range.step),
        count: each(|range| if range.step == 1 { 1 } else { range.count }),
        block: each(|range| if range.step == 1 { range.count } else { 1 }),
    })
}

/// Puts elements (each `items_per_element` items) that were read in ascending order into the order of the slices.
pub fn restore_order<T>(items: &mut [T], ranges: &[DimRange], items_per_element: usize) {
    let mut inner = items_per_element.max(1);
    for range in ranges.iter().rev() {
        let whole = inner.saturating_mul(usize::try_from(range.count).unwrap_or(usize::MAX)).max(1);
        if range.is_reversed && range.count > 1 {
            for block in items.chunks_mut(whole) {
                block.reverse();
                block.chunks_mut(inner).for_each(<[T]>::reverse);
            }
        }
        inner = whole;
    }
}

/// Which rows are meant: `A..B`, `A..`, `..B`, `A`, or `-N` for the last N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowRange {
    /// From the first to the one before the second, if there is one.
    Range(u64, Option<u64>),
    /// The last ones.
    Last(u64),
}

/// A text that names no rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rows are A..B, A.., ..B, A, or -N for the last N")]
pub struct RowRangeParseError;

impl FromStr for RowRange {
    type Err = RowRangeParseError;

    fn from_str(text: &str) -> Result<Self, RowRangeParseError> {
        let number = |text: &str| text.parse().map_err(|_| RowRangeParseError);
        if let Some(last) = text.strip_prefix('-') {
            return Ok(RowRange::Last(number(last)?));
        }
        match text.split_once("..") {
            None => number(text).map(|row| RowRange::Range(row, Some(row.saturating_add(1)))),
            Some((first, end)) => {
                let first = if first.is_empty() { 0 } else { number(first)? };
                let end = if end.is_empty() { None } else { Some(number(end)?) };
                Ok(RowRange::Range(first, end))
            }
        }
    }
}

impl From<RowRange> for DimSlices {
    fn from(rows: RowRange) -> Self {
        let index = |row: u64| i64::try_from(row).unwrap_or(i64::MAX);
        let (start, stop) = match rows {
            RowRange::Range(first, end) => (index(first), end.map(index)),
            RowRange::Last(0) => (i64::MAX, None),
            RowRange::Last(count) => (-index(count), None),
        };
        DimSlices(vec![DimSlice::Range { start: Some(start), stop, step: 1 }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The indices that a text takes of one dimension.
    fn taken(text: &str, length: u64) -> Vec<u64> {
        let ranges = text.parse::<DimSlices>().unwrap().bind(&[length]).unwrap();
        (0..ranges[0].count).map(|place| ranges[0].index_at(place)).collect()
    }

    #[test]
    fn slices_take_what_python_takes() {
        assert_eq!(taken("0:10:3", 8), [0, 3, 6]);
        assert_eq!(taken("-3:", 8), [5, 6, 7]);
        assert_eq!(taken(":-6", 8), [0, 1]);
        assert_eq!(taken("-100:2", 8), [0, 1]);
        assert_eq!(taken("::-3", 8), [7, 4, 1]);
        assert_eq!(taken("5:1:-2", 8), [5, 3]);
        assert_eq!(taken("100::-4", 8), [7, 3]);
        assert_eq!(taken("1:-100:-1", 8), [1, 0]);
        assert_eq!(taken("[-1]", 8), [7]);
        assert!(taken("5:2", 8).is_empty());
        assert!(taken("2:5:-1", 8).is_empty());
        assert!(taken("::-1", 0).is_empty());
        assert_eq!(taken("::9223372036854775807", 8), [0]);
        assert_eq!(taken("::-9223372036854775808", 8), [7]);
    }

    #[test]
    fn dimensions_that_are_not_named_are_taken_whole() {
        let counts = |text: &str| -> Vec<u64> {
            text.parse::<DimSlices>().unwrap().bind(&[4, 5, 6]).unwrap().iter().map(|range| range.count).collect()
        };
        assert_eq!(counts("1"), [1, 5, 6]);
        assert_eq!(counts("..., 1"), [4, 5, 1]);
        assert_eq!(counts("1:3, ..., ::2"), [2, 5, 3]);
        assert_eq!(counts(":,:,:"), [4, 5, 6]);
        let bind = |text: &str, dims: &[u64]| text.parse::<DimSlices>().unwrap().bind(dims).unwrap_err().to_string();
        assert_eq!(bind("1,2", &[3]), "the slice has 2 dimensions, the dataset 1");
        assert_eq!(bind("0,-6", &[3, 5]), "index -6 is out of range: dimension 1 has 5 elements");
    }

    #[test]
    fn refuses_texts_that_are_no_slices() {
        for text in ["", "a", "1:2:3:4", "1..2", "::0", "...,...", "1,,2"] {
            assert!(text.parse::<DimSlices>().is_err(), "{text}");
        }
    }

    #[test]
    fn parts_of_a_reversed_dimension_come_in_its_order() {
        let whole = "::-2".parse::<DimSlices>().unwrap().bind(&[10]).unwrap()[0];
        let part = whole.sub_range(1, 3);
        assert_eq!((0..3).map(|place| part.index_at(place)).collect::<Vec<_>>(), [7, 5, 3]);
        let ranges = "::-1,:,::-1".parse::<DimSlices>().unwrap().bind(&[2, 2, 2]).unwrap();
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7];
        restore_order(&mut items, &ranges, 1);
        assert_eq!(items, [5, 4, 7, 6, 1, 0, 3, 2]);
    }

    #[test]
    fn rows_are_cut_to_those_that_are_there() {
        let within = |text: &str| {
            let range = DimSlices::from(text.parse::<RowRange>().unwrap()).bind(&[10]).unwrap()[0];
            range.low..range.low + range.count
        };
        assert_eq!(within("2..5"), 2..5);
        assert_eq!(within("2.."), 2..10);
        assert_eq!(within("..3"), 0..3);
        assert_eq!(within("9"), 9..10);
        assert_eq!(within("-3"), 7..10);
        assert_eq!(within("-30"), 0..10);
        assert_eq!(within("8..20"), 8..10);
        assert!(within("-0").is_empty());
        assert!(within("15..20").is_empty());
        assert!(within("5..2").is_empty());
    }

    #[test]
    fn what_follows_begins_behind_what_was_shown() {
        let steps = |text: &str, lengths: &[u64]| {
            let mut rest = Some(text.parse::<DimSlices>().unwrap());
            let each = lengths.iter().map_while(|length| {
                let slices = rest.take()?;
                let ranges = slices.bind(&[*length]).unwrap();
                rest = slices.remaining_after(&ranges, &[*length]);
                Some((0..ranges[0].count).map(|place| ranges[0].index_at(place)).collect::<Vec<_>>())
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(steps(":", &[0, 2, 2, 3]), [vec![], vec![0, 1], vec![], vec![2]]);
        assert_eq!(steps("::2", &[3, 4, 7]), [vec![0, 2], vec![], vec![4, 6]]);
        assert_eq!(steps("-1:", &[3, 5]), [vec![2], vec![3, 4]]);
        assert_eq!(steps("-2:", &[0, 3]), [vec![], vec![0, 1, 2]]);
        assert_eq!(steps(":-1", &[3, 4]), [vec![0, 1], vec![2]]);
        assert_eq!(steps("2:4", &[1, 3, 9, 10]), [vec![], vec![2], vec![3]]);
        assert_eq!(steps("::-1", &[2, 3]), [vec![1, 0]]);
        assert_eq!(steps("1", &[2, 3]), [vec![1]]);
    }

    #[test]
    fn refuses_other_texts() {
        for text in ["", "a", "1..b", "--1", "-"] {
            assert!(text.parse::<RowRange>().is_err(), "{text}");
        }
    }
}
