//! Readers of logs: while writers are at work, and after they have died.

use std::sync::Arc;

use h5live_cache::Storage;
use h5live_checker::crash::{CrashedDisk, ExpectedPrefix};
use h5live_checker::schedule::{ReaderView, Verdict};
use h5live_checker::trace::MarkCounter;
use h5live_log::LogStore;
use h5live_log::shared_files::SharedFiles;
use h5live_model::{ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, LinkTarget, Mode, Name, Publish, Scope, Store};
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

/// Reads everything, at one moment of the log. Only the new object is looked for later.
fn contents(store: &LogStore) -> h5live_model::Result<LogContents> {
    let names = ["a", "b", "grid", "cells", "own"];
    let open = names.iter().map(|name| dataset(store, name)).collect::<h5live_model::Result<Vec<_>>>()?;
    // Each was opened at a moment of its own.
    store.refresh(Scope::All)?;
    let read = |data: &Option<Arc<dyn ChunkStore>>| data.as_ref().map_or(Ok(Vec::new()), |data| elements(&**data));
    let mut found = open.iter().map(read).collect::<h5live_model::Result<Vec<_>>>()?.into_iter();
    let mut next = || found.next().unwrap_or_default();
    let (a, b, grid, cells, own) = (next(), next(), next(), next(), next());
    let mut new = Vec::new();
    for batch in 0..BATCHES {
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
    fn batches(&self, writers: Writers, acknowledged: usize) -> Result<usize, String> {
        let batches = self.whole_batches(writers)?;
        if batches < acknowledged {
            return Err(format!("{batches} batches are there of {acknowledged} that were acknowledged: {self:?}"));
        }
        // Until then the object of a batch may come later than its elements.
        if writers == Writers::One && self.new.len() < acknowledged / 2 {
            return Err(format!("a batch is acknowledged, and its object is not there: {:?}", self.new));
        }
        Ok(batches)
    }

    fn whole_batches(&self, writers: Writers) -> Result<usize, String> {
        match writers {
            Writers::One => {
                let batches = self.a.len();
                let numbers: Vec<u16> = (1..=batches as u16).collect();
                if self.a != numbers || self.b != numbers || self.grid != grid(batches) {
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
                Ok(usize::from(has(2)) + usize::from(has(3)))
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
    let files: Arc<dyn SharedFiles> = files;
    LogStore::open(main, Some(files), request(workload.mutant))
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

/// Follows the writers.
///
/// # Errors
/// The fault.
pub fn follow(workload: &LogWorkload, view: &Arc<ReaderView>, looks: Looks) -> Verdict {
    run_verdict(follow_looks(workload, view, looks))
}

fn follow_looks(workload: &LogWorkload, view: &Arc<ReaderView>, looks: Looks) -> Result<(), RunEnd> {
    let acknowledged = MarkCounter::new(&workload.trace, ACKNOWLEDGED);
    let observer = ConcurrentObserver::new(view, &Arc::default());
    let retry_view = view.clone();
    let retry = RetryPolicy::new(ATTEMPTS, move |_| retry_view.restart_operation());
    let count = |view: &ReaderView| acknowledged.count_at(view.prefix()).unwrap_or(0) as usize;
    let open_log = || {
        let clock = || {
            Clock::new({
                let view = view.clone();
                move || view.time()
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
        if looks == Looks::AfterRefresh && view.prefix() > 0 {
            // These are the runs of who opens it later.
            return Ok(());
        }
        if looks != Looks::AfterRefresh {
            look(workload, &observer, &store, &mut known)?;
        }
        if time + 1 == times && looks != Looks::AfterOpening {
            known.acknowledged = count(view);
            observer.observe("refresh", || store.refresh(Scope::All))?;
            look(workload, &observer, &store, &mut known)?;
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
    workload: &LogWorkload,
    observer: &ConcurrentObserver<'_>,
    store: &LogStore,
    LookedAt { acknowledged, least, before }: &mut LookedAt,
) -> Result<(), RunEnd> {
    let found = observer.observe("read everything", || contents(store))?;
    let batches = found.batches(workload.writers, *acknowledged)?;
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
pub fn recover(workload: &LogWorkload, disk: &Arc<CrashedDisk>, expected: &ExpectedPrefix) -> Verdict {
    let acknowledged = MarkCounter::new(&workload.trace, ACKNOWLEDGED);
    let least = acknowledged.count_at(expected.min_ops).unwrap_or(0) as usize;
    let open = |mode: Mode| {
        let files = RegionFiles::new(disk.clone());
        open(workload, files, mode).map_err(|error| format!("cannot open to {mode:?}: {}", error_chain_text(&error)))
    };
    let look = |store: &LogStore| {
        let found = SoleObserver.observe("read everything", || contents(store));
        found.map_err(|end| match end {
            RunEnd::Wrong(fault) => fault,
            _ => "the run has ended".to_owned(),
        })
    };
    let found = look(&open(Mode::Read)?)?;
    let batches = found.batches(workload.writers, least)?;
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
    store.writer()?.commit(Scope::All, Publish::Visible)
}
