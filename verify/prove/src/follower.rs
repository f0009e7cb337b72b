//! The reader of rows, which knows what it may see.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use h5live_checker::schedule::{ReaderHistory, ReaderView, Verdict};
use h5live_checker::trace::MarkValues;
use h5live_model::{ChunkStore, Store, StoredChunk};

use crate::generation_observer::GenerationsInTrace;
use crate::observer::{ConcurrentObserver, Observer, RunEnd, run_verdict};
use crate::{Series, SeriesKind, Workload, find_in_root};

/// How a reader goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStrategy {
    /// Chunk by chunk, below the extent.
    Rows,
    /// First the chunks in the index, whatever the extent says, and then as above.
    IndexFirst,
    /// Chunk by chunk, also beyond the extent.
    BeyondExtent,
}

/// Reads all datasets of a workload in several passes, and compares the rows with those that were written.
#[derive(Debug)]
pub struct RowFollower {
    series: Vec<FollowedSeries>,
    passes: usize,
    strategy: ReadStrategy,
    generations: Arc<GenerationsInTrace>,
}

/// A dataset, and what the trace says of it.
#[derive(Debug)]
struct FollowedSeries {
    series: Series,
    issued: MarkValues,
    flushed: MarkValues,
}

/// The state of one dataset in one reader.
struct FollowerState {
    dataset: Arc<dyn ChunkStore>,
    extent: u64,
    /// The versions of rows that have several, and of the first rows of the others' chunks.
    versions: BTreeMap<u64, u64>,
    /// Whether the dataset has waited in vain for something that was missing.
    waited_in_vain: bool,
    /// The origin of everything that is kept of the dataset.
    history: ReaderHistory,
}

impl Hash for FollowerState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.dataset.id(), self.extent, &self.versions, self.waited_in_vain, self.history).hash(state);
    }
}

impl FollowerState {
    /// Notes whether the last operation has waited in vain. Where rows are appended, everything below the extent must
    /// be there.
    fn check_wait(&mut self, observer: &ConcurrentObserver<'_>, series: &Series) -> Result<(), RunEnd> {
        let waited = observer.has_waited_in_vain();
        self.waited_in_vain |= waited;
        match waited && series.is_appendable() {
            true => {
                Err(observer
                    .absence_end(&format!("{}: there are no chunks, the extent is {}", series.name, self.extent)))
            }
            false => Ok(()),
        }
    }
}

impl RowFollower {
    /// A reader for a workload.
    pub fn new(workload: &Workload, look: ReadStrategy, passes: usize) -> Self {
        let watch = |series: &Series| {
            let counter = |what: &str| MarkValues::new(&workload.trace, &format!("{}.{what}", series.name));
            FollowedSeries { series: series.clone(), issued: counter("issued"), flushed: counter("flushed") }
        };
        let series = workload.series.iter().map(watch).collect();
        RowFollower { series, passes, strategy: look, generations: GenerationsInTrace::from_trace(&workload.trace) }
    }

    /// Runs the reader.
    ///
    /// # Errors
    /// The fault of what it saw.
    pub fn run(&self, view: &Arc<ReaderView>) -> Verdict {
        run_verdict(self.follow(&ConcurrentObserver::new(view, &self.generations)))
    }

    fn follow(&self, observer: &ConcurrentObserver<'_>) -> Result<(), RunEnd> {
        let view = observer.view;
        let file = observer.open()?;
        let opened = observer.set_history(ReaderHistory::NONE);
        let mut all = Vec::new();
        let mut floors: Vec<u64> = self
            .series
            .iter()
            .map(|series| series.flushed.last_value_at(view.writer_op_count()).unwrap_or(0))
            .collect();
        observer.checkpoint((&floors, opened))?;
        for series in &self.series {
            let name = series.series.name;
            let id = observer.observe("find the dataset", || find_in_root(&file, name))?;
            let id = id.ok_or_else(|| format!("there is no link {name}"))?;
            // Of the group nothing is kept but where the dataset is.
            observer.set_history(ReaderHistory::NONE);
            observer.checkpoint_state(("found", id, &floors, &all))?;
            let dataset = observer.observe("open the dataset", || file.dataset(id))?;
            let history = observer.set_history(ReaderHistory::NONE);
            all.push(FollowerState { dataset, extent: 0, versions: BTreeMap::new(), waited_in_vain: false, history });
            observer.checkpoint((&floors, opened, &all))?;
        }
        for pass in 0..self.passes {
            for (n, series) in self.series.iter().enumerate() {
                // The known state of this dataset is in the history.
                observer.set_history(std::mem::take(&mut all[n].history));
                if pass > 0 {
                    floors[n] = series.flushed.last_value_at(view.writer_op_count()).unwrap_or(0);
                    observer.add_to_history(floors[n]);
                    refresh(observer, &*all[n].dataset)?;
                    observer.checkpoint((pass, n, &floors, opened, &all))?;
                }
                let floor = std::mem::take(&mut floors[n]);
                let others = (pass, n, floors.clone(), opened);
                self.read_dataset_once(observer, &mut all, n, floor, &others)?;
                all[n].history = observer.set_history(ReaderHistory::NONE);
            }
        }
        Ok(())
    }

