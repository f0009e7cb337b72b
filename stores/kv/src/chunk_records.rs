//! The records of chunks: pieces of chunks without filters, and filtered chunks.
//!
//! A piece has the bytes from its start on, up to the last one that differs from the fill value; the rest is fill values.
//! The first piece of a stored chunk is always there, so that one look tells whether the chunk is.

use std::ops::Range;
use std::sync::Arc;

use h5live_model::{
    ChunkCoord, ChunkGrid, DatasetSpec, Error as ModelError, ObjectId, Result, StoreError, StoreErrorKind, Unfilter,
};

use crate::engine::{KeySpan, Snapshot};
use crate::error::damaged;
use crate::layout::{EngineKey, PIECE_BYTES, RecordKey, key};
use crate::objects::contradiction;
use crate::state::KvState;

/// Bytes before a filtered chunk: the mask of the filters that were left out.
const MASK_BYTES: usize = 4;
/// Chunks that a listing looks up at a time.
const LISTED_CHUNKS: usize = 1024;

/// How chunks of a dataset lie in it.
#[derive(Debug, Clone)]
pub struct ChunkShape {
    grid: Option<ChunkGrid>,
    /// Whether chunks have passed filters.
    pub is_filtered: bool,
    /// Bytes of a decoded chunk.
    pub bytes: u64,
}

/// A stored chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundChunk {
    /// The position in the grid.
    pub coord: ChunkCoord,
    /// Stored bytes.
    pub size: u64,
    /// The filters that were left out.
    pub filter_mask: u32,
}

impl ChunkShape {
    /// That of a dataset.
    pub fn of(spec: &DatasetSpec) -> Self {
        let bytes = spec.chunk_bytes().unwrap_or_default();
        ChunkShape { grid: spec.grid(), is_filtered: !spec.filters.is_empty(), bytes }
    }

    /// The chunk of a dataset that has only one.
    pub fn origin(&self, spec: &DatasetSpec) -> ChunkCoord {
        ChunkCoord::origin(spec.dataspace.rank())
    }

    fn start(&self, coord: &ChunkCoord) -> Vec<u64> {
        self.grid.as_ref().map(|grid| grid.start_of(coord).to_vec()).unwrap_or_default()
    }

    fn coord(&self, start: &[u64]) -> ChunkCoord {
        self.grid.as_ref().map_or_else(|| ChunkCoord::new(start), |grid| grid.chunk_of(start))
    }

    fn piece_key(&self, dataset: ObjectId, coord: &ChunkCoord, piece: u32) -> EngineKey {
        key::chunk_piece(dataset, &self.start(coord), piece)
    }

    fn filtered_key(&self, dataset: ObjectId, coord: &ChunkCoord) -> EngineKey {
        key::filtered_chunk(dataset, &self.start(coord))
    }

    /// The key of all of a chunk without filters, if it has one piece.
    pub fn single_piece(&self, dataset: ObjectId, coord: &ChunkCoord) -> Option<EngineKey> {
        (!self.is_filtered && self.bytes <= PIECE_BYTES).then(|| self.piece_key(dataset, coord, 0))
    }
}

/// The parts of a run of bytes that lie in pieces: the piece, where in it, and where in the run.
fn parts_in_pieces(at: u64, len: usize) -> impl Iterator<Item = (u32, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let position = at + done as u64;
        let within = (position % PIECE_BYTES) as usize;
        let part = (PIECE_BYTES as usize - within).min(len - done);
        let of_run = done..done + part;
        done += part;
        Some(((position / PIECE_BYTES) as u32, within..within + part, of_run))
    })
}

/// How many of the bytes of a piece are stored: those behind are fill values. `at` is where the piece begins in the
/// chunk (bytes).
fn stored_len(spec: &DatasetSpec, at: u64, bytes: &[u8]) -> usize {
    let Some(pattern) = spec.fill_pattern() else {
        return bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    };
    let size = pattern.len() as u64;
    let is_fill = |index: usize, byte: u8| pattern.get(((at + index as u64) % size) as usize) == Some(&byte);
    let last = bytes.iter().enumerate().rposition(|(index, byte)| !is_fill(index, *byte));
    last.map_or(0, |last| last + 1)
}

/// Stores a whole chunk without filters.
pub fn put_whole(state: &mut KvState, id: ObjectId, spec: &DatasetSpec, coord: &ChunkCoord, bytes: &[u8]) {
    let shape = ChunkShape::of(spec);
    for (piece, bytes) in (0..).zip(bytes.chunks(PIECE_BYTES as usize)) {
        let len = stored_len(spec, u64::from(piece) * PIECE_BYTES, bytes);
        let key = shape.piece_key(id, coord, piece);
        match bytes.get(..len) {
            Some(stored) if len > 0 || piece == 0 => state.put(&key, stored),
            _ => state.delete(&key),
        }
    }
}

