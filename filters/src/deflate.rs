//! Filter 1, deflate: a zlib stream. Parameter 0 is the level, 0 to 9.

use crate::codec::zlib;
use crate::params::param;
use crate::{Decoded, Encoded, Fault, Filter, Target};

/// Filter 1.
pub(crate) struct Deflate;

/// The level that parameter 0 gives.
fn level(params: &[u32]) -> Result<u32, Fault> {
    match param(params, 0)? {
        level @ 0..=9 => Ok(level),
        value => Err(Fault::Parameter { index: 0, value }),
    }
}

impl Filter for Deflate {
    fn id(&self) -> u16 {
        1
    }

    fn name(&self) -> &str {
        "deflate"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<Decoded, Fault> {
        zlib::decompress(input, output).map(Decoded::Output)
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<Encoded, Fault> {
        zlib::compress(level(params)?, input, output)?;
        Ok(Encoded::Output)
    }

    fn complete(&self, params: &[u32], _: &Target<'_>) -> Result<Vec<u32>, Fault> {
        level(params).map(|level| vec![level])
    }
}
