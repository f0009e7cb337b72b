//! Filter 307, bzip2. Parameter 0 is the size of a block in units of 100,000 bytes, 1 to 9.

use bzip2::{Action, Compress, Compression, Decompress, Status};

use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 307.
pub(crate) struct Bzip2;

fn block_size_param(params: &[u32]) -> Result<u32, FilterFault> {
    match params.first() {
        None => Ok(9),
        Some(block @ 1..=9) => Ok(*block),
        Some(value) => Err(FilterFault::InvalidParameter { index: 0, value: *value }),
    }
}

impl Filter for Bzip2 {
    fn id(&self) -> u16 {
        307
    }

    fn name(&self) -> &str {
        "bzip2"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let limit = output.len();
        let mut state = Decompress::new(false);
        match state.decompress(input, output).map_err(FilterFault::external)? {
            Status::StreamEnd => {
                usize::try_from(state.total_out()).map(DecodeOutcome::Decoded).map_err(FilterFault::external)
            }
            _ if state.total_out() < limit as u64 => Err(FilterFault::Truncated),
            _ => Err(FilterFault::TooLarge { limit }),
        }
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        let mut state = Compress::new(Compression::new(block_size_param(params)?), 0);
        // The bound that bzip2 documents.
        output.reserve(input.len() + input.len() / 100 + 600);
        match state.compress_vec(input, output, Action::Finish).map_err(FilterFault::external)? {
            Status::StreamEnd => Ok(EncodeOutcome::Encoded),
            _ => Err(FilterFault::Incompressible),
        }
    }

    fn complete_params(&self, params: &[u32], _: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        block_size_param(params)?;
        Ok(params.to_vec())
    }
}
