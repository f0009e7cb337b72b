//! Which process gets in while another opens or closes: h5live and libhdf5 on a file of the system, with its locks and
//! leases.
//!
//! One process makes some of its system calls, then the other one makes some, then the first goes on to its end, and
//! then the other. For each two processes, all schedules are run in which each is interrupted once. (Both are threads
//! of this program. They share only the file, and locks and leases belong to open files.)

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use h5live::{File, Locking, Mode};
use h5live_checker::file::{FindingCause, check_path};

use crate::call_scheduler::{self, CallLog, CallStep, SteppedThread};
use crate::library::{Access, Library};

/// A process.
#[derive(Clone, Copy)]
enum ProcessRole<'l> {
    H5live(Mode),
    /// As h5live, without locks.
    H5liveUnlocked(Mode),
    Libhdf5(&'l Library, Access),
}

/// The result of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProcessResult {
    Wrote,
    /// The rows that it read, the first time and the last.
    Saw(Vec<u64>, Vec<u64>),
    /// It was refused, because the file is in use.
    Refused,
    Failed(String),
}

/// Rows of the file before anybody opens it.
const ROWS: u64 = 2;

/// How often a reader of libhdf5 opens a file that changes meanwhile.
const MAX_OPENINGS: u32 = 3;

fn row_value(row: u64) -> u64 {
    (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl ProcessRole<'_> {
    fn writes(self) -> bool {
        match self {
            ProcessRole::H5live(mode) | ProcessRole::H5liveUnlocked(mode) => {
                matches!(mode, Mode::Write | Mode::SwmrWrite)
            }
            ProcessRole::Libhdf5(_, access) => matches!(access, Access::Write | Access::SwmrWrite),
        }
    }

    /// Whether it reads a file that must not change meanwhile.
    fn reads_alone(self) -> bool {
        matches!(self, ProcessRole::H5live(Mode::Read) | ProcessRole::Libhdf5(_, Access::Read))
    }

    fn run_process(self, path: &Path) -> ProcessResult {
        let done = match self {
            ProcessRole::H5live(mode) => run_h5live(path, mode, Locking::Always),
            ProcessRole::H5liveUnlocked(mode) => run_h5live(path, mode, Locking::Never),
            ProcessRole::Libhdf5(library, access) => run_libhdf5(path, library, access),
        };
        done.unwrap_or_else(ProcessResult::Failed)
    }
}

impl fmt::Display for ProcessRole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ProcessRole::H5live(Mode::Read) => "h5live reads",
            ProcessRole::H5live(Mode::SwmrRead) => "h5live follows",
            ProcessRole::H5live(Mode::SwmrWrite) => "h5live writes live",
            ProcessRole::H5live(_) => "h5live writes",
            ProcessRole::H5liveUnlocked(_) => "a writer without locks",
            ProcessRole::Libhdf5(_, Access::Read) => "libhdf5 reads",
            ProcessRole::Libhdf5(_, Access::SwmrRead) => "libhdf5 follows",
            ProcessRole::Libhdf5(_, Access::SwmrWrite) => "libhdf5 writes live",
            ProcessRole::Libhdf5(..) => "libhdf5 writes",
        };
        f.pad(text)
    }
}

fn run_h5live(path: &Path, mode: Mode, locking: Locking) -> Result<ProcessResult, String> {
    let error_text = |error: h5live::Error| error.to_string();
    let file = match File::options().mode(mode).locking(locking).open(path) {
        Err(error) if error.is_in_use() => return Ok(ProcessResult::Refused),
        file => file.map_err(error_text)?,
    };
    call_scheduler::log_step(call_scheduler::OPENED, true);
    let dataset = file.dataset("d").map_err(error_text)?;
    let end = if matches!(mode, Mode::Write | Mode::SwmrWrite) {
        let rows = dataset.shape().map_err(error_text)?.first().copied().unwrap_or(0);
        dataset.append(&[row_value(rows)]).and_then(|_| dataset.flush()).map_err(error_text)?;
        ProcessResult::Wrote
    } else {
        let first = dataset.read().map_err(error_text)?;
        dataset.refresh().map_err(error_text)?;
        ProcessResult::Saw(first, dataset.read().map_err(error_text)?)
    };
    drop(dataset);
    call_scheduler::log_step(call_scheduler::CLOSING, true);
    file.close().map_err(error_text)?;
    Ok(end)
}

