//! A contiguous frame: a header of fixed places with named metadata, chunks, a chunk with where they start, a
//! trailer. All but the chunks is MessagePack, so that its numbers are big-endian, each after a byte of its type.

use super::b2nd_layout::B2ndLayout;
use super::chunk::{BlockBuffers, BloscChunk, not_a_number};
use super::encode::BloscEncoder;
use super::msgpack::{INT32, INT64, checked_size, read_int32, read_int64};
use crate::FilterFault;
use crate::byte_reader::ByteReader;
use crate::params::{param_or, param_to_usize};

const MAGIC: &[u8] = b"\x9e\xa8b2frame\0";
/// Types of MessagePack that are used.
const BIN32: u8 = 0xc6;
/// Bytes of a header without metadata.
const HEADER_BYTES: usize = 97;
/// Names under which a grid of blocks is described.
const GRIDS: [&[u8]; 2] = [b"b2nd", b"caterva"];

/// The decoded header.
struct FrameHeader<'a> {
    /// Bytes of the data.
    decoded_bytes: usize,
    /// Bytes of the chunks.
    compressed_bytes: usize,
    /// Bytes of an element.
    element_bytes: usize,
    /// Bytes of the data of a chunk.
    chunk_bytes: usize,
    b2nd_layout: Option<B2ndLayout>,
    /// The bytes after the header.
    rest: &'a [u8],
}

impl<'a> FrameHeader<'a> {
    fn parse(input: &'a [u8]) -> Result<Self, FilterFault> {
        let mut reader = ByteReader(input);
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err(FilterFault::Corrupt("frame header"));
        }
        let length = read_int32(&mut reader)?;
        reader.bytes(1 + 8 + 1)?;
        let flags = reader.bytes(4)?;
        if flags.get(1) != Some(&0) {
            return Err(FilterFault::Unsupported("a frame in several files"));
        }
        let (bytes, stored) = (read_int64(&mut reader)?, read_int64(&mut reader)?);
        let (size, _, chunk) = (read_int32(&mut reader)?, read_int32(&mut reader)?, read_int32(&mut reader)?);
        if size == 0 {
            return Err(FilterFault::Corrupt("frame header"));
        }
        // Numbers of threads, whether the trailer has metadata, the filters.
        reader.bytes(3 + 3 + 1 + 18)?;
        let header = input.get(..length).ok_or(FilterFault::Truncated)?;
        let rest = input.get(length..).unwrap_or_default();
        let grid = find_b2nd_metadata(header, reader)?.map(B2ndLayout::parse).transpose()?;
        Ok(FrameHeader {
            decoded_bytes: bytes,
            compressed_bytes: stored,
            element_bytes: size,
            chunk_bytes: chunk,
            b2nd_layout: grid,
            rest,
        })
    }
}

/// The content of the metadata that describes a grid, if there is any.
fn find_b2nd_metadata<'a>(header: &'a [u8], mut reader: ByteReader<'a>) -> Result<Option<&'a [u8]>, FilterFault> {
    // The size of the metadata, then a map of names and places.
    reader.bytes(1 + 3 + 1)?;
    let entries = u16::from_be_bytes([reader.byte()?, reader.byte()?]);
    for _ in 0..entries {
        let length = usize::from(reader.byte()? & 0x1f);
        let name = reader.bytes(length)?;
        let at = read_int32(&mut reader)?;
        if GRIDS.contains(&name) {
            let mut content = ByteReader(header.get(at..).ok_or(FilterFault::Truncated)?);
            if content.byte()? != BIN32 {
                return Err(FilterFault::Corrupt("frame header"));
            }
            let length = param_to_usize(content.be32()?);
            return content.bytes(length).map(Some);
        }
    }
    Ok(None)
}

/// Where the chunk of a frame is.
enum FrameChunk<'a> {
    Stored(&'a [u8]),
    /// Nowhere: its elements are these bytes.
    Repeat(Vec<u8>),
}

