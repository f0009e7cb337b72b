//! Filter 32015, Zstandard: frames. Parameter 0 is the level.

use crate::codec::zstd;
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault};

/// Filter 32015.
pub(crate) struct Zstd;

impl Filter for Zstd {
    fn id(&self) -> u16 {
        32015
    }

    fn name(&self) -> &str {
        "Zstandard compression: http://www.zstd.net"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        zstd::decompress(input, output).map(DecodeOutcome::Decoded)
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        // The reference filter takes the level for a signed number and moves it into the range.
        let level = params.first().map_or(zstd::DEFAULT_LEVEL, |level| level.cast_signed().max(1).unsigned_abs());
        zstd::compress(level.min(zstd::MAX_LEVEL), input, output)?;
        Ok(EncodeOutcome::Encoded)
    }
}
