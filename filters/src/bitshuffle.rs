//! Filter 32008, bitshuffle: the first bits of all elements of a block, then the second bits, and so on. The result may
//! be compressed. Parameters: version (2), size of an element, elements of a block or 0, codec, level.
//!
//! If the number of elements is no multiple of eight, the last elements are stored unchanged, after a smaller block.
//! With a codec, a chunk is its size (8 bytes), the size of a block (4 bytes), then for each block the size of the
//! compressed block (4 bytes) and the compressed block. All numbers are big-endian.

use crate::byte_reader::ByteReader;
use crate::codec::lz4;
#[cfg(any(feature = "native", feature = "pure"))]
use crate::codec::zstd;
use crate::params::{param, param_to_usize};
use crate::transpose::{bit_shuffle, bit_unshuffle};
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget, scratch};

/// Filter 32008.
pub(crate) struct Bitshuffle;

/// The version of the reference filter.
const VERSION: [u32; 2] = [0, 4];
/// Bytes of a block, unless the user says otherwise, and the fewest elements of it.
const BLOCK_BYTES: usize = 8192;
const BLOCK_ELEMENTS: usize = 128;

#[derive(Clone, Copy, PartialEq)]
enum BitshuffleCodec {
    None,
    Lz4,
    #[cfg(any(feature = "native", feature = "pure"))]
    Zstd {
        level: u32,
    },
}

impl BitshuffleCodec {
    fn decompress(self, input: &[u8], output: &mut [u8]) -> Result<(), FilterFault> {
        let expected = output.len();
        let found = match self {
            BitshuffleCodec::None => {
                output.copy_from_slice(input);
                expected
            }
            BitshuffleCodec::Lz4 => lz4::decompress(input, output)?,
            #[cfg(any(feature = "native", feature = "pure"))]
            BitshuffleCodec::Zstd { .. } => zstd::decompress(input, output)?,
        };
        if found == expected { Ok(()) } else { Err(FilterFault::Corrupt("block")) }
    }

    fn compress(self, input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
        match self {
            BitshuffleCodec::None => output.extend_from_slice(input),
            BitshuffleCodec::Lz4 => lz4::compress(input, output)?,
            #[cfg(any(feature = "native", feature = "pure"))]
            BitshuffleCodec::Zstd { level } => zstd::compress(level, input, output)?,
        }
        Ok(())
    }
}

/// The decoded parameters.
struct BitshuffleParams {
    /// Bytes of an element.
    size: usize,
    /// Elements of a block.
    block: usize,
    codec: BitshuffleCodec,
}

impl BitshuffleParams {
    fn parse(params: &[u32]) -> Result<Self, FilterFault> {
        let size = match param(params, 2)? {
            0 => return Err(FilterFault::InvalidParameter { index: 2, value: 0 }),
            size => param_to_usize(size),
        };
        let block = match params.get(3).copied().unwrap_or(0) {
            0 => (BLOCK_BYTES / size / 8 * 8).max(BLOCK_ELEMENTS),
            block if block % 8 == 0 => param_to_usize(block),
            value => return Err(FilterFault::InvalidParameter { index: 3, value }),
        };
        let codec = match params.get(4) {
            None | Some(0) => BitshuffleCodec::None,
            Some(2) => BitshuffleCodec::Lz4,
            #[cfg(any(feature = "native", feature = "pure"))]
            Some(3) => {
                let level = params.get(5).map_or(0, |level| level.cast_signed()).max(0).unsigned_abs();
                let level = if level == 0 { zstd::DEFAULT_LEVEL } else { level.min(zstd::MAX_LEVEL) };
                BitshuffleCodec::Zstd { level }
            }
            Some(value) => return Err(FilterFault::InvalidParameter { index: 4, value: *value }),
        };
        Ok(BitshuffleParams { size, block, codec })
    }