fn run_libhdf5(path: &Path, library: &Library, access: Access) -> Result<ProcessResult, String> {
    let error_text = |failure: crate::library::Libhdf5Error| failure.to_string();
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let open = |path: &CStr| (0..MAX_OPENINGS).find_map(|_| library.open_file(path, access).ok());
    let Some(file) = open(&path) else { return Ok(ProcessResult::Refused) };
    call_scheduler::log_step(call_scheduler::OPENED, true);
    let dataset = file.open_dataset("d").map_err(error_text)?;
    let rows = || dataset.extent().and_then(|extent| dataset.read_rows(0, extent.first().copied().unwrap_or(0)));
    let end = if matches!(access, Access::Write | Access::SwmrWrite) {
        let count = dataset.extent().map_err(error_text)?.first().copied().unwrap_or(0);
        dataset.append_value(row_value(count)).map_err(error_text)?;
        ProcessResult::Wrote
    } else {
        let first = rows().map_err(error_text)?;
        dataset.refresh().map_err(error_text)?;
        ProcessResult::Saw(first, rows().map_err(error_text)?)
    };
    drop(dataset);
    call_scheduler::log_step(call_scheduler::CLOSING, true);
    drop(file);
    Ok(end)
}

/// The bytes of a file that was closed, or of one whose writer has died.
fn base_file_bytes(folder: &Path, is_abandoned: bool) -> h5live::Result<Vec<u8>> {
    let path = folder.join("base.h5");
    let file = File::create(&path)?;
    let dataset = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1]).create("d")?;
    dataset.append(&(0..ROWS).map(row_value).collect::<Vec<_>>())?;
    drop(dataset);
    file.start_swmr()?;
    file.flush()?;
    let bytes = |path| std::fs::read(path).expect("a file that was written can be read");
    let left = bytes(&path);
    file.close()?;
    Ok(if is_abandoned { left } else { bytes(&path) })
}

/// The result of one schedule.
struct RaceRun {
    ends: [ProcessResult; 2],
    log: Vec<CallStep>,
    /// Whether the second one had ended when the first one went on.
    is_over: bool,
}

/// Runs one schedule: the first process makes this many calls, then the second.
fn run_schedule(roles: [ProcessRole<'_>; 2], path: &Path, base: &[u8], [first, second]: [u64; 2]) -> RaceRun {
    std::fs::write(path, base).expect("a file can be written");
    call_scheduler::watch_inode(std::fs::metadata(path).expect("the file is there").ino());
    let log = CallLog::default();
    let (ends, is_over) = std::thread::scope(|scope| {
        let [one, two] = [0, 1].map(|who| SteppedThread::start(scope, who, &log, move || roles[who].run_process(path)));
        one.run_up_to_calls(first);
        let is_over = two.run_up_to_calls(second);
        let end = |actor: SteppedThread<'_, ProcessResult>| {
            actor.finish().unwrap_or_else(|_| ProcessResult::Failed("it panics".into()))
        };
        ([end(one), end(two)], is_over)
    });
    RaceRun { ends, log: log.steps(), is_over }
}

impl RaceRun {
    /// When someone did something for the first time.
    fn first_step_of(&self, who: usize, what: &str) -> Option<usize> {
        self.log.iter().position(|step| step.thread == who && step.call == what)
    }

    /// From when to when.
    fn step_range(&self, who: usize, from: &str, to: &str) -> Option<(usize, usize)> {
        Some((self.first_step_of(who, from)?, self.first_step_of(who, to)?))
    }

    /// Whether someone holds the file for itself at that time.
    fn is_holding_file(&self, who: usize, at: usize) -> bool {
        let calls = self.log.iter().take(at).filter(|step| step.thread == who && step.succeeded);
        calls.fold(false, |held, step| match step.call {
            call_scheduler::LOCK => true,
            call_scheduler::UNLOCK | call_scheduler::LOCK_SHARED | call_scheduler::ENDED => false,
            _ => held,
        })
    }

