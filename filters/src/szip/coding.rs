//! How the chunks of a dataset are coded, as the parameters of the filter say.

use crate::FilterFault;
use crate::params::{param, param_to_usize};

/// Option: the first sample of a scanline is kept, of the others the differences from the one before
/// ("nearest neighbour"); without it, all samples are kept ("entropy coding").
pub(super) const NEAREST_NEIGHBOUR: u32 = 32;
/// Option: pixels are big-endian.
pub(super) const MSB: u32 = 16;
/// Option: pixels are little-endian.
pub(super) const LSB: u32 = 8;

/// Pixels of a block that are accepted; libhdf5 allows 32.
pub(super) const MAX_BLOCK: u32 = 256;
/// Pixels of a scanline that are accepted; libhdf5 allows 4096.
pub(super) const MAX_LINE: u32 = 1 << 16;
/// Blocks of a segment: a run of zero blocks ends where a segment does.
pub(super) const SEGMENT: usize = 64;
/// Stands for a run of zero blocks up to the end of the segment or the scanline.
pub(super) const REST_OF_SEGMENT: usize = 5;

/// How a chunk is coded.
pub(super) struct SzipCoding {
    /// Whether differences are coded.
    pub(super) differences: bool,
    pub(super) big_endian: bool,
    /// Bits of a sample, at most 24.
    pub(super) bits_per_sample: u32,
    /// Samples of a block; even.
    pub(super) samples_per_block: usize,
    /// Samples of a scanline, before padding.
    pub(super) samples_per_line: usize,
    /// Bytes of a pixel that is coded as several samples.
    pub(super) byte_planes: Option<usize>,
}

impl SzipCoding {
    pub(super) fn parse(params: &[u32]) -> Result<Self, FilterFault> {
        let (options, block, pixel, line) =
            (param(params, 0)?, param(params, 1)?, param(params, 2)?, param(params, 3)?);
        if block == 0 || block > MAX_BLOCK || block % 2 != 0 {
            return Err(FilterFault::InvalidParameter { index: 1, value: block });
        }
        if line == 0 || line > MAX_LINE {
            return Err(FilterFault::InvalidParameter { index: 3, value: line });
        }
        let (bits, planes) = match pixel {
            1..=24 => (pixel, None),
            32 | 64 => (8, Some(param_to_usize(pixel / 8))),
            value => return Err(FilterFault::InvalidParameter { index: 2, value }),
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
    pub(super) fn sample_bytes(&self) -> usize {
        match self.bits_per_sample {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    /// Bits of the number that says how a block is coded.
    pub(super) fn id_bits(&self) -> u32 {
        match self.bits_per_sample {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }

    /// The largest sample.
    pub(super) fn max_sample(&self) -> u32 {
        (1 << self.bits_per_sample) - 1
    }

    /// Blocks of a scanline.
    pub(super) fn blocks_per_line(&self) -> usize {
        self.samples_per_line.div_ceil(self.samples_per_block)
    }

    pub(super) fn load_sample(&self, bytes: &[u8]) -> u32 {
        let add = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
        let value = if self.big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
        value & self.max_sample()
    }

    pub(super) fn store_sample(&self, value: u32, bytes: &mut [u8]) {
        for (to, byte) in bytes.iter_mut().zip(value.to_le_bytes()) {
            *to = byte;
        }
        if self.big_endian {
            bytes.reverse();
        }
    }
}
