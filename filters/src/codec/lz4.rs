//! The LZ4 block codec.

use lz4_flex::block::{DecompressError, compress_into, decompress_into, get_maximum_output_size};

use crate::Fault;

/// Decompresses a block; returns the bytes written.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize, Fault> {
    let limit = output.len();
    decompress_into(input, output).map_err(|error| match error {
        DecompressError::OutputTooSmall { .. } => Fault::TooLarge { limit },
        DecompressError::ExpectedAnotherByte => Fault::Truncated,
        _ => Fault::Corrupt("LZ4 block"),
    })
}

/// Appends the block for the data.
pub(crate) fn compress(input: &[u8], output: &mut Vec<u8>) -> Result<(), Fault> {
    let start = output.len();
    output.resize(start + get_maximum_output_size(input.len()), 0);
    let room = output.get_mut(start..).unwrap_or_default();
    let written = compress_into(input, room).map_err(Fault::external)?;
    output.truncate(start + written);
    Ok(())
}
