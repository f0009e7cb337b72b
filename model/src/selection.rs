//! Selections: which elements of a dataspace take part in a transfer.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::UNLIMITED;

/// Most points and boxes that are shown of a selection.
const MAX_SHOWN_PARTS: usize = 8;

/// A regular pattern of blocks along each dimension (all `[rank]`, elements).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hyperslab {
    /// The first element.
    pub start: SmallVec<[u64; 4]>,
    /// From the start of a block to the start of the next.
    pub stride: SmallVec<[u64; 4]>,
    /// Number of blocks ([`crate::UNLIMITED`] in virtual mappings).
    pub count: SmallVec<[u64; 4]>,
    /// Elements of a block ([`crate::UNLIMITED`] in virtual mappings).
    pub block: SmallVec<[u64; 4]>,
}

/// A box of elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Block {
    /// The first element (`[rank]`).
    pub start: SmallVec<[u64; 4]>,
    /// The size (`[rank]`, elements).
    pub count: SmallVec<[u64; 4]>,
}

/// The indices of one dimension in a product of indices along each: orthogonal indexing, as h5py's `d[[1, 3, 7], :]`.
/// HDF5 itself has no such selection. [`DimIndices::bind_product`] takes one for each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DimIndices {
    /// Blocks at equal distances, as in a dimension of a [`Hyperslab`].
    StridedBlocks {
        /// The first index.
        start: u64,
        /// From the start of a block to the start of the next.
        stride: u64,
        /// Number of blocks; [`UNLIMITED`]: to the end.
        count: u64,
        /// Indices of a block; [`UNLIMITED`]: to the end.
        block: u64,
    },
    /// These indices, in this order. An index may be there several times; of what is written to it, the last stays.
    List(Arc<[u64]>),
}

/// Which elements take part.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Selection {
    /// Every element.
    #[default]
    All,
    /// No element.
    None,
    /// A regular hyperslab.
    Hyperslab(Hyperslab),
    /// A union of disjoint boxes, in row-major order of their elements.
    Blocks(Vec<Block>),
    /// Single elements, in the order given (each `[rank]`).
    Points(Vec<SmallVec<[u64; 4]>>),
}

impl Hyperslab {
    /// The box that starts at `start` and has `count` elements along each dimension (`[rank]`).
    pub fn block(start: &[u64], count: &[u64]) -> Self {
        let ones = || SmallVec::from_elem(1, start.len());
        let (first, size) = (SmallVec::from_slice(start), SmallVec::from_slice(count));
        Hyperslab { start: first, stride: ones(), count: ones(), block: size }
    }
}

impl Selection {
    /// The box that starts at `start` and has `count` elements along each dimension (`[rank]`).
    pub fn block(start: &[u64], count: &[u64]) -> Self {
        Selection::Hyperslab(Hyperslab::block(start, count))
    }

    /// The number of dimensions of its elements; `None` if it fits any number, or has no elements.
    pub fn rank(&self) -> Option<usize> {
        match self {
            Selection::All | Selection::None => None,
            Selection::Hyperslab(slab) => Some(slab.start.len()),
            Selection::Blocks(blocks) => blocks.first().map(|block| block.start.len()),
            Selection::Points(points) => points.first().map(|point| point.len()),
        }
    }
}

impl fmt::Display for Hyperslab {
    /// As slices in Python: `0:2, 1:9:2`, an open end as `3:`. Blocks of more than one element say their size at the
    /// end: `0:13:5x3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slice = |((start, stride), (count, block)): ((&u64, &u64), (&u64, &u64))| {
            if *count == UNLIMITED || *block == UNLIMITED {
                let step = if *count == 1 { String::new() } else { step_text(*stride, *block) };
                return if *start == 0 { format!(":{step}") } else { format!("{start}:{step}") };
            }
            let last = count.saturating_sub(1).saturating_mul(*stride).saturating_add(*start);
            let end = if *count == 0 { *start } else { last.saturating_add(*block) };
            let step = if *count <= 1 { String::new() } else { step_text(*stride, *block) };
            format!("{start}:{end}{step}")
        };
        let dims = self.start.iter().zip(&self.stride).zip(self.count.iter().zip(&self.block));
        f.pad(&dims.map(slice).collect::<Vec<_>>().join(", "))
    }
}

fn step_text(stride: u64, block: u64) -> String {
    match (stride, block) {
        (1, 1) => String::new(),
        (_, 1) => format!(":{stride}"),
        _ => format!(":{stride}x{block}"),
    }
}

impl fmt::Display for Block {
    /// As slices in Python: `0:2, 1:3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hyperslab::block(&self.start, &self.count).fmt(f)
    }
}

impl fmt::Display for Selection {
    /// `all`, `none`, a hyperslab as slices in Python, and the first few of points and boxes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |parts: Vec<String>, between: &str, all: usize, noun: &str| match all > parts.len() {
            true => format!("{}{between}... ({all} {noun})", parts.join(between)),
            false => parts.join(between),
        };
        match self {
            Selection::All => f.pad("all"),
            Selection::None => f.pad("none"),
            Selection::Hyperslab(slab) => slab.fmt(f),
            Selection::Blocks(blocks) => {
                let shown = blocks.iter().take(MAX_SHOWN_PARTS).map(|block| format!("({block})")).collect();
                f.pad(&some(shown, " + ", blocks.len(), "boxes"))
            }
            Selection::Points(points) => {
                let shown = points.iter().take(MAX_SHOWN_PARTS).map(|point| format!("{point:?}")).collect();
                f.pad(&some(shown, ", ", points.len(), "points"))
            }
        }
    }
}
