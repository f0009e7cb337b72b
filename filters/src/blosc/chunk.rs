//! A Blosc chunk: a header, where its blocks start, the blocks.
//!
//! The header is: version, version of the codec, flags, size of an element (a byte each); bytes, bytes of a
//! block, bytes of the chunk with its header (4 bytes each, little-endian). If the flags say shuffled by bytes
//! and by bits at once, 16 bytes more follow: six filters, two bytes for codecs that are not
//! built in, parameters of the six filters, two bytes of flags.

use super::codec::BloscCodec;
use super::{BIT_SHUFFLE, BYTE_DELTA, DELTA, NO_FILTER, SHUFFLE, TRUNCATE};
use crate::FilterFault;
use crate::byte_reader::ByteReader;
use crate::params::param_to_usize;
use crate::scratch::{self, Scratch, resize_buffer};
use crate::transpose::{bit_unshuffle, unshuffle};

/// The version of Blosc 1 chunks, and the first and the last of Blosc 2 that have blocks of equal sizes.
pub(super) const VERSION_1: u8 = 2;
pub(super) const VERSION_2: u8 = 5;

/// Flags.
pub(super) const SHUFFLED: u8 = 0x01;
pub(super) const COPIED: u8 = 0x02;
pub(super) const BIT_SHUFFLED: u8 = 0x04;
const DELTAS: u8 = 0x08;
pub(super) const NOT_SPLIT: u8 = 0x10;
/// The first bit of the codec in the flags.
pub(super) const FORMAT_SHIFT: u32 = 5;

/// Bytes of the header, short and long.
pub(super) const SHORT_HEADER: usize = 16;
pub(super) const LONG_HEADER: usize = 32;

/// Filters of a long header.
pub(super) const FILTERS: usize = 6;
/// The first bit of the special values in the second flags, and the flags that are not supported.
const SPECIAL_SHIFT: u32 = 4;
const SPECIAL_MASK: u8 = 7;
const UNSUPPORTED: u8 = 0x89;

/// Streams of a block in Blosc 1, and the fewest bytes that one of them has.
pub(super) const MAX_STREAMS: usize = 16;
pub(super) const MIN_STREAM: usize = 128;

/// A chunk with a decoded header.
pub(super) struct BloscChunk<'a> {
    /// Bytes of the data.
    pub decoded_bytes: usize,
    /// Bytes of a block; the last one may have fewer.
    pub block_bytes: usize,
    /// Header and blocks.
    stored: &'a [u8],
    /// Bytes of an element.
    element_bytes: usize,
    version: u8,
    split: bool,
    content: BloscContent<'a>,
}

/// Where the data is.
enum BloscContent<'a> {
    /// In compressed blocks. The filters are in the order of decoding, each with its parameter.
    Blocks { codec: BloscCodec, filters: Vec<(u8, u8)>, delta: bool },
    /// Here.
    Copy(&'a [u8]),
    /// In these bytes, which repeat.
    Repeat(Vec<u8>),
}

/// Memory for blocks.
pub(super) struct BlockBuffers<'a> {
    streams: &'a mut Vec<u8>,
    pub filtered: &'a mut Vec<u8>,
    pub spare: &'a mut Vec<u8>,
    /// The first block, if the others are kept as differences from it.
    reference: &'a mut Vec<u8>,
}

impl BlockBuffers<'_> {
    /// Runs `work` with memory of this thread.
    pub fn with_thread_buffers<T>(work: impl FnOnce(&mut BlockBuffers<'_>) -> T) -> T {
        scratch::with(|Scratch { decoded: streams, room: filtered, encoded: spare, next: reference }| {
            work(&mut BlockBuffers { streams, filtered, spare, reference })
        })
    }
}

/// The bytes of an element that is not a number.
pub(super) fn not_a_number(size: usize) -> Result<Vec<u8>, FilterFault> {
    match size {
        4 => Ok(f32::NAN.to_le_bytes().to_vec()),
        8 => Ok(f64::NAN.to_le_bytes().to_vec()),
        _ => Err(FilterFault::Corrupt("special value")),
    }
}

