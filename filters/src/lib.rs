//! Chunk bytes to chunk bytes: the filter pipelines of HDF5 datasets.
//!
//! A [`Pipeline`] is made once per dataset from the filters that the dataset names and a [`Registry`]
//! that knows how to apply them. [`Pipeline::encode`] takes a chunk to what is stored,
//! [`Pipeline::decode`] takes it back. A filter of your own is a type that implements [`Filter`],
//! given to [`Registry::register`].
//!
//! ```
//! use h5live_filters::{FilterSpec, Pipeline, Registry};
//!
//! let registry = Registry::default();
//! let shuffle = FilterSpec { id: 2, params: vec![4], ..Default::default() };
//! let deflate = FilterSpec { id: 1, params: vec![6], optional: true, ..Default::default() };
//! let pipeline = Pipeline::new(&[shuffle, deflate], &registry)?;
//!
//! let chunk: Vec<u8> = (0..1000u32).flat_map(u32::to_le_bytes).collect();
//! let (stored, mask) = pipeline.encode(&chunk)?;
//! assert!(stored.len() < chunk.len());
//! assert_eq!(pipeline.decode(mask, &stored, chunk.len())?, chunk);
//! # Ok::<(), h5live_filters::Error>(())
//! ```
//!
//! # Filters
//!
//! | number | filter | writes |
//! |---|---|---|
//! | 1, 2, 3 | deflate, shuffle, fletcher32 | yes |
//! | 4 | szip, both coding methods | yes, the same bytes as libhdf5 with libaec |
//! | 5, 6 | nbit, scaleoffset | yes, the same bytes as libhdf5; not-a-number in scaleoffset is kept, libhdf5 loses it |
//! | 307 | bzip2 | yes |
//! | 32000, 32004, 32015 | LZF, LZ4, Zstandard | yes |
//! | 32001 | Blosc with BloscLZ, LZ4, Snappy, zlib, Zstandard | yes |
//! | 32008 | bitshuffle alone, with LZ4, with Zstandard | yes |
//! | 32013 | ZFP in every mode | no |
//! | 32026 | Blosc2 with shuffle, bitshuffle, delta; grids of blocks are read | yes, without a grid |
//!
//! # Bounds
//!
//! Stored bytes are not trusted. A filter writes into a space whose size is known before it starts, and
//! nothing that a header inside the stored bytes says makes that space larger. The last step of decoding
//! has room for exactly one chunk; a step before it has room for twice the chunk and 64 KiB, which is more
//! than any built-in filter adds to data that it cannot make smaller.
//!
//! # Features
//!
//! `native` (default) uses libdeflate and zstd, which are built from C. `pure`, with the default features
//! off, uses zlib-rs and ruzstd instead and needs no C compiler. Without either, the filters that
//! need these codecs are not available.

#![warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bit_io;
mod bitshuffle;
mod blosc;
mod byte_reader;
mod bzip2;
mod codec;
#[cfg(any(feature = "native", feature = "pure"))]
mod deflate;
mod error;
mod filter;
mod filter_text;
mod fletcher32;
mod lz4;
mod lzf;
mod nbit;
mod params;
mod pipeline;
mod registry;
mod registry_filter_engine;
mod scale_offset;
mod scratch;
mod shuffle;
mod szip;
mod transpose;
mod zfp;
#[cfg(any(feature = "native", feature = "pure"))]
mod zstd;

pub use error::{Error, FilterFault, Result};
pub use filter::{DecodeOutcome, EncodeOutcome, Filter, FilterTarget};
pub use filter_text::{FilterTextError, describe_filter, filter_name, parse_filter};
pub use fletcher32::fletcher32_checksum as fletcher32;
pub use h5live_model::FilterSpec;
pub use pipeline::{MAX_FILTERS, Pipeline};
pub use registry::{Registry, hdf_group_filter_id, hdf_group_filter_name};
pub use registry_filter_engine::RegistryFilterEngine;

#[cfg(test)]
mod tests;
