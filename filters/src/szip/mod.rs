//! Filter 4, szip: the extended Rice code of CCSDS 121.0-B, after the number of bytes of the chunk (4 bytes,
//! little-endian).
//!
//! Parameters: options, pixels per block, bits per pixel, pixels per scanline. A scanline is what CCSDS
//! calls a reference sample interval, padded to whole blocks. Pixels of 32 and 64 bits are taken apart
//! into bytes, all first bytes before all second ones, which are coded as pixels of 8 bits.

mod coding;
mod decode;
mod encode;

use h5live_model::{ByteOrder, Datatype};

use self::coding::{LSB, MSB, SzipCoding};
use crate::params::{param, param_to_usize};
use crate::transpose::{shuffle, unshuffle};
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget, scratch};

/// Filter 4.
pub(crate) struct Szip;

/// Pixels of a scanline that libhdf5 allows, and blocks.
const LINE_PIXELS: u64 = 4096;
const LINE_BLOCKS: u64 = 128;
impl Filter for Szip {
    fn id(&self) -> u16 {
        4
    }

    fn name(&self) -> &str {
        "szip"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let coding = SzipCoding::parse(params)?;
        let (bytes, stream) = input.split_first_chunk::<4>().ok_or(FilterFault::Truncated)?;
        let bytes = param_to_usize(u32::from_le_bytes(*bytes));
        let limit = output.len();
        let output = output.get_mut(..bytes).ok_or(FilterFault::TooLarge { limit })?;
        match coding.byte_planes {
            None => decode::decode(&coding, stream, output)?,
            Some(planes) => {
                let mut samples = scratch::zeroed(bytes).ok_or(FilterFault::OutOfMemory(bytes))?;
                decode::decode(&coding, stream, &mut samples)?;
                unshuffle(planes, &samples, output);
            }
        }
        Ok(DecodeOutcome::Decoded(bytes))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        let coding = SzipCoding::parse(params)?;
        let bytes =
            u32::try_from(input.len()).map_err(|_| FilterFault::TooLarge { limit: param_to_usize(u32::MAX) })?;
        if !input.len().is_multiple_of(coding.byte_planes.unwrap_or(coding.sample_bytes())) {
            return Err(FilterFault::Corrupt("number of bytes"));
        }
        output.extend_from_slice(&bytes.to_le_bytes());
        match coding.byte_planes {
            None => encode::encode(&coding, input, output),
            Some(planes) => {
                let mut samples = vec![0; input.len()];
                shuffle(planes, input, &mut samples);
                encode::encode(&coding, &samples, output);
            }
        }
        Ok(if output.len() > input.len() + 4 { EncodeOutcome::Incompressible } else { EncodeOutcome::Encoded })
    }

    fn complete_params(&self, params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let (options, block) = (param(params, 0)?, param(params, 1)?);
        let (order, precision, offset) = match target.datatype {
            Datatype::Integer(t) => (t.order, t.precision, t.offset),
            Datatype::Float(t) => (t.order, t.precision, t.offset),
            Datatype::Bitfield(t) => (t.order, t.precision, t.offset),
            other => (ByteOrder::Little, other.size().saturating_mul(8).min(u32::from(u16::MAX)) as u16, 0),
        };
        let size = target.datatype.size();
        let order = match order {
            ByteOrder::Little => LSB,
            ByteOrder::Big => MSB,
            ByteOrder::Vax => return Err(FilterFault::AppliesOnlyTo("little- and big-endian elements")),
        };
        // libhdf5 also takes elements of 3 bytes, and damages them.
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Err(FilterFault::AppliesOnlyTo("elements of 1, 2, 4 or 8 bytes"));
        }
        let pixel = match u32::from(precision) {
            _ if offset != 0 => size * 8,
            precision @ ..=24 => precision,
            ..=32 => 32,
            _ => 64,
        };
        let row = target.chunk_dims.last().copied().unwrap_or(1);
        let elements = target.chunk_dims.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        let max_line = u64::from(block) * LINE_BLOCKS;
        let line = match row {
            row if row < u64::from(block) => {
                if elements < u64::from(block) {
                    return Err(FilterFault::AppliesOnlyTo("chunks of at least one block of pixels"));
                }
                max_line.min(elements)
            }
            row if row <= LINE_PIXELS => max_line.min(row),
            _ => max_line,
        };
        let line = u32::try_from(line).map_err(|_| FilterFault::InvalidParameter { index: 1, value: block })?;
        let params = vec![options & !(LSB | MSB) | order, block, pixel, line];
        SzipCoding::parse(&params)?;
        Ok(params)
    }
}
