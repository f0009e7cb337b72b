//! The codec in Rust only, by zlib-rs.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::FilterFault;

thread_local! {
    static DECOMPRESSOR: RefCell<Decompress> = RefCell::new(Decompress::new(true));
    static COMPRESSOR: RefCell<Option<(u32, Compress)>> = const { RefCell::new(None) };
}

/// Decompresses a zlib stream, and returns the number of bytes written. Bytes after the stream are ignored.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
    let limit = output.len();
    DECOMPRESSOR.with_borrow_mut(|state| {
        state.reset(true);
        match state.decompress(input, output, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) => usize::try_from(state.total_out()).map_err(FilterFault::external),
            Ok(_) if state.total_out() < limit as u64 => Err(FilterFault::Truncated),
            Ok(_) => Err(FilterFault::TooLarge { limit }),
            Err(_) => Err(FilterFault::Corrupt("zlib stream")),
        }
    })
}

/// Appends the zlib stream of the input at a level from 0 to 9.
pub(crate) fn compress(level: u32, input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
    COMPRESSOR.with_borrow_mut(|state| {
        let (_, compressor) = match state {
            Some(kept) if kept.0 == level => kept,
            other => other.insert((level, Compress::new(Compression::new(level), true))),
        };
        compressor.reset();
        // The bound that deflate keeps even with stored blocks of 16 KiB.
        output.reserve(input.len() + input.len() / 1000 + 5 * (input.len() >> 14) + 64);
        loop {
            let taken = usize::try_from(compressor.total_in()).map_err(FilterFault::external)?;
            let rest = input.get(taken..).unwrap_or_default();
            match compressor.compress_vec(rest, output, FlushCompress::Finish) {
                Ok(Status::StreamEnd) => return Ok(()),
                // zlib-rs does not keep that bound at level 1: a twentieth more than noise itself.
                Ok(_) => output.reserve(input.len() / 16 + 64),
                Err(error) => return Err(FilterFault::external(error)),
            }
        }
    })
}
