//! libhdf5 as the writer, recorded, and h5live's readers under every schedule.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use h5live_checker::schedule::{
    AllowedTears, CounterexampleLog, ExploreBounds, ReaderView, Verdict, explore_schedules,
};
use h5live_checker::trace::{MarkValues, Trace, TraceFileError};
use h5live_prove::suite::{ReaderKind, small_tears};
use h5live_prove::{FAILED_AT_REST, ReadStrategy, Series, SeriesKind, WAITED_IN_VAIN, Workload};

/// A workload of `write.py`.
struct WriterCase {
    name: &'static str,
    /// The arguments of `write.py`.
    arguments: &'static [&'static str],
    /// The same with fewer writes, which readers see in part.
    torn: &'static [&'static str],
    series: fn() -> Vec<Series>,
    readers: &'static [ReaderKind],
    passes: usize,
    /// The structure that libhdf5 writes before the one to which it leads. Readers may fail until its flush returns.
    structure_written_early: Option<&'static str>,
}

const ROWS: &[ReaderKind] = &[
    ReaderKind::Rows(ReadStrategy::Rows),
    ReaderKind::Rows(ReadStrategy::IndexFirst),
    ReaderKind::Rows(ReadStrategy::BeyondExtent),
];

fn appended_series(first: u64, chunk: u64, is_two_dimensional: bool, max_rows: Option<u64>) -> Vec<Series> {
    vec![Series {
        first: first.saturating_sub(2),
        is_two_dimensional,
        kind: SeriesKind::Rows { max_rows },
        ..Series::rows("d", chunk)
    }]
}

fn series_of(kind: SeriesKind, is_two_dimensional: bool, chunk: u64) -> Vec<Series> {
    vec![Series { kind, is_two_dimensional, ..Series::rows("d", chunk) }]
}

/// Where the dataspace is in a later chunk of the header than the layout.
const LATE_INDEX: &str = "the extent before the address of the index";

