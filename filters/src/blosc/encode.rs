//! Chunks made from data.

use super::chunk::{
    BIT_SHUFFLED, BlockBuffers, COPIED, FILTERS, FORMAT_SHIFT, LONG_HEADER, MAX_STREAMS, MIN_STREAM, NOT_SPLIT,
    SHORT_HEADER, SHUFFLED, VERSION_1, VERSION_2, delta_unit, xor_with,
};
use super::codec::BloscCodec;
use super::{BIT_SHUFFLE, DELTA, NO_FILTER, SHUFFLE};
use crate::FilterFault;
use crate::scratch::resize_buffer;
use crate::transpose::{bit_shuffle, shuffle};

/// Bytes of a block, about.
const TARGET_BLOCK_BYTES: usize = 128 << 10;
/// The largest element that a header can name; larger ones count as bytes.
const MAX_ELEMENT_BYTES: usize = 255;
/// The most bytes of data in a chunk.
const MAX_CHUNK_BYTES: usize = i32::MAX as usize - LONG_HEADER;

/// How to make a chunk.
pub(super) struct BloscEncoder {
    pub codec: BloscCodec,
    /// 0 to 9; 0 is not compressed.
    pub level: u32,
    pub filter: u8,
    /// Bytes of an element.
    size: usize,
    /// Whether the chunk is one of Blosc 2.
    is_blosc2: bool,
}

impl BloscEncoder {
    /// From the level, the filter and the codec, which are parameters 4 to 6 in both filters.
    pub fn parse(params: &[u32], is_blosc2: bool) -> Result<Self, FilterFault> {
        let given = |index: usize, default| params.get(index).copied().unwrap_or(default);
        let size = crate::params::param(params, 2)?;
        let level = given(4, super::DEFAULT_LEVEL);
        if size == 0 || level > 9 {
            let (index, value) = if size == 0 { (2, size) } else { (4, level) };
            return Err(FilterFault::InvalidParameter { index, value });
        }
        let filter = match given(5, super::DEFAULT_FILTER) {
            value @ 0..=2 => value as u8,
            3 if is_blosc2 => DELTA,
            value => return Err(FilterFault::InvalidParameter { index: 5, value }),
        };
        let codec = BloscCodec::from_param(given(6, super::DEFAULT_CODEC))?;
        if is_blosc2 && codec == BloscCodec::Snappy {
            return Err(FilterFault::InvalidParameter { index: 6, value: given(6, 0) });
        }
        let size = crate::params::param_to_usize(size);
        Ok(BloscEncoder { codec, level, filter, size: if size > MAX_ELEMENT_BYTES { 1 } else { size }, is_blosc2 })
    }

    fn header_bytes(&self) -> usize {
        if self.is_blosc2 { LONG_HEADER } else { SHORT_HEADER }
    }

    /// Bytes of a block for this many bytes of data.
    fn block_bytes(&self, bytes: usize) -> usize {
        // Eight elements make a group for shuffling bits.
        let group = self.size * 8;
        match (TARGET_BLOCK_BYTES / group * group).min(bytes) {
            block if block >= self.size => block / self.size * self.size,
            block => block.max(1),
        }
    }

    /// Appends the chunk. If compression does not make it smaller, the data is stored unchanged.
    pub fn encode(&self, input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
        if input.len() > MAX_CHUNK_BYTES {
            return Err(FilterFault::TooLarge { limit: MAX_CHUNK_BYTES });
        }
        let start = output.len();
        let block = self.block_bytes(input.len());
        let split = self.codec.is_split() && self.size <= MAX_STREAMS && block / self.size >= MIN_STREAM;
        let flags = match (self.is_blosc2, self.filter) {
            (true, _) => SHUFFLED | BIT_SHUFFLED,
            (false, SHUFFLE) => SHUFFLED,
            (false, BIT_SHUFFLE) => BIT_SHUFFLED,
            (false, _) => 0,
        };
        let flags = flags | self.codec.format() << FORMAT_SHIFT | if split { 0 } else { NOT_SPLIT };
        let version = if self.is_blosc2 { VERSION_2 } else { VERSION_1 };
        output.extend_from_slice(&[version, 1, flags, self.size as u8]);
        output.extend_from_slice(&(input.len() as u32).to_le_bytes());
        output.extend_from_slice(&(block as u32).to_le_bytes());
        output.extend_from_slice(&[0; 4]);
        if self.is_blosc2 {
            let mut filters = [NO_FILTER; FILTERS];
            if let Some(last) = filters.last_mut() {
                *last = self.filter;
            }
            output.extend_from_slice(&filters);
            output.extend_from_slice(&[0; LONG_HEADER - SHORT_HEADER - FILTERS]);
        }
        if self.level == 0 || !self.encode_blocks(input, block, split, start, output)? {
            output.truncate(start + self.header_bytes());
            output.extend_from_slice(input);
            if let Some(flags) = output.get_mut(start + 2) {
                *flags |= COPIED;
            }
        }
        let stored = (output.len() - start) as u32;
        set_u32_le(output, start + 12, stored);
        Ok(())
    }