impl<'a> FrameHeader<'a> {
    fn find_chunk(&self, work: &mut BlockBuffers<'_>) -> Result<FrameChunk<'a>, FilterFault> {
        if self.decoded_bytes == 0 {
            return Ok(FrameChunk::Repeat(vec![0]));
        }
        if self.decoded_bytes > self.chunk_bytes {
            return Err(FilterFault::Unsupported("a frame of several chunks"));
        }
        let index = BloscChunk::parse(self.rest.get(self.compressed_bytes..).ok_or(FilterFault::Truncated)?)?;
        let mut start = [0; 8];
        if index.decode(&mut start, work)? != start.len() {
            return Err(FilterFault::Corrupt("index of chunks"));
        }
        let [.., special] = start;
        match special {
            0x00..=0x7f => {
                let start = checked_size(u64::from_le_bytes(start))?;
                self.rest.get(start..).map(FrameChunk::Stored).ok_or(FilterFault::Truncated)
            }
            0x81 | 0x84 => Ok(FrameChunk::Repeat(vec![0])),
            0x82 => Ok(FrameChunk::Repeat(not_a_number(self.element_bytes)?)),
            _ => Err(FilterFault::Corrupt("index of chunks")),
        }
    }

    fn decode(&self, output: &mut [u8], work: &mut BlockBuffers<'_>) -> Result<usize, FilterFault> {
        let limit = output.len();
        let bytes = match &self.b2nd_layout {
            None => self.decoded_bytes,
            Some(grid) => grid.array_bytes(self.element_bytes).ok_or(FilterFault::TooLarge { limit })?,
        };
        let output = output.get_mut(..bytes).ok_or(FilterFault::TooLarge { limit })?;
        match self.find_chunk(work)? {
            FrameChunk::Repeat(value) => {
                for (byte, value) in output.iter_mut().zip(value.iter().cycle()) {
                    *byte = *value;
                }
            }
            FrameChunk::Stored(stored) => {
                let chunk = BloscChunk::parse(stored)?;
                match &self.b2nd_layout {
                    Some(grid) => grid.decode(&chunk, self.element_bytes, output, work)?,
                    None if chunk.decoded_bytes != bytes => return Err(FilterFault::Corrupt("size of a chunk")),
                    None => {
                        chunk.decode(output, work)?;
                    }
                }
            }
        }
        Ok(bytes)
    }
}

/// Decodes a frame; returns the bytes written.
pub(super) fn decode_frame(input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
    let header = FrameHeader::parse(input)?;
    BlockBuffers::with_thread_buffers(|work| header.decode(output, work))
}

/// Appends a frame with one chunk that is not a grid.
pub(super) fn encode_frame(
    encoder: &BloscEncoder,
    params: &[u32],
    input: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), FilterFault> {
    output.resize(HEADER_BYTES, 0);
    encoder.encode(input, output)?;
    let stored = output.len() - HEADER_BYTES;

    // The index: a chunk of one number of 8 bytes that is zero, not compressed.
    output.extend_from_slice(&[5, 1, 7, 8, 8, 0, 0, 0, 8, 0, 0, 0, 40, 0, 0, 0]);
    output.extend_from_slice(&[0, 0, 0, 0, 0, 1]);
    output.extend_from_slice(&[0; 10 + 8]);
    // The trailer: no metadata, its own size, no fingerprint.
    output.extend_from_slice(b"\x94\x01\x93\xcd\0\x06\xde\0\0\xdc\0\0\xce\0\0\0\x23\xd8\0");
    output.extend_from_slice(&[0; 16]);

    let chunk = u32::try_from(input.len()).map_err(|_| FilterFault::TooLarge { limit: param_to_usize(u32::MAX) })?;
    let codec = (encoder.level << 4) as u8 | param_or(params, 6, super::DEFAULT_CODEC) as u8;
    let mut header = MAGIC.to_vec();
    let put = |header: &mut Vec<u8>, kind: u8, bytes: &[u8]| {
        header.push(kind);
        header.extend_from_slice(bytes);
    };
    put(&mut header, INT32, &(HEADER_BYTES as u32).to_be_bytes());
    put(&mut header, 0xcf, &(output.len() as u64).to_be_bytes());
    put(&mut header, 0xa4, &[0x12, 0, codec, 3]);
    put(&mut header, INT64, &(input.len() as u64).to_be_bytes());
    put(&mut header, INT64, &(stored as u64).to_be_bytes());
    put(&mut header, INT32, &param_or(params, 2, 1).to_be_bytes());
    put(&mut header, INT32, &chunk.to_be_bytes());
    put(&mut header, INT32, &chunk.to_be_bytes());
    put(&mut header, 0xd1, &[0, 1]);
    put(&mut header, 0xd1, &[0, 1]);
    put(&mut header, 0xc2, &[0xd8, 6]);
    put(&mut header, 0, &[0, 0, 0, 0, encoder.filter, 0, 0]);
    header.extend_from_slice(&[0; 8]);
    header.extend_from_slice(b"\x93\xcd\0\x07\xde\0\0\xdc\0\0");
    if let Some(to) = output.get_mut(..HEADER_BYTES).filter(|to| to.len() == header.len()) {
        to.copy_from_slice(&header);
    }
    Ok(())
}