    /// Reads dataset `n`. `floor` rows had been flushed when its description was looked up. The rest of the run also
    /// depends on `others`.
    fn read_dataset_once(
        &self,
        observer: &ConcurrentObserver<'_>,
        all: &mut [FollowerState],
        n: usize,
        floor: u64,
        others: &impl Hash,
    ) -> Result<(), RunEnd> {
        let (known, series) = (&mut all[n], &self.series[n]);
        let spec = known.dataset.spec().map_err(|error| format!("a description that was read is gone: {error}"))?;
        let extent = spec.dataspace.dims().first().copied().unwrap_or(0);
        let issued = series.issued.last_value_at(observer.view.writer_op_count()).unwrap_or(0);
        let series = &series.series;
        let name = series.name;
        if extent < known.extent {
            return Err(format!("{name}: the extent went back from {} to {extent}", known.extent).into());
        }
        if extent < series.extent(floor) {
            return Err(format!("{name}: the extent is {extent}, {floor} rows were flushed before it was read").into());
        }
        if extent > series.extent(issued) {
            return Err(format!("{name}: the extent is {extent}, and only {issued} rows were ever written").into());
        }
        known.extent = extent;
        // From here on it matters only to what is written several times.
        let floor = if series.is_appendable() { 0 } else { floor };
        if self.strategy == ReadStrategy::IndexFirst {
            let chunks = observer.observe("list the chunks", || {
                let mut chunks = Vec::new();
                known.dataset.for_each_chunk(&mut |chunk| {
                    chunks.push(chunk);
                    true
                })?;
                Ok::<_, h5live_model::Error>(chunks)
            })?;
            known.check_wait(observer, series)?;
            for (number, chunk) in chunks.iter().enumerate() {
                let at = chunk.coord.scaled().first().copied().unwrap_or(0);
                if at * series.chunk >= series.first {
                    let left = chunks.iter().skip(number).map(chunk_fields).collect::<Vec<_>>();
                    observer.checkpoint_state((others, "listed", n, floor, &left, &*all))?;
                    read_chunk(observer, &mut all[n], series, floor, at, Some(chunk.clone()))?;
                    observer.checkpoint((others, "listed", floor, left, &*all))?;
                }
            }
        }
        let last = if self.strategy == ReadStrategy::BeyondExtent { extent + 2 * series.chunk } else { extent };
        for at in series.first / series.chunk..last.div_ceil(series.chunk) {
            let coord = series.coord(at);
            let chunk = observer.observe("look up a chunk", || all[n].dataset.locate(&coord))?;
            all[n].check_wait(observer, series)?;
            observer.checkpoint_state((others, "found", n, floor, at, chunk.as_ref().map(chunk_fields), &*all))?;
            read_chunk(observer, &mut all[n], series, floor, at, chunk)?;
            observer.checkpoint((others, floor, at, &*all))?;
        }
        Ok(())
    }
}

/// All that a listed chunk says.
fn chunk_fields(chunk: &StoredChunk) -> (Vec<u64>, Option<u64>, u64, u32) {
    (chunk.coord.scaled().to_vec(), chunk.file_offset, chunk.size, chunk.filter_mask)
}