const CASES: &[WriterCase] = &[
    WriterCase {
        name: "extensible array, from nothing",
        arguments: &["rows", "extensible", "0", "8", "1"],
        torn: &["rows", "extensible", "0", "2", "1"],
        series: || appended_series(0, 1, false, None),
        readers: ROWS,
        passes: 3,
        structure_written_early: None,
    },
    WriterCase {
        name: "extensible array, first super block",
        arguments: &["rows", "extensible", "242", "8", "1"],
        torn: &["rows", "extensible", "243", "2", "1"],
        series: || appended_series(242, 1, false, None),
        readers: ROWS,
        passes: 3,
        structure_written_early: None,
    },
    WriterCase {
        name: "fixed array",
        arguments: &["rows", "fixed", "0", "8", "1", "40"],
        torn: &["rows", "fixed", "0", "2", "1", "40"],
        series: || appended_series(0, 1, false, Some(40)),
        readers: ROWS,
        passes: 3,
        structure_written_early: None,
    },
    WriterCase {
        name: "fixed array, second page",
        arguments: &["rows", "fixed", "1020", "8", "1", "3000"],
        torn: &["rows", "fixed", "1023", "2", "1", "3000"],
        series: || appended_series(1020, 1, false, Some(3000)),
        readers: ROWS,
        passes: 3,
        structure_written_early: Some("the bit of a page before the page"),
    },
    WriterCase {
        name: "B-tree, from nothing",
        arguments: &["rows", "btree2", "0", "8", "1"],
        torn: &["rows", "btree2", "0", "2", "1"],
        series: || appended_series(0, 1, true, None),
        readers: ROWS,
        passes: 3,
        structure_written_early: None,
    },
    WriterCase {
        name: "B-tree, root splits",
        arguments: &["rows", "btree2", "80", "8", "1"],
        torn: &["rows", "btree2", "83", "2", "1"],
        series: || appended_series(80, 1, true, None),
        readers: ROWS,
        passes: 3,
        structure_written_early: None,
    },
    WriterCase {
        name: "extensible array, split header",
        arguments: &["split", "extensible", "0", "6", "1"],
        torn: &["split", "extensible", "0", "2", "1"],
        series: || appended_series(0, 1, false, None),
        readers: ROWS,
        passes: 3,
        structure_written_early: Some(LATE_INDEX),
    },
    WriterCase {
        name: "fixed array, split header",
        arguments: &["split", "fixed", "0", "6", "1", "40"],
        torn: &["split", "fixed", "0", "2", "1", "40"],
        series: || appended_series(0, 1, false, Some(40)),
        readers: ROWS,
        passes: 3,
        structure_written_early: Some(LATE_INDEX),
    },
    WriterCase {
        name: "B-tree, split header",
        arguments: &["split", "btree2", "0", "6", "1"],
        torn: &["split", "btree2", "0", "2", "1"],
        series: || appended_series(0, 1, true, None),
        readers: ROWS,
        passes: 3,
        structure_written_early: Some(LATE_INDEX),
    },
    WriterCase {
        name: "B-tree, split header, root splits",
        arguments: &["split", "btree2", "80", "8", "1"],
        torn: &["split", "btree2", "83", "2", "1"],
        series: || appended_series(80, 1, true, None),
        readers: ROWS,
        passes: 3,
        structure_written_early: Some(LATE_INDEX),
    },
    WriterCase {
        name: "extensible array, sparse",
        arguments: &["sparse", "extensible", "3", "6", "60", "9", "1", "5", "0", "19", "4"],
        torn: &["sparse", "extensible", "3", "2", "60", "9", "1"],
        series: || {
            series_of(SeriesKind::Sparse { rows: 60, order: &[9, 1, 5, 0, 19, 4], part: 2, fixed: false }, false, 3)
        },
        readers: ROWS,
        passes: 2,
        structure_written_early: None,
    },
    WriterCase {
        name: "B-tree, sparse",
        arguments: &["sparse", "btree2", "3", "6", "60", "9", "1", "5", "0", "19", "4"],
        torn: &["sparse", "btree2", "3", "2", "60", "9", "1"],
        series: || {
            series_of(SeriesKind::Sparse { rows: 60, order: &[9, 1, 5, 0, 19, 4], part: 2, fixed: false }, true, 3)
        },
        readers: ROWS,
        passes: 2,
        structure_written_early: None,
    },
    WriterCase {
        name: "overwritten chunks",
        arguments: &["rewrite", "fixed", "2", "4", "6"],
        torn: &["rewrite", "fixed", "2", "2", "6"],
        series: || series_of(SeriesKind::Versions { rows: 6 }, false, 2),
        readers: ROWS,
        passes: 2,
        structure_written_early: None,
    },
    WriterCase {
        name: "single chunk",
        arguments: &["rewrite", "single", "6", "6", "6"],
        torn: &["rewrite", "single", "6", "2", "6"],
        series: || series_of(SeriesKind::Versions { rows: 6 }, false, 6),
        readers: ROWS,
        passes: 3,
        structure_written_early: None,
    },
    WriterCase {
        name: "chunks that move",
        arguments: &["resize", "fixed", "2", "4", "4"],
        torn: &["resize", "fixed", "2", "2", "4"],
        series: || series_of(SeriesKind::Filtered { rows: 4 }, false, 2),
        readers: ROWS,
        passes: 2,
        structure_written_early: None,
    },
    WriterCase {
        name: "two datasets",
        arguments: &["two", "4"],
        torn: &["two", "1"],
        series: || {
            vec![Series::rows("d", 1), Series { kind: SeriesKind::Rows { max_rows: Some(10) }, ..Series::rows("e", 2) }]
        },
        readers: ROWS,
        passes: 2,
        structure_written_early: None,
    },
    WriterCase {
        name: "attributes, continued header",
        arguments: &["attributes", "0", "6"],
        torn: &["attributes", "0", "3"],
        series: || vec![Series::rows("d", 1)],
        readers: &[ReaderKind::Attributes],
        passes: 2,
        structure_written_early: None,
    },
    WriterCase {
        name: "attributes become many",
        arguments: &["attributes", "6", "6"],
        torn: &["attributes", "7", "3"],
        series: || vec![Series::rows("d", 1)],
        readers: &[ReaderKind::Attributes],
        passes: 2,
        structure_written_early: Some("the object header before the heap and the B-tree of attributes"),
    },
    WriterCase {
        name: "new datasets",
        arguments: &["links", "0", "4"],
        torn: &["links", "0", "2"],
        series: Vec::new,
        readers: &[ReaderKind::Links],
        passes: 2,
        structure_written_early: Some("a link before the object to which it leads"),
    },
    WriterCase {
        name: "links become many",
        arguments: &["links", "6", "6"],
        torn: &["links", "7", "2"],
        series: Vec::new,
        readers: &[ReaderKind::Links],
        passes: 2,
        structure_written_early: Some("the object header before the heap and the B-tree of links"),
    },
    WriterCase {
        name: "texts",
        arguments: &["texts", "5"],
        torn: &["texts", "2"],
        series: Vec::new,
        readers: &[ReaderKind::Strings],
        passes: 2,
        structure_written_early: Some("elements before the heap to which they lead"),
    },
];

