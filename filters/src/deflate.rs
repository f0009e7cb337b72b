//! Filter 1, deflate: a zlib stream. Parameter 0 is the level, 0 to 9.

use crate::codec::zlib;
use crate::params::param;
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 1.
pub(crate) struct Deflate;

/// The level that parameter 0 gives.
fn level_param(params: &[u32]) -> Result<u32, FilterFault> {
    match param(params, 0)? {
        level @ 0..=9 => Ok(level),
        value => Err(FilterFault::InvalidParameter { index: 0, value }),
    }
}

impl Filter for Deflate {
    fn id(&self) -> u16 {
        1
    }

    fn name(&self) -> &str {
        "deflate"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        zlib::decompress(input, output).map(DecodeOutcome::Decoded)
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        zlib::compress(level_param(params)?, input, output)?;
        Ok(EncodeOutcome::Encoded)
    }

    fn complete_params(&self, params: &[u32], _: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        level_param(params).map(|level| vec![level])
    }
}
