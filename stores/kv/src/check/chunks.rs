//! The chunks of datasets.

use h5live_model::{ChunkCoord, ChunkGrid, DatasetSpec, Layout, ObjectId, Result, is_unfilter_limitation};

use super::{CheckedContainer, ChunkFault, KvFault};
use crate::chunk_records::{self, ChunkRecordLayout, FILTER_MASK_BYTES};
use crate::engine::KeySpan;
use crate::layout::{CHUNK_PIECE_BYTES, EngineKey, RecordKey, chunk_dims_if_large_contiguous, key};

/// Bytes of elements that are looked at together.
const WINDOW_BYTES: u64 = 1 << 20;

/// Where chunks of a dataset may begin, and how large they are.
struct ExpectedChunks<'a> {
    /// The sides of chunks (`[rank]`, elements); `None`: there are no chunks.
    dims: Option<Vec<u64>>,
    extent: &'a [u64],
    /// Bytes of a chunk.
    bytes: u64,
    is_filtered: bool,
}

impl<'a> ExpectedChunks<'a> {
    fn of(spec: &'a DatasetSpec) -> Self {
        let has_chunks = !matches!(spec.layout, Layout::Virtual(_) | Layout::External(_));
        let dims = chunk_dims_if_large_contiguous(spec)
            .or_else(|| spec.chunk_dims_or_extent().map(<[u64]>::to_vec))
            .filter(|_| has_chunks);
        let elements = dims.iter().flatten().try_fold(1u64, |all, dim| all.checked_mul(*dim));
        let bytes = elements.and_then(|all| all.checked_mul(spec.datatype.size().into())).unwrap_or(u64::MAX);
        ExpectedChunks { dims, extent: spec.dataspace.dims(), bytes, is_filtered: !spec.filters.is_empty() }
    }

    fn place_fault(&self, start: &[u64], is_filtered: bool) -> Option<ChunkFault> {
        let is_start = |dims: &Vec<u64>| {
            dims.len() == start.len() && start.iter().zip(dims).all(|(at, side)| at.checked_rem(*side) == Some(0))
        };
        if !self.dims.as_ref().is_some_and(is_start) {
            return Some(ChunkFault::NotAChunkStart);
        }
        if start.iter().zip(self.extent).any(|(at, dim)| at >= dim) {
            return Some(ChunkFault::OutsideExtent(self.extent.to_vec()));
        }
        (is_filtered != self.is_filtered).then_some(ChunkFault::FilteringMismatch)
    }

    fn piece_fault(&self, piece: u32, bytes: u64) -> Option<ChunkFault> {
        let max = self.bytes.saturating_sub(u64::from(piece) * CHUNK_PIECE_BYTES).min(CHUNK_PIECE_BYTES);
        // A piece of no bytes behind the end is too many, too.
        let is_wrong = bytes > max || (max == 0 && piece > 0);
        is_wrong.then_some(ChunkFault::InvalidPieceLength { piece, bytes, max })
    }
}

/// Whether the elements of a chunk, by their number, are inside of an extent.
fn inside(spec: &DatasetSpec, coord: &ChunkCoord, first: u64) -> impl FnMut(usize) -> bool {
    let grid: Option<ChunkGrid> = spec.grid_or_single_chunk().filter(|_| matches!(spec.layout, Layout::Chunked(_)));
    let extent = spec.dataspace.dims().to_vec();
    let start = grid.as_ref().map(|grid| grid.start_of(coord).to_vec()).unwrap_or_default();
    move |number| {
        let Some(grid) = &grid else { return true };
        let mut rest = first.saturating_add(number as u64);
        let mut sides = grid.chunk_dims().iter().zip(&start).zip(&extent).rev();
        sides.all(|((side, start), dim)| {
            let at = start.saturating_add(rest.checked_rem(*side).unwrap_or_default());
            rest = rest.checked_div(*side).unwrap_or_default();
            at < *dim
        })
    }
}

