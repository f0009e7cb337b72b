//! The compressors inside Blosc.

use crate::FilterFault;
use crate::codec::{fastlz, lz4};
#[cfg(any(feature = "native", feature = "pure"))]
use crate::codec::{zlib, zstd};

/// A compressor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BloscCodec {
    BloscLz,
    Lz4,
    Snappy,
    #[cfg(any(feature = "native", feature = "pure"))]
    Zlib,
    #[cfg(any(feature = "native", feature = "pure"))]
    Zstd,
}

impl BloscCodec {
    /// From the number in a chunk's flags.
    pub fn from_format(format: u8) -> Result<Self, FilterFault> {
        match format {
            0 => Ok(BloscCodec::BloscLz),
            1 => Ok(BloscCodec::Lz4),
            2 => Ok(BloscCodec::Snappy),
            #[cfg(any(feature = "native", feature = "pure"))]
            3 => Ok(BloscCodec::Zlib),
            #[cfg(any(feature = "native", feature = "pure"))]
            4 => Ok(BloscCodec::Zstd),
            _ => Err(FilterFault::Unsupported("this codec")),
        }
    }

    /// The number in a chunk's flags.
    pub fn format(self) -> u8 {
        match self {
            BloscCodec::BloscLz => 0,
            BloscCodec::Lz4 => 1,
            BloscCodec::Snappy => 2,
            #[cfg(any(feature = "native", feature = "pure"))]
            BloscCodec::Zlib => 3,
            #[cfg(any(feature = "native", feature = "pure"))]
            BloscCodec::Zstd => 4,
        }
    }

    /// The codec of parameter 6 of the filters. There, 2 is LZ4 with more effort, and later codecs have a number that
    /// is one higher.
    pub fn from_param(value: u32) -> Result<Self, FilterFault> {
        match value {
            0 | 1 => BloscCodec::from_format(value as u8),
            2..=5 => BloscCodec::from_format(value as u8 - 1),
            _ => Err(FilterFault::InvalidParameter { index: 6, value }),
        }
    }

    /// Fills the output.
    pub fn decompress(self, input: &[u8], output: &mut [u8]) -> Result<(), FilterFault> {
        let expected = output.len();
        let found = match self {
            BloscCodec::BloscLz => fastlz::decompress(input, output)?,
            BloscCodec::Lz4 => lz4::decompress(input, output)?,
            BloscCodec::Snappy => snap::raw::Decoder::new().decompress(input, output).map_err(FilterFault::external)?,
            #[cfg(any(feature = "native", feature = "pure"))]
            BloscCodec::Zlib => zlib::decompress(input, output)?,
            #[cfg(any(feature = "native", feature = "pure"))]
            BloscCodec::Zstd => zstd::decompress(input, output)?,
        };
        if found == expected { Ok(()) } else { Err(FilterFault::Corrupt("compressed stream")) }
    }

    /// Appends the compressed form at a level from 1 to 9.
    #[cfg_attr(not(any(feature = "native", feature = "pure")), expect(unused_variables))]
    pub fn compress(self, level: u32, input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
        match self {
            BloscCodec::BloscLz => {
                fastlz::compress(input, output);
                Ok(())
            }
            BloscCodec::Lz4 => lz4::compress(input, output),
            BloscCodec::Snappy => {
                let start = output.len();
                output.resize(start + snap::raw::max_compress_len(input.len()), 0);
                let room = output.get_mut(start..).unwrap_or_default();
                let written = snap::raw::Encoder::new().compress(input, room).map_err(FilterFault::external)?;
                output.truncate(start + written);
                Ok(())
            }
            #[cfg(any(feature = "native", feature = "pure"))]
            BloscCodec::Zlib => zlib::compress(level, input, output),
            #[cfg(any(feature = "native", feature = "pure"))]
            BloscCodec::Zstd => {
                let level = if level < 9 { level * 2 - 1 } else { zstd::MAX_LEVEL };
                zstd::compress(level, input, output)
            }
        }
    }
}
