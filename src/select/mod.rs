//! Ways to say which elements are meant.

mod dim;
mod mask;
#[cfg(test)]
mod tests;

use std::iter::StepBy;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use h5live_model::{BoundSelection, DimIndices, Hyperslab, Selection, SelectionError, UNLIMITED};

pub use dim::{DimSelection, SelectDim, SelectIndex};

use crate::dims::CoreDims;

/// A selection of elements of a dataset.
///
/// | what | selects |
/// |---|---|
/// | `..` | everything |
/// | `3`, `2..5`, `2..=4`, `2..`, `..5`, `(0..100).step_by(2)` | along the first dimension |
/// | `(3, ..)`, `(0..2, 1..=2)`, `[3, 0]` | along each dimension: a tuple of up to six, or an array or `Vec` |
/// | `(&[3, 1, 7], ..)`, `(.., vec![2, 0])` | lists of indices in a tuple: all combinations, in the order of the lists |
/// | `&[[0, 1], [2, 3]]`, a `Vec` of arrays | points, one array each, in the order given |
/// | `&[true, false, true, true]`, a `Vec` of `bool` | a mask: one value for each element, in row-major order |
/// | [`Selection`], [`Hyperslab`](h5live_model::Hyperslab) | what HDF5 has: blocks with strides, unions of blocks, points |
///
/// Indices are of any integer type. Dimensions at the end that are not named are selected completely. A range that
/// reaches over the end is an error, and so is a negative index.
///
/// A single index drops its dimension from the shape of what is read, as in `ndarray` and h5py
/// ([`Dataset::selected_shape`](crate::Dataset::selected_shape)); a range of one index keeps it. Points and masks have a
/// shape of one dimension.
///
/// With the feature `ndarray`, what the macro `ndarray::s!` makes is a selection, and so is an array of `bool` of the
/// dataset's shape.
///
/// ```
/// use h5live::{File, Selection};
///
/// let file = File::in_memory();
/// let data = file.new_dataset::<i32>().shape(&[3, 4]).create("data")?;
/// data.write(&(0..12).collect::<Vec<_>>())?;
/// assert_eq!(data.read_slice::<i32>(2..)?, [8, 9, 10, 11]);
/// assert_eq!(data.read_slice::<i32>((.., 3))?, [3, 7, 11]);
/// assert_eq!(data.read_slice::<i32>((0..2, 1..=2))?, [1, 2, 5, 6]);
/// assert_eq!(data.read_slice::<i32>((1, (0..).step_by(2)))?, [4, 6]);
/// assert_eq!(data.read_slice::<i32>([2, 0])?, [8]);
/// assert_eq!(data.read_slice::<i32>((&[2, 0], 1..3))?, [9, 10, 1, 2]);
/// assert_eq!(data.read_slice::<i32>(&[[2, 0], [0, 1]])?, [8, 1]);
/// assert_eq!(data.read_slice::<i32>(Selection::block(&[1, 2], &[1, 2]))?, [6, 7]);
///
/// let odd: Vec<bool> = data.read::<i32>()?.iter().map(|value| value % 2 == 1).collect();
/// assert_eq!(data.read_slice::<i32>(&odd)?, [1, 3, 5, 7, 9, 11]);
///
/// assert_eq!(data.selected_shape((1, ..))?, [4]);
/// assert_eq!(data.selected_shape((1..2, ..))?, [1, 4]);
/// let error = data.read_slice::<i32>((.., 4)).unwrap_err();
/// assert!(error.to_string().ends_with("index 4 is out of bounds: dimension 1 has 4 elements"), "{error}");
/// # Ok::<(), h5live::Error>(())
/// ```
pub trait Select {
    /// The selection in a dataset of this extent (`[rank]`, elements).
    ///
    /// # Errors
    /// [`SelectionError`] if it makes no sense there. Whether all elements lie within the extent is checked when it is
    /// used ([`Selection::bind`]).
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError>;
}

/// What a [`Select`] selects in a dataset: the selection, and which dimensions the shape of what is read does not have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResolvedSelection {
    kind: SelectionKind,
    /// Bit `i`: dimension `i` is dropped. No selection with a later dimension fits any dataset.
    dropped: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SelectionKind {
    /// What HDF5 has.
    Plain(Selection),
    /// The product of indices of each dimension, some of which are lists.
    Product(Vec<DimIndices>),
}

