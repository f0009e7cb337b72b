//! libhdf5 as the reader of what h5live writes.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;

use h5live_checker::schedule::{ReaderHistory, ReaderView, Verdict};
use h5live_checker::trace::MarkValues;
use h5live_prove::suite::ReaderKind;
use h5live_prove::{Series, Workload};

use crate::library::{Libhdf5Error, Library, OpenHandle};
use crate::virtual_file;

/// A reader that knows what it may see.
pub struct Libhdf5Follower<'l> {
    library: &'l Library,
    /// The file that is served.
    path: &'l CStr,
    what: ReaderKind,
    passes: usize,
    series: Vec<Libhdf5Series>,
    attributes: CountRange,
    links: CountRange,
}

/// A dataset, and what the trace says of it.
struct Libhdf5Series {
    what: Series,
    counts: CountRange,
}

/// How many there must be, and may be.
struct CountRange {
    issued: MarkValues,
    flushed: MarkValues,
}

impl CountRange {
    fn new(workload: &Workload, name: &str) -> Self {
        let counter = |what| MarkValues::new(&workload.trace, &format!("{name}.{what}"));
        CountRange { issued: counter("issued"), flushed: counter("flushed") }
    }

    fn min_count(&self, view: &ReaderView) -> u64 {
        self.flushed.last_value_at(view.writer_op_count()).unwrap_or(0)
    }

    fn max_count(&self, view: &ReaderView) -> u64 {
        self.issued.last_value_at(view.writer_op_count()).unwrap_or(0)
    }
}

/// How often a file is opened that changes each time.
const MAX_OPENINGS: u32 = 3;

/// Why a run ends.
enum FollowEnd {
    /// A structure was torn for as long as the library looked.
    Torn,
    Wrong(String),
    Merged,
}

impl From<String> for FollowEnd {
    fn from(fault: String) -> Self {
        FollowEnd::Wrong(fault)
    }
}

/// The result of an operation of the library. It may fail only if a write is half-done, and stays so.
fn run_or_end<T>(view: &ReaderView, operation: impl FnOnce() -> Result<T, Libhdf5Error>) -> Result<T, FollowEnd> {
    operation().map_err(|failure| follow_end(view, &failure))
}

fn follow_end(view: &ReaderView, failure: &Libhdf5Error) -> FollowEnd {
    if view.writer_position().is_torn() || virtual_file::was_torn() {
        return FollowEnd::Torn;
    }
    FollowEnd::Wrong(format!("no write is half-done, and yet {failure}"))
}

/// Opens the file. The library first asks for its length, and then reads the superblock. A file that is opened, written
/// and closed in between may seem to be truncated. Then it is opened again.
fn open_to_follow<'l>(view: &ReaderView, library: &'l Library, path: &CStr) -> Result<OpenHandle<'l>, FollowEnd> {
    for _ in 0..MAX_OPENINGS {
        view.mark_operation_restart();
        match library.open_to_follow(path) {
            Ok(file) => return Ok(file),
            Err(failure) if view.operation_must_succeed() => return Err(follow_end(view, &failure)),
            Err(_) => {}
        }
    }
    Err(FollowEnd::Torn)
}

/// The state of one dataset in one run.
struct Libhdf5DatasetState<'l> {
    dataset: OpenHandle<'l>,
    extent: u64,
    versions: BTreeMap<u64, u64>,
    /// All that what the library keeps of the dataset may come from.
    history: ReaderHistory,
}

impl<'l> Libhdf5Follower<'l> {
    /// A reader for a workload.
    pub fn new(library: &'l Library, path: &'l CStr, workload: &Workload, what: ReaderKind, passes: usize) -> Self {
        let watch =
            |series: &Series| Libhdf5Series { what: series.clone(), counts: CountRange::new(workload, series.name) };
        let series = workload.series.iter().map(watch).collect();
        let (attributes, links) = (CountRange::new(workload, "a"), CountRange::new(workload, "o"));
        Libhdf5Follower { library, path, what, passes, series, attributes, links }
    }

    /// Runs the reader.
    ///
    /// # Errors
    /// The fault of what it saw.
    pub fn run(&self, view: &Arc<ReaderView>) -> Verdict {
        let done = virtual_file::with_view(view, || match self.what {
            ReaderKind::Attributes => self.follow_attributes(view),
            ReaderKind::Links => self.follow_links(view),
            _ => self.follow_rows(view),
        });
        match done {
            Ok(()) | Err(FollowEnd::Torn | FollowEnd::Merged) => Ok(()),
            Err(FollowEnd::Wrong(fault)) => Err(fault),
        }
    }

