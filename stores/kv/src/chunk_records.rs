//! The records of chunks: pieces of chunks without filters, and filtered chunks.
//!
//! A piece has the bytes from its start on, up to the last one that differs from the fill value; the rest is fill values.
//! The first piece of a stored chunk is always there, so that one look tells whether the chunk is.

use std::ops::Range;
use std::sync::Arc;

use h5live_model::{
    AllocationLimit, ChunkCoord, ChunkGrid, DatasetSpec, Error as ModelError, FilterEngine, ObjectId, Result,
    StoreError, StoreErrorKind,
};

use crate::contiguous_cut::LargeContiguousChunking;
use crate::engine::{KeySpan, ViewWithEdits};
use crate::error::damaged_object_error;
use crate::layout::{CHUNK_PIECE_BYTES, EngineKey, RecordKey, key};
use crate::objects::contradiction_error;
use crate::state::KvState;

/// Bytes before a filtered chunk: the mask of the filters that were left out.
pub const FILTER_MASK_BYTES: usize = 4;
/// Chunks that a listing looks up at a time.
const LISTED_CHUNKS: usize = 1024;

/// How chunks of a dataset lie in it.
#[derive(Debug, Clone)]
pub struct ChunkRecordLayout {
    grid: Option<ChunkGrid>,
    /// How the one chunk of a large contiguous dataset is cut.
    cut: Option<LargeContiguousChunking>,
    /// Whether chunks have passed filters.
    pub is_filtered: bool,
    /// Bytes of a decoded chunk.
    pub chunk_bytes: u64,
}

/// A run of bytes of a chunk that lies in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PieceRun {
    /// The first element of the stored chunk (`[rank]`).
    start: Vec<u64>,
    /// The piece of it.
    piece: u32,
    /// Where in the piece (bytes).
    within: Range<usize>,
    /// Where in the run that was asked for (bytes).
    of_run: Range<usize>,
}

/// A stored chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvStoredChunk {
    /// The position in the grid.
    pub coord: ChunkCoord,
    /// Stored bytes.
    pub size: u64,
    /// The filters that were left out.
    pub filter_mask: u32,
}

impl ChunkRecordLayout {
    /// That of a dataset.
    pub fn of(spec: &DatasetSpec) -> Self {
        let bytes = spec.chunk_bytes_or_total().unwrap_or_default();
        let cut = LargeContiguousChunking::of(spec);
        ChunkRecordLayout {
            grid: spec.grid_or_single_chunk(),
            cut,
            is_filtered: !spec.filters.is_empty(),
            chunk_bytes: bytes,
        }
    }

    fn start(&self, coord: &ChunkCoord) -> Vec<u64> {
        self.grid.as_ref().map(|grid| grid.start_of(coord).to_vec()).unwrap_or_default()
    }

    /// The position in the grid of the chunk that begins at an element (`[rank]`).
    pub fn coord(&self, start: &[u64]) -> ChunkCoord {
        self.grid.as_ref().map_or_else(|| ChunkCoord::new(start), |grid| grid.chunk_of(start))
    }

    /// The chunk in which a piece lies that belongs to what begins at an element (`[rank]`), and where in it the piece begins
    /// (bytes).
    pub fn place_of_piece(&self, start: &[u64], piece: u32) -> Option<(ChunkCoord, u64)> {
        let within = u64::from(piece) * CHUNK_PIECE_BYTES;
        match &self.cut {
            Some(cut) => Some((ChunkCoord::origin(start.len()), cut.byte_offset_of_chunk(start)?.checked_add(within)?)),
            None => Some((self.coord(start), within)),
        }
    }

    /// Whether a chunk of a dataset with filters is stored without them, because it reaches over the extent.
    pub fn is_unfiltered_edge(&self, spec: &DatasetSpec, coord: &ChunkCoord) -> bool {
        let grid = self.grid.as_ref().filter(|_| self.is_filtered && spec.unfiltered_partial_chunks);
        grid.is_some_and(|grid| grid.chunk_exceeds_extent(coord, spec.dataspace.dims()))
    }

    fn filtered_key(&self, dataset: ObjectId, coord: &ChunkCoord) -> EngineKey {
        key::filtered_chunk(dataset, &self.start(coord))
    }

