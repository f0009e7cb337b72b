//! Filter 32001, Blosc. Parameters: version of the filter, version of the format, size of an element, bytes of
//! a chunk, level, filter (none, shuffle, bitshuffle), codec.

use super::base_size;
use super::chunk::{BlockBuffers, BloscChunk, VERSION_1};
use super::encode::BloscEncoder;
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 32001.
pub(crate) struct Blosc;

const FILTER_VERSION: u32 = 2;
const MAX_ELEMENT_BYTES: u32 = 255;

impl Filter for Blosc {
    fn id(&self) -> u16 {
        32001
    }

    fn name(&self) -> &str {
        "blosc"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let chunk = BloscChunk::parse(input)?;
        BlockBuffers::with_thread_buffers(|work| chunk.decode(output, work)).map(DecodeOutcome::Decoded)
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        BloscEncoder::parse(params, false)?.encode(input, output)?;
        Ok(if output.len() > input.len() { EncodeOutcome::Incompressible } else { EncodeOutcome::Encoded })
    }

    fn complete_params(&self, params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let bytes = target.chunk_bytes().ok_or(FilterFault::AppliesOnlyTo("chunks of less than 4 GiB"))?;
        let size = match base_size(target.datatype) {
            0 => return Err(FilterFault::AppliesOnlyTo("elements of at least one byte")),
            size if size > MAX_ELEMENT_BYTES => 1,
            size => size,
        };
        let mut all = vec![FILTER_VERSION, u32::from(VERSION_1), size, bytes];
        all.extend(params.iter().skip(4));
        BloscEncoder::parse(&all, false)?;
        Ok(all)
    }
}