    /// Bytes of the blocks of a chunk: whole ones, then perhaps a smaller one. The rest is stored unchanged.
    fn blocks(&self, chunk: usize) -> Result<(usize, usize), FilterFault> {
        if !chunk.is_multiple_of(self.size) {
            return Err(FilterFault::Corrupt("number of bytes"));
        }
        let block = self.block.saturating_mul(self.size).min(chunk);
        Ok((block.max(1), chunk / self.size / 8 * 8 * self.size))
    }
}

impl Filter for Bitshuffle {
    fn id(&self) -> u16 {
        32008
    }

    fn name(&self) -> &str {
        "bitshuffle; see https://github.com/kiyo-masui/bitshuffle"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let mut params = BitshuffleParams::parse(params)?;
        let limit = output.len();
        let mut reader = ByteReader(input);
        let mut bytes = input.len();
        if params.codec != BitshuffleCodec::None {
            bytes = usize::try_from(reader.be64()?).map_err(|_| FilterFault::TooLarge { limit })?;
            let block = param_to_usize(reader.be32()?) / params.size;
            if block == 0 || !block.is_multiple_of(8) {
                return Err(FilterFault::Corrupt("size of a block"));
            }
            params.block = block;
        }
        let output = output.get_mut(..bytes).ok_or(FilterFault::TooLarge { limit })?;
        let (block, blocks) = params.blocks(bytes)?;
        let (output, rest) = output.split_at_mut(blocks);
        scratch::with(|scratch| {
            let (bits, spare) = (
                scratch::resize_buffer(&mut scratch.decoded, block)?,
                scratch::resize_buffer(&mut scratch.room, block)?,
            );
            for block in output.chunks_mut(block) {
                let spare = spare.get_mut(..block.len()).unwrap_or_default();
                if params.codec == BitshuffleCodec::None {
                    bit_unshuffle(params.size, reader.bytes(block.len())?, block, spare);
                    continue;
                }
                let bits = bits.get_mut(..block.len()).unwrap_or_default();
                let stored = param_to_usize(reader.be32()?);
                params.codec.decompress(reader.bytes(stored)?, bits)?;
                bit_unshuffle(params.size, bits, block, spare);
            }
            rest.copy_from_slice(reader.bytes(rest.len())?);
            Ok(DecodeOutcome::Decoded(bytes))
        })
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        let params = BitshuffleParams::parse(params)?;
        let (block, blocks) = params.blocks(input.len())?;
        if params.codec != BitshuffleCodec::None {
            let stated = u32::try_from(params.block.saturating_mul(params.size));
            let stated = stated.map_err(|_| FilterFault::InvalidParameter { index: 3, value: u32::MAX })?;
            output.extend_from_slice(&(input.len() as u64).to_be_bytes());
            output.extend_from_slice(&stated.to_be_bytes());
        }
        let (input, rest) = input.split_at(blocks);
        scratch::with(|scratch| {
            let (bits, spare) = (
                scratch::resize_buffer(&mut scratch.decoded, block)?,
                scratch::resize_buffer(&mut scratch.room, block)?,
            );
            for block in input.chunks(block) {
                let spare = spare.get_mut(..block.len()).unwrap_or_default();
                let bits = bits.get_mut(..block.len()).unwrap_or_default();
                bit_shuffle(params.size, block, bits, spare);
                if params.codec == BitshuffleCodec::None {
                    output.extend_from_slice(bits);
                    continue;
                }
                let start = output.len();
                output.extend_from_slice(&[0; 4]);
                params.codec.compress(bits, output)?;
                let stored = u32::try_from(output.len() - start - 4).map_err(FilterFault::external)?;
                if let Some(size) = output.get_mut(start..start + 4) {
                    size.copy_from_slice(&stored.to_be_bytes());
                }
            }
            output.extend_from_slice(rest);
            Ok(EncodeOutcome::Encoded)
        })
    }

    /// Takes elements of a block, codec and level, or all parameters.
    fn complete_params(&self, params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let given = if params.len() > 3 { params.get(3..).unwrap_or_default() } else { params };
        let mut all = VERSION.to_vec();
        all.push(target.datatype.size());
        all.extend_from_slice(given);
        BitshuffleParams::parse(&all)?;
        Ok(all)
    }
}
