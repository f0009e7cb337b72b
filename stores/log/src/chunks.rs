//! The elements of one dataset that is in the log.

use std::collections::BTreeSet;
use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_model::{
    ChunkBatch, ChunkCoord, ChunkGrid, ChunkReadRequest, ChunkSink, ChunkStore, ChunkWrite, DatasetSpec, Dataspace,
    Error, FileBackedBytes, Layout, ObjectId, StoreFeatures, StoredChunk, UNLIMITED, check_block_in_chunk,
    read_chunks_sequentially, split_run_into_blocks,
};
use parking_lot::Mutex;

use crate::anchor::AnchorDataset;
use crate::encode::{BlockData, UnstagedEntry, split_into_filtered_entries, split_into_plain_entries};
use crate::entry::{DimVec, EntryChange};
use crate::entry_box_index::{EntryDataLocation, EntrySelectionKind};
use crate::error::Result;
use crate::gather::{Gatherer, gather_boxes};
use crate::log_state::LogState;
use crate::session::LogSession;

/// More chunks than one byte of an entry can be of that went through a filter.
const MAX_CHUNKS_PER_FILTERED_BYTE: u64 = 1 << 17;
/// Chunks that a listing holds in memory; of a dataset with more, each position of the grid is looked at, if they are no more.
const MAX_LISTED_CHUNKS: u64 = 1 << 20;

/// A dataset that is in the log.
pub struct LoggedChunkStore {
    session: Arc<LogSession>,
    /// The anchor in the store beneath.
    anchor: Arc<dyn ChunkStore>,
    /// The number of the dataset.
    number: u64,
    /// The dataset with the extent that was seen last. In a session that writes, the log knows the extent.
    spec: Mutex<Arc<DatasetSpec>>,
    /// Removals of the session when the anchor was last found to be there.
    found_after_removals: AtomicU64,
}

impl fmt::Debug for LoggedChunkStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedChunkStore").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The description with another extent.
fn with_extent(spec: &DatasetSpec, dims: &[u64]) -> DatasetSpec {
    let mut spec = spec.clone();
    if let Dataspace::Simple(shape) = &mut spec.dataspace {
        shape.try_resize(dims);
    }
    spec
}

fn invalid(text: String) -> Error {
    Error::Invalid(text)
}

impl LoggedChunkStore {
    /// The dataset of an anchor, with its present extent.
    ///
    /// # Errors
    /// If the index table is damaged; errors of the store beneath.
    pub fn new(
        session: &Arc<LogSession>,
        anchor: Arc<dyn ChunkStore>,
        anchored_dataset: AnchorDataset,
    ) -> Result<Self> {
        let extent = session.extent_of(anchored_dataset.number, &anchored_dataset.spec)?;
        let spec = Mutex::new(Arc::new(with_extent(&anchored_dataset.spec, &extent)));
        let found_after_removals = AtomicU64::new(0);
        Ok(LoggedChunkStore {
            session: session.clone(),
            anchor,
            number: anchored_dataset.number,
            spec,
            found_after_removals,
        })
    }

    /// The description, if the dataset is still there.
    fn current_spec(&self) -> Result<Arc<DatasetSpec>> {
        self.session.check_open()?;
        let removals = self.session.possible_removal_count();
        if self.found_after_removals.load(Ordering::Acquire) != removals {
            self.anchor.refresh()?;
            self.found_after_removals.store(removals, Ordering::Release);
        }
        self.anchor.spec()?;
        let mut spec = self.spec.lock();
        // Where others append, too, the extent is another one only after a refresh: rows that are appended are counted on
        // from it.
        if self.session.writes() && !self.session.is_joined_writer() {
            let state = self.session.state();
            let extent = state.dataset(self.number).and_then(|dataset| dataset.extent.as_deref());
            if let Some(extent) = extent.filter(|extent| *extent != spec.dataspace.dims()) {
                *spec = Arc::new(with_extent(&spec, extent));
            }
        }
        Ok(spec.clone())
    }

