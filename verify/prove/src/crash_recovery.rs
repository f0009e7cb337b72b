//! The recovery after a crash: opens the file, and knows what must be in it.

use std::sync::Arc;

use h5live::{File, Options};
use h5live_checker::crash::{CrashedStorage, ExpectedPrefixRange};
use h5live_checker::file::{self, FindingCause, check_storage_with};
use h5live_checker::schedule::Verdict;
use h5live_checker::trace::MarkValues;
use h5live_model::Store;
use h5live_native::{Mode, MutantOptions, NativeFile, OpenOptions};

use crate::entry_changes::EntryChanges;
use crate::observer::{SoleObserver, error_chain_text, run_verdict};
use crate::{Series, SeriesKind, Workload, content_checks, find_in_root};

/// The counts of a thing in the trace.
#[derive(Debug)]
struct CountBounds {
    kept: MarkValues,
    issued: MarkValues,
}

impl CountBounds {
    fn new(workload: &Workload, name: &str, kept: &str) -> Self {
        let counter = |what: &str| MarkValues::new(&workload.trace, &format!("{name}.{what}"));
        CountBounds { kept: counter(kept), issued: counter("issued") }
    }

    /// The least and the most that may be found.
    fn min_and_max(&self, expected: &ExpectedPrefixRange) -> Option<(u64, u64)> {
        let max_count = self.issued.last_value_at(expected.max_ops)?;
        Some((self.kept.last_value_at(expected.min_ops).unwrap_or(0), max_count))
    }
}

/// Opens a file after a crash, reads it, writes on, reads it again, and has it checked.
#[derive(Debug)]
pub struct CrashRecovery {
    series: Vec<(Series, CountBounds)>,
    attributes: CountBounds,
    links: CountBounds,
    strings: CountBounds,
    names: Option<(EntryChanges, CountBounds)>,
    /// How the file is written on.
    mode: Mode,
    without_recount: bool,
    /// Whether the file does not show that the writer died. Then rows that it was about to cut off may come back.
    unmarked: bool,
}

impl CrashRecovery {
    /// For the death of the writer of a workload: everything that was flushed is there, and nothing that was never
    /// written.
    pub fn for_process_death(workload: &Workload) -> Self {
        CrashRecovery::new(workload, "flushed")
    }

    /// For a power failure: everything durable is there, and each later flush as a whole or not at all.
    pub fn for_power_failure(workload: &Workload) -> Self {
        CrashRecovery::new(workload, "durable")
    }

    fn new(workload: &Workload, kept: &str) -> Self {
        let counted = |name: &str| CountBounds::new(workload, name, kept);
        let watch = |series: &Series| (series.clone(), counted(series.name));
        CrashRecovery {
            series: workload.series.iter().map(watch).collect(),
            attributes: counted("a"),
            links: counted("o"),
            strings: counted("s"),
            names: workload.names.map(|names| (names, counted("n"))),
            mode: if workload.is_exclusive { Mode::Write } else { Mode::SwmrWrite },
            without_recount: workload.without_recount,
            unmarked: workload.has_no_write_mark,
        }
    }

