//! zlib by libdeflate. Data that deflate cannot compress is stored.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor, adler32};

use super::bits::DeflateBitWriter;
use super::block_scan;
use super::piece::SegmentKind;
use super::segment::{DataSegment, split_into_segments};
use crate::FilterFault;

thread_local! {
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    static COMPRESSOR: RefCell<Option<(u32, Compressor)>> = const { RefCell::new(None) };
}

/// Decompresses a zlib stream, and returns the number of bytes written. Bytes after the stream are ignored.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
    let limit = output.len();
    let result = DECOMPRESSOR.with_borrow_mut(|state| state.zlib_decompress(input, output));
    result.map_err(|error| match error {
        DecompressionError::InsufficientSpace => FilterFault::TooLarge { limit },
        DecompressionError::BadData => FilterFault::Corrupt("zlib stream"),
    })
}

/// Appends the zlib stream of the input at a level from 0 to 9.
pub(crate) fn compress(level: u32, input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
    let invalid = |_| FilterFault::InvalidParameter { index: 0, value: level };
    let valid = CompressionLvl::new(i32::try_from(level).unwrap_or(i32::MAX)).map_err(invalid)?;
    COMPRESSOR.with_borrow_mut(|state| {
        let (_, compressor) = match state {
            Some(kept) if kept.0 == level => kept,
            other => other.insert((level, Compressor::new(valid))),
        };
        let start = output.len();
        if level > 0 {
            let segments = split_into_segments(input);
            if segments.iter().any(|segment| segment.kind == SegmentKind::Noise) {
                if join_segments(compressor, level, input, &segments, output).is_some() {
                    return Ok(());
                }
                output.truncate(start);
            }
        }
        let bound = compressor.zlib_compress_bound(input.len());
        // The bound is libdeflate's own, so that the result always fits.
        append_compressed(output, bound, |room| compressor.zlib_compress(input, room).ok())
            .ok_or(FilterFault::Incompressible)
    })
}

/// Appends the bytes that `compress` writes into the room. It returns their number.
fn append_compressed(
    output: &mut Vec<u8>,
    room: usize,
    compress: impl FnOnce(&mut [u8]) -> Option<usize>,
) -> Option<()> {
    let start = output.len();
    output.resize(start + room, 0);
    let written = compress(output.get_mut(start..)?)?;
    output.truncate(start + written);
    Some(())
}

/// Appends one zlib stream of all segments.
fn join_segments(
    compressor: &mut Compressor,
    level: u32,
    input: &[u8],
    segments: &[DataSegment],
    output: &mut Vec<u8>,
) -> Option<()> {
    output.reserve(input.len() / 2);
    output.extend_from_slice(&zlib_header(level));
    let mut writer = DeflateBitWriter::new(output);
    for (i, segment) in segments.iter().enumerate() {
        let last = i + 1 == segments.len();
        let data = input.get(segment.bytes.clone())?;
        match segment.kind {
            SegmentKind::Noise => writer.put_stored_blocks(data, last),
            SegmentKind::Other => {
                let out = writer.align_to_byte();
                let start = out.len();
                let bound = compressor.deflate_compress_bound(data.len());
                append_compressed(out, bound, |room| compressor.deflate_compress(data, room).ok())?;
                if !last {
                    // libdeflate says of its last block that nothing follows.
                    let block = block_scan::last_block_bits(out.get(start..)?)?;
                    *out.get_mut(start + block.start / 8)? &= !(1 << (block.start % 8));
                    writer.truncate(start + block.end / 8, block.end as u32 % 8);
                }
            }
        }
    }
    writer.finish();
    output.extend_from_slice(&adler32(input).to_be_bytes());
    Some(())
}

/// The first two bytes, as libdeflate writes them: a window of 32 KiB, and what the level was about.
fn zlib_header(level: u32) -> [u8; 2] {
    let hint = match level {
        ..2 => 0,
        2..6 => 1,
        6..8 => 2,
        _ => 3,
    };
    let bytes: u16 = 0x7800 | hint << 6;
    (bytes + 31 - bytes % 31).to_be_bytes()
}
