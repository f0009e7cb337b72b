//! General compressors, which several filters use.

pub(crate) mod fastlz;
pub(crate) mod lz4;
pub(crate) mod lzf;
pub(crate) mod match_finder;
#[cfg(any(feature = "native", feature = "pure"))]
pub(crate) mod zlib;
#[cfg(any(feature = "native", feature = "pure"))]
pub(crate) mod zstd;
