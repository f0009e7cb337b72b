//! The reader, which knows what it may see.

use std::collections::HashMap;
use std::sync::Arc;

use h5live_checker::schedule::{History, Verdict, View};
use h5live_checker::trace::Counter;
use h5live_model::{ChunkCoord, Chunks, Objects, StoredChunk};
use h5live_swmr::{Mode, NativeFile, OpenOptions, Patience, Trial};

use crate::Workload;
use crate::lab::{Series, find};

/// How a reader goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Row by row, below the extent.
    Rows,
    /// What the index lists, whatever the extent says, and then the rows.
    IndexFirst,
    /// Chunks as the index has them, also beyond the extent that is known.
    Beyond,
}

/// Reads all of a workload's datasets in several passes, and holds what it finds against what was written.
#[derive(Debug)]
pub struct Follower {
    series: Vec<Watched>,
    passes: usize,
    look: Look,
    attempts: u32,
}

/// A dataset, and what the trace says of it.
#[derive(Debug)]
struct Watched {
    what: Series,
    issued: Counter,
    flushed: Counter,
}

/// What one reader has seen of one dataset.
struct Known {
    dataset: Arc<dyn Chunks>,
    extent: u64,
    versions: HashMap<u64, u64>,
    /// All that what is kept of the dataset may come from.
    history: History,
}

impl Known {
    fn state(&self) -> impl std::hash::Hash + use<> {
        let mut versions: Vec<_> = self.versions.iter().map(|(row, version)| (*row, *version)).collect();
        versions.sort_unstable();
        (self.extent, versions, self.history)
    }
}

impl Follower {
    /// A reader for a workload.
    pub fn new(workload: &Workload, look: Look, passes: usize) -> Self {
        let watch = |series: &Series| {
            let counter = |what: &str| Counter::new(&workload.trace, &format!("{}.{what}", series.name));
            Watched { what: series.clone(), issued: counter("issued"), flushed: counter("flushed") }
        };
        let series = workload.series.iter().map(watch).collect();
        Follower { series, passes, look, attempts: 4 }
    }

    /// Reads.
    ///
    /// # Errors
    /// What is wrong with what was seen.
    pub fn run(&self, view: &Arc<View>) -> Verdict {
        let eyes = Eyes(view);
        let pause = {
            let view = view.clone();
            move |_| view.begin_anew()
        };
        let patience = Patience::new(self.attempts, pause);
        let options = OpenOptions {
            mode: Mode::SwmrRead,
            patience,
            trial: Trial { shards: Some(1), ..Trial::default() },
            ..OpenOptions::default()
        };
        let Some(file) = eyes.unless_torn("open", || NativeFile::on(view.clone(), &options))? else { return Ok(()) };
        let mut all = Vec::new();
        for series in &self.series {
            let name = series.what.name;
            let Some(id) = eyes.unless_torn("find the dataset", || find(&file, name))? else { return Ok(()) };
            let id = id.ok_or_else(|| format!("there is no link {name}"))?;
            let Some(dataset) = eyes.unless_torn("open the dataset", || file.dataset(id))? else { return Ok(()) };
            let (extent, versions, history) = (0, HashMap::new(), History::NONE);
            all.push((Known { dataset, extent, versions, history }, series));
        }
        // What the file says of itself, and all that was seen of it before there was more than one pass.
        let opened = view.set_history(History::NONE);
        for pass in 0..self.passes {
            for n in 0..all.len() {
                let Some((known, series)) = all.get_mut(n) else { continue };
                let flushed = series.flushed.at(view.prefix()).unwrap_or(0);
                view.set_history(known.history);
                if pass > 0 && !refresh(&eyes, known)? {
                    return Ok(());
                }
                known.history = view.set_history(History::NONE);
                let states: Vec<_> = all.iter().map(|(known, _)| known.state()).collect();
                if pass > 0 && !view.checkpoint((pass, n, flushed, opened, states)) {
                    return Ok(());
                }
                let Some((known, series)) = all.get_mut(n) else { continue };
                view.set_history(known.history);
                let least = if pass > 0 { flushed } else { 0 };
                if !self.pass(&eyes, known, series, least)? {
                    return Ok(());
                }
                known.history = view.set_history(History::NONE);
            }
        }
        Ok(())
    }

