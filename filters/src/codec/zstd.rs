//! The Zstandard codec (RFC 8878), whose state each thread keeps.

#[cfg(feature = "native")]
pub(crate) use native::{compress, decompress};
#[cfg(not(feature = "native"))]
pub(crate) use pure::{compress, decompress};

/// The level that is used when none is given.
pub(crate) const DEFAULT_LEVEL: u32 = 3;
/// The highest level.
pub(crate) const MAX_LEVEL: u32 = 22;

#[cfg(feature = "native")]
mod native {
    use std::cell::RefCell;

    use zstd::bulk::{Compressor, Decompressor};
    use zstd::zstd_safe::compress_bound;

    use crate::FilterFault;

    thread_local! {
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
        static COMPRESSOR: RefCell<Option<(u32, Compressor<'static>)>> = const { RefCell::new(None) };
    }

    /// Decompresses frames; returns the bytes written.
    pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
        DECOMPRESSOR.with_borrow_mut(|state| {
            let decompressor = match state {
                Some(kept) => kept,
                none => none.insert(Decompressor::new().map_err(FilterFault::external)?),
            };
            decompressor.decompress_to_buffer(input, output).map_err(FilterFault::external)
        })
    }

    /// Appends a frame with the data at a level from 1 to 22.
    pub(crate) fn compress(level: u32, input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
        COMPRESSOR.with_borrow_mut(|state| {
            let (_, compressor) = match state {
                Some(kept) if kept.0 == level => kept,
                other => {
                    let level_or_most = i32::try_from(level).unwrap_or(i32::MAX);
                    other.insert((level, Compressor::new(level_or_most).map_err(FilterFault::external)?))
                }
            };
            let start = output.len();
            output.resize(start + compress_bound(input.len()), 0);
            let room = output.get_mut(start..).unwrap_or_default();
            let written = compressor.compress_to_buffer(input, room).map_err(FilterFault::external)?;
            output.truncate(start + written);
            Ok(())
        })
    }
}

#[cfg(not(feature = "native"))]
mod pure {
    use std::cell::RefCell;

    use ruzstd::decoding::FrameDecoder;
    use ruzstd::encoding::{CompressionLevel, compress as compress_stream};

    use crate::FilterFault;

    thread_local! {
        static DECODER: RefCell<FrameDecoder> = RefCell::new(FrameDecoder::new());
    }

    /// Decompresses frames; returns the bytes written.
    pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
        DECODER.with_borrow_mut(|decoder| decoder.decode_all(input, output)).map_err(FilterFault::external)
    }

    /// Appends a frame with the data. The level is not used: there is only a fast one.
    pub(crate) fn compress(_: u32, input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
        let start = output.len();
        compress_stream(input, &mut *output, CompressionLevel::Fastest);
        state_size(output, start, input.len() as u64);
        Ok(())
    }

    /// Adds the size of the data to the header of a frame, without which some filters cannot decode it.
    fn state_size(output: &mut Vec<u8>, frame: usize, size: u64) {
        // Magic number, descriptor, window; the descriptor's top bits say that there is no size.
        const DESCRIPTOR: usize = 4;
        const SIZE: usize = 6;
        const EIGHT_BYTES: u8 = 0xc0;
        let has_window = |descriptor: u8| descriptor & 0b1110_0011 == 0;
        if let Some(descriptor) = output.get_mut(frame + DESCRIPTOR).filter(|descriptor| has_window(**descriptor)) {
            *descriptor |= EIGHT_BYTES;
            output.splice(frame + SIZE..frame + SIZE, size.to_le_bytes());
        }
    }
}