impl<'a> BloscChunk<'a> {
    /// Reads the header. Bytes after the chunk are ignored.
    pub fn parse(input: &'a [u8]) -> Result<Self, FilterFault> {
        let mut reader = ByteReader(input);
        let (version, _, flags, size) = (reader.byte()?, reader.byte()?, reader.byte()?, reader.byte()?);
        let [decoded_bytes, block, stored] = [reader.le32()?, reader.le32()?, reader.le32()?].map(param_to_usize);
        if !(VERSION_1..=VERSION_2).contains(&version) {
            return Err(FilterFault::Unsupported("this version"));
        }
        let input = input.get(..stored).ok_or(FilterFault::Truncated)?;
        let long = version > VERSION_1 && flags & SHUFFLED != 0 && flags & BIT_SHUFFLED != 0;
        let body = input.get(if long { LONG_HEADER } else { SHORT_HEADER }..).ok_or(FilterFault::Truncated)?;
        if size == 0 || (block == 0 && decoded_bytes > 0) {
            return Err(FilterFault::Corrupt("header"));
        }
        let mut filters = [(NO_FILTER, 0); FILTERS];
        let mut special = 0;
        if long {
            let (ids, _, metas) = (reader.bytes(FILTERS)?, reader.bytes(2)?, reader.bytes(FILTERS)?);
            let (_, more) = (reader.byte()?, reader.byte()?);
            for (filter, (id, meta)) in filters.iter_mut().zip(ids.iter().zip(metas)) {
                *filter = (*id, *meta);
            }
            if more & UNSUPPORTED != 0 {
                return Err(FilterFault::Unsupported("a chunk with a dictionary or instruments"));
            }
            special = more >> SPECIAL_SHIFT & SPECIAL_MASK;
        } else {
            let [.., delta, last] = &mut filters;
            if flags & BIT_SHUFFLED != 0 {
                last.0 = BIT_SHUFFLE;
            } else if flags & SHUFFLED != 0 {
                last.0 = SHUFFLE;
            }
            if flags & DELTAS != 0 {
                delta.0 = DELTA;
            }
        }
        let element_bytes = usize::from(size);
        let content = match special {
            0 if flags & COPIED != 0 => BloscContent::Copy(body.get(..decoded_bytes).ok_or(FilterFault::Truncated)?),
            0 => {
                let mut filters: Vec<_> =
                    filters.into_iter().rev().filter(|(id, _)| !matches!(*id, NO_FILTER | TRUNCATE)).collect();
                // Differences from the first block can be told only where the data is to go.
                let delta = filters.pop_if(|(id, _)| *id == DELTA).is_some();
                if filters.iter().any(|(id, _)| !matches!(*id, SHUFFLE | BIT_SHUFFLE | BYTE_DELTA)) {
                    return Err(FilterFault::Unsupported("this filter"));
                }
                BloscContent::Blocks { codec: BloscCodec::from_format(flags >> FORMAT_SHIFT)?, filters, delta }
            }
            // Values that nobody set are zeros too.
            1 | 4 => BloscContent::Repeat(vec![0]),
            2 => BloscContent::Repeat(not_a_number(element_bytes)?),
            3 if !body.is_empty() => BloscContent::Repeat(body.to_vec()),
            _ => return Err(FilterFault::Corrupt("special value")),
        };
        let split = flags & NOT_SPLIT == 0
            && (version > VERSION_1 || (element_bytes <= MAX_STREAMS && block / element_bytes >= MIN_STREAM));
        let block_bytes = block.min(decoded_bytes);
        Ok(BloscChunk { decoded_bytes, block_bytes, stored: input, element_bytes, version, split, content })
    }

    /// Bytes of the header and of the table of blocks.
    fn offset_table_start(&self) -> usize {
        if self.version == VERSION_1 || !self.has_extended_header() { SHORT_HEADER } else { LONG_HEADER }
    }

    fn has_extended_header(&self) -> bool {
        self.stored.get(2).is_some_and(|flags| flags & SHUFFLED != 0 && flags & BIT_SHUFFLED != 0)
    }

    /// All data.
    pub fn decode(&self, output: &mut [u8], work: &mut BlockBuffers<'_>) -> Result<usize, FilterFault> {
        let limit = output.len();
        let output = output.get_mut(..self.decoded_bytes).ok_or(FilterFault::TooLarge { limit })?;
        for (index, block) in output.chunks_mut(self.block_bytes.max(1)).enumerate() {
            self.decode_block_in_order(index, block, work)?;
        }
        Ok(self.decoded_bytes)
    }

    /// Decodes one block, which must have its exact length. Blocks are decoded in order.
    pub fn decode_block_in_order(
        &self,
        index: usize,
        output: &mut [u8],
        work: &mut BlockBuffers<'_>,
    ) -> Result<(), FilterFault> {
        match &self.content {
            BloscContent::Copy(data) => {
                let start = index.checked_mul(self.block_bytes).ok_or(FilterFault::Truncated)?;
                let data = data.get(start..).and_then(|data| data.get(..output.len())).ok_or(FilterFault::Truncated)?;
                output.copy_from_slice(data);
            }
            BloscContent::Repeat(value) => {
                // A block begins anywhere within a value.
                let skip = index.checked_mul(self.block_bytes).ok_or(FilterFault::Truncated)? % value.len();
                for (byte, value) in output.iter_mut().zip(value.iter().cycle().skip(skip)) {
                    *byte = *value;
                }
            }
            BloscContent::Blocks { codec, filters, delta } => {
                self.decode_and_unfilter(index, *codec, filters, output, work)?;
                if *delta {
                    self.add_reference(index, output, work);
                }
            }
        }
        Ok(())
    }