    /// Reads one dataset; returns whether the reader can go on.
    fn pass(&self, eyes: &Eyes<'_>, known: &mut Known, series: &Watched, least: u64) -> Result<bool, String> {
        let spec = known.dataset.spec().map_err(|error| format!("a description that was read is gone: {error}"))?;
        let extent = spec.dataspace.dims().first().copied().unwrap_or(0);
        let most = series.issued.at(eyes.0.prefix()).unwrap_or(0);
        let series = &series.what;
        let name = series.name;
        if extent < known.extent {
            return Err(format!("{name}: the extent went back from {} to {extent}", known.extent));
        }
        if extent < least {
            return Err(format!("{name}: the extent is {extent}, {least} rows were flushed before it was looked up"));
        }
        if extent > most {
            return Err(format!("{name}: the extent is {extent}, and only {most} rows were ever written"));
        }
        known.extent = extent;
        if self.look == Look::IndexFirst {
            let mut chunks = Vec::new();
            let list = || {
                chunks.clear();
                known.dataset.for_each_chunk(&mut |chunk| {
                    chunks.push(chunk);
                    true
                })
            };
            if eyes.unless_torn("list chunks", list)?.is_none() {
                return Ok(false);
            }
            for chunk in chunks {
                let at = chunk.coord.scaled().first().copied().unwrap_or(0);
                if at * series.chunk >= series.first && !self.chunk(eyes, known, series, at, Some(chunk))? {
                    return Ok(false);
                }
            }
        }
        let last = if self.look == Look::Beyond { extent + 2 * series.chunk } else { extent };
        for at in series.first / series.chunk..last.div_ceil(series.chunk) {
            let coord = ChunkCoord::new(&[at]);
            let Some(chunk) = eyes.unless_torn("look up a chunk", || known.dataset.chunk(&coord))? else {
                return Ok(false);
            };
            if !self.chunk(eyes, known, series, at, chunk)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads what the index says of one chunk.
    fn chunk(
        &self,
        eyes: &Eyes<'_>,
        known: &mut Known,
        series: &Series,
        at: u64,
        chunk: Option<StoredChunk>,
    ) -> Result<bool, String> {
        let (first, name) = (at * series.chunk, series.name);
        let Some(chunk) = chunk else {
            return match first < known.extent {
                true => Err(format!("{name}: rows from {first} on are fill values, below the extent {}", known.extent)),
                false => Ok(true),
            };
        };
        let mut bytes = vec![0; series.chunk as usize * 8];
        if eyes.unless_torn("read a chunk", || known.dataset.read(&chunk, 0, &mut bytes))?.is_none() {
            return Ok(false);
        }
        for (row, value) in (first..).zip(bytes.chunks_exact(8)) {
            let value = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if row < series.first {
                continue;
            }
            let Some(version) = series.version(row, value) else {
                if row < known.extent || value != 0 {
                    return Err(format!("{name}: row {row} is {value:#x}, the extent is {}", known.extent));
                }
                continue;
            };
            let before = known.versions.insert(row, version).unwrap_or(0);
            if version < before {
                return Err(format!("{name}: row {row} went back from version {before} to {version}"));
            }
        }
        // The first row of a chunk that is stored is there, whatever the extent.
        if first >= series.first && !known.versions.contains_key(&first) {
            return Err(format!("{name}: the index has chunk {at}, but its data is not there"));
        }
        Ok(true)
    }
}

/// Refreshes a dataset; returns whether the reader can go on.
fn refresh(eyes: &Eyes<'_>, known: &mut Known) -> Result<bool, String> {
    let view = eyes.0;
    let (queries, before) = (view.queries(), view.set_history(History::NONE));
    if eyes.unless_torn("refresh", || known.dataset.refresh())?.is_none() {
        return Ok(false);
    }
    // One look shows the header unchanged; otherwise all that was known of the dataset is forgotten.
    if view.queries() - queries <= 1 {
        let since = view.set_history(History::NONE);
        view.set_history(before.with(since));
    }
    Ok(true)
}

struct Eyes<'a>(&'a Arc<View>);

impl Eyes<'_> {
    /// What an operation gives; `None` if it failed because the writer was in its way.
    fn unless_torn<T, E: std::error::Error>(
        &self,
        what: &str,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<Option<T>, String> {
        self.0.begin_anew();
        match operation() {
            Ok(found) => Ok(Some(found)),
            Err(_) if !self.0.is_at_rest() => Ok(None),
            Err(error) => {
                let mut text = format!("cannot {what}, with the file at rest: {error}");
                let mut source = error.source();
                while let Some(cause) = source {
                    text.push_str(&format!(": {cause}"));
                    source = cause.source();
                }
                Err(text)
            }
        }
    }
}
