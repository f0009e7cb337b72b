//! Changes of a dataset, as the seam has them: one batch at a time.

use h5live_cache::{FlushScope, Owner};
use h5live_model::{ChunkBatch, ChunkWrite, Error as ModelError, PublishLevel};

use super::NativeDataset;
use crate::{Error, Result};

impl NativeDataset {
    /// Whether these are the bytes of a chunk without filters.
    fn is_whole_chunk(&self, bytes: &[u8]) -> bool {
        let spec = &self.state().spec;
        spec.filters.is_empty() && spec.chunk_bytes_or_total() == Some(bytes.len() as u64)
    }

    pub(super) fn write_batch(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        if batch.has_changes() {
            self.check_writable()?;
        }
        let alone = self.shared.writer_lock.lock();
        if self.try_append_batch_in_place(batch)? {
            return Ok(());
        }
        batch.writes.chunk_by(are_parts_of_same_chunk).try_for_each(|writes| match writes {
            [write] => self.write_elements(write),
            parts => self.write_chunk_parts(parts),
        })?;
        for earlier in batch.publish_after {
            self.session.order_headers(self.shared.header_addr, self.session.header_addr_of(*earlier)?)?;
        }
        if let Some(dims) = batch.extent {
            self.set_extent(dims)?;
        }
        // Others may change the dataset while this waits for the disk.
        drop(alone);
        let scope = FlushScope::Owner(Owner::new(self.shared.header_addr));
        match batch.publish {
            Some(PublishLevel::Visible) => self.session.flush(scope),
            Some(PublishLevel::Durable) => self.session.flush_durable(scope),
            None => Ok(()),
        }
    }

    /// Takes the short way of a batch that appends one part and publishes it, and says whether that could be done.
    fn try_append_batch_in_place(&self, batch: &ChunkBatch<'_>) -> Result<bool> {
        match *batch {
            ChunkBatch {
                writes: [write],
                extent: Some(dims),
                publish_after: [],
                publish: Some(PublishLevel::Visible),
            } => match write {
                ChunkWrite::ByteRange { coord, byte_offset: at, bytes, .. } => {
                    self.try_append_in_place(coord, *at, bytes, dims)
                }
                ChunkWrite::Whole { coord, bytes, .. } if self.is_whole_chunk(bytes) => {
                    self.try_append_in_place(coord, 0, bytes, dims)
                }
                ChunkWrite::Whole { .. } | ChunkWrite::ChunksAlongFirstDim { .. } | ChunkWrite::ElementBlock { .. } => {
                    Ok(false)
                }
            },
            _ => Ok(false),
        }
    }

    fn write_elements(&self, write: &ChunkWrite<'_>) -> Result<()> {
        match *write {
            ChunkWrite::Whole { coord, filter_mask, bytes } => self.write_chunk(coord, filter_mask, bytes),
            ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } => {
                self.write_consecutive_chunks(first, size, bytes)
            }
            ChunkWrite::ByteRange { coord, byte_offset: at, bytes, unseen: false } => {
                self.write_chunk_part(coord, at, bytes)
            }
            ChunkWrite::ByteRange { coord, byte_offset: at, bytes, unseen: true } => {
                self.write_unseen_part(coord, at, bytes)
            }
            ChunkWrite::ElementBlock { .. } => Err(Error::Model(ModelError::Unsupported("writing a block of a chunk"))),
        }
    }

    fn set_extent(&self, dims: &[u64]) -> Result<()> {
        if self.put_extent_in_header(dims)? {
            // Nobody must find chunks gone below the extent that is in the file.
            self.session.flush(FlushScope::Owner(Owner::new(self.shared.header_addr)))?;
            self.free_chunks_outside(&self.state(), dims)?;
            self.session.count_operation_and_flush_if_due()?;
        }
        Ok(())
    }
}

/// Whether two writes are parts of the same chunk that are written alike.
fn are_parts_of_same_chunk(one: &ChunkWrite<'_>, next: &ChunkWrite<'_>) -> bool {
    match (one, next) {
        (
            ChunkWrite::ByteRange { coord, unseen: false, .. },
            ChunkWrite::ByteRange { coord: same, unseen: false, .. },
        ) => coord == same,
        _ => false,
    }
}
