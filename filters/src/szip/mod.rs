//! Filter 4, szip: the extended Rice code of CCSDS 121.0-B, after the number of bytes of the chunk (4 bytes,
//! little-endian).
//!
//! Parameters: options, pixels per block, bits per pixel, pixels per scanline. A scanline is what CCSDS
//! calls a reference sample interval, padded to whole blocks. Pixels of 32 and 64 bits are taken apart
//! into bytes, all first bytes before all second ones, which are coded as pixels of 8 bits.

mod decode;
mod encode;

use h5live_model::{ByteOrder, Datatype};

use crate::params::{param, param_to_usize};
use crate::transpose::{shuffle, unshuffle};
use crate::{DecodeOutput, EncodeOutput, Filter, FilterFault, FilterTarget, scratch};

/// Filter 4.
pub(crate) struct Szip;

/// Option: the first sample of a scanline is kept, of the others the differences from the one before
/// ("nearest neighbour"); without it, all samples are kept ("entropy coding").
const NEAREST_NEIGHBOUR: u32 = 32;
/// Option: pixels are big-endian.
const MSB: u32 = 16;
/// Option: pixels are little-endian.
const LSB: u32 = 8;

/// Pixels of a block that are accepted; libhdf5 allows 32.
const MAX_BLOCK: u32 = 256;
/// Pixels of a scanline that are accepted; libhdf5 allows 4096.
const MAX_LINE: u32 = 1 << 16;
/// Pixels of a scanline that libhdf5 allows, and blocks.
const LINE_PIXELS: u64 = 4096;
const LINE_BLOCKS: u64 = 128;
/// Blocks of a segment: a run of zero blocks ends where a segment does.
const SEGMENT: usize = 64;
/// Stands for a run of zero blocks up to the end of the segment or the scanline.
const REST_OF_SEGMENT: usize = 5;

/// How a chunk is coded.
struct SzipCoding {
    /// Whether differences are coded.
    differences: bool,
    big_endian: bool,
    /// Bits of a sample, at most 24.
    bits_per_sample: u32,
    /// Samples of a block; even.
    samples_per_block: usize,
    /// Samples of a scanline, before padding.
    samples_per_line: usize,
    /// Bytes of a pixel that is coded as several samples.
    byte_planes: Option<usize>,
}

impl SzipCoding {
    fn parse(params: &[u32]) -> Result<Self, FilterFault> {
        let (options, block, pixel, line) =
            (param(params, 0)?, param(params, 1)?, param(params, 2)?, param(params, 3)?);
        if block == 0 || block > MAX_BLOCK || block % 2 != 0 {
            return Err(FilterFault::Parameter { index: 1, value: block });
        }
        if line == 0 || line > MAX_LINE {
            return Err(FilterFault::Parameter { index: 3, value: line });
        }
        let (bits, planes) = match pixel {
            1..=24 => (pixel, None),
            32 | 64 => (8, Some(param_to_usize(pixel / 8))),
            value => return Err(FilterFault::Parameter { index: 2, value }),
        };
        Ok(SzipCoding {
            differences: options & NEAREST_NEIGHBOUR != 0,
            big_endian: options & MSB != 0,
            bits_per_sample: bits,
            samples_per_block: param_to_usize(block),
            samples_per_line: param_to_usize(line),
            byte_planes: planes,
        })
    }

    /// Bytes of a sample.
    fn sample_bytes(&self) -> usize {
        match self.bits_per_sample {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    /// Bits of the number that says how a block is coded.
    fn id_bits(&self) -> u32 {
        match self.bits_per_sample {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }

    /// The largest sample.
    fn max_sample(&self) -> u32 {
        (1 << self.bits_per_sample) - 1
    }

    /// Blocks of a scanline.
    fn blocks_per_line(&self) -> usize {
        self.samples_per_line.div_ceil(self.samples_per_block)
    }

    fn load_sample(&self, bytes: &[u8]) -> u32 {
        let add = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
        let value = if self.big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
        value & self.max_sample()
    }

    fn store_sample(&self, value: u32, bytes: &mut [u8]) {
        for (to, byte) in bytes.iter_mut().zip(value.to_le_bytes()) {
            *to = byte;
        }
        if self.big_endian {
            bytes.reverse();
        }
    }
}

impl Filter for Szip {
    fn id(&self) -> u16 {
        4
    }

    fn name(&self) -> &str {
        "szip"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutput, FilterFault> {
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
        Ok(DecodeOutput::Output(bytes))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutput, FilterFault> {
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
        Ok(if output.len() > input.len() + 4 { EncodeOutput::Skipped } else { EncodeOutput::Output })
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
            ByteOrder::Vax => return Err(FilterFault::NotApplicable("little- and big-endian elements")),
        };
        // libhdf5 also takes elements of 3 bytes, and damages them.
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Err(FilterFault::NotApplicable("elements of 1, 2, 4 or 8 bytes"));
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
                    return Err(FilterFault::NotApplicable("chunks of at least one block of pixels"));
                }
                max_line.min(elements)
            }
            row if row <= LINE_PIXELS => max_line.min(row),
            _ => max_line,
        };
        let line = u32::try_from(line).map_err(|_| FilterFault::Parameter { index: 1, value: block })?;
        let params = vec![options & !(LSB | MSB) | order, block, pixel, line];
        SzipCoding::parse(&params)?;
        Ok(params)
    }
}
