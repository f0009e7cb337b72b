//! Readers of logs: while writers are at work, and after they have died.

use std::sync::Arc;

use h5live_cache::Storage;
use h5live_checker::crash::{CrashedStorage, ExpectedPrefixRange};
use h5live_checker::schedule::{ReaderView, Verdict};
use h5live_checker::trace::MarkValues;
use h5live_log::LogStore;
use h5live_log::multi_writer_files::MultiWriterFiles;
use h5live_model::{
    ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, LinkTarget, Mode, Name, ObjectScope, PublishLevel, Store,
};
use h5live_native::{Clock, RetryPolicy};

use super::regions::RegionFiles;
use super::workloads::{ACKNOWLEDGED, BATCHES, CELLS, LogWorkload, Writers, new_name, request};
use crate::observer::{ConcurrentObserver, Observer, RunEnd, SoleObserver, error_chain_text, run_verdict};

/// Attempts at an operation.
const ATTEMPTS: u32 = 4;

/// What is in the datasets; `None` for one that is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct LogContents {
    a: Vec<u16>,
    b: Vec<u16>,
    grid: Vec<u16>,
    cells: Vec<u16>,
    own: Vec<u16>,
    /// What is in the datasets that batches have made, by their batches.
    new: Vec<(u16, Vec<u16>)>,
}

fn dataset(store: &LogStore, name: &str) -> h5live_model::Result<Option<Arc<dyn ChunkStore>>> {
    match store.link(store.session().root, &Name::from(name))?.map(|link| link.target) {
        Some(LinkTarget::Hard(id)) => store.dataset(id).map(Some),
        _ => Ok(None),
    }
}

fn elements(data: &dyn ChunkStore) -> h5live_model::Result<Vec<u16>> {
    let read = |at: u64| {
        let mut element = [0; 2];
        if let Some(chunk) = data.locate(&ChunkCoord::new(&[at]))? {
            data.read(&chunk, 0, &mut element)?;
        }
        Ok(u16::from_le_bytes(element))
    };
    (0..data.spec()?.dataspace.dims()[0]).map(read).collect()
}

/// The datasets that a reader looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight(&'static [&'static str]);

/// Stands for the datasets that batches make.
const NEW: &str = "new";

impl Sight {
    /// All of them.
    pub const ALL: Sight = Sight(&["a", "b", "grid", "cells", "own", NEW]);