/// Stores a chunk as filters left it.
pub fn put_filtered(
    state: &mut KvState,
    id: ObjectId,
    spec: &DatasetSpec,
    coord: &ChunkCoord,
    mask: u32,
    bytes: &[u8],
) {
    let key = ChunkShape::of(spec).filtered_key(id, coord);
    let mut value = Vec::with_capacity(MASK_BYTES + bytes.len());
    value.extend(mask.to_le_bytes());
    value.extend(bytes);
    state.put(&key, value);
}

/// Overwrites a part of a chunk without filters, from `at` on (bytes).
///
/// # Errors
/// [`ModelError::Store`] if what is there cannot be read.
pub fn put_part(
    state: &mut KvState,
    id: ObjectId,
    spec: &DatasetSpec,
    (coord, at): (&ChunkCoord, u64),
    bytes: &[u8],
) -> Result<()> {
    let shape = ChunkShape::of(spec);
    let first = shape.piece_key(id, coord, 0);
    if !state.snapshot().has(first.as_bytes())? {
        state.put(&first, Vec::new());
    }
    for (piece, within, of_run) in parts_in_pieces(at, bytes.len()) {
        let (key, start) = (shape.piece_key(id, coord, piece), u64::from(piece) * PIECE_BYTES);
        let overwrite = |stored: &mut Vec<u8>| {
            if stored.len() < within.end {
                let known = stored.len();
                stored.resize(within.end, 0);
                // Only what lies before the part is not overwritten.
                spec.fill_into(start + known as u64, &mut stored[known..within.start.max(known)]);
            }
            stored[within.clone()].copy_from_slice(&bytes[of_run.clone()]);
        };
        if !state.edits.update(key.as_bytes(), overwrite) {
            let is_whole = within.len() as u64 == PIECE_BYTES.min(shape.bytes - start);
            let known = if is_whole { None } else { state.snapshot().get(key.as_bytes())? };
            let mut stored = known.unwrap_or_default();
            overwrite(&mut stored);
            state.put(&key, stored);
        }
    }
    Ok(())
}

/// Where a chunk is stored; `None` if nobody wrote it.
///
/// # Errors
/// [`ModelError::Store`] if the store cannot be read.
pub fn find(state: &Snapshot<'_>, id: ObjectId, shape: &ChunkShape, coord: &ChunkCoord) -> Result<Option<FoundChunk>> {
    let found = |size, filter_mask| FoundChunk { coord: coord.clone(), size, filter_mask };
    if !shape.is_filtered {
        return Ok(state.has(shape.piece_key(id, coord, 0).as_bytes())?.then(|| found(shape.bytes, 0)));
    }
    let mut chunk = None;
    state.with_value(shape.filtered_key(id, coord).as_bytes(), &mut |value| chunk = Some(filtered_size(value)))?;
    match chunk {
        Some(Some((mask, size))) => Ok(Some(found(size, mask))),
        Some(None) => Err(contradiction(id, "a filtered chunk has no mask of filters")),
        None => Ok(None),
    }
}

/// The mask and the number of bytes of a filtered chunk.
fn filtered_size(value: &[u8]) -> Option<(u32, u64)> {
    let (mask, bytes) = value.split_first_chunk()?;
    Some((u32::from_le_bytes(*mask), bytes.len() as u64))
}

/// Reads stored bytes of a chunk, from `at` on.
///
/// # Errors
/// [`ModelError::Store`] if the store cannot be read.
pub fn read(
    state: &Snapshot<'_>,
    id: ObjectId,
    spec: &DatasetSpec,
    (coord, at): (&ChunkCoord, u64),
    into: &mut [u8],
) -> Result<()> {
    let shape = ChunkShape::of(spec);
    if shape.is_filtered {
        let mut copy = |value: &[u8]| {
            let from = usize::try_from(at).ok().and_then(|at| value.get(MASK_BYTES.checked_add(at)?..));
            copy_or_zeros(from.unwrap_or_default(), into);
        };
        return match state.with_value(shape.filtered_key(id, coord).as_bytes(), &mut copy)? {
            true => Ok(()),
            // It was there when it was looked up; whoever looks again finds what is there now.
            false => Err(ModelError::Moved),
        };
    }
    for (piece, within, of_run) in parts_in_pieces(at, into.len()) {
        let (start, into) = (u64::from(piece) * PIECE_BYTES, &mut into[of_run]);
        let mut known = 0;
        state.with_value(shape.piece_key(id, coord, piece).as_bytes(), &mut |value| {
            let from = value.get(within.start..).unwrap_or_default();
            known = from.len().min(into.len());
            into[..known].copy_from_slice(&from[..known]);
        })?;
        spec.fill_into(start + (within.start + known) as u64, &mut into[known..]);
    }
    Ok(())
}

fn copy_or_zeros(from: &[u8], into: &mut [u8]) {
    let len = from.len().min(into.len());
    into[..len].copy_from_slice(&from[..len]);
    into[len..].fill(0);
}