    /// The key of all of a chunk without filters, if it has one piece.
    pub fn single_piece_key(&self, dataset: ObjectId, coord: &ChunkCoord) -> Option<EngineKey> {
        let is_single = !self.is_filtered && self.cut.is_none() && self.chunk_bytes <= CHUNK_PIECE_BYTES;
        is_single.then(|| key::chunk_piece(dataset, &self.start(coord), 0))
    }

    /// The pieces in which a run of bytes of a chunk lies.
    fn piece_runs(&self, coord: &ChunkCoord, at: u64, len: usize) -> Vec<PieceRun> {
        let (mut runs, mut done) = (Vec::with_capacity(1), 0);
        while done < len {
            let position = at + done as u64;
            let (start, within_chunk, left) = match &self.cut {
                Some(cut) => cut.chunk_offset_and_bytes_left(position),
                None => (self.start(coord), position, u64::MAX),
            };
            let within = (within_chunk % CHUNK_PIECE_BYTES) as usize;
            let part =
                (CHUNK_PIECE_BYTES as usize - within).min(len - done).min(usize::try_from(left).unwrap_or(usize::MAX));
            let piece = (within_chunk / CHUNK_PIECE_BYTES) as u32;
            runs.push(PieceRun { start, piece, within: within..within + part, of_run: done..done + part });
            done += part;
        }
        runs
    }
}

impl PieceRun {
    fn key(&self, dataset: ObjectId) -> EngineKey {
        key::chunk_piece(dataset, &self.start, self.piece)
    }

    /// Where the run begins in the stored chunk (bytes), which begins with an element.
    fn begin(&self) -> u64 {
        u64::from(self.piece) * CHUNK_PIECE_BYTES + self.within.start as u64
    }
}

/// How many of the bytes of a piece are stored: those behind are fill values. `at` is where the piece begins in the
/// chunk (bytes).
fn stored_len(spec: &DatasetSpec, at: u64, bytes: &[u8]) -> usize {
    let Some(pattern) = spec.nonzero_fill_value() else {
        return bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    };
    let size = pattern.len() as u64;
    let is_fill = |index: usize, byte: u8| pattern.get(((at + index as u64) % size) as usize) == Some(&byte);
    let last = bytes.iter().enumerate().rposition(|(index, byte)| !is_fill(index, *byte));
    last.map_or(0, |last| last + 1)
}

/// Stores a whole chunk without filters.
pub fn put_unfiltered_chunk(state: &mut KvState, id: ObjectId, spec: &DatasetSpec, coord: &ChunkCoord, bytes: &[u8]) {
    for run in ChunkRecordLayout::of(spec).piece_runs(coord, 0, bytes.len()) {
        let bytes = &bytes[run.of_run.clone()];
        let len = stored_len(spec, run.begin(), bytes);
        match len > 0 || run.piece == 0 {
            true => state.put_concatenated(&run.key(id), &[&bytes[..len]]),
            false => state.delete(&run.key(id)),
        }
    }
}

/// Stores a chunk as filters left it.
pub fn put_filtered_chunk(
    state: &mut KvState,
    id: ObjectId,
    spec: &DatasetSpec,
    coord: &ChunkCoord,
    filter_mask: u32,
    bytes: &[u8],
) {
    let key = ChunkRecordLayout::of(spec).filtered_key(id, coord);
    state.put_concatenated(&key, &[&filter_mask.to_le_bytes(), bytes]);
}

/// Overwrites a part of a chunk without filters, from `at` on (bytes).
///
/// # Errors
/// [`ModelError::Store`] if what is there cannot be read.
pub fn put_unfiltered_chunk_range(
    state: &mut KvState,
    id: ObjectId,
    spec: &DatasetSpec,
    (coord, at): (&ChunkCoord, u64),
    bytes: &[u8],
) -> Result<()> {
    let shape = ChunkRecordLayout::of(spec);
    for run in shape.piece_runs(coord, at, bytes.len()) {
        let (key, within) = (run.key(id), run.within.clone());
        let first = key::chunk_piece(id, &run.start, 0);
        if run.piece != 0 && !state.view_with_edits().has(first.as_bytes())? {
            state.put(&first, []);
        }
        let overwrite = |stored: &mut Vec<u8>| {
            if stored.len() < within.end {
                let known = stored.len();
                stored.resize(within.end, 0);
                // Only what lies before the part is not overwritten.
                let begin = u64::from(run.piece) * CHUNK_PIECE_BYTES + known as u64;
                spec.fill_into(begin, &mut stored[known..within.start.max(known)]);
            }
            stored[within.clone()].copy_from_slice(&bytes[run.of_run.clone()]);
        };
        if !state.edits.update_if_put(key.as_bytes(), overwrite) {
            let is_whole = within.len() as u64 == CHUNK_PIECE_BYTES;
            if is_whole {
                state.put_concatenated(&key, &[&bytes[run.of_run.clone()]]);
                continue;
            }
            let mut stored = state.edits.take_spare_buffer(within.end);
            state.view_with_edits().with_value(key.as_bytes(), &mut |known| stored.extend_from_slice(known))?;
            overwrite(&mut stored);
            state.edits.put(key.as_bytes(), stored);
        }
    }
    Ok(())
}

