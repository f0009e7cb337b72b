//! Filter 32004, LZ4. Parameter 0 is the size of a block; 0 or no parameter stands for 1 GiB.
//!
//! A chunk is its size (8 bytes), the size of a block (4 bytes), then for each block its stored size (4 bytes) and the
//! LZ4 block. If the stored size is the block's own size, the bytes are not compressed. All numbers are big-endian.

use crate::byte_reader::ByteReader;
use crate::codec::lz4;
use crate::params::param_to_usize;
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault};

/// Filter 32004.
pub(crate) struct Lz4;

const DEFAULT_BLOCK: u32 = 1 << 30;
/// The largest chunk that the reference filter takes.
const MAX_CHUNK_BYTES: usize = i32::MAX as usize;

impl Filter for Lz4 {
    fn id(&self) -> u16 {
        32004
    }

    fn name(&self) -> &str {
        "HDF5 lz4 filter; see http://www.hdfgroup.org/services/contributions.html"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let limit = output.len();
        let mut reader = ByteReader(input);
        let bytes = usize::try_from(reader.be64()?).ok().and_then(|bytes| output.get_mut(..bytes));
        let output = bytes.ok_or(FilterFault::TooLarge { limit })?;
        let block = param_to_usize(reader.be32()?);
        if block == 0 && !output.is_empty() {
            return Err(FilterFault::Corrupt("size of a block"));
        }
        for block in output.chunks_mut(block.max(1)) {
            let stored = param_to_usize(reader.be32()?);
            let stored = reader.bytes(stored)?;
            if stored.len() == block.len() {
                block.copy_from_slice(stored);
            } else if lz4::decompress(stored, block)? != block.len() {
                return Err(FilterFault::Corrupt("LZ4 block"));
            }
        }
        Ok(DecodeOutcome::Decoded(output.len()))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        if input.len() > MAX_CHUNK_BYTES {
            return Err(FilterFault::TooLarge { limit: MAX_CHUNK_BYTES });
        }
        let block = match params.first() {
            None | Some(0) => DEFAULT_BLOCK,
            Some(block) => *block,
        };
        let block = param_to_usize(block).min(input.len());
        output.extend_from_slice(&(input.len() as u64).to_be_bytes());
        output.extend_from_slice(&(block as u32).to_be_bytes());
        for block in input.chunks(block.max(1)) {
            let start = output.len();
            output.extend_from_slice(&[0; 4]);
            lz4::compress(block, output)?;
            if output.len() - start - 4 >= block.len() {
                output.truncate(start + 4);
                output.extend_from_slice(block);
            }
            let stored = (output.len() - start - 4) as u32;
            if let Some(size) = output.get_mut(start..start + 4) {
                size.copy_from_slice(&stored.to_be_bytes());
            }
        }
        Ok(EncodeOutcome::Encoded)
    }
}