    /// The box of a chunk: its first element, and one past its last one. `None` if the dataset has no such chunk.
    fn chunk_box(spec: &DatasetSpec, coord: &ChunkCoord) -> Option<(DimVec, DimVec)> {
        spec.chunk_bytes_at(coord).ok()?;
        let grid = spec.grid_or_single_chunk()?;
        let start = grid.start_of(coord);
        let end = start.iter().zip(grid.chunk_dims()).map(|(start, side)| start.saturating_add(*side)).collect();
        Some((start, end))
    }

    /// What brings elements together.
    fn gatherer<'a>(&'a self, state: &'a LogState, spec: &'a DatasetSpec) -> Gatherer<'a> {
        let LogSession { filter_engine: unfilter, max_allocation, .. } = &*self.session;
        Gatherer { state, dataset: self.number, spec, filter_engine: &**unfilter, limit: *max_allocation }
    }

    fn find(&self, state: &LogState, spec: &DatasetSpec, coord: &ChunkCoord) -> Option<StoredChunk> {
        let (start, end) = Self::chunk_box(spec, coord)?;
        let may_have_elements =
            state.dataset(self.number).is_some_and(|dataset| dataset.index.may_have_elements(&start, &end));
        let size = spec.chunk_bytes_or_total()?;
        may_have_elements.then(|| StoredChunk { coord: coord.clone(), file_offset: None, size, filter_mask: 0 })
    }

    /// The chunks in which something was written, and maybe more; `None` if they are many, and to look at each position of
    /// the grid takes less. So neither is more than the log has elements.
    fn listed_chunks(
        &self,
        state: &LogState,
        spec: &DatasetSpec,
        grid: &ChunkGrid,
    ) -> Result<Option<BTreeSet<ChunkCoord>>> {
        let mut listed = BTreeSet::new();
        let Some(dataset) = state.dataset(self.number) else { return Ok(Some(listed)) };
        let mut total = 0u64;
        dataset.index.for_each_data_entry(|start, end, place| {
            let chunks = product(&chunks_of_box(grid, start, end).1);
            let points = if let EntrySelectionKind::Points(points) = place.kind { points } else { u64::MAX };
            total = total.saturating_add(chunks.min(points));
            true
        });
        if total > MAX_LISTED_CHUNKS && product(&grid.chunk_counts(spec.dataspace.dims())) <= total {
            return Ok(None);
        }
        let gatherer = self.gatherer(state, spec);
        let mut result = Ok(());
        dataset.index.for_each_data_entry(|start, end, place| {
            let (first, counts) = chunks_of_box(grid, start, end);
            match place.kind {
                // Points may lie far from each other.
                EntrySelectionKind::Points(points) if points < product(&counts) => {
                    match gatherer.read_coords(place, points, start.len()) {
                        Ok(coords) => {
                            listed.extend(coords.chunks_exact(start.len().max(1)).map(|at| grid.chunk_of(at)))
                        }
                        Err(error) => result = Err(error),
                    }
                }
                // Each chunk has an element at least.
                _ if product(&counts) > most_chunks(place) => {
                    result = Err(gatherer.invalid_entry_error(place.at, "has a larger box than its data can be of"));
                }
                _ => for_each_position(&counts, |at| {
                    let scaled: DimVec = first.scaled().iter().zip(at).map(|(first, at)| first + at).collect();
                    listed.insert(ChunkCoord::new(&scaled));
                    true
                }),
            }
            result.is_ok()
        });
        result.map(|()| Some(listed))
    }

    /// Checks a write, and adds the boxes of elements that it is: start and sides of each, and the bytes.
    fn push_boxes<'a>(spec: &DatasetSpec, write: &ChunkWrite<'a>, boxes: &mut Vec<BlockData<'a>>) -> Result<()> {
        let whole = spec.chunk_bytes_at(write.first_coord())?;
        let grid = spec.grid_or_single_chunk().ok_or_else(|| invalid("the dataset has no elements".to_owned()))?;
        let chunk = |coord: &ChunkCoord, bytes: &'a [u8]| {
            spec.chunk_bytes_at(coord)?;
            if bytes.len() as u64 != whole {
                return Err(invalid(format!("{} bytes are not a chunk of {whole} bytes", bytes.len())));
            }
            Ok((grid.start_of(coord), DimVec::from_slice(grid.chunk_dims()), bytes))
        };
        match *write {
            ChunkWrite::Whole { filter_mask: 1.., .. } if !spec.filters.is_empty() => {
                Err(invalid("chunks of a log are not filtered, so no filter is left out".to_owned()))
            }
            ChunkWrite::Whole { coord, bytes, .. } => {
                boxes.push(chunk(coord, bytes)?);
                Ok(())
            }
            ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } => {
                let mut coord = first.clone();
                for bytes in bytes.chunks(size.max(1)) {
                    boxes.push(chunk(&coord, bytes)?);
                    coord.advance_first_axis();
                }
                Ok(())
            }
            ChunkWrite::ByteRange { .. } => Err(Error::Unsupported("writing a part of a chunk by its bytes")),
            ChunkWrite::ElementBlock { coord, start, count, bytes } => {
                let sides = grid.chunk_dims();
                let inside = start.len() == sides.len()
                    && count.len() == sides.len()
                    && start
                        .iter()
                        .zip(count)
                        .zip(sides)
                        .all(|((start, count), side)| start.checked_add(*count).is_some_and(|end| end <= *side));
                let elements = count.iter().try_fold(1u64, |n, count| n.checked_mul(*count));
                let len = elements.and_then(|n| n.checked_mul(spec.datatype.size().into()));
                if !inside || len != Some(bytes.len() as u64) {
                    return Err(invalid(format!("{} bytes are no box {count:?} at {start:?} in a chunk", bytes.len())));
                }
                let first =
                    grid.start_of(coord).iter().zip(start).map(|(chunk, at)| chunk.saturating_add(*at)).collect();
                boxes.push((first, DimVec::from_slice(count), bytes));
                Ok(())
            }
        }
    }

    /// The change of the log that makes the extent this; `None` if it is this already.
    fn extent_change(&self, spec: &DatasetSpec, dims: &[u64]) -> Result<Option<EntryChange>> {
        let (now, max) = (spec.dataspace.dims(), spec.dataspace.max_dims());
        if dims.len() != now.len() || dims.iter().zip(max).any(|(dim, max)| dim > max || *dim == UNLIMITED) {
            return Err(invalid(format!("the dataset cannot have the extent {dims:?}; its maximum is {max:?}")));
        }
        if dims == now {
            return Ok(None);
        }
        if !matches!(spec.layout, Layout::Chunked(_)) {
            return Err(invalid("only a chunked dataset can be resized".to_owned()));
        }
        let grows = dims.iter().zip(now).all(|(dim, now)| dim >= now);
        if !grows && !self.session.info.capabilities.features.has(StoreFeatures::SHRINK) {
            return Err(Error::Unsupported("making a dataset smaller in Log VOL's layout (layout=logvol)"));
        }
        let dims = DimVec::from_slice(dims);
        Ok(Some(if grows { EntryChange::GrowToAtLeast(dims) } else { EntryChange::ShrinkTo(dims) }))
    }

    /// Takes up what the session knows of the dataset since it has caught up with the log. Says whether the extent is
    /// another one.
    ///
    /// # Errors
    /// If the dataset is gone, or the index table is damaged; errors of the store beneath.
    pub fn refresh_extent_from_session(&self) -> Result<bool> {
        if self.session.writes() && !self.session.is_joined_writer() {
            return Ok(false);
        }
        self.anchor.refresh()?;
        let mut spec = self.spec.lock();
        let extent = self.session.extent_of(self.number, &spec)?;
        if *extent == *spec.dataspace.dims() {
            return Ok(false);
        }
        *spec = Arc::new(with_extent(&spec, &extent));
        Ok(true)
    }

    /// Leaves out the rows of chunks that lie behind the extent `dims`, if they are fill values and nothing was written
    /// there: a chunk that is written as a whole takes no more room than the dataset has rows. A session that has joined
    /// others does not know what they have written there.
    fn leave_out_unused_rows(&self, spec: &DatasetSpec, dims: &[u64], boxes: &mut [BlockData<'_>]) -> Result<()> {
        let rows = match (&spec.layout, dims.first()) {
            (Layout::Chunked(_), Some(rows)) if !self.session.is_joined_writer() => *rows,
            _ => return Ok(()),
        };
        let mut fill = vec![0; spec.datatype.size() as usize];
        spec.fill_into(0, &mut fill);
        for at in 0..boxes.len() {
            let (start, count, bytes) = &boxes[at];
            let Some(kept) = rows.checked_sub(start[0]).filter(|kept| (1..count[0]).contains(kept)) else { continue };
            let (used, unused) = bytes.split_at(bytes.len() / count[0] as usize * kept as usize);
            if unused.chunks(fill.len()).any(|element| *element != fill[..]) {
                continue;
            }
            let mut from = start.clone();
            from[0] = rows;
            let to: DimVec = start.iter().zip(count).map(|(start, count)| start.saturating_add(*count)).collect();
            let overlaps = |(start, count, _): &BlockData<'_>| {
                let sides = start.iter().zip(count).zip(from.iter().zip(&to));
                sides.into_iter().all(|((start, count), (from, to))| start < to && *from < start.saturating_add(*count))
            };
            if boxes[..at].iter().any(overlaps) {
                continue;
            }
            let state = self.session.state_with_updated_index(self.number, spec.dataspace.rank())?;
            if !state.dataset(self.number).is_some_and(|dataset| dataset.index.may_have_elements(&from, &to)) {
                boxes[at].1[0] = kept;
                boxes[at].2 = used;
            }
        }
        Ok(())
    }

    fn stage_batch(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        if !self.session.writes() {
            return Err(Error::ReadOnly);
        }
        let spec = self.current_spec()?;
        let extent = batch.extent.map_or(Ok(None), |dims| self.extent_change(&spec, dims))?;
        let mut boxes: Vec<BlockData<'_>> = Vec::with_capacity(batch.writes.len());
        batch.writes.iter().try_for_each(|write| Self::push_boxes(&spec, write, &mut boxes))?;
        boxes.retain(|(.., bytes)| !bytes.is_empty());
        self.leave_out_unused_rows(&spec, batch.extent.unwrap_or(spec.dataspace.dims()), &mut boxes)?;
        batch.publish_after.iter().try_for_each(|earlier| self.session.inner.kind(*earlier).map(drop))?;
        let rank = spec.dataspace.rank();
        let elements = batch.extent.unwrap_or(spec.dataspace.dims()).iter().fold(1u64, |n, dim| n.saturating_mul(*dim));
        let rows = rows_behind(&spec, &boxes);
        let entries = match self.session.options.filter.filter_for(&spec) {
            Some(filter) => split_into_filtered_entries(boxes, &filter, &*self.session.filter_engine)?,
            None => split_into_plain_entries(boxes),
        };
        self.session.change_state(|state| {
            if self.session.is_joined_writer() {
                note_appended(state, self.number, &spec, rows, extent.as_ref());
            }
            let keeps_blocks = state.has_rows_to_place_in(self.number);
            for entry in entries {
                match &entry.change {
                    EntryChange::Block { start, count }
                        if count.iter().all(|count| *count == 1) && entry.filter_id == 0 && !keeps_blocks =>
                    {
                        state.stage_point(self.number, start, &entry.data)?;
                    }
                    _ => {
                        state.set_expected_element_count(self.number, rank, elements)?;
                        state.stage_entry(self.number, rank, entry)?;
                    }
                }
            }
            extent.map_or(Ok(()), |change| {
                self.session.track_changed_extent(self.number, self.anchor.id());
                state.stage_entry(self.number, rank, UnstagedEntry::plain(change, &[]))
            })
        })?;
        if let Some(dims) = batch.extent.filter(|_| self.session.is_joined_writer()) {
            let mut spec = self.spec.lock();
            *spec = Arc::new(with_extent(&spec, dims));
        }
        Ok(())
    }
}

