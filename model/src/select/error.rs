//! Why a selection does not fit an extent.

use crate::MAX_RANK;

/// Why a selection does not fit an extent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The selection and the extent are of different rank.
    #[error("the selection has {selection} dimensions, the extent {extent}")]
    RankMismatch {
        /// Dimensions of the selection.
        selection: usize,
        /// Dimensions of the extent.
        extent: usize,
    },
    /// More dimensions than the format allows.
    #[error("{0} dimensions are more than {MAX_RANK}")]
    TooManyDimensions(usize),
    /// The selection reaches over the extent.
    #[error("the selection reaches to {end} in dimension {dim}, which has {extent} elements")]
    ExceedsExtent {
        /// The dimension.
        dim: usize,
        /// One past the last element selected; the largest number if it is beyond that.
        end: u64,
        /// The elements of the dimension.
        extent: u64,
    },
    /// A single index, or an end of a range, is negative, or a single index is not below the size of its dimension.
    #[error("index {index} is out of bounds: dimension {dim} has {extent} elements")]
    IndexOutOfBounds {
        /// The dimension.
        dim: usize,
        /// The index that was asked for.
        index: i128,
        /// The elements of the dimension.
        extent: u64,
    },
    /// A step is not positive.
    #[error("step {step} of dimension {dim} is not positive")]
    NonPositiveStep {
        /// The dimension.
        dim: usize,
        /// From one index to the next.
        step: i128,
    },
    /// A selection adds a dimension, which the elements of a dataset do not have.
    #[error("a selection of elements cannot add a dimension")]
    NewAxis,
    /// A mask has another shape than the extent, or another number of elements.
    #[error("a mask of shape {mask:?} does not fit the extent {extent:?}")]
    MaskShapeMismatch {
        /// The shape of the mask (elements); its length, if it has no shape.
        mask: Vec<u64>,
        /// The extent (`[rank]`, elements).
        extent: Vec<u64>,
    },
    /// The blocks of a hyperslab overlap, or its stride is zero.
    #[error("the blocks of the hyperslab overlap in dimension {dim}: stride {stride}, block {block}")]
    HyperslabBlocksOverlap {
        /// The dimension.
        dim: usize,
        /// From block to block (elements).
        stride: u64,
        /// Elements of a block.
        block: u64,
    },
    /// Two selections that are to be combined have different extents.
    #[error("selections of different extents cannot be combined")]
    DifferentExtents,
    /// The number of elements does not fit 64 bits.
    #[error("the selection has more elements than can be counted")]
    ElementCountOverflow,
    /// The union of blocks falls into too many pieces.
    #[error("the union of blocks falls into more than {0} pieces")]
    MoreSpansThan(usize),
}
