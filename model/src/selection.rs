//! Selections: which elements of a dataspace take part in a transfer.

use smallvec::SmallVec;

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
}
