//! Filter 2, shuffle: all first bytes of the elements, then all second bytes, and so on. Parameter 0 is the
//! size of an element; bytes that fill no element stay at the end as they are.

use crate::params::{count, param};
use crate::transpose::{shuffle, unshuffle};
use crate::{Decoded, Encoded, Fault, Filter, Target};

/// Filter 2.
pub(crate) struct Shuffle;

/// The size of an element that parameter 0 gives.
fn element_size(params: &[u32]) -> Result<usize, Fault> {
    match param(params, 0)? {
        0 => Err(Fault::Parameter { index: 0, value: 0 }),
        size => Ok(count(size)),
    }
}

impl Filter for Shuffle {
    fn id(&self) -> u16 {
        2
    }

    fn name(&self) -> &str {
        "shuffle"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<Decoded, Fault> {
        let size = element_size(params)?;
        if size == 1 {
            return Ok(Decoded::Input(0..input.len()));
        }
        let limit = output.len();
        let output = output.get_mut(..input.len()).ok_or(Fault::TooLarge { limit })?;
        unshuffle(size, input, output);
        Ok(Decoded::Output(input.len()))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<Encoded, Fault> {
        let size = element_size(params)?;
        if size == 1 {
            return Ok(Encoded::Input);
        }
        output.resize(input.len(), 0);
        shuffle(size, input, output);
        Ok(Encoded::Output)
    }

    fn complete(&self, _: &[u32], target: &Target<'_>) -> Result<Vec<u32>, Fault> {
        match target.datatype.size() {
            0 => Err(Fault::NotApplicable("elements of at least one byte")),
            size => Ok(vec![size]),
        }
    }
}