impl From<Selection> for ResolvedSelection {
    fn from(selection: Selection) -> Self {
        ResolvedSelection { kind: SelectionKind::Plain(selection), dropped: 0 }
    }
}

impl ResolvedSelection {
    /// The selection; `None` if it has lists of indices, for which HDF5 has no selection.
    pub fn selection(&self) -> Option<&Selection> {
        match &self.kind {
            SelectionKind::Plain(selection) => Some(selection),
            SelectionKind::Product(_) => None,
        }
    }

    /// The selection in a dataset of this extent (`[rank]`, elements). Lists of indices become boxes: the same elements,
    /// each once, in row-major order.
    ///
    /// # Errors
    /// [`SelectionError`] if lists do not fit the extent, or fall into too many boxes.
    pub fn into_selection(self, extent: &[u64]) -> Result<Selection, SelectionError> {
        match self.kind {
            SelectionKind::Plain(selection) => Ok(selection),
            SelectionKind::Product(dims) => DimIndices::bind_product(&dims, extent)?.to_blocks_or_points(),
        }
    }

    /// Checks it against the extent (`[rank]`, elements) of the dataset.
    ///
    /// # Errors
    /// [`SelectionError`].
    #[inline]
    pub fn into_bound(self, extent: &[u64]) -> Result<BoundSelection, SelectionError> {
        match self.kind {
            SelectionKind::Plain(selection) => selection.into_bound(extent),
            SelectionKind::Product(dims) => DimIndices::bind_product(&dims, extent),
        }
    }

    /// Whether a single index was given for a dimension (from 0), which drops it.
    pub fn is_dropped(&self, dim: usize) -> bool {
        is_dropped(self.dropped, dim)
    }

    #[inline]
    pub(crate) fn dropped(&self) -> u32 {
        self.dropped
    }
}

fn is_dropped(dropped: u32, dim: usize) -> bool {
    u32::try_from(dim).ok().and_then(|dim| dropped.checked_shr(dim)).is_some_and(|bits| bits & 1 == 1)
}

/// The dimensions (`[rank]`, elements) without the dropped ones.
pub(crate) fn kept_dims(dims: CoreDims, dropped: u32) -> CoreDims {
    if dropped == 0 {
        return dims;
    }
    dims.into_iter().enumerate().filter(|(dim, _)| !is_dropped(dropped, *dim)).map(|(_, n)| n).collect()
}

/// The product of these selections, one for each of the first dimensions.
#[inline]
fn product(dims: &[DimSelection], extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
    let has_list = dims.iter().any(|selected| selected.list.is_some());
    if has_list { product_with_lists(dims, extent) } else { hyperslab(dims, extent) }
}

/// The same for selections of which some are lists.
#[cold]
fn product_with_lists(dims: &[DimSelection], extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
    let plain = hyperslab(dims, extent)?;
    let all = DimSelection::all();
    let indices = |selected: &DimSelection| match &selected.list {
        Some(list) => DimIndices::List(list.clone()),
        None => {
            let DimSelection { start, stride, count, block, .. } = *selected;
            DimIndices::StridedBlocks { start, stride, count, block }
        }
    };
    let dims = dims.iter().chain(std::iter::repeat(&all)).take(extent.len()).map(indices);
    Ok(ResolvedSelection { kind: SelectionKind::Product(dims.collect()), dropped: plain.dropped })
}

/// The hyperslab of these selections, one for each of the first dimensions. Of a list, it has the whole dimension.
#[inline]
fn hyperslab(dims: &[DimSelection], extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
    let rank = extent.len();
    // To copy a few words is less work than to fill them in one by one.
    let all = |n: u64| match rank {
        0..=4 => CoreDims::from_buf_and_len([n; 4], rank),
        _ => CoreDims::from_elem(n, rank),
    };
    let mut slab = Hyperslab { start: all(0), stride: all(1), count: all(1), block: all(UNLIMITED) };
    let mut dropped = 0;
    for (dim, selected) in dims.iter().enumerate() {
        if selected.is_index {
            if selected.start >= extent[dim] {
                let index = selected.start.into();
                return Err(SelectionError::IndexOutOfBounds { dim, index, extent: extent[dim] });
            }
            dropped |= 1u32.checked_shl(dim as u32).unwrap_or(0);
        }
        (slab.start[dim], slab.block[dim]) = (selected.start, selected.block);
        if selected.has_steps() {
            (slab.stride[dim], slab.count[dim]) = (selected.stride, selected.count);
        }
    }
    Ok(ResolvedSelection { kind: SelectionKind::Plain(Selection::Hyperslab(slab)), dropped })
}

