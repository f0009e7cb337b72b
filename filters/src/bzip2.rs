//! Filter 307, bzip2. Parameter 0 is the size of a block in units of 100,000 bytes, 1 to 9.

use bzip2::{Action, Compress, Compression, Decompress, Status};

use crate::{Decoded, Encoded, Fault, Filter, Target};

/// Filter 307.
pub(crate) struct Bzip2;

fn block(params: &[u32]) -> Result<u32, Fault> {
    match params.first() {
        None => Ok(9),
        Some(block @ 1..=9) => Ok(*block),
        Some(value) => Err(Fault::Parameter { index: 0, value: *value }),
    }
}

impl Filter for Bzip2 {
    fn id(&self) -> u16 {
        307
    }

    fn name(&self) -> &str {
        "bzip2"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<Decoded, Fault> {
        let limit = output.len();
        let mut state = Decompress::new(false);
        match state.decompress(input, output).map_err(Fault::external)? {
            Status::StreamEnd => usize::try_from(state.total_out()).map(Decoded::Output).map_err(Fault::external),
            _ if state.total_out() < limit as u64 => Err(Fault::Truncated),
            _ => Err(Fault::TooLarge { limit }),
        }
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<Encoded, Fault> {
        let mut state = Compress::new(Compression::new(block(params)?), 0);
        // The bound that bzip2 documents.
        output.reserve(input.len() + input.len() / 100 + 600);
        match state.compress_vec(input, output, Action::Finish).map_err(Fault::external)? {
            Status::StreamEnd => Ok(Encoded::Output),
            _ => Err(Fault::Incompressible),
        }
    }

    fn complete(&self, params: &[u32], _: &Target<'_>) -> Result<Vec<u32>, Fault> {
        block(params)?;
        Ok(params.to_vec())
    }
}
