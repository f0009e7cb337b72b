//! Filter 32001, Blosc. Parameters: version of the filter, version of the format, size of an element, bytes of
//! a chunk, level, filter (none, shuffle, bitshuffle), codec.

use super::base_size;
use super::chunk::{Chunk, VERSION_1, Work};
use super::encode::Encoder;
use crate::{Decoded, Encoded, Fault, Filter, Target};

/// Filter 32001.
pub(crate) struct Blosc;

const FILTER_VERSION: u32 = 2;
const LARGEST_ELEMENT: u32 = 255;

impl Filter for Blosc {
    fn id(&self) -> u16 {
        32001
    }

    fn name(&self) -> &str {
        "blosc"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<Decoded, Fault> {
        let chunk = Chunk::parse(input)?;
        Work::with(|work| chunk.decode(output, work)).map(Decoded::Output)
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<Encoded, Fault> {
        Encoder::parse(params, false)?.encode(input, output)?;
        Ok(if output.len() > input.len() { Encoded::Declined } else { Encoded::Output })
    }

    fn complete(&self, params: &[u32], target: &Target<'_>) -> Result<Vec<u32>, Fault> {
        let bytes = target.chunk_bytes().ok_or(Fault::NotApplicable("chunks of less than 4 GiB"))?;
        let size = match base_size(target.datatype) {
            0 => return Err(Fault::NotApplicable("elements of at least one byte")),
            size if size > LARGEST_ELEMENT => 1,
            size => size,
        };
        let mut all = vec![FILTER_VERSION, u32::from(VERSION_1), size, bytes];
        all.extend(params.iter().skip(4));
        Encoder::parse(&all, false)?;
        Ok(all)
    }
}
