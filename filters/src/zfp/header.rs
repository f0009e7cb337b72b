//! The header of a ZFP stream: "zfp" and the version of the codec, the type and the dimensions in 52 bits, the mode
//! in 12 or 64 bits.

use crate::FilterFault;
use crate::params::param_to_usize;

const VERSION: u32 = 5;
const MAGIC: u32 = u32::from_le_bytes([b'z', b'f', b'p', VERSION as u8]);

/// The smallest exponent of a float; one less stands for lossless coding.
const MIN_EXPONENT: i32 = -1074;
/// The most bits of a block.
const MAX_BITS: u32 = 16658;
/// The most bit planes of a value.
const MAX_PRECISION: u32 = 64;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ZfpType {
    Int32,
    Int64,
    Float32,
    Float64,
}

impl ZfpType {
    /// Bytes of a value.
    pub fn size(self) -> usize {
        match self {
            ZfpType::Int32 | ZfpType::Float32 => 4,
            ZfpType::Int64 | ZfpType::Float64 => 8,
        }
    }
}

/// The decoded header.
#[derive(PartialEq, Debug)]
pub(super) struct ZfpHeader {
    pub kind: ZfpType,
    /// Dimensions that count, 1 to 4.
    pub rank: usize,
    /// Elements along each dimension, the fastest-varying one first.
    pub dims: [usize; 4],
    /// The fewest and the most bits of a block.
    pub min_bits: u32,
    pub max_bits: u32,
    /// The most bit planes.
    pub precision: u32,
    /// The exponent of the lowest bit that counts; `None` if all do.
    pub min_exponent: Option<i32>,
    /// Whether a big-endian machine wrote the parameters, and values in its order.
    pub swapped: bool,
}

impl ZfpHeader {
    pub fn parse(params: &[u32]) -> Result<Self, FilterFault> {
        let words = params.get(1..).unwrap_or_default();
        let word = |index: usize| words.get(index).copied().ok_or(FilterFault::MissingParameter { index: index + 1 });
        let magic = word(0)?;
        let swapped = magic == MAGIC.swap_bytes();
        if magic != MAGIC && !swapped {
            return Err(FilterFault::InvalidParameter { index: 1, value: magic });
        }
        let word = |index| word(index).map(|word| if swapped { word.swap_bytes() } else { word });
        let (low, high) = (word(1)?, word(2)?);
        let meta = u64::from(low) | u64::from(high & 0x000f_ffff) << 32;
        let kind = match meta & 3 {
            0 => ZfpType::Int32,
            1 => ZfpType::Int64,
            2 => ZfpType::Float32,
            _ => ZfpType::Float64,
        };
        let rank = (meta >> 2 & 3) as usize + 1;
        let width = 48 / rank as u32;
        let mut dims = [1; 4];
        for (i, dim) in dims.iter_mut().take(rank).enumerate() {
            let field = meta >> (4 + width * i as u32) & ((1 << width) - 1);
            *dim = usize::try_from(field).ok().and_then(|dim| dim.checked_add(1)).unwrap_or(usize::MAX);
        }
        let mut header = ZfpHeader {
            kind,
            rank,
            dims,
            min_bits: 1,
            max_bits: MAX_BITS,
            precision: MAX_PRECISION,
            min_exponent: Some(MIN_EXPONENT),
            swapped,
        };
        // Modes below 2048 fix the bits of a block, the next 128 the bit planes, the next one loses nothing,
        // those after it give an exponent. The last one stands for 52 more bits with all of that.
        match high >> 20 {
            mode @ ..2048 => (header.min_bits, header.max_bits) = (mode + 1, mode + 1),
            mode @ 2048..2176 => header.precision = mode - 2047,
            2176 => header.min_exponent = None,
            mode @ 2177..0xfff => header.min_exponent = Some(MIN_EXPONENT + (mode - 2177).cast_signed()),
            _ => {
                let mode = u64::from(word(3)?) | u64::from(word(4)?) << 32;
                header.min_bits = (mode & 0x7fff) as u32 + 1;
                header.max_bits = (mode >> 15 & 0x7fff) as u32 + 1;
                header.precision = (mode >> 30 & 0x7f) as u32 + 1;
                let exponent = (mode >> 37 & 0x7fff) as i32 - 16495;
                header.min_exponent = (exponent >= MIN_EXPONENT).then_some(exponent);
            }
        }
        if header.min_bits > header.max_bits || header.precision > MAX_PRECISION {
            return Err(FilterFault::InvalidParameter { index: 3, value: high });
        }
        Ok(header)
    }

    /// Bytes of the array.
    pub fn decoded_bytes(&self) -> Option<usize> {
        self.dims.iter().try_fold(self.kind.size(), |bytes, dim| bytes.checked_mul(*dim))
    }

    /// Values of a block.
    pub fn block_element_count(&self) -> usize {
        param_to_usize(4u32.pow(self.rank as u32))
    }
}