    /// Sights so small that all schedules of their readers can be looked at, and that together show what
    /// [`Sight::ALL`] shows: what is wrong with batches of one writer is wrong with two datasets, or with a new one; what
    /// is wrong with those of two writers, with both of their datasets.
    pub fn small(workload: &LogWorkload) -> &'static [Sight] {
        const PAIRS: &[Sight] = &[Sight(&["a", "b"]), Sight(&["a", "grid"]), Sight(&["b", "grid"])];
        const PAIRS_AND_NEW: &[Sight] = &[PAIRS[0], PAIRS[1], PAIRS[2], Sight(&[NEW])];
        match workload.writers {
            Writers::One if workload.makes_datasets => PAIRS_AND_NEW,
            Writers::One => PAIRS,
            Writers::Two => &[Sight(&["cells", "own"])],
        }
    }

    fn has(self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

/// Reads what is in sight, at one moment of the log. Only the new object is looked for later.
fn contents(store: &LogStore, sight: Sight) -> h5live_model::Result<LogContents> {
    let open = |name| if sight.has(name) { dataset(store, name) } else { Ok(None) };
    let (a, b, grid, cells, own) = (open("a")?, open("b")?, open("grid")?, open("cells")?, open("own")?);
    // Each was opened at a moment of its own.
    store.refresh(ObjectScope::All)?;
    let read = |data: Option<Arc<dyn ChunkStore>>| data.map_or(Ok(Vec::new()), |data| elements(&*data));
    let (a, b, grid, cells, own) = (read(a)?, read(b)?, read(grid)?, read(cells)?, read(own)?);
    let mut new = Vec::new();
    for batch in (0..BATCHES).filter(|_| sight.has(NEW)) {
        if let Some(data) = dataset(store, &new_name(batch))? {
            new.push((batch, elements(&*data)?));
        }
    }
    Ok(LogContents { a, b, grid, cells, own, new })
}

/// The cells after so many batches.
fn grid(batches: usize) -> Vec<u16> {
    let mut cells = vec![0; CELLS as usize];
    (0..batches).for_each(|batch| cells[batch % CELLS as usize] = batch as u16 + 1);
    cells
}

impl LogContents {
    /// How many batches there are, if these contents are those of whole batches, and of all that were acknowledged.
    fn batches(&self, workload: &LogWorkload, sight: Sight, acknowledged: usize) -> Result<usize, String> {
        // New datasets alone do not say how many.
        let batches = self.whole_batches(workload.writers, sight)?.unwrap_or(acknowledged);
        if batches < acknowledged {
            return Err(format!("{batches} batches are there of {acknowledged} that were acknowledged: {self:?}"));
        }
        // Until then the object of a batch may come later than its elements.
        if workload.makes_datasets && sight.has(NEW) && self.new.len() < acknowledged / 2 {
            return Err(format!("a batch is acknowledged, and its object is not there: {:?}", self.new));
        }
        Ok(batches)
    }

    fn whole_batches(&self, writers: Writers, sight: Sight) -> Result<Option<usize>, String> {
        match writers {
            Writers::One => {
                let counted = [("a", &self.a), ("b", &self.b)];
                let batches = counted.iter().find(|(name, _)| sight.has(name)).map(|(_, numbers)| numbers.len());
                let (numbers, cells) = (1..=batches.unwrap_or(0) as u16, grid(batches.unwrap_or(0)));
                let is_whole =
                    |(name, found): &(&str, &Vec<u16>)| !sight.has(name) || numbers.clone().eq(found.iter().copied());
                if !counted.iter().all(is_whole) || (sight.has("grid") && self.grid != cells) {
                    return Err(format!("a batch is seen in part: {self:?}"));
                }
                match self.new.iter().find(|(batch, elements)| elements[..] != [batch + 1]) {
                    Some(bare) => Err(format!("an object is seen without its elements: {bare:?}")),
                    None => Ok(batches),
                }
            }
            Writers::Two => {
                let has = |number: u16| self.own.get(usize::from(number) - 2) == Some(&number);
                let newest = [3, 2].into_iter().find(|number| has(*number)).unwrap_or(1);
                let is_own = |(at, value): (usize, &u16)| [0, at as u16 + 2].contains(value);
                if self.cells != [newest; CELLS as usize] || !self.own.iter().enumerate().all(is_own) {
                    return Err(format!("batches do not count in their order: {self:?}"));
                }
                Ok(Some(usize::from(has(2)) + usize::from(has(3))))
            }
        }
    }
}

fn open<S: Storage + 'static>(
    workload: &LogWorkload,
    files: RegionFiles<S>,
    mode: Mode,
) -> h5live_model::Result<LogStore> {
    let files = Arc::new(files);
    let main = Arc::new(files.open(0, mode, false)?);
    let files: Arc<dyn MultiWriterFiles> = files;
    LogStore::open_or_create(main, Some(files), request(workload.mutant))
}

/// When a reader looks at everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// After it has opened the log.
    AfterOpening,
    /// After it has refreshed a log that it had opened before anything was written.
    AfterRefresh,
    /// After it has opened the log, so many times, and after a refresh at the end.
    Each {
        /// How often it opens the log.
        times: usize,
    },
}

/// Follows the writers, and looks at what is in sight.
///
/// # Errors
/// The fault.
pub fn follow(workload: &LogWorkload, view: &Arc<ReaderView>, looks: Looks, sight: Sight) -> Verdict {
    run_verdict(follow_looks(workload, view, looks, sight))
}

fn follow_looks(workload: &LogWorkload, view: &Arc<ReaderView>, looks: Looks, sight: Sight) -> Result<(), RunEnd> {
    let acknowledged = MarkValues::new(&workload.trace, ACKNOWLEDGED);
    let observer = ConcurrentObserver::new(view, &Arc::default());
    let retry_view = view.clone();
    let retry = RetryPolicy::new(ATTEMPTS, move |_| retry_view.mark_operation_restart());
    let count = |view: &ReaderView| acknowledged.last_value_at(view.writer_op_count()).unwrap_or(0) as usize;
    let open_log = || {
        let clock = || {
            Clock::new({
                let view = view.clone();
                move || view.writer_time()
            })
        };
        let files = || RegionFiles::for_reader(view.clone(), retry.clone(), clock());
        observer.observe("open the log", || open(workload, files(), Mode::SwmrRead))
    };
    let mut known = LookedAt::default();
    let times = if let Looks::Each { times } = looks { times } else { 1 };
    for time in 0..times {
        // Who opens the log anew knows nothing but what was seen.
        observer.reset((time, &known))?;
        known.acknowledged = count(view);
        let store = open_log()?;
        if looks == Looks::AfterRefresh && view.writer_op_count() > 0 {
            // These are the runs of who opens it later.
            return Ok(());
        }
        if looks != Looks::AfterRefresh {
            look(&observer, &store, (workload, sight), &mut known)?;
        }
        if time + 1 == times && looks != Looks::AfterOpening {
            known.acknowledged = count(view);
            observer.observe("refresh", || store.refresh(ObjectScope::All))?;
            look(&observer, &store, (workload, sight), &mut known)?;
        }
    }
    Ok(())
}