/// Reads what the index says of one chunk.
fn read_chunk(
    observer: &ConcurrentObserver<'_>,
    known: &mut FollowerState,
    series: &Series,
    floor: u64,
    at: u64,
    chunk: Option<StoredChunk>,
) -> Result<(), RunEnd> {
    let (first, name, extent) = (at * series.chunk, series.name, known.extent);
    let min_version = series.min_version(at, floor);
    let Some(chunk) = chunk else {
        return match first < extent && (min_version > 0 || known.versions.contains_key(&first)) {
            true => Err(format!("{name}: there is no chunk for row {first}, the extent is {extent}").into()),
            false => Ok(()),
        };
    };
    let mut bytes = vec![0; series.chunk as usize * 8];
    let mut chunk = Some(chunk);
    let (began_torn, tears) = (observer.view.writer_position().is_torn(), observer.view.torn_position_count());
    // A chunk that was stored at a new place since its lookup is looked up again.
    while let Some(found) = chunk {
        let (queries, before) = (observer.view.query_count(), observer.set_history(ReaderHistory::NONE));
        let read = observer.observe("read a chunk", || {
            match known.dataset.read(&found, series.start_in(&found), &mut bytes) {
                Err(h5live_model::Error::Moved) => Ok(false),
                other => other.map(|()| true),
            }
        });
        let read = read?;
        // A read by one look has read the chunk itself, and keeps only the versions of its rows. Raw data that may
        // change in place is read between two reads of the announced end and of the word there.
        let since = observer.set_history(before);
        let looks = if matches!(series.kind, SeriesKind::Filtered { .. }) { 1 } else { 5 };
        if !read || observer.view.query_count() - queries > looks {
            observer.set_history(before.concat(since));
        }
        chunk = match read {
            true => None,
            false => observer.observe("look up a chunk again", || known.dataset.locate(&found.coord))?,
        };
        if chunk.is_some() {
            bytes.fill(0);
        }
    }
    let may_be_torn = began_torn || observer.view.torn_position_count() > tears;
    check_rows(known, series, (first, min_version), &bytes, may_be_torn)
}

/// Checks the rows of a chunk from `first` on, which are of version `min_version` at least. If they `may_be_torn`, those
/// beyond the extent may be anything.
fn check_rows(
    known: &mut FollowerState,
    series: &Series,
    (first, min_version): (u64, u64),
    bytes: &[u8],
    may_be_torn: bool,
) -> Result<(), RunEnd> {
    let (name, extent) = (series.name, known.extent);
    let mut whole = None;
    for (row, value) in (first..).zip(bytes.chunks_exact(8)) {
        let value = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if row < series.first {
            continue;
        }
        let Some(version) = series.version(row, value).filter(|_| series.is_written(row)) else {
            // Rows of a stored chunk may still come, and hold nothing until then; the first row only if chunks are
            // stored before their rows.
            let is_under_way = row >= extent && may_be_torn;
            let must_be = row < extent || row == first && !(series.allocates_early || series.has_preallocated_chunks);
            if value != 0 && !is_under_way || series.is_written(row) && must_be {
                return Err(format!("{name}: row {row} is {value:#x}, the extent is {extent}").into());
            }
            continue;
        };
        let min_version = if series.is_constant(row) { min_version.min(1) } else { min_version };
        if series.has_uniform_version() && !series.is_constant(row) && *whole.get_or_insert(version) != version {
            return Err(format!("{name}: row {row} is of version {version}, others of its chunk of {whole:?}").into());
        }
        let tells = row == first || !series.has_one_version();
        let before = if tells { known.versions.insert(row, version).unwrap_or(0) } else { 0 };
        if version < before.max(if row < extent { min_version } else { 0 }) {
            return Err(
                format!("{name}: row {row} is of version {version}, {} was there", before.max(min_version)).into()
            );
        }
    }
    Ok(())
}

/// Refreshes a dataset, and returns whether it has changed. The history is that of its known state, before and after.
pub(crate) fn refresh(observer: &ConcurrentObserver<'_>, dataset: &dyn ChunkStore) -> Result<(), RunEnd> {
    let view = observer.view;
    let (queries, before) = (view.query_count(), observer.set_history(ReaderHistory::NONE));
    observer.observe("refresh", || dataset.refresh())?;
    // One look shows the header unchanged; otherwise all that was known of the dataset is forgotten.
    if view.query_count() - queries <= 1 {
        let since = observer.set_history(ReaderHistory::NONE);
        observer.set_history(before.concat(since));
    }
    Ok(())
}