/// Why a workload cannot be recorded.
#[derive(Debug)]
enum RecordError {
    Io(io::Error),
    Trace(TraceFileError),
    Program(String),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Io(error) => write!(f, "the writer cannot be run: {error}"),
            RecordError::Trace(error) => write!(f, "what it did is not recorded: {error}"),
            RecordError::Program(text) => write!(f, "the writer failed: {text}"),
        }
    }
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        RecordError::Io(error)
    }
}

/// h5py, and the recorder that is loaded into it.
struct H5pyRecorder {
    python: PathBuf,
    recorder: PathBuf,
    folder: tempfile::TempDir,
}

impl H5pyRecorder {
    /// `None`, with a line that says why, if something is not there.
    fn new() -> Option<H5pyRecorder> {
        let skipped = |why: &str| println!("\nskipped: libhdf5 as the writer; {why}");
        let Some(python) = crate::locate::python() else {
            skipped("there is no Python with h5py (H5LIVE_PYTHON)");
            return None;
        };
        let folder = tempfile::tempdir().ok()?;
        let recorder = folder.path().join("record.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../checker/tools/record.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&recorder).arg(source).arg("-ldl");
        if !compiler.status().is_ok_and(|status| status.success()) {
            skipped("the recorder cannot be compiled (cc)");
            return None;
        }
        Some(H5pyRecorder { python, recorder, folder })
    }

    fn record(&self, arguments: &[&str], series: Vec<Series>) -> Result<Workload, RecordError> {
        let log = self.folder.path().join("run.h5trace");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("write.py");
        let mut writer = Command::new(&self.python);
        writer.arg(script).arg(self.folder.path().join("run.h5")).args(arguments);
        writer.env("H5TRACE_FILE", "run.h5").env("H5TRACE_LOG", &log).env("LD_PRELOAD", &self.recorder);
        let done = writer.output()?;
        if !done.status.success() {
            return Err(RecordError::Program(String::from_utf8_lossy(&done.stderr).into_owned()));
        }
        let whole = Trace::load(BufReader::new(File::open(&log)?)).map_err(RecordError::Trace)?;
        let begin = whole
            .prefix_ending_with_mark("begin")
            .ok_or_else(|| RecordError::Program("it does not say when it begins".into()))?;
        let trace = Trace::new(whole.image_after(begin)?, whole.operations().iter().skip(begin).cloned().collect());
        let start = trace.prefix_ending_with_mark("start").unwrap_or(0);
        Ok(Workload {
            trace,
            start,
            series,
            names: None,
            without_recount: false,
            is_exclusive: false,
            has_no_write_mark: false,
        })
    }
}

/// Whether a flush is under way.
struct FlushIntervals(Vec<(MarkValues, MarkValues)>);

impl FlushIntervals {
    fn new(workload: &Workload) -> Self {
        let counter = |name: &str, what| MarkValues::new(&workload.trace, &format!("{name}.{what}"));
        FlushIntervals(["d", "e", "a", "o", "s"].map(|name| (counter(name, "issued"), counter(name, "flushed"))).into())
    }