impl CheckedContainer<'_> {
    /// Looks at the records of a dataset's chunks, and at their elements if these lead to blobs, or filters are to be
    /// undone.
    pub(super) fn check_chunks(&mut self, id: ObjectId, spec: &DatasetSpec) -> Result<()> {
        let (state, expected, shape) = (self.state, ExpectedChunks::of(spec), ChunkRecordLayout::of(spec));
        let has_heap_references = spec.datatype.has_vlen_or_references();
        let mut begun: Option<Vec<u64>> = None;
        // The chunk, and its first byte that was not looked at.
        let mut seen: Option<(ChunkCoord, u64)> = None;
        state.for_each_value_len_reentrant(&KeySpan::from(&key::chunks(id)), |key, bytes| -> Result<bool> {
            let (start, fault) = match EngineKey::parse(key) {
                Ok((_, RecordKey::ChunkPiece { start, piece })) => {
                    let start = start.into_owned();
                    let mut fault = expected.place_fault(&start, false).or(expected.piece_fault(piece, bytes));
                    if begun.as_ref() != Some(&start) {
                        begun = Some(start.clone());
                        fault = fault.or((piece != 0).then_some(ChunkFault::NoFirstPiece));
                    }
                    if has_heap_references
                        && fault.is_none()
                        && let Some(place) = shape.place_of_piece(&start, piece)
                    {
                        self.check_elements(id, spec, place, &mut seen)?;
                    }
                    (start, fault)
                }
                Ok((_, RecordKey::FilteredChunk { start })) => {
                    let start = start.into_owned();
                    let mut fault = expected.place_fault(&start, true);
                    if fault.is_none() && (has_heap_references || self.what.verify_data) {
                        fault = self.check_filtered(id, spec, &start)?;
                    }
                    let has_mask = bytes >= FILTER_MASK_BYTES as u64;
                    (start, fault.or((!has_mask).then_some(ChunkFault::NoFilterMask)))
                }
                // A fault already.
                _ => return Ok(!self.is_full()),
            };
            if let Some(fault) = fault {
                self.add_fault(id, KvFault::Chunk { start, fault });
            }
            Ok(!self.is_full())
        })
    }

    /// Undoes the filters of a chunk, and looks at its elements.
    fn check_filtered(&mut self, id: ObjectId, spec: &DatasetSpec, start: &[u64]) -> Result<Option<ChunkFault>> {
        let (shape, coord) = (ChunkRecordLayout::of(spec), ChunkRecordLayout::of(spec).coord(start));
        self.limit.check(shape.chunk_bytes)?;
        let value = self.state.get(key::filtered_chunk(id, start).as_bytes())?.unwrap_or_default();
        let Some((mask, bytes)) = value.split_first_chunk() else { return Ok(Some(ChunkFault::NoFilterMask)) };
        let mask = u32::from_le_bytes(*mask);
        if shape.is_unfiltered_edge(spec, &coord) {
            let bytes_stored = bytes.len() as u64;
            if bytes_stored != shape.chunk_bytes {
                return Ok(Some(ChunkFault::InvalidPieceLength {
                    piece: 0,
                    bytes: bytes_stored,
                    max: shape.chunk_bytes,
                }));
            }
            self.check_values(id, &spec.datatype, bytes, &mut inside(spec, &coord, 0))?;
            return Ok(None);
        }
        match self.unfilter.unfilter(&spec.filters, mask, bytes.to_vec(), shape.chunk_bytes) {
            Ok(elements) => {
                self.check_values(id, &spec.datatype, &elements, &mut inside(spec, &coord, 0))?;
                Ok(None)
            }
            Err(error) => {
                self.has_unseen_values |= spec.datatype.has_vlen_or_references();
                if is_unfilter_limitation(&*error) {
                    self.report.unverified_part_count += 1;
                    return Ok(None);
                }
                Ok(Some(ChunkFault::UnfilterFailed(error.to_string())))
            }
        }
    }

    /// Looks at the elements of a piece of a chunk without filters. Where nothing is stored, however far a dataset reaches,
    /// elements are fill values.
    fn check_elements(
        &mut self,
        id: ObjectId,
        spec: &DatasetSpec,
        (coord, begin): (ChunkCoord, u64),
        seen: &mut Option<(ChunkCoord, u64)>,
    ) -> Result<()> {
        let (bytes, size) = (ChunkRecordLayout::of(spec).chunk_bytes, u64::from(spec.datatype.size()).max(1));
        let window = (WINDOW_BYTES / size).max(1) * size;
        let known = seen.as_ref().filter(|(chunk, _)| *chunk == coord).map_or(0, |(_, end)| *end);
        let end = bytes.min(begin.saturating_add(CHUNK_PIECE_BYTES));
        // The first and the last element may lie in the neighbouring pieces, too.
        let mut at = (begin - begin % size).max(known);
        while at < end && !self.is_full() {
            self.check_window(id, spec, (&coord, at), window.min(bytes - at))?;
            at = at.saturating_add(window);
        }
        *seen = Some((coord, at));
        Ok(())
    }

    fn check_window(
        &mut self,
        id: ObjectId,
        spec: &DatasetSpec,
        (coord, at): (&ChunkCoord, u64),
        bytes: u64,
    ) -> Result<()> {
        let mut elements = self.limit.zeroed(bytes)?;
        chunk_records::read_stored_chunk_range(&self.state, id, spec, (coord, at), &mut elements)?;
        let first = at / u64::from(spec.datatype.size()).max(1);
        self.check_values(id, &spec.datatype, &elements, &mut inside(spec, coord, first))
    }
}