    /// Appends the blocks; says whether that takes fewer bytes than the data.
    fn encode_blocks(
        &self,
        input: &[u8],
        block: usize,
        split: bool,
        start: usize,
        output: &mut Vec<u8>,
    ) -> Result<bool, FilterFault> {
        let table = output.len();
        output.resize(table + input.len().div_ceil(block) * 4, 0);
        BlockBuffers::with_thread_buffers(|work| {
            for (index, data) in input.chunks(block).enumerate() {
                let at = (output.len() - start) as u32;
                set_u32_le(output, table + index * 4, at);
                let filtered = self.apply_filter(index, data, input, work)?;
                let streams = if split && data.len() == block { self.size } else { 1 };
                for stream in filtered.chunks(data.len() / streams) {
                    self.encode_stream(stream, output)?;
                }
                if output.len() - start >= input.len() + self.header_bytes() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Appends a stream: its bytes, then these bytes, compressed if that makes them fewer.
    fn encode_stream(&self, stream: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
        let at = output.len();
        output.extend_from_slice(&[0; 4]);
        self.codec.compress(self.level, stream, output)?;
        if output.len() - at - 4 >= stream.len() {
            output.truncate(at + 4);
            output.extend_from_slice(stream);
        }
        let stored = (output.len() - at - 4) as u32;
        set_u32_le(output, at, stored);
        Ok(())
    }

    /// A block of all the data, after the filter.
    fn apply_filter<'a>(
        &self,
        index: usize,
        data: &'a [u8],
        all: &[u8],
        work: &'a mut BlockBuffers<'_>,
    ) -> Result<&'a [u8], FilterFault> {
        if self.filter == NO_FILTER || (self.filter == SHUFFLE && self.size == 1) {
            return Ok(data);
        }
        let output = resize_buffer(work.filtered, data.len())?;
        if self.filter == SHUFFLE {
            shuffle(self.size, data, output);
            return Ok(output);
        }
        if self.filter == DELTA {
            output.copy_from_slice(data);
            if index == 0 {
                let after = output.get_mut(delta_unit(self.size)..).unwrap_or_default();
                xor_with(self.size, after, all);
            } else {
                xor_with(self.size, output, all);
            }
            return Ok(output);
        }
        let elements = data.len() / self.size;
        let whole = if self.is_blosc2 || elements.is_multiple_of(8) { elements / 8 * 8 * self.size } else { 0 };
        let (bits, rest) = data.split_at(whole);
        let (bits_to, rest_to) = output.split_at_mut(whole);
        rest_to.copy_from_slice(rest);
        bit_shuffle(self.size, bits, bits_to, resize_buffer(work.spare, whole)?);
        Ok(output)
    }
}

impl BloscCodec {
    /// Whether the bytes of a block that have the same position in their elements are compressed apart.
    fn is_split(self) -> bool {
        match self {
            #[cfg(any(feature = "native", feature = "pure"))]
            BloscCodec::Zstd => false,
            _ => true,
        }
    }
}

/// Writes a number at a position that exists.
fn set_u32_le(output: &mut [u8], at: usize, value: u32) {
    if let Some(bytes) = output.get_mut(at..at + 4) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}
