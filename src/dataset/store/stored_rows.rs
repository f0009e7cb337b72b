//! Appended rows on their way from the append buffer to the store, many by one batch.

use h5live_model::{ChunkBatch, ChunkWrite, PublishLevel};
use smallvec::SmallVec;

use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::stage::{RowPiece, StagedData};
use crate::dims::CoreDims;

/// How many of the buffered rows are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsToStore {
    All,
    /// Those of chunks that are full.
    OfWholeChunks,
    /// All, and the extent with them. A publication may follow at once.
    AllWithExtent(Option<PublishLevel>),
}

/// Stores buffered rows by one batch. Returns where the last buffered row ends; `None` if there are none of those. After
/// an error all are still buffered. The caller holds the writer's lock.
pub(crate) fn store_rows(core: &DatasetCore, which: RowsToStore) -> Result<Option<u64>, DatasetError> {
    let stage = core.stage.lock();
    let StagedData { rows: Some(buffer), extent, .. } = &*stage else { return Ok(None) };
    let len = if which == RowsToStore::OfWholeChunks { buffer.whole_chunk_bytes() } else { buffer.bytes().len() };
    if len == 0 {
        return Ok(None);
    }
    let end = buffer.extent()[0];
    let (bytes, chunk_bytes) = (buffer.bytes().clone(), buffer.chunk_bytes());
    let pieces = buffer.chunk_pieces(bytes.get(..len).unwrap_or_default());
    let (extent, publish) = match which {
        RowsToStore::AllWithExtent(publish) => (extent.as_deref().map(CoreDims::from_slice), publish),
        _ => (None, None),
    };
    drop(stage);
    let batch = ChunkBatch { writes: &[], extent: extent.as_deref(), publish_after: &[], publish };
    store_pieces(core, &pieces, chunk_bytes, batch)?;
    drop(pieces);
    drop(bytes);
    let mut stage = core.stage.lock();
    if extent.is_some() {
        stage.extent = None;
    }
    if let Some(buffer) = &mut stage.rows {
        buffer.remove_bytes(len);
    }
    Ok(Some(end))
}

/// Stores buffered rows until no more than `max_bytes` bytes are left: those of whole chunks, and if need be all.
#[cold]
pub(crate) fn make_room(core: &DatasetCore, max_bytes: usize) -> Result<(), DatasetError> {
    let len = || core.stage.lock().rows.as_ref().map_or(0, |buffer| buffer.bytes().len());
    for which in [RowsToStore::OfWholeChunks, RowsToStore::All] {
        if len() > max_bytes {
            store_rows(core, which)?;
        }
    }
    Ok(())
}

/// Stores rows that come after all others. None are buffered.
#[cold]
pub(crate) fn store_direct(core: &DatasetCore, rows: &[u8]) -> Result<(), DatasetError> {
    let stage = core.stage.lock();
    let Some(buffer) = &stage.rows else { return Ok(()) };
    let (pieces, chunk_bytes) = (buffer.chunk_pieces(rows), buffer.chunk_bytes());
    drop(stage);
    store_pieces(core, &pieces, chunk_bytes, ChunkBatch::default())
}

/// Stores pieces, and what else a batch says.
fn store_pieces(
    core: &DatasetCore,
    pieces: &[RowPiece<'_>],
    chunk_bytes: usize,
    batch: ChunkBatch<'_>,
) -> Result<(), DatasetError> {
    let store = |writes: &[ChunkWrite<'_>]| core.chunks.write(&ChunkBatch { writes, ..batch });
    let stored = match pieces {
        [piece] => store(&[write_of(piece, chunk_bytes)]),
        _ => store(&pieces.iter().map(|piece| write_of(piece, chunk_bytes)).collect::<SmallVec<[_; 3]>>()),
    };
    stored.map_err(|error| match pieces {
        [piece, ..] => DatasetError::in_chunk(&piece.coord, error),
        [] => error.into(),
    })
}

/// What a batch says of a piece.
fn write_of<'a>(piece: &'a RowPiece<'_>, chunk_bytes: usize) -> ChunkWrite<'a> {
    let RowPiece { coord, at, bytes } = piece;
    match bytes.len() / chunk_bytes {
        0 => ChunkWrite::ByteRange { coord, byte_offset: *at as u64, bytes, unseen: false },
        1 => ChunkWrite::Whole { coord, filter_mask: 0, bytes },
        _ => ChunkWrite::ChunksAlongFirstDim { first: coord, chunk_bytes, bytes },
    }
}