/// Calls `each` with each stored chunk, in row-major order, until it returns `false`. `each` may call the store.
///
/// # Errors
/// [`ModelError::Store`] if the store cannot be read.
pub fn for_each(
    state: &Snapshot<'_>,
    id: ObjectId,
    shape: &ChunkShape,
    each: &mut dyn FnMut(FoundChunk) -> bool,
) -> Result<()> {
    let mut left = KeySpan::from(&key::chunks(id));
    loop {
        let (mut found, mut failure, mut last) = (Vec::new(), None, None);
        state.scan(&left, &mut |key, value| {
            match (EngineKey::parse(key), filtered_size(value)) {
                (Ok((_, RecordKey::ChunkPiece { start, piece: 0 })), _) => {
                    found.push(FoundChunk { coord: shape.coord(&start), size: shape.bytes, filter_mask: 0 });
                }
                (Ok((_, RecordKey::FilteredChunk { start })), Some((filter_mask, size))) => {
                    found.push(FoundChunk { coord: shape.coord(&start), size, filter_mask });
                }
                (Ok(_), _) => {}
                (Err(error), _) => failure = Some(error),
            }
            last = Some(key.to_vec());
            failure.is_none() && found.len() < LISTED_CHUNKS
        })?;
        if let Some(error) = failure {
            return Err(damaged(id)(error));
        }
        let Some(last) = last else { return Ok(()) };
        left = left.after(&last);
        if !found.into_iter().all(&mut *each) {
            return Ok(());
        }
    }
}

/// Calls `each` with the decoded elements of each chunk.
///
/// # Errors
/// [`ModelError::Store`] if a chunk cannot be read or decoded.
pub fn for_each_decoded(
    state: &Snapshot<'_>,
    id: ObjectId,
    spec: &DatasetSpec,
    unfilter: &Arc<dyn Unfilter>,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let shape = ChunkShape::of(spec);
    let (mut chunks, mut failure) = (Vec::new(), None);
    for_each(state, id, &shape, &mut |chunk| {
        chunks.push(chunk);
        true
    })?;
    for chunk in chunks {
        let mut bytes = vec![0; usize::try_from(chunk.size).unwrap_or_default()];
        read(state, id, spec, (&chunk.coord, 0), &mut bytes)?;
        if shape.is_filtered {
            let decoded = unfilter.unfilter(&spec.filters, chunk.filter_mask, bytes, shape.bytes);
            bytes = match decoded {
                Ok(bytes) => bytes,
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            };
        }
        each(&bytes)?;
    }
    match failure {
        Some(text) => Err(StoreError::new(StoreErrorKind::Damaged, std::io::Error::other(text)).into()),
        None => Ok(()),
    }
}

/// Drops the chunks that lie wholly outside of an extent (`[rank]`, elements).
///
/// # Errors
/// [`ModelError::Store`] if the store cannot be read.
pub fn drop_outside(state: &mut KvState, id: ObjectId, dims: &[u64]) -> Result<()> {
    let mut outside = Vec::new();
    let mut failure = None;
    state.snapshot().scan(&KeySpan::from(&key::chunks(id)), &mut |key, _| {
        match EngineKey::parse(key) {
            Ok((_, RecordKey::ChunkPiece { start, .. } | RecordKey::FilteredChunk { start }))
                if start.iter().zip(dims).any(|(start, dim)| start >= dim) =>
            {
                outside.push(key.to_vec());
            }
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
        failure.is_none()
    })?;
    match failure {
        Some(error) => Err(damaged(id)(error)),
        None => {
            outside.iter().for_each(|key| state.edits.delete(key));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::{Datatype, Fill, FillValue};

    use super::*;

    #[test]
    fn a_run_is_cut_where_pieces_end() {
        let piece = PIECE_BYTES as usize;
        assert_eq!(parts_in_pieces(5, 0).count(), 0);
        assert_eq!(parts_in_pieces(5, 7).collect::<Vec<_>>(), [(0, 5..12, 0..7)]);
        let parts: Vec<_> = parts_in_pieces(PIECE_BYTES - 2, piece + 3).collect();
        assert_eq!(parts, [(0, piece - 2..piece, 0..2), (1, 0..piece, 2..piece + 2), (2, 0..1, piece + 2..piece + 3)]);
    }

    #[test]
    fn fill_values_at_the_end_of_a_piece_are_not_stored() {
        let mut spec = DatasetSpec {
            datatype: Datatype::integer(2, Default::default(), Default::default()),
            ..DatasetSpec::default()
        };
        assert_eq!(stored_len(&spec, 0, &[1, 0, 2, 0, 0, 0]), 3);
        assert_eq!(stored_len(&spec, 0, &[0; 4]), 0);
        spec.fill = Fill { value: FillValue::Value(vec![7, 8]), ..Fill::default() };
        assert_eq!(stored_len(&spec, 4, &[7, 8, 7, 8]), 0);
        assert_eq!(stored_len(&spec, 4, &[7, 8, 8, 8, 7, 8]), 3);
        assert_eq!(stored_len(&spec, 0, &[0; 4]), 4);
    }
}
