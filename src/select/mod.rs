//! Ways to say which elements are meant.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

use crate::dims::CoreDims;
use h5live_model::{Hyperslab, Selection, UNLIMITED};

/// A selection of elements of a dataset: a range of rows, a tuple or an array of ranges and indices (one for each
/// dimension), or a [`Selection`]. Dimensions at the end that are not named are selected completely.
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
/// assert_eq!(data.read_slice::<i32>(Selection::block(&[1, 2], &[1, 2]))?, [6, 7]);
/// # Ok::<(), h5live::Error>(())
/// ```
pub trait Select {
    /// The selection in a dataset of `rank` dimensions.
    fn selection(&self, rank: usize) -> Selection;
}

/// A selection of indices along one dimension.
pub trait SelectDim {
    /// The first index and the number of indices. [`UNLIMITED`] selects all indices that follow.
    fn dim(&self) -> (u64, u64);
}

impl SelectDim for u64 {
    fn dim(&self) -> (u64, u64) {
        (*self, 1)
    }
}

impl SelectDim for Range<u64> {
    fn dim(&self) -> (u64, u64) {
        (self.start, self.end.saturating_sub(self.start))
    }
}

impl SelectDim for RangeInclusive<u64> {
    fn dim(&self) -> (u64, u64) {
        let count = if self.is_empty() { 0 } else { (self.end() - self.start()).saturating_add(1) };
        (*self.start(), count)
    }
}

impl SelectDim for RangeFrom<u64> {
    fn dim(&self) -> (u64, u64) {
        (self.start, UNLIMITED)
    }
}

impl SelectDim for RangeTo<u64> {
    fn dim(&self) -> (u64, u64) {
        (0, self.end)
    }
}

impl SelectDim for RangeFull {
    fn dim(&self) -> (u64, u64) {
        (0, UNLIMITED)
    }
}

fn slab(dims: &[(u64, u64)], rank: usize) -> Selection {
    let rank = rank.max(dims.len());
    // To copy a few words is less work than to fill them in one by one.
    let all = |n: u64| match [n; 4].get(..rank) {
        Some(dims) => CoreDims::from_slice(dims),
        None => CoreDims::from_elem(n, rank),
    };
    let mut slab = Hyperslab { start: all(0), stride: all(1), count: all(1), block: all(UNLIMITED) };
    for (dim, (first, n)) in dims.iter().enumerate() {
        (slab.start[dim], slab.block[dim]) = (*first, *n);
    }
    Selection::Hyperslab(slab)
}

impl Select for Selection {
    fn selection(&self, _rank: usize) -> Selection {
        self.clone()
    }
}

impl Select for Hyperslab {
    fn selection(&self, _rank: usize) -> Selection {
        Selection::Hyperslab(self.clone())
    }
}

impl<S: Select + ?Sized> Select for &S {
    fn selection(&self, rank: usize) -> Selection {
        (**self).selection(rank)
    }
}

macro_rules! one {
    ($($t:ty)*) => {$(
        impl Select for $t {
            fn selection(&self, rank: usize) -> Selection {
                slab(&[self.dim()], rank)
            }
        }
    )*};
}

one! { u64 Range<u64> RangeInclusive<u64> RangeFrom<u64> RangeTo<u64> }

impl Select for RangeFull {
    /// Everything, also of a scalar.
    fn selection(&self, _rank: usize) -> Selection {
        Selection::All
    }
}

macro_rules! tuple {
    ($($s:ident),*) => {
        impl<$($s: SelectDim),*> Select for ($($s,)*) {
            fn selection(&self, rank: usize) -> Selection {
                #[allow(non_snake_case)]
                let ($($s,)*) = self;
                slab(&[$($s.dim()),*], rank)
            }
        }
    };
}

tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);

impl<S: SelectDim> Select for [S] {
    fn selection(&self, rank: usize) -> Selection {
        slab(&self.iter().map(SelectDim::dim).collect::<Vec<_>>(), rank)
    }
}

impl<S: SelectDim, const N: usize> Select for [S; N] {
    fn selection(&self, rank: usize) -> Selection {
        self.as_slice().selection(rank)
    }
}

impl<S: SelectDim> Select for Vec<S> {
    fn selection(&self, rank: usize) -> Selection {
        self.as_slice().selection(rank)
    }
}
