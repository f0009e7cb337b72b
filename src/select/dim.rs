//! Ways to say which indices of one dimension are meant.

use std::iter::StepBy;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::sync::Arc;

use h5live_model::{SelectionError, UNLIMITED};

/// An integer that can be an index: any type of Rust with up to 64 bits.
pub trait SelectIndex: Copy + PartialOrd {
    /// The index (elements from the start of the dimension), or the negative number as the error.
    ///
    /// # Errors
    /// The number itself, if it is negative.
    fn to_index(self) -> Result<u64, i64>;
}

macro_rules! unsigned {
    ($($t:ty)*) => {$(
        impl SelectIndex for $t {
            #[inline]
            fn to_index(self) -> Result<u64, i64> {
                Ok(self as u64)
            }
        }
    )*};
}

macro_rules! signed {
    ($($t:ty)*) => {$(
        impl SelectIndex for $t {
            #[inline]
            fn to_index(self) -> Result<u64, i64> {
                u64::try_from(self).map_err(|_| self as i64)
            }
        }
    )*};
}

unsigned! { u8 u16 u32 u64 usize }
signed! { i8 i16 i32 i64 isize }

/// The indices that are selected along one dimension.
///
/// It is what a [`SelectDim`] makes, and is one itself. A `Vec` of them selects in as many dimensions as are known only
/// when the program runs.
///
/// ```
/// use h5live::{DimSelection, File};
///
/// let file = File::in_memory();
/// let data = file.new_dataset::<i32>().shape(&[2, 3, 4]).create("data")?;
/// data.write(&(0..24).collect::<Vec<_>>())?;
/// let mut first_of_each = vec![DimSelection::index(0); data.ndim()?];
/// first_of_each[1] = DimSelection::all();
/// assert_eq!(data.read_slice::<i32>(first_of_each)?, [0, 4, 8]);
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DimSelection {
    pub(super) start: u64,
    pub(super) stride: u64,
    pub(super) count: u64,
    pub(super) block: u64,
    pub(super) is_index: bool,
    /// The indices, if they are a list. The fields before do not count then.
    pub(super) list: Option<Arc<[u64]>>,
}

impl DimSelection {
    /// All indices.
    pub fn all() -> Self {
        DimSelection::from_start(0)
    }

    /// One index. The shape of what is read does not have its dimension.
    pub fn index(index: u64) -> Self {
        DimSelection { is_index: true, ..DimSelection::range(index, 1) }
    }

    /// `count` indices, from `start` on.
    #[inline]
    pub fn range(start: u64, count: u64) -> Self {
        DimSelection { block: count.min(UNLIMITED - 1), ..DimSelection::from_start(start) }
    }

    /// All indices from `start` on.
    #[inline]
    pub fn from_start(start: u64) -> Self {
        DimSelection { start, stride: 1, count: 1, block: UNLIMITED, is_index: false, list: None }
    }

    /// `count` indices, from `start` on, each `step` after the one before. A `count` of [`UNLIMITED`] reaches to the end.
    pub fn steps(start: u64, step: u64, count: u64) -> Self {
        DimSelection { start, stride: step, count, block: 1, is_index: false, list: None }
    }

    /// These indices, in the order given. An index may be there several times; of what is written to it, the last stays.
    pub fn list(indices: impl Into<Arc<[u64]>>) -> Self {
        DimSelection { list: Some(indices.into()), ..DimSelection::all() }
    }

    /// Whether the indices are not one run.
    #[inline]
    pub(super) fn has_steps(&self) -> bool {
        (self.stride, self.count) != (1, 1)
    }
}