/// The size of dimension `dim`, one of `named` for which there is a selection.
#[inline]
fn size_of_dim(extent: &[u64], dim: usize, named: usize) -> Result<u64, SelectionError> {
    match extent.get(dim) {
        Some(size) if named <= extent.len() => Ok(*size),
        _ => Err(SelectionError::RankMismatch { selection: named, extent: extent.len() }),
    }
}

impl Select for Selection {
    fn resolve(&self, _extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        Ok(self.clone().into())
    }
}

impl Select for Hyperslab {
    fn resolve(&self, _extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        Ok(Selection::Hyperslab(self.clone()).into())
    }
}

impl Select for ResolvedSelection {
    fn resolve(&self, _extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        Ok(self.clone())
    }
}

impl<S: Select + ?Sized> Select for &S {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        (**self).resolve(extent)
    }
}

macro_rules! first_dimension {
    ($([$($of:tt)*] $t:ty;)*) => {$(
        impl<$($of)*> Select for $t
        where
            $t: SelectDim,
        {
            #[inline]
            fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
                product(&[self.resolve_dim(0, size_of_dim(extent, 0, 1)?)?], extent)
            }
        }
    )*};
}

first_dimension! {
    [] u8; [] u16; [] u32; [] u64; [] usize; [] i8; [] i16; [] i32; [] i64; [] isize;
    [T: SelectIndex] Range<T>;
    [T: SelectIndex] RangeInclusive<T>;
    [T: SelectIndex] RangeFrom<T>;
    [T: SelectIndex] RangeTo<T>;
    [T: SelectIndex] RangeToInclusive<T>;
    [I] StepBy<I>;
    [] DimSelection;
}

impl Select for RangeFull {
    /// Everything, also of a scalar.
    fn resolve(&self, _extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        Ok(Selection::All.into())
    }
}

impl Select for () {
    /// Everything, also of a scalar.
    fn resolve(&self, _extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        Ok(Selection::All.into())
    }
}

macro_rules! tuple {
    ($n:literal: $($s:ident $dim:literal),*) => {
        impl<$($s: SelectDim),*> Select for ($($s,)*) {
            fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
                #[allow(non_snake_case)]
                let ($($s,)*) = self;
                product(&[$($s.resolve_dim($dim, size_of_dim(extent, $dim, $n)?)?),*], extent)
            }
        }
    };
}

tuple!(1: A 0);
tuple!(2: A 0, B 1);
tuple!(3: A 0, B 1, C 2);
tuple!(4: A 0, B 1, C 2, D 3);
tuple!(5: A 0, B 1, C 2, D 3, E 4);
tuple!(6: A 0, B 1, C 2, D 3, E 4, F 5);

/// One for each dimension.
impl<S: SelectDim> Select for [S] {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        let dim = |(dim, selected): (usize, &S)| selected.resolve_dim(dim, size_of_dim(extent, dim, self.len())?);
        product(&self.iter().enumerate().map(dim).collect::<Result<Vec<_>, _>>()?, extent)
    }
}

/// Points.
impl<T: SelectIndex, const RANK: usize> Select for [[T; RANK]] {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        let point = |point: &[T; RANK]| {
            let indices = point.iter().enumerate().map(|(dim, index)| {
                let extent = size_of_dim(extent, dim, RANK)?;
                let out = |index| SelectionError::IndexOutOfBounds { dim, index, extent };
                let index = index.to_index().map_err(|negative| out(negative.into()))?;
                if index < extent { Ok(index) } else { Err(out(index.into())) }
            });
            indices.collect::<Result<CoreDims, _>>()
        };
        Ok(Selection::Points(self.iter().map(point).collect::<Result<_, _>>()?).into())
    }
}

/// A mask.
impl Select for [bool] {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        Ok(mask::selection(self, extent)?.into())
    }
}

impl<S, const N: usize> Select for [S; N]
where
    [S]: Select,
{
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        self.as_slice().resolve(extent)
    }
}

impl<S> Select for Vec<S>
where
    [S]: Select,
{
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        self.as_slice().resolve(extent)
    }
}