/// Where a chunk is stored; `None` if nobody wrote it.
///
/// # Errors
/// [`ModelError::Store`] if the store cannot be read.
pub fn find_chunk(
    state: &ViewWithEdits<'_>,
    id: ObjectId,
    layout: &ChunkRecordLayout,
    coord: &ChunkCoord,
) -> Result<Option<KvStoredChunk>> {
    let found = |size, filter_mask| KvStoredChunk { coord: coord.clone(), size, filter_mask };
    if layout.cut.is_some() {
        return Ok(state.has_any(&KeySpan::from(&key::chunks(id)))?.then(|| found(layout.chunk_bytes, 0)));
    }
    if !layout.is_filtered {
        let first = key::chunk_piece(id, &layout.start(coord), 0);
        return Ok(state.has(first.as_bytes())?.then(|| found(layout.chunk_bytes, 0)));
    }
    let mut chunk = None;
    state.with_value(layout.filtered_key(id, coord).as_bytes(), &mut |value| chunk = Some(filtered_size(value)))?;
    match chunk {
        Some(Some((mask, size))) => Ok(Some(found(size, mask))),
        Some(None) => Err(contradiction_error(id, "a filtered chunk has no mask of filters")),
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
pub fn read_stored_chunk_range(
    state: &ViewWithEdits<'_>,
    id: ObjectId,
    spec: &DatasetSpec,
    (coord, at): (&ChunkCoord, u64),
    into: &mut [u8],
) -> Result<()> {
    let shape = ChunkRecordLayout::of(spec);
    if shape.is_filtered {
        let mut copy = |value: &[u8]| {
            let from = usize::try_from(at).ok().and_then(|at| value.get(FILTER_MASK_BYTES.checked_add(at)?..));
            copy_or_zeros(from.unwrap_or_default(), into);
        };
        return match state.with_value(shape.filtered_key(id, coord).as_bytes(), &mut copy)? {
            true => Ok(()),
            // It was there when it was looked up; whoever looks again finds what is there now.
            false => Err(ModelError::Moved),
        };
    }
    for run in shape.piece_runs(coord, at, into.len()) {
        let into = &mut into[run.of_run.clone()];
        let mut known = 0;
        state.with_value(run.key(id).as_bytes(), &mut |value| {
            let from = value.get(run.within.start..).unwrap_or_default();
            known = from.len().min(into.len());
            into[..known].copy_from_slice(&from[..known]);
        })?;
        spec.fill_into(run.begin() + known as u64, &mut into[known..]);
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
pub fn for_each_stored_chunk(
    state: &ViewWithEdits<'_>,
    id: ObjectId,
    layout: &ChunkRecordLayout,
    each: &mut dyn FnMut(KvStoredChunk) -> bool,
) -> Result<()> {
    if layout.cut.is_some() {
        let rank = layout.grid.as_ref().map_or(0, |grid| grid.chunk_dims().len());
        find_chunk(state, id, layout, &ChunkCoord::origin(rank))?.map(each);
        return Ok(());
    }
    let mut left = KeySpan::from(&key::chunks(id));
    loop {
        let (mut found, mut failure, mut last) = (Vec::new(), None, None);
        state.scan(&left, &mut |key, value| {
            match (EngineKey::parse(key), filtered_size(value)) {
                (Ok((_, RecordKey::ChunkPiece { start, piece: 0 })), _) => {
                    found.push(KvStoredChunk { coord: layout.coord(&start), size: layout.chunk_bytes, filter_mask: 0 });
                }
                (Ok((_, RecordKey::FilteredChunk { start })), Some((filter_mask, size))) => {
                    found.push(KvStoredChunk { coord: layout.coord(&start), size, filter_mask });
                }
                (Ok(_), _) => {}
                (Err(error), _) => failure = Some(error),
            }
            last = Some(key.to_vec());
            failure.is_none() && found.len() < LISTED_CHUNKS
        })?;
        if let Some(error) = failure {
            return Err(damaged_object_error(id)(error));
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
pub fn for_each_decoded_chunk(
    state: &ViewWithEdits<'_>,
    id: ObjectId,
    spec: &DatasetSpec,
    (unfilter, limit): (&Arc<dyn FilterEngine>, AllocationLimit),
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let shape = ChunkRecordLayout::of(spec);
    let (mut chunks, mut failure) = (Vec::new(), None);
    for_each_stored_chunk(state, id, &shape, &mut |chunk| {
        chunks.push(chunk);
        true
    })?;
    for chunk in chunks {
        let mut bytes = limit.zeroed(chunk.size)?;
        read_stored_chunk_range(state, id, spec, (&chunk.coord, 0), &mut bytes)?;
        if shape.is_filtered && !shape.is_unfiltered_edge(spec, &chunk.coord) {
            let decoded = unfilter.unfilter(&spec.filters, chunk.filter_mask, bytes, shape.chunk_bytes);
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
pub fn delete_chunks_outside(state: &mut KvState, id: ObjectId, dims: &[u64]) -> Result<()> {
    let mut outside = Vec::new();
    let mut failure = None;
    state.view_with_edits().scan(&KeySpan::from(&key::chunks(id)), &mut |key, _| {
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
        Some(error) => Err(damaged_object_error(id)(error)),
        None => {
            outside.iter().for_each(|key| state.edits.delete(key));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::{Dataspace, Datatype, Fill, FillValue, Layout, Shape};

    use super::*;

    fn bytes_of(dims: &[u64], layout: Layout) -> DatasetSpec {
        let dataspace = Dataspace::Simple(Shape::fixed(dims));
        let datatype = Datatype::integer(1, Default::default(), Default::default());
        DatasetSpec { datatype, dataspace, layout, ..DatasetSpec::default() }
    }

    #[test]
    fn a_run_is_cut_where_pieces_end() {
        let piece = CHUNK_PIECE_BYTES as usize;
        let shape =
            ChunkRecordLayout::of(&bytes_of(&[9 * CHUNK_PIECE_BYTES], Layout::Chunked(vec![3 * CHUNK_PIECE_BYTES])));
        let coord = ChunkCoord::new(&[2]);
        let run = |piece, within, of_run| PieceRun { start: vec![6 * CHUNK_PIECE_BYTES], piece, within, of_run };
        assert_eq!(shape.piece_runs(&coord, 5, 0), []);
        assert_eq!(shape.piece_runs(&coord, 5, 7), [run(0, 5..12, 0..7)]);
        let runs = [run(0, piece - 2..piece, 0..2), run(1, 0..piece, 2..piece + 2), run(2, 0..1, piece + 2..piece + 3)];
        assert_eq!(shape.piece_runs(&coord, CHUNK_PIECE_BYTES - 2, piece + 3), runs);
    }

    #[test]
    fn a_large_contiguous_dataset_lies_in_chunks_of_rows() {
        // Chunks of [1, 1 MiB]: the last one of each row is shorter.
        let spec = bytes_of(&[2, (5 << 20) / 2], Layout::Contiguous);
        let shape = ChunkRecordLayout::of(&spec);
        let row = 5u64 << 19;
        let side = crate::layout::chunk_dims_if_large_contiguous(&spec).unwrap()[1];
        assert!(side < row && !row.is_multiple_of(side), "{side}");
        let runs = shape.piece_runs(&ChunkCoord::origin(2), row - 3, 5);
        let last = (row - 1) / side * side;
        let within = ((row - 3 - last) % CHUNK_PIECE_BYTES) as usize;
        let piece = ((row - 3 - last) / CHUNK_PIECE_BYTES) as u32;
        assert_eq!(
            runs,
            [
                PieceRun { start: vec![0, last], piece, within: within..within + 3, of_run: 0..3 },
                PieceRun { start: vec![1, 0], piece: 0, within: 0..2, of_run: 3..5 },
            ]
        );
        let whole = shape.piece_runs(&ChunkCoord::origin(2), 0, 2 * row as usize);
        assert_eq!(whole.iter().map(|run| run.of_run.len()).sum::<usize>(), 2 * row as usize);
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