    fn is_flushing_at(&self, prefix: usize) -> bool {
        self.0.iter().any(|(issued, flushed)| issued.last_value_at(prefix) != flushed.last_value_at(prefix))
    }
}

/// Explores all workloads with `name` in their names, each reader of each for `limit`. Returns whether there is no
/// fault.
pub fn explore_all_cases(limit: Duration, story: bool, name: &str) -> bool {
    let Some(lab) = H5pyRecorder::new() else { return true };
    println!(
        "\n{:<36} {:<18} {:<5} {:>6} {:>6} {:>10} {:>10} {:>6} {:>6} {:>9} {:>8}",
        "libhdf5 writes",
        "reader",
        "seen",
        "writes",
        "passes",
        "schedules",
        "states",
        "early",
        "wrong",
        "exhausted",
        "per s"
    );
    let mut sound = true;
    for case in CASES.iter().filter(|case| case.name.contains(name)) {
        for (arguments, tearing, passes) in
            [(case.arguments, AllowedTears::NONE, case.passes), (case.torn, small_tears(), case.passes.min(2))]
        {
            match lab.record(arguments, (case.series)()) {
                Ok(workload) => {
                    for reader in case.readers {
                        let bounds = ExploreBounds { tearing, time_limit: Some(limit), ..ExploreBounds::default() };
                        sound &= explore_reader(case, &workload, *reader, passes, bounds, story);
                    }
                }
                Err(failure) => {
                    println!("{}: {failure}", case.name);
                    sound = false;
                }
            }
        }
    }
    sound
}

fn explore_reader(
    case: &WriterCase,
    workload: &Workload,
    reader: ReaderKind,
    passes: usize,
    bounds: ExploreBounds,
    story: bool,
) -> bool {
    let (busy, excused) = (FlushIntervals::new(workload), AtomicU64::new(0));
    let bounds = ExploreBounds { start_prefix: workload.start, ..bounds };
    let explored = reader.with_reader(workload, passes, |run| {
        explore_schedules(&workload.trace, &bounds, &|view: &Arc<ReaderView>| -> Verdict {
            let verdict = run(view);
            let has_failed = |fault: &String| [FAILED_AT_REST, WAITED_IN_VAIN].iter().any(|text| fault.contains(text));
            let failed = verdict.as_ref().is_err_and(has_failed);
            if failed && case.structure_written_early.is_some() && busy.is_flushing_at(view.writer_op_count()) {
                excused.fetch_add(1, Relaxed);
                return Ok(());
            }
            verdict
        })
    });
    println!(
        "{:<36} {:<18} {:<5} {:>6} {passes:>6} {:>10} {:>10} {:>6} {:>6} {:>9} {:>8.0}",
        case.name,
        reader.name(),
        if bounds.tearing == AllowedTears::NONE { "whole" } else { "torn" },
        workload.trace.len() - workload.start,
        explored.schedule_count,
        explored.state_count,
        excused.load(Relaxed),
        explored.violation_count,
        if explored.is_exhaustive { "yes" } else { "no" },
        explored.schedule_count as f64 / explored.elapsed.as_secs_f64(),
    );
    if let (Some(what), 1..) = (case.structure_written_early, excused.load(Relaxed)) {
        println!("    early: {what}");
    }
    for found in explored.violations.iter().take(2) {
        println!("    after {} moves: {}", found.writer_move_count(), found.fault);
        if story {
            println!("{}", CounterexampleLog::new(&workload.trace, found));
        }
    }
    explored.violation_count == 0
}