/// The rows of boxes that lie behind the extent of a dataset.
fn rows_behind(spec: &DatasetSpec, boxes: &[BlockData<'_>]) -> Option<Range<u64>> {
    let rows = *spec.dataspace.dims().first().filter(|_| matches!(spec.layout, Layout::Chunked(_)))?;
    let behind = boxes.iter().filter_map(|(start, count, _)| {
        let (first, rows_of_box) = (*start.first()?, *count.first()?);
        (first >= rows).then(|| first..first.saturating_add(rows_of_box))
    });
    behind.reduce(|all, next| all.start.min(next.start)..all.end.max(next.end))
}

/// Notes what a batch of a writer that has joined appends: `rows` behind the extent of `spec`, or nothing. The extent
/// becomes another one by `extent`.
fn note_appended(
    state: &mut LogState,
    dataset: u64,
    spec: &DatasetSpec,
    rows: Option<Range<u64>>,
    extent: Option<&EntryChange>,
) {
    let (now, max) = (spec.dataspace.dims(), spec.dataspace.max_dims());
    let grown = match extent {
        Some(EntryChange::ShrinkTo(_)) => return state.appended_rows_mut(dataset).record_shrink(),
        Some(EntryChange::GrowToAtLeast(dims)) => dims.first().copied().filter(|rows| now.first() < Some(rows)),
        _ => None,
    };
    if rows.is_none() && grown.is_none() {
        return;
    }
    let appended = state.appended_rows_mut(dataset);
    let known = now.first().copied().unwrap_or(0);
    if let Some(rows) = rows.filter(|rows| appended.is_append(rows.start, known)) {
        let end = grown.map_or(rows.end, |grown| grown.max(rows.end));
        appended.push(rows.start..end, now, max);
    }
    grown.into_iter().for_each(|grown| appended.record_growth_to(grown));
}

/// The first chunk that has elements of a box, and how many there are along each dimension.
fn chunks_of_box(grid: &ChunkGrid, start: &[u64], end: &[u64]) -> (ChunkCoord, DimVec) {
    let first = grid.chunk_of(start);
    let last = end.iter().zip(grid.chunk_dims()).map(|(end, side)| end.saturating_sub(1) / side);
    let counts = last.zip(first.scaled()).map(|(last, first)| last.saturating_sub(*first).saturating_add(1)).collect();
    (first, counts)
}

/// More chunks than the data of an entry can be of, which has a byte for each at least.
fn most_chunks(place: &EntryDataLocation) -> u64 {
    place.len.saturating_mul(if place.filter_id == 0 { 1 } else { MAX_CHUNKS_PER_FILTERED_BYTE })
}

/// All positions of a grid of these counts.
fn product(counts: &[u64]) -> u64 {
    counts.iter().fold(1, |product, count| product.saturating_mul(*count))
}

/// Calls `each` with every position of a grid of these counts, the last dimension fastest, until it returns `false`.
fn for_each_position(counts: &[u64], mut each: impl FnMut(&[u64]) -> bool) {
    if counts.contains(&0) {
        return;
    }
    let mut at = DimVec::from_elem(0, counts.len());
    while each(&at) {
        let Some(dim) = (0..counts.len()).rev().find(|dim| at[*dim] + 1 < counts[*dim]) else { return };
        at[dim] += 1;
        at[dim + 1..].fill(0);
    }
}

impl ChunkStore for LoggedChunkStore {
    fn id(&self) -> ObjectId {
        self.anchor.id()
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        self.current_spec()
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        let spec = self.current_spec()?;
        Ok(self.find(&*self.session.state_with_updated_index(self.number, spec.dataspace.rank())?, &spec, coord))
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        let spec = self.current_spec()?;
        let Some(grid) = spec.grid_or_single_chunk() else { return Ok(()) };
        let state = self.session.state_with_updated_index(self.number, spec.dataspace.rank())?;
        if state.dataset(self.number).is_none() {
            return Ok(());
        }
        if let Some(listed) = self.listed_chunks(&state, &spec, &grid)? {
            let found: Vec<_> = listed.iter().filter_map(|coord| self.find(&state, &spec, coord)).collect();
            drop(state);
            found.into_iter().all(each);
            return Ok(());
        }
        drop(state);
        let mut result = Ok(());
        for_each_position(&grid.chunk_counts(spec.dataspace.dims()), |at| match self.locate(&ChunkCoord::new(at)) {
            Ok(found) => found.is_none_or(&mut *each),
            Err(error) => {
                result = Err(error);
                false
            }
        });
        result
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let spec = self.current_spec()?;
        let outside = || invalid(format!("the dataset has no chunk {}", chunk.coord));
        let (first, _) = Self::chunk_box(&spec, &chunk.coord).ok_or_else(outside)?;
        let grid = spec.grid_or_single_chunk().ok_or_else(outside)?;
        let size = u64::from(spec.datatype.size());
        let state = self.session.state_with_updated_index(self.number, spec.dataspace.rank())?;
        let Some(dataset) = state.dataset(self.number) else {
            spec.fill_into(at, into);
            return Ok(());
        };
        let gatherer = self.gatherer(&state, &spec);
        let end = at.saturating_add(into.len() as u64).min(chunk.size);
        // Whole elements are brought together; a part of one is cut out of it.
        let (from, to) = (at / size, end.div_ceil(size));
        let is_cut = !at.is_multiple_of(size) || !end.is_multiple_of(size);
        let mut whole = if is_cut { gatherer.limit.zeroed((to - from) * size)? } else { Vec::new() };
        let elements = if is_cut { &mut whole[..] } else { &mut into[..(end - at) as usize] };
        let boxes = split_run_into_blocks(grid.chunk_dims(), from..to).map(|block| {
            let start: DimVec = first.iter().zip(&block.start).map(|(first, at)| first.saturating_add(*at)).collect();
            let end = start.iter().zip(&block.count).map(|(start, count)| start.saturating_add(*count)).collect();
            (start, end)
        });
        gather_boxes(&gatherer, &dataset.index, boxes, elements)?;
        let len = end.saturating_sub(at) as usize;
        if is_cut {
            into[..len].copy_from_slice(&whole[(at - from * size) as usize..][..len]);
        }
        into[len..].fill(0);
        Ok(())
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()> {
        let spec = self.current_spec()?;
        let outside = || invalid(format!("the dataset has no chunk {}", chunk.coord));
        let (first, _) = Self::chunk_box(&spec, &chunk.coord).ok_or_else(outside)?;
        check_block_in_chunk(&spec, start, count, into.len())?;
        if into.is_empty() {
            return Ok(());
        }
        let sum = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a.saturating_add(*b)).collect::<DimVec>();
        let start = sum(&first, start);
        let state = self.session.state_with_updated_index(self.number, spec.dataspace.rank())?;
        let Some(dataset) = state.dataset(self.number) else {
            spec.fill_into(0, into);
            return Ok(());
        };
        let end = sum(&start, count);
        gather_boxes(&self.gatherer(&state, &spec), &dataset.index, iter::once((start, end)), into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        read_chunks_sequentially(self, wanted, budget, each)
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> Result<Option<u64>> {
        self.session.check_open()?;
        Ok(Some(at).filter(|at| *at < chunk.size))
    }

    fn map(&self, _: &StoredChunk, _: u64) -> Result<Option<FileBackedBytes>> {
        self.session.check_open().map(|()| None)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        self.session.check_open()?;
        if batch.has_changes() {
            self.stage_batch(batch)?;
        }
        match batch.publish {
            Some(publish) if self.session.writes() => self.session.commit(publish),
            _ => Ok(()),
        }
    }

    fn refresh(&self) -> Result<bool> {
        self.session.check_open()?;
        self.session.commit_if_rows_appended()?;
        self.session.catch_up()?;
        self.refresh_extent_from_session()
    }
}
