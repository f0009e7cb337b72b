//! Filter 32000, LZF. Parameters: version of the filter, version of the codec, bytes of a chunk.

use crate::codec::lzf;
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 32000.
pub(crate) struct Lzf;

/// The version that h5py writes.
const FILTER_VERSION: u32 = 4;
const CODEC_VERSION: u32 = 0x0105;

impl Filter for Lzf {
    fn id(&self) -> u16 {
        32000
    }

    fn name(&self) -> &str {
        "lzf"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        lzf::decompress(input, output).map(DecodeOutcome::Decoded)
    }

    fn encode(&self, _: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        Ok(if lzf::compress(input, output) { EncodeOutcome::Encoded } else { EncodeOutcome::Incompressible })
    }

    fn complete_params(&self, params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let bytes = target.chunk_bytes().ok_or(FilterFault::AppliesOnlyTo("chunks of less than 4 GiB"))?;
        let given = |index: usize, default| params.get(index).copied().filter(|value| *value != 0).unwrap_or(default);
        let mut all = vec![given(0, FILTER_VERSION), given(1, CODEC_VERSION), bytes];
        all.extend(params.iter().skip(3));
        Ok(all)
    }
}
