//! Filter 2, shuffle: the first bytes of all elements, then the second bytes, and so on. Parameter 0 is the size of an
//! element. Bytes at the end that fill no element are stored unchanged.

use crate::params::{param, param_to_usize};
use crate::transpose::{shuffle, unshuffle};
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 2.
pub(crate) struct Shuffle;

/// The size of an element that parameter 0 gives.
fn element_size_param(params: &[u32]) -> Result<usize, FilterFault> {
    match param(params, 0)? {
        0 => Err(FilterFault::InvalidParameter { index: 0, value: 0 }),
        size => Ok(param_to_usize(size)),
    }
}

impl Filter for Shuffle {
    fn id(&self) -> u16 {
        2
    }

    fn name(&self) -> &str {
        "shuffle"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let size = element_size_param(params)?;
        if size == 1 {
            return Ok(DecodeOutcome::InputRange(0..input.len()));
        }
        let limit = output.len();
        let output = output.get_mut(..input.len()).ok_or(FilterFault::TooLarge { limit })?;
        unshuffle(size, input, output);
        Ok(DecodeOutcome::Decoded(input.len()))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        let size = element_size_param(params)?;
        if size == 1 {
            return Ok(EncodeOutcome::AppliedWithoutChange);
        }
        output.resize(input.len(), 0);
        shuffle(size, input, output);
        Ok(EncodeOutcome::Encoded)
    }

    fn complete_params(&self, _: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        match target.datatype.size() {
            0 => Err(FilterFault::AppliesOnlyTo("elements of at least one byte")),
            size => Ok(vec![size]),
        }
    }
}