    /// Recovers a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn recover(&self, disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange) -> Verdict {
        self.check_contents(disk, Mode::Read, expected, RecoveryHistory::CrashOnly)?;
        if expected.recovery_crash_count == 0 {
            let found = self.continue_writing(disk, expected)?;
            self.check_contents(disk, Mode::Read, expected, RecoveryHistory::Continued(&found))?;
            self.check_closed_file(disk)?;
        } else if self.names.is_some() {
            let file = self.open_disk(disk, Mode::Write)?;
            file.close().map_err(|error| error_chain_text(&error))?;
            self.check_closed_file(disk)?;
        }
        Ok(())
    }

    /// Checks a file that was recovered and closed with `checker::file`. That shares only the decoders of `format` with
    /// readers and writers.
    fn check_closed_file(&self, disk: &Arc<CrashedStorage>) -> Verdict {
        let report = check_storage_with(&**disk, file::CheckOptions::default());
        let status = report.notes.iter().filter(|note| matches!(note.cause, FindingCause::NotClosed(_)));
        match report.findings.iter().chain(status).next() {
            None => Ok(()),
            Some(first) => Err(format!("a file that was recovered and closed: {first}")),
        }
    }

    fn open_disk(&self, disk: &Arc<CrashedStorage>, mode: Mode) -> Result<NativeFile, String> {
        let trial = MutantOptions {
            cache_shard_count: Some(1),
            disable_recovery_recount: self.without_recount,
            ..MutantOptions::default()
        };
        let options = OpenOptions { mode, mutant: trial, take_over_if_unknown: true, ..OpenOptions::default() };
        NativeFile::open_storage(disk.clone(), &options)
            .map_err(|error| format!("cannot open to {mode:?}: {}", error_chain_text(&error)))
    }

    /// Reads everything.
    fn check_contents(
        &self,
        disk: &Arc<CrashedStorage>,
        mode: Mode,
        expected: &ExpectedPrefixRange,
        since: RecoveryHistory<'_>,
    ) -> Verdict {
        let file = Arc::new(self.open_disk(disk, mode)?);
        for (n, (series, counted)) in self.series.iter().enumerate() {
            let mut plan = ExpectedSeries::new(series, counted, expected);
            plan.unmarked = self.unmarked;
            let done = match since {
                RecoveryHistory::CrashOnly => None,
                RecoveryHistory::Continued(found) => found.get(n).copied(),
            };
            self.check_series(&file, series, &plan, done).map_err(|fault| format!("{}: {fault}", series.name))?;
        }
        if let Some((min_count, max_count)) = self.attributes.min_and_max(expected) {
            let id =
                find_in_root(&file, "d").map_err(|error| error_chain_text(&error))?.ok_or("the link d is not there")?;
            run_verdict(
                content_checks::check_attributes(&file, id, &SoleObserver, min_count, &|| max_count, ()).map(drop),
            )?;
        }
        if let Some((min_count, max_count)) = self.links.min_and_max(expected) {
            run_verdict(content_checks::check_links(&file, &SoleObserver, min_count, &|| max_count, ()).map(drop))?;
        }
        if let Some((min_count, max_count)) = self.strings.min_and_max(expected) {
            let file = File::with_store(file.clone(), "survivor", Options::default())
                .map_err(|error| error_chain_text(&error))?;
            run_verdict(content_checks::check_strings(&file, &SoleObserver, min_count, &|| max_count).map(drop))?;
        }
        if let Some((names, counted)) = &self.names {
            let (min_count, max_count) = counted.min_and_max(expected).unwrap_or((0, 0));
            let written_on = match since {
                RecoveryHistory::CrashOnly => (expected.recovery_crash_count > 0).then_some(false),
                RecoveryHistory::Continued(_) => Some(true),
            };
            let file = File::with_store(file.clone(), "survivor", Options::default())
                .map_err(|error| error_chain_text(&error))?;
            names.check_entries(&file, min_count..=max_count, written_on)?;
        }
        Ok(())
    }

    /// Reads a series. Before more rows were written, if they were, it had this many rows.
    fn check_series(&self, file: &NativeFile, series: &Series, plan: &ExpectedSeries, done: Option<u64>) -> Verdict {
        let error_text = |error: h5live_model::Error| error_chain_text(&error);
        let id = find_in_root(file, series.name).map_err(error_text)?.ok_or("the link is not there")?;
        let dataset = file.dataset(id).map_err(error_text)?;
        let extent = dataset.spec().map_err(error_text)?.dataspace.dims().first().copied().unwrap_or(0);
        let grown = plan.expected_rows(done, extent)?;
        for at in series.first / series.chunk..extent.div_ceil(series.chunk) {
            let first = at * series.chunk;
            let min_version = series.min_version(at, plan.kept);
            let Some(chunk) = dataset.locate(&series.coord(at)).map_err(error_text)? else {
                if min_version > 0 && grown.must_hold(first) {
                    return Err(format!("there is no chunk for row {first}, the extent is {extent}"));
                }
                continue;
            };
            let mut bytes = vec![0; series.chunk as usize * 8];
            dataset.read(&chunk, series.start_in(&chunk), &mut bytes).map_err(error_text)?;
            let mut whole = None;
            for (row, value) in (first..extent).zip(bytes.chunks_exact(8)).filter(|(row, _)| *row >= series.first) {
                let value = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                let min_version = if series.is_constant(row) { min_version.min(1) } else { min_version };
                let is_right = match series.version(row, value) {
                    Some(version)
                        if series.has_uniform_version()
                            && !series.is_constant(row)
                            && *whole.get_or_insert(version) != version =>
                    {
                        return Err(format!("row {row} is of version {version}, others of its chunk of {whole:?}"));
                    }
                    Some(version) => series.is_written(row) && grown.may_hold(row) && version >= min_version,
                    None => value == 0 && !(series.is_written(row) && grown.must_hold(row)),
                };
                if !is_right {
                    return Err(format!("row {row} is {value:#x}, the extent is {extent}"));
                }
            }
        }
        Ok(())
    }

    /// Opens the file for writing, and appends a row to each series. Writes another row far beyond it, or all chunks
    /// that are still to come. Closes the file. Returns how many rows there were.
    fn continue_writing(&self, disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange) -> Result<Vec<u64>, String> {
        let file = self.open_disk(disk, self.mode)?;
        let error_text = |error: h5live::Error| error_chain_text(&error);
        let file = File::with_store(Arc::new(file), "recovered", Options::default()).map_err(error_text)?;
        let mut found = Vec::new();
        for (series, counted) in &self.series {
            let dataset = file.dataset(series.name).map_err(error_text)?;
            let rows = dataset.shape().map_err(error_text)?.first().copied().unwrap_or(0);
            found.push(rows);
            if series.is_appendable() {
                dataset.append(&[series.value(rows, 1)]).map_err(error_text)?;
            }
            if let SeriesKind::Sparse { order, part, .. } = series.kind {
                // The chunks that are still to be written, one after the other.
                let issued = counted.min_and_max(expected).map_or(0, |(_, issued)| issued);
                for chunk in order.iter().skip(issued as usize) {
                    let rows = chunk * series.chunk..chunk * series.chunk + part;
                    let values: Vec<u64> = rows.clone().map(|row| series.value(row, 1)).collect();
                    match series.is_two_dimensional {
                        true => dataset.write_slice((rows, ..), &values),
                        false => dataset.write_slice(rows, &values),
                    }
                    .and_then(|()| file.flush())
                    .map_err(error_text)?;
                }
            }
            if let Some(far) = ExpectedSeries::new(series, counted, expected).far {
                let (value, row) = ([series.value(far, 1)], far..far + 1);
                match series.is_two_dimensional {
                    true => dataset.resize(&[far + 1, 1]).and_then(|()| dataset.write_slice((row, ..), &value)),
                    false => dataset.resize(&[far + 1]).and_then(|()| dataset.write_slice(row, &value)),
                }
                .map_err(error_text)?;
            }
        }
        if let Some((names, _)) = &self.names {
            names.change_once_more(&file)?;
        }
        file.flush().map_err(error_text)?;
        if self.mode == Mode::SwmrWrite {
            self.check_contents(disk, Mode::SwmrRead, expected, RecoveryHistory::Continued(&found))?;
        }
        file.close().map_err(error_text)?;
        Ok(found)
    }
}

