//! The bytes of chunks: elements, compressed if the dataset has a compressor.

use std::sync::Arc;

use h5live_model::{AllocationLimit, Error as ModelError, FilterEngine, FilterSpec, Result};

use crate::error::HsdsError;
use crate::layout::{ChunkEncoding, ElementCodec, LayoutError, blosc_frame_data_len, blosc_frame_without_compression};

/// The first byte of a zlib stream.
const ZLIB: u8 = 0x78;

/// How the chunks of a dataset are stored.
#[derive(Debug)]
pub struct ChunkCodec {
    /// How elements are stored.
    pub element_codec: ElementCodec,
    /// How that is compressed.
    pub encoding: ChunkEncoding,
    /// Elements of a chunk; 0 if there are no chunks.
    pub chunk_element_count: usize,
    /// What compresses.
    pub filter_engine: Arc<dyn FilterEngine>,
    /// Most bytes of a chunk.
    pub max_allocation: AllocationLimit,
}

fn damaged(key: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ModelError {
    HsdsError::DamagedChunk { key: key.to_owned(), source: source.into() }.into()
}

impl ChunkCodec {
    /// Bytes of a chunk where it crosses the seam.
    pub fn model_chunk_size(&self) -> u64 {
        (self.element_codec.model_element_size() as u64).saturating_mul(self.chunk_element_count as u64)
    }

    /// The elements of a chunk, as they are stored.
    ///
    /// # Errors
    /// [`HsdsError::DamagedChunk`], [`ModelError::Allocation`].
    pub fn decompress(&self, key: &str, bytes: &[u8]) -> Result<Arc<[u8]>> {
        let expected =
            self.element_codec.stored_element_size().map(|size| size as u64 * self.chunk_element_count as u64);
        let undone = |filters: &[FilterSpec], bytes: &[u8], size: u64| {
            self.max_allocation.check(size)?;
            self.filter_engine.unfilter(filters, 0, bytes.to_vec(), size).map_err(|error| damaged(key, error))
        };
        let frame = blosc_frame_data_len(bytes).filter(|_| self.encoding.has_blosc_frames());
        let is_zlib = self.encoding.has_blosc_frames() && bytes.first() == Some(&ZLIB);
        let mut decoded: Arc<[u8]> = match (frame, expected) {
            (Some(size), _) => {
                let undo = FilterSpec { id: BLOSC, params: vec![2, 2, 1, 0, 5, 0, 0], ..FilterSpec::default() };
                undone(&[undo], bytes, size)?.into()
            }
            (None, Some(size)) if is_zlib => undone(&self.encoding.bare_zlib_filters(), bytes, size)?.into(),
            _ => bytes.into(),
        };
        if let (true, Some(size), Some(element)) =
            (self.encoding.is_bit_shuffled(), expected, self.element_codec.stored_element_size())
        {
            decoded = undone(&[ChunkEncoding::bit_shuffle_lz4_filter(element as u32)], &decoded, size)?.into();
        }
        match expected {
            Some(expected) if expected != decoded.len() as u64 => {
                let wrong = LayoutError::LengthMismatch { expected: expected as usize, found: decoded.len() };
                Err(damaged(key, wrong))
            }
            _ => Ok(decoded),
        }
    }

    /// The bytes of a chunk with these stored elements.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] if they have no room.
    pub fn compress(&self, stored_elements: Vec<u8>) -> Result<Vec<u8>> {
        let too_long = || ModelError::Invalid("a chunk has less than 2 GiB in this store".to_owned());
        let shuffled = match (self.encoding.is_bit_shuffled(), self.element_codec.stored_element_size()) {
            (true, Some(element)) => {
                let filter = ChunkEncoding::bit_shuffle_lz4_filter(element as u32);
                let (bytes, mask) = self.filter_engine.filter(&[filter], &stored_elements).map_err(|_| {
                    ModelError::Unsupported("writing chunks that go through bitshuffle, without that filter")
                })?;
                if mask == 0 { bytes } else { return Err(ModelError::Unsupported("chunks that bitshuffle refuses")) }
            }
            _ => stored_elements,
        };
        let bytes = u32::try_from(shuffled.len()).map_err(|_| too_long())?;
        let Some(filter) = self.encoding.blosc_frame_filter(bytes) else { return Ok(shuffled) };
        match self.filter_engine.filter(&[filter], &shuffled) {
            Ok((frame, 0)) => Ok(frame),
            // What does not become shorter is in a frame as it is.
            _ => blosc_frame_without_compression(&shuffled).ok_or_else(too_long),
        }
    }

    /// The elements of a chunk, as they cross the seam.
    ///
    /// # Errors
    /// [`HsdsError::DamagedChunk`], [`ModelError::Allocation`].
    pub fn to_model_elements(
        &self,
        key: &str,
        stored_elements: &[u8],
        holder_id_and_version: (u32, u32),
    ) -> Result<Vec<u8>> {
        if self.element_codec.is_verbatim() {
            return Ok(stored_elements.to_vec());
        }
        let mut seam = self.max_allocation.zeroed(self.model_chunk_size())?;
        self.element_codec
            .unpack(
                stored_elements,
                self.chunk_element_count,
                holder_id_and_version.0,
                holder_id_and_version.1,
                &mut seam,
            )
            .map_err(|error| damaged(key, error))?;
        Ok(seam)
    }
}

/// The number of the filter that makes frames.
const BLOSC: u16 = 32001;
