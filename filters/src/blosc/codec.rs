//! The compressors inside Blosc.

use crate::Fault;
use crate::codec::{fastlz, lz4};
#[cfg(any(feature = "native", feature = "pure"))]
use crate::codec::{zlib, zstd};

/// A compressor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Codec {
    BloscLz,
    Lz4,
    Snappy,
    #[cfg(any(feature = "native", feature = "pure"))]
    Zlib,
    #[cfg(any(feature = "native", feature = "pure"))]
    Zstd,
}

impl Codec {
    /// From the number in a chunk's flags.
    pub fn of_format(format: u8) -> Result<Self, Fault> {
        match format {
            0 => Ok(Codec::BloscLz),
            1 => Ok(Codec::Lz4),
            2 => Ok(Codec::Snappy),
            #[cfg(any(feature = "native", feature = "pure"))]
            3 => Ok(Codec::Zlib),
            #[cfg(any(feature = "native", feature = "pure"))]
            4 => Ok(Codec::Zstd),
            _ => Err(Fault::Unsupported("this codec")),
        }
    }

    /// The number in a chunk's flags.
    pub fn format(self) -> u8 {
        match self {
            Codec::BloscLz => 0,
            Codec::Lz4 => 1,
            Codec::Snappy => 2,
            #[cfg(any(feature = "native", feature = "pure"))]
            Codec::Zlib => 3,
            #[cfg(any(feature = "native", feature = "pure"))]
            Codec::Zstd => 4,
        }
    }

    /// From parameter 6 of the filters, where 2 is LZ4 with more effort and what follows is one higher.
    pub fn of_param(value: u32) -> Result<Self, Fault> {
        match value {
            0 | 1 => Codec::of_format(value as u8),
            2..=5 => Codec::of_format(value as u8 - 1),
            _ => Err(Fault::Parameter { index: 6, value }),
        }
    }

    /// Fills the output.
    pub fn decompress(self, input: &[u8], output: &mut [u8]) -> Result<(), Fault> {
        let expected = output.len();
        let found = match self {
            Codec::BloscLz => fastlz::decompress(input, output)?,
            Codec::Lz4 => lz4::decompress(input, output)?,
            Codec::Snappy => snap::raw::Decoder::new().decompress(input, output).map_err(Fault::external)?,
            #[cfg(any(feature = "native", feature = "pure"))]
            Codec::Zlib => zlib::decompress(input, output)?,
            #[cfg(any(feature = "native", feature = "pure"))]
            Codec::Zstd => zstd::decompress(input, output)?,
        };
        if found == expected { Ok(()) } else { Err(Fault::Corrupt("compressed stream")) }
    }

    /// Appends the compressed form at a level from 1 to 9.
    #[cfg_attr(not(any(feature = "native", feature = "pure")), expect(unused_variables))]
    pub fn compress(self, level: u32, input: &[u8], output: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            Codec::BloscLz => {
                fastlz::compress(input, output);
                Ok(())
            }
            Codec::Lz4 => lz4::compress(input, output),
            Codec::Snappy => {
                let start = output.len();
                output.resize(start + snap::raw::max_compress_len(input.len()), 0);
                let room = output.get_mut(start..).unwrap_or_default();
                let written = snap::raw::Encoder::new().compress(input, room).map_err(Fault::external)?;
                output.truncate(start + written);
                Ok(())
            }
            #[cfg(any(feature = "native", feature = "pure"))]
            Codec::Zlib => zlib::compress(level, input, output),
            #[cfg(any(feature = "native", feature = "pure"))]
            Codec::Zstd => {
                let level = if level < 9 { level * 2 - 1 } else { zstd::MAX_LEVEL };
                zstd::compress(level, input, output)
            }
        }
    }
}
