//! Numbers for each dimension, and how far apart elements are in an array.

use smallvec::SmallVec;

/// A number for each dimension (`[rank]`).
pub(crate) type SelectDims = SmallVec<[u64; 4]>;

/// How far apart neighbours along each dimension are (`[rank]`, elements), in a row-major array of `dims`.
pub(crate) fn row_major_strides(dims: &[u64]) -> SelectDims {
    let mut strides = SelectDims::from_elem(1, dims.len());
    for dim in (1..dims.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(dims[dim]);
    }
    strides
}
