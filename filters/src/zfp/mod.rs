//! Filter 32013, ZFP: blocks of four values along each dimension, transformed and coded bit plane by bit plane.
//! Decoding only.
//!
//! Parameters: versions, then the header of a ZFP stream in words of 32 bits. The chunk is the stream
//! without a header. Its bits are taken from the lowest of each byte up.

mod block_decoder;
mod coefficient_order;
mod header;

use self::block_decoder::{BlockSource, FloatBlocks, IntegerBlocks, ZfpDecoder};
use self::header::{ZfpHeader, ZfpType};
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 32013.
pub(crate) struct Zfp;

impl Filter for Zfp {
    fn id(&self) -> u16 {
        32013
    }

    fn name(&self) -> &str {
        "H5Z-ZFP"
    }

    fn can_encode(&self) -> bool {
        false
    }

    fn is_lossy(&self, _: &[u32]) -> bool {
        true
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let header = ZfpHeader::parse(params)?;
        let limit = output.len();
        let bytes = header.decoded_bytes().filter(|bytes| *bytes <= limit).ok_or(FilterFault::TooLarge { limit })?;
        let output = output.get_mut(..bytes).unwrap_or_default();
        match header.kind {
            ZfpType::Int32 => decode_blocks(&header, output, ZfpDecoder::<i32, IntegerBlocks>::new(&header, input))?,
            ZfpType::Int64 => decode_blocks(&header, output, ZfpDecoder::<i64, IntegerBlocks>::new(&header, input))?,
            ZfpType::Float32 => decode_blocks(&header, output, ZfpDecoder::<i32, FloatBlocks>::new(&header, input))?,
            ZfpType::Float64 => decode_blocks(&header, output, ZfpDecoder::<i64, FloatBlocks>::new(&header, input))?,
        }
        if header.swapped {
            output.chunks_exact_mut(header.kind.size()).for_each(<[u8]>::reverse);
        }
        Ok(DecodeOutcome::Decoded(bytes))
    }

    fn encode(&self, _: &[u32], _: &[u8], _: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        Err(FilterFault::Unsupported("encoding"))
    }

    fn complete_params(&self, _: &[u32], _: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        Err(FilterFault::Unsupported("encoding"))
    }
}

/// Puts blocks into their places; those at the edges reach beyond the array.
fn decode_blocks(header: &ZfpHeader, output: &mut [u8], mut source: impl BlockSource) -> Result<(), FilterFault> {
    let size = header.kind.size();
    // The fastest-varying dimension first; those that are not there have one element.
    let [nx, ny, nz, nw] = header.dims;
    for w in (0..nw).step_by(4) {
        for z in (0..nz).step_by(4) {
            for y in (0..ny).step_by(4) {
                for x in (0..nx).step_by(4) {
                    let values = source.next_block()?;
                    for (i, row) in values.chunks(4).enumerate() {
                        let (y, z, w) = (y + i % 4, z + i / 4 % 4, w + i / 16);
                        if y >= ny || z >= nz || w >= nw {
                            continue;
                        }
                        let at = (((w * nz + z) * ny + y) * nx + x) * size;
                        let row_bytes = output.get_mut(at..at + (nx - x).min(4) * size).unwrap_or_default();
                        for (to, value) in row_bytes.chunks_exact_mut(size).zip(row) {
                            for (to, byte) in to.iter_mut().zip(value.to_le_bytes()) {
                                *to = byte;
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