/// The events since the crash.
#[derive(Debug, Clone, Copy)]
enum RecoveryHistory<'a> {
    /// None, or another crash of the recovery.
    CrashOnly,
    /// More rows were written to each series, which had this many rows before.
    Continued(&'a [u64]),
}

/// The rows that may be found in a series.
#[derive(Debug)]
struct ExpectedSeries {
    /// The rows that the trace counts as kept.
    kept: u64,
    /// The least extent that a crash may leave, and the most.
    extents: (u64, u64),
    grows: bool,
    /// The row that is written beyond everything that the dead writer wrote, in the middle of a chunk, with another row
    /// between.
    far: Option<u64>,
    chunk: u64,
    /// Whether the recovery may have crashed as well.
    again: bool,
    unmarked: bool,
}

impl ExpectedSeries {
    fn new(series: &Series, counted: &CountBounds, expected: &ExpectedPrefixRange) -> Self {
        let (kept, issued) = counted.min_and_max(expected).unwrap_or((0, 0));
        let (mut min_extent, mut max_extent) = (series.extent(kept), series.extent(issued));
        if let SeriesKind::Cut { .. } = series.kind {
            // Every extent that was asked for since the last flush.
            let between = counted.issued.values_between(expected.min_ops, expected.max_ops);
            for count in between.chain(counted.issued.last_value_at(expected.min_ops)) {
                (min_extent, max_extent) = (min_extent.min(count), max_extent.max(count));
            }
            max_extent = max_extent.max(kept);
        }
        let far = (max_extent + 1).next_multiple_of(series.chunk) + 2 * series.chunk + series.chunk / 2;
        let far = (series.is_appendable() && far < series.max_rows()).then_some(far);
        let (grows, again) = (series.is_appendable(), expected.recovery_crash_count > 0);
        ExpectedSeries {
            kept,
            extents: (min_extent, max_extent),
            grows,
            far,
            chunk: series.chunk,
            again,
            unmarked: false,
        }
    }

    /// The rows that must be there with this extent; or the reason why the extent is wrong.
    fn expected_rows(&self, done: Option<u64>, extent: u64) -> Result<ExpectedRows, String> {
        let (min_extent, max_extent) = self.extents;
        let wrong = || Err(format!("the extent is {extent}, of {min_extent} rows kept and {max_extent} written"));
        match (done, self.far) {
            // The row that was appended, what the dead writer left in its chunk, nothing, and the row far away.
            (Some(found), far) if self.grows => {
                let end = found + 1;
                let left = if self.unmarked { u64::MAX } else { end.next_multiple_of(self.chunk) };
                let left = left.min(max_extent.max(end));
                let is_right = extent == far.map_or(end, |far| far + 1);
                if is_right { Ok(ExpectedRows { rows: end, left, far }) } else { wrong() }
            }
            (_, Some(far)) if self.again && extent == far + 1 => {
                Ok(ExpectedRows { rows: min_extent, left: max_extent + 1, far: Some(far) })
            }
            _ => {
                let more = u64::from(self.grows && self.again);
                if extent < min_extent || extent > max_extent + more {
                    return wrong();
                }
                Ok(ExpectedRows { rows: extent, left: extent, far: None })
            }
        }
    }
}

/// Which rows hold what.
#[derive(Debug, Clone, Copy)]
struct ExpectedRows {
    /// The number of rows.
    rows: u64,
    /// Some before this may be there.
    left: u64,
    /// A further row, far beyond.
    far: Option<u64>,
}

impl ExpectedRows {
    fn must_hold(&self, row: u64) -> bool {
        row < self.rows || self.far == Some(row)
    }

    fn may_hold(&self, row: u64) -> bool {
        row < self.left || self.must_hold(row)
    }
}
