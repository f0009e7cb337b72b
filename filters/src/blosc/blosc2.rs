//! Filter 32026, Blosc2: a contiguous frame with one chunk, which may be a grid of blocks. Parameters: version of
//! the filter, bytes of a block or 0, size of an element, bytes of a chunk, level, filter, codec, rank,
//! dimensions of a chunk.

use super::base_size;
use super::encode::BloscEncoder;
use super::frame;
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 32026.
pub(crate) struct Blosc2;

const FILTER_VERSION: u32 = 1;
/// The highest rank for which the reference filter stores the dimensions.
const MAX_RANK: usize = 16;

impl Filter for Blosc2 {
    fn id(&self) -> u16 {
        32026
    }

    fn name(&self) -> &str {
        "blosc2"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        frame::decode_frame(input, output).map(DecodeOutcome::Decoded)
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        frame::encode_frame(&BloscEncoder::parse(params, true)?, params, input, output)?;
        Ok(EncodeOutcome::Encoded)
    }

    fn complete_params(&self, params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let too_large = FilterFault::AppliesOnlyTo("chunks of less than 4 GiB");
        let Some(bytes) = target.chunk_bytes() else { return Err(too_large) };
        let block = params.get(1).copied().unwrap_or(0);
        let mut all = vec![FILTER_VERSION, block, base_size(target.datatype), bytes];
        all.extend(params.iter().skip(4));
        let rank = target.chunk_dims.len();
        if (2..=MAX_RANK).contains(&rank) {
            let defaults = [super::DEFAULT_LEVEL, super::DEFAULT_FILTER, super::DEFAULT_CODEC];
            all.extend(defaults.iter().skip(all.len().saturating_sub(4)));
            all.truncate(7);
            all.push(rank as u32);
            for dim in target.chunk_dims {
                all.push(u32::try_from(*dim).map_err(|_| FilterFault::AppliesOnlyTo("chunks of less than 4 GiB"))?);
            }
        }
        BloscEncoder::parse(&all, true)?;
        Ok(all)
    }
}
