//! Dimensions as they are handed around: few enough to need no memory of their own.

use smallvec::SmallVec;

pub(crate) type CoreDims = SmallVec<[u64; 4]>;