/// A selection of indices along one dimension: an integer, a range of integers, a range with a step
/// (`(0..100).step_by(2)`, `(5..).step_by(3)`), or a list of indices (`&[3, 1, 7]`, a `Vec`), of any integer type.
///
/// A negative number is an error. A range whose end is before its start selects nothing. A list keeps its order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not select indices of a dimension",
    note = "a list of indices is a reference or a `Vec`: `(&[3, 1, 7], ..)`"
)]
pub trait SelectDim {
    /// The selection in dimension `dim` (from 0), which has `size` elements.
    ///
    /// # Errors
    /// [`SelectionError::IndexOutOfBounds`] if a number is negative. Whether the indices are below `size` is checked
    /// by who calls this.
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError>;
}

/// An index as it is counted in the file.
#[inline]
fn index(index: impl SelectIndex, dim: usize, extent: u64) -> Result<u64, SelectionError> {
    index.to_index().map_err(|index| SelectionError::IndexOutOfBounds { dim, index: index.into(), extent })
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl SelectDim for $t {
            fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
                Ok(DimSelection::index(index(*self, dim, size)?))
            }
        }
    )*};
}

integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

impl SelectDim for DimSelection {
    fn resolve_dim(&self, _dim: usize, _size: u64) -> Result<DimSelection, SelectionError> {
        Ok(self.clone())
    }
}

fn list<T: SelectIndex>(indices: &[T], dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
    let indices = indices.iter().map(|at| index(*at, dim, size));
    Ok(DimSelection::list(indices.collect::<Result<Vec<_>, _>>()?))
}

macro_rules! lists {
    ($([$($const:tt)*] $t:ty;)*) => {$(
        impl<T: SelectIndex, $($const)*> SelectDim for $t {
            fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
                list(&self[..], dim, size)
            }
        }
    )*};
}

lists! { [] Vec<T>; [] &Vec<T>; [] &[T]; [const N: usize] &[T; N]; }

impl<T: SelectIndex> SelectDim for Range<T> {
    #[inline]
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
        let (start, end) = (index(self.start, dim, size)?, index(self.end, dim, size)?);
        Ok(DimSelection::range(start, end.saturating_sub(start)))
    }
}

impl<T: SelectIndex> SelectDim for RangeInclusive<T> {
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
        if self.is_empty() {
            return Ok(DimSelection::range(0, 0));
        }
        let (start, last) = (index(*self.start(), dim, size)?, index(*self.end(), dim, size)?);
        Ok(DimSelection::range(start, (last - start).saturating_add(1)))
    }
}

impl<T: SelectIndex> SelectDim for RangeFrom<T> {
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
        Ok(DimSelection::from_start(index(self.start, dim, size)?))
    }
}

impl<T: SelectIndex> SelectDim for RangeTo<T> {
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
        Ok(DimSelection::range(0, index(self.end, dim, size)?))
    }
}

impl<T: SelectIndex> SelectDim for RangeToInclusive<T> {
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
        Ok(DimSelection::range(0, index(self.end, dim, size)?.saturating_add(1)))
    }
}

impl SelectDim for RangeFull {
    fn resolve_dim(&self, _dim: usize, _size: u64) -> Result<DimSelection, SelectionError> {
        Ok(DimSelection::all())
    }
}

/// A range with a step. Its second index must be a number of the range's integer type, also if the range has no end.
impl<I> SelectDim for StepBy<I>
where
    I: SelectDim + Clone,
    StepBy<I>: Iterator<Item: SelectIndex>,
{
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
        let mut indices = self.clone();
        // Without an end there is no upper bound.
        let count = match indices.size_hint() {
            (count, Some(_)) => count as u64,
            (_, None) => UNLIMITED,
        };
        let Some(first) = indices.next().filter(|_| count > 0) else { return Ok(DimSelection::range(0, 0)) };
        let first = index(first, dim, size)?;
        if count == 1 {
            return Ok(DimSelection::range(first, 1));
        }
        let Some(second) = indices.next() else { return Ok(DimSelection::range(first, 1)) };
        Ok(DimSelection::steps(first, index(second, dim, size)?.saturating_sub(first), count))
    }
}