/// What a reader knows when it looks.
#[derive(Debug, Default, Hash)]
struct LookedAt {
    /// Batches that the writer has said to be there.
    acknowledged: usize,
    /// Batches that were seen.
    least: usize,
    before: LogContents,
}

/// Reads everything, and compares it with what was acknowledged and seen before.
fn look(
    observer: &ConcurrentObserver<'_>,
    store: &LogStore,
    (workload, sight): (&LogWorkload, Sight),
    LookedAt { acknowledged, least, before }: &mut LookedAt,
) -> Result<(), RunEnd> {
    let found = observer.observe("read everything", || contents(store, sight))?;
    let batches = found.batches(workload, sight, *acknowledged)?;
    if batches < *least {
        return Err(format!("{batches} batches are seen after {least}: {found:?}").into());
    }
    let is_back = |now: &[u16], then: &[u16]| then.iter().enumerate().any(|(at, then)| now.get(at) < Some(then));
    if is_back(&found.own, &before.own) || is_back(&found.cells, &before.cells) {
        return Err(format!("data goes back in time: {before:?}, then {found:?}").into());
    }
    (*least, *before) = (batches, found);
    Ok(())
}

/// Opens the log after a crash, writes on, and reads it again.
///
/// # Errors
/// What is wrong with it.
pub fn recover(workload: &LogWorkload, disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange) -> Verdict {
    let acknowledged = MarkValues::new(&workload.trace, ACKNOWLEDGED);
    let least = acknowledged.last_value_at(expected.min_ops).unwrap_or(0) as usize;
    let open = |mode: Mode| {
        let files = RegionFiles::new(disk.clone());
        open(workload, files, mode).map_err(|error| format!("cannot open to {mode:?}: {}", error_chain_text(&error)))
    };
    let look = |store: &LogStore| {
        let found = SoleObserver.observe("read everything", || contents(store, Sight::ALL));
        found.map_err(|end| match end {
            RunEnd::Wrong(fault) => fault,
            _ => "the run has ended".to_owned(),
        })
    };
    let found = look(&open(Mode::Read)?)?;
    let batches = found.batches(workload, Sight::ALL, least)?;
    let store = open(Mode::Write)?;
    if look(&store)? != found {
        return Err(format!("the next writer does not find what a reader has found: {found:?}"));
    }
    write_on(workload, &store, batches).map_err(|error| error_chain_text(&error))?;
    let wanted = look(&store)?;
    store.close().map_err(|error| error_chain_text(&error))?;
    let after = look(&open(Mode::Read)?)?;
    if after != wanted || after == found {
        return Err(format!("written on: {after:?}, and not {wanted:?}"));
    }
    Ok(())
}

/// Writes one more batch, as a writer that has the file for itself.
fn write_on(workload: &LogWorkload, store: &LogStore, batches: usize) -> h5live_model::Result<()> {
    let put = |name: &str, at: u64, value: u16| {
        let Some(data) = dataset(store, name)? else { return Ok(()) };
        let (coord, bytes) = (ChunkCoord::new(&[at]), value.to_le_bytes());
        let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &bytes }];
        let extent = [data.spec()?.dataspace.dims()[0].max(at + 1)];
        data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), ..ChunkBatch::default() })
    };
    match workload.writers {
        Writers::One => {
            put("a", batches as u64, batches as u16 + 1)?;
            put("b", batches as u64, batches as u16 + 1)?;
            put("grid", batches as u64 % CELLS, batches as u16 + 1)?;
        }
        Writers::Two => put("cells", 0, 9)?,
    }
    store.writer()?.commit(ObjectScope::All, PublishLevel::Visible)
}