    fn decode_and_unfilter(
        &self,
        index: usize,
        codec: BloscCodec,
        filters: &[(u8, u8)],
        output: &mut [u8],
        work: &mut BlockBuffers<'_>,
    ) -> Result<(), FilterFault> {
        let Some((last, others)) = filters.split_last() else {
            return self.decode_streams(index, codec, output);
        };
        let len = output.len();
        self.decode_streams(index, codec, resize_buffer(work.streams, len)?)?;
        for filter in others {
            let spare = resize_buffer(work.spare, len)?;
            self.undo_filter(*filter, resize_buffer(work.streams, len)?, resize_buffer(work.filtered, len)?, spare);
            std::mem::swap(work.streams, work.filtered);
        }
        self.undo_filter(*last, resize_buffer(work.streams, len)?, output, resize_buffer(work.spare, len)?);
        Ok(())
    }

    fn undo_filter(&self, (filter, meta): (u8, u8), input: &[u8], output: &mut [u8], spare: &mut [u8]) {
        let unit = if meta == 0 { self.element_bytes } else { usize::from(meta) };
        match filter {
            SHUFFLE => return unshuffle(unit, input, output),
            BYTE_DELTA => return add_up_bytes(unit, input, output),
            _ => {}
        }
        let elements = input.len() / self.element_bytes;
        // Up to version 2, only whole groups of eight elements are shuffled, or nothing.
        let whole = if self.version > VERSION_1 || elements.is_multiple_of(8) { elements / 8 * 8 } else { 0 };
        let (bits, rest) = input.split_at(whole * self.element_bytes);
        let (output, output_rest) = output.split_at_mut(whole * self.element_bytes);
        output_rest.copy_from_slice(rest);
        let spare = spare.get_mut(..bits.len()).unwrap_or_default();
        bit_unshuffle(self.element_bytes, bits, output, spare);
    }

    /// Decompresses the streams of a block.
    fn decode_streams(&self, index: usize, codec: BloscCodec, output: &mut [u8]) -> Result<(), FilterFault> {
        let start = index.checked_mul(4).and_then(|at| self.stored.get(self.offset_table_start() + at..));
        let start = param_to_usize(ByteReader(start.ok_or(FilterFault::Truncated)?).le32()?);
        let mut reader = ByteReader(self.stored.get(start..).ok_or(FilterFault::Corrupt("start of a block"))?);
        let streams = if self.split && output.len() == self.block_bytes { self.element_bytes } else { 1 };
        let length = output.len() / streams;
        if length == 0 || !output.len().is_multiple_of(streams) {
            return Err(FilterFault::Corrupt("size of a block"));
        }
        for stream in output.chunks_exact_mut(length) {
            match reader.le32()?.cast_signed() {
                0 => stream.fill(0),
                // A byte that repeats, its value negated.
                value @ -255..0 if reader.byte()? & 1 == 1 => stream.fill(value.unsigned_abs() as u8),
                ..0 => return Err(FilterFault::Corrupt("stream")),
                stored => {
                    let stored = reader.bytes(param_to_usize(stored.unsigned_abs()))?;
                    if stored.len() == stream.len() {
                        stream.copy_from_slice(stored);
                    } else {
                        codec.decompress(stored, stream)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Turns differences from the first block into values; in the first block, from the element before.
    fn add_reference(&self, index: usize, output: &mut [u8], work: &mut BlockBuffers<'_>) {
        if index > 0 {
            return xor_with(self.element_bytes, output, work.reference);
        }
        let unit = delta_unit(self.element_bytes);
        let whole = output.len() / unit * unit;
        let data = output.get_mut(..whole).unwrap_or_default();
        for lane in 0..unit {
            let mut last = 0;
            for byte in data.iter_mut().skip(lane).step_by(unit) {
                *byte ^= last;
                last = *byte;
            }
        }
        work.reference.clear();
        work.reference.extend_from_slice(output);
    }
}

/// Turns the differences between bytes into bytes, in each of `streams` parts of equal length. What is behind them stays.
fn add_up_bytes(streams: usize, input: &[u8], output: &mut [u8]) {
    output.copy_from_slice(input);
    let length = input.len() / streams;
    if length == 0 {
        return;
    }
    for stream in output.chunks_exact_mut(length).take(streams) {
        let mut last = 0u8;
        for byte in stream {
            last = last.wrapping_add(*byte);
            *byte = last;
        }
    }
}

/// Bytes of a number whose differences are stored, for elements of `size` bytes.
pub(super) fn delta_unit(size: usize) -> usize {
    match size {
        1 | 2 | 4 | 8 => size,
        size if size.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// Turns whole numbers into their differences from others, or back.
pub(super) fn xor_with(size: usize, data: &mut [u8], others: &[u8]) {
    let unit = delta_unit(size);
    let whole = data.len() / unit * unit;
    for (byte, other) in data.iter_mut().take(whole).zip(others) {
        *byte ^= other;
    }
}