    /// The fault of a schedule. A file whose writer has died counts as one that another process may take over.
    fn fault(&self, roles: [ProcessRole<'_>; 2], path: &Path, is_abandoned: bool) -> Option<String> {
        let written = self.ends.iter().filter(|end| **end == ProcessResult::Wrote).count() as u64;
        let [Some(one), Some(two)] =
            [0, 1].map(|who| self.step_range(who, call_scheduler::BEGAN, call_scheduler::ENDED))
        else {
            return Some("one of them has not begun".into());
        };
        let is_alone = one.1 < two.0 || two.1 < one.0;
        for (who, end) in self.ends.iter().enumerate() {
            let other = 1 - who;
            let wrong = |what: &str| Some(format!("{}: {what}", roles[who]));
            match end {
                ProcessResult::Failed(what) => return wrong(what),
                ProcessResult::Refused if is_alone => return wrong("is refused, though nobody else has the file"),
                ProcessResult::Refused => {
                    let ended = if who == 0 { one.1 } else { two.1 };
                    let follows = matches!(roles[who], ProcessRole::H5live(Mode::SwmrRead));
                    let live = matches!(roles[other], ProcessRole::H5live(Mode::SwmrWrite));
                    if follows && live && !self.is_holding_file(other, ended) {
                        return wrong("is kept out by a writer that lets others follow");
                    }
                }
                ProcessResult::Saw(first, last) => {
                    let is_right = |rows: &[u64]| rows.iter().copied().eq((0..rows.len() as u64).map(row_value));
                    let count = |rows: &[u64]| rows.len() as u64;
                    let before = if one.1 < two.0 && who == 1 || two.1 < one.0 && who == 0 { written } else { 0 };
                    let counts = [ROWS + before, count(first), count(last), ROWS + written];
                    if !is_right(first) || !is_right(last) || !counts.is_sorted() {
                        return wrong(&format!("sees {first:x?}, and then {last:x?}"));
                    }
                    let open =
                        self.step_range(who, call_scheduler::OPENED, call_scheduler::CLOSING).unwrap_or_default();
                    let inside = self.log.iter().take(open.1).skip(open.0);
                    let under =
                        inside.filter(|step| step.thread == other && step.call == call_scheduler::WRITE).count();
                    if roles[who].reads_alone() && !is_abandoned && (under > 0 || first != last) {
                        return wrong("is written under, and does not expect it");
                    }
                }
                ProcessResult::Wrote => {}
            }
        }
        let open =
            [0, 1].map(|who| self.step_range(who, call_scheduler::OPENED, call_scheduler::CLOSING).unwrap_or_default());
        if self.ends == [ProcessResult::Wrote, ProcessResult::Wrote] && open[0].0 < open[1].1 && open[1].0 < open[0].1 {
            return Some("there are two writers".into());
        }
        self.fault_of_final_file(path, ROWS + written, is_abandoned && written == 0)
    }

    /// The fault of the final file. It may say that it has a writer if that one had died before.
    fn fault_of_final_file(&self, path: &Path, rows: u64, is_abandoned: bool) -> Option<String> {
        let found: h5live::Result<Vec<u64>> = File::open(path).and_then(|file| file.dataset("d")?.read());
        match found {
            Ok(found) if found.iter().copied().eq((0..rows).map(row_value)) => {}
            Ok(found) => return Some(format!("the file holds {found:x?} in the end, of {rows} rows")),
            Err(error) => return Some(format!("the file cannot be read in the end: {error}")),
        }
        match check_path(path) {
            Ok(report) => {
                let mut findings = report.findings.iter();
                let found =
                    findings.find(|finding| !(is_abandoned && matches!(finding.cause, FindingCause::NotClosed(_))));
                found.map(|finding| format!("the file in the end: {finding}"))
            }
            Err(error) => Some(format!("the file cannot be checked in the end: {error}")),
        }
    }
}

/// The results of two processes.
#[derive(Default)]
struct RaceReport {
    schedules: u64,
    /// How often each was refused.
    refused: [u64; 2],
    wrong: u64,
    /// The first schedule that went wrong, and in what.
    first: Option<(String, Vec<CallStep>)>,
}

/// Most calls of the second process before the first one goes on. It makes more only when it waits.
const MAX_CALLS: u64 = 120;

/// One schedule of this many is run in a quick exploration.
const QUICK_STRIDE: u64 = 17;

/// As many are enough to find out a writer without locks.
const BROKEN_STRIDE: u64 = 3;

/// Runs all schedules of two processes, or one of so many.
fn explore_schedules(roles: [ProcessRole<'_>; 2], path: &Path, base: &[u8], is_abandoned: bool, of: u64) -> RaceReport {
    let alone = run_schedule(roles, path, base, [u64::MAX, 0]);
    let calls = alone.log.iter().filter(|step| step.thread == 0 && !call_scheduler::NOTES.contains(&step.call));
    // Reading changes nothing for others, and to who writes first nobody else writes until then.
    let stops = calls.enumerate().filter(|(_, step)| !roles[0].writes() || step.call != call_scheduler::READ);
    let stops = stops.flat_map(|(first, _)| (0..MAX_CALLS).map(move |second| [first as u64, second]));
    let mut found = RaceReport::default();
    let mut over = None;
    for (n, stops) in stops.enumerate() {
        let is_chosen = (n as u64).is_multiple_of(of) || stops[1] == 0;
        if !is_chosen || over == Some(stops[0]) {
            continue;
        }
        let run = run_schedule(roles, path, base, stops);
        found.schedules += 1;
        for (refused, end) in found.refused.iter_mut().zip(&run.ends) {
            *refused += u64::from(*end == ProcessResult::Refused);
        }
        if let Some(fault) = run.fault(roles, path, is_abandoned) {
            found.wrong += 1;
            found.first.get_or_insert((fault, run.log));
        }
        over = run.is_over.then_some(stops[0]);
    }
    found
}

/// Where the two meet.
struct RaceFixture<'a> {
    path: &'a Path,
    /// The file, closed, and as a dead writer left it.
    bases: [Vec<u8>; 2],
    every_nth_schedule: u64,
}

impl RaceFixture<'_> {
    /// Explores two processes, prints a line, and returns the results.
    fn explore_and_print(&self, roles: [ProcessRole<'_>; 2], is_abandoned: bool) -> RaceReport {
        let found = explore_schedules(
            roles,
            self.path,
            &self.bases[usize::from(is_abandoned)],
            is_abandoned,
            self.every_nth_schedule,
        );
        println!(
            "{:<22} {:<22} {:<7} {:>10} {:>8} {:>8} {:>6}",
            roles[0],
            roles[1],
            if is_abandoned { "left" } else { "closed" },
            found.schedules,
            found.refused[0],
            found.refused[1],
            found.wrong,
        );
        found
    }

    /// Explores two processes, with either one first. Returns whether there is no fault.
    fn explore_both_orders(&self, roles: [ProcessRole<'_>; 2], is_abandoned: bool) -> bool {
        let found = self.explore_and_print(roles, is_abandoned);
        if let Some((fault, log)) = &found.first {
            println!("    {fault}");
            for step in log {
                println!(
                    "        {:<22} {}{}",
                    roles[step.thread],
                    step.call,
                    if step.succeeded { "" } else { ": no" }
                );
            }
        }
        found.wrong == 0
    }
}

/// The environment variable that disables locks, in both libraries.
const LOCKING: &str = "HDF5_USE_FILE_LOCKING";

/// Explores all pairs in which one has NAME in its name. Returns whether there is no fault.
pub fn explore_all(quick: bool, name: &str) -> bool {
    if std::env::var_os(LOCKING).is_some() {
        println!("\nskipped: who gets in; {LOCKING} is set");
        return true;
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let bases =
        [false, true].map(|is_abandoned| base_file_bytes(folder.path(), is_abandoned).expect("a file can be made"));
    let place = RaceFixture {
        path: &folder.path().join(call_scheduler::NAME),
        bases,
        every_nth_schedule: if quick { QUICK_STRIDE } else { 1 },
    };
    let library = crate::locate::libraries().first().and_then(|path| Library::load(path, 10).ok());
    println!(
        "\n{:<22} {:<22} {:<7} {:>10} {:>8} {:>8} {:>6}",
        "who opens", "beside", "file", "schedules", "refused", "refused", "wrong"
    );
    let successor = [ProcessRole::H5live(Mode::SwmrWrite), ProcessRole::H5live(Mode::SwmrRead)];
    let knows_the_dead =
        run_schedule(successor, place.path, &place.bases[1], [u64::MAX, 0]).ends[0] == ProcessResult::Wrote;
    if !knows_the_dead {
        println!("skipped: files that dead writers left; the system does not tell who has one open for writing");
    }
    let ours = [Mode::SwmrWrite, Mode::Write, Mode::SwmrRead, Mode::Read].map(ProcessRole::H5live);
    let theirs = [Access::SwmrWrite, Access::Write, Access::SwmrRead, Access::Read];
    let theirs = library.iter().flat_map(|library| theirs.map(|access| ProcessRole::Libhdf5(library, access)));
    let all: Vec<ProcessRole<'_>> = ours.into_iter().chain(theirs).collect();
    let mut sound = true;
    for (n, one) in all.iter().enumerate() {
        for (m, other) in all.iter().enumerate().skip(n) {
            let roles = [*one, *other];
            let is_theirs = roles.map(|role| matches!(role, ProcessRole::Libhdf5(..)));
            let is_named = roles.iter().any(|role| role.to_string().contains(name));
            // libhdf5 serves one thread at a time, and does not open what a dead writer left.
            if !is_named || is_theirs == [true; 2] || !roles.iter().any(|role| role.writes()) {
                continue;
            }
            for is_abandoned in [false, true] {
                if is_abandoned && (is_theirs[1] || !knows_the_dead) {
                    continue;
                }
                sound &= place.explore_both_orders(roles, is_abandoned);
                if n != m {
                    sound &= place.explore_both_orders([*other, *one], is_abandoned);
                }
            }
        }
    }
    let place = RaceFixture { every_nth_schedule: place.every_nth_schedule.min(BROKEN_STRIDE), ..place };
    let found =
        place.explore_and_print([ProcessRole::H5liveUnlocked(Mode::SwmrWrite), ProcessRole::H5live(Mode::Read)], false);
    println!("    {}", found.first.as_ref().map_or("NOT FOUND OUT", |_| "found out, as it must be"));
    sound && found.wrong > 0
}