    fn follow_rows(&self, view: &ReaderView) -> Result<(), FollowEnd> {
        let file = open_to_follow(view, self.library, self.path)?;
        let opened = view.replace_history(ReaderHistory::NONE);
        let mut floors: Vec<u64> = self.series.iter().map(|series| series.counts.min_count(view)).collect();
        let mut all = Vec::new();
        for series in &self.series {
            let dataset = run_or_end(view, || file.open_dataset(series.what.name))?;
            let history = view.replace_history(ReaderHistory::NONE);
            all.push(Libhdf5DatasetState { dataset, extent: 0, versions: BTreeMap::new(), history });
        }
        for pass in 0..self.passes {
            for (n, series) in self.series.iter().enumerate() {
                if pass > 0 {
                    floors[n] = series.counts.min_count(view);
                    // The library drops all that it knew of the dataset.
                    view.replace_history(ReaderHistory::NONE);
                    run_or_end(view, || all[n].dataset.refresh())?;
                    all[n].history = view.replace_history(ReaderHistory::NONE);
                    let states: Vec<_> =
                        all.iter().map(|known| (known.extent, known.versions.clone(), known.history)).collect();
                    if !view.try_enter_checkpoint((pass, n, &floors, opened, states)) {
                        return Err(FollowEnd::Merged);
                    }
                }
                let known = &mut all[n];
                view.replace_history(known.history);
                read_dataset(view, known, series, floors[n])?;
                known.history = view.replace_history(ReaderHistory::NONE);
            }
        }
        Ok(())
    }

    fn follow_attributes(&self, view: &ReaderView) -> Result<(), FollowEnd> {
        let file = open_to_follow(view, self.library, self.path)?;
        let dataset = run_or_end(view, || file.open_dataset("d"))?;
        let mut before = 0;
        for _ in 0..self.passes {
            let min_count = self.attributes.min_count(view);
            run_or_end(view, || dataset.refresh())?;
            let mut count = 0;
            while let Some(value) = run_or_end(view, || dataset.read_attribute(&format!("a{count}")))? {
                if value != count {
                    return Err(format!("the attribute a{count} is {value}").into());
                }
                count += 1;
            }
            check_count("attributes", count, before.max(min_count), self.attributes.max_count(view))?;
            before = count;
        }
        Ok(())
    }

    fn follow_links(&self, view: &ReaderView) -> Result<(), FollowEnd> {
        let file = open_to_follow(view, self.library, self.path)?;
        let root = run_or_end(view, || file.open_root())?;
        let mut before = 0;
        for _ in 0..self.passes {
            let min_count = self.links.min_count(view);
            run_or_end(view, || root.refresh_group())?;
            let mut count = 0;
            while run_or_end(view, || root.has_link(&format!("o{count}")))? {
                count += 1;
            }
            check_count("links", count, before.max(min_count), self.links.max_count(view))?;
            before = count;
            let series = Series::rows("o", 2);
            for number in 0..count {
                let dataset = run_or_end(view, || root.open_dataset(&format!("o{number}")))?;
                let rows = run_or_end(view, || dataset.read_rows(0, 2))?;
                if (0..).zip(&rows).any(|(row, value)| series.version(row, *value).is_none()) {
                    return Err(format!("the rows of the new dataset o{number} are {rows:x?}").into());
                }
            }
        }
        Ok(())
    }
}

fn check_count(what: &str, count: u64, min_count: u64, max_count: u64) -> Result<(), FollowEnd> {
    match (min_count..=max_count).contains(&count) {
        true => Ok(()),
        false => Err(format!("there are {count} {what}, of {min_count} that were there and {max_count} made").into()),
    }
}

/// Reads one dataset. `floor` rows had been flushed when it was refreshed.
fn read_dataset(
    view: &ReaderView,
    known: &mut Libhdf5DatasetState<'_>,
    Libhdf5Series { what, counts }: &Libhdf5Series,
    floor: u64,
) -> Result<(), FollowEnd> {
    let name = what.name;
    let extent = run_or_end(view, || known.dataset.extent())?.first().copied().unwrap_or(0);
    let (min_extent, max_extent) = (what.extent(floor).max(known.extent), what.extent(counts.max_count(view)));
    if !(min_extent..=max_extent).contains(&extent) {
        return Err(format!(
            "{name}: the extent is {extent}, of {min_extent} that were there and {max_extent} written"
        )
        .into());
    }
    known.extent = extent;
    let rows = run_or_end(view, || known.dataset.read_rows(what.first, extent.saturating_sub(what.first)))?;
    for (row, value) in (what.first..).zip(rows) {
        let min_version = if what.is_written(row) { what.min_version(row / what.chunk, floor) } else { 0 };
        let version = what.version(row, value).filter(|_| what.is_written(row));
        let Some(version) = version.or((value == 0 && min_version == 0).then_some(0)) else {
            return Err(format!("{name}: row {row} is {value:#x}, the extent is {extent}").into());
        };
        let before = known.versions.insert(row, version).unwrap_or(0).max(min_version);
        if version < before {
            return Err(format!("{name}: row {row} is of version {version}, {before} was there").into());
        }
    }
    Ok(())
}
