//! The zlib codec (RFC 1950), whose state each thread keeps.
//!
//! Shuffled chunks are planes of bytes of very different kinds. What cannot be compressed is stored, what is runs of
//! one byte is encoded here, and libdeflate, to whom these two take the most time, gets what is left ([`segment`]).

#[cfg(feature = "native")]
mod bits;
#[cfg(feature = "native")]
mod block_scan;
#[cfg(feature = "native")]
mod huffman;
#[cfg(feature = "native")]
mod native;
#[cfg(not(feature = "native"))]
mod pure;
#[cfg(feature = "native")]
mod repeats;
#[cfg(feature = "native")]
mod run_encoder;
#[cfg(feature = "native")]
mod segment;
#[cfg(test)]
mod tests;

#[cfg(feature = "native")]
pub(crate) use native::{compress, decompress};
#[cfg(not(feature = "native"))]
pub(crate) use pure::{compress, decompress};
