//! Writers that set and remove attributes and links of all kinds, and are killed while they do it. After each kill the
//! file is repaired. It must be sound, with everything that was flushed.

mod plan;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use h5live::{File, LibVer};
use h5live_checker::file::{CheckOptions, check_path_with};
use serde_json::json;

use h5live_cli::counted::counted;
use h5live_cli::error::error_with_causes;
use h5live_cli::error::{Error, Result};
use h5live_cli::live::message::{StressInvariant, TimedExtents, WorkerMessage};
use h5live_cli::live::writer_and_readers::WriterAndReaders;
use h5live_cli::output::StdoutWriter;

use super::matrix::peer::Peer;
use super::rule::mix;
use plan::{Found, Plan};

/// After this a writer hangs that has not flushed.
const PATIENCE: Duration = Duration::from_secs(300);
/// One in this many files is repaired by `repair`, which waits for readers of the dead writer; the others by the next
/// writer.
const REPAIRED: u64 = 16;
/// Kills after which a new file is begun.
const KILLS_OF_A_FILE: u64 = 50;

/// The results of the writers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamesReport {
    /// Writers that were killed.
    pub kills: u64,
    /// The number of those that had not flushed yet.
    pub early: u64,
    /// Files with structures that did not agree before they were brought into order.
    pub unsettled: u64,
    /// Flushes.
    pub flushes: u64,
    /// Violations: events that must never happen.
    pub violations: Vec<String>,
}

impl fmt::Display for NamesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NamesReport { kills, early, unsettled, flushes, violations } = self;
        write!(
            f,
            "writers of attributes and links killed: {kills}, {early} before their first flush; {}; ",
            counted(*flushes, "flush")
        )?;
        write!(f, "files in which structures did not agree before they were brought into order: {unsettled}; ")?;
        write!(f, "{}", counted(violations.len(), "violation"))?;
        violations.iter().take(20).try_for_each(|violation| write!(f, "\n    {violation}"))
    }
}

/// Makes one step after the other, from `step` on, and says after each flush how many were made, until `stop` is set.
///
/// # Errors
/// As [`h5live_cli::error::Error`] says.
pub fn write(path: &Path, seed: u64, mut step: u64, stop: &AtomicBool) -> Result<()> {
    let file = File::options().swmr_write().open(path)?;
    let plan = Plan::of(&file, seed)?;
    let mut out = StdoutWriter::stdout();
    while !stop.load(Ordering::Acquire) {
        let at = TimedExtents::now(vec![step + 1]);
        for change in plan.changes(step) {
            plan.apply(&file, &change)?;
        }
        file.flush()?;
        step += 1;
        out.line(WorkerMessage::Flushed(at))?;
        out.flush()?;
    }
    Ok(file.close()?)
}

/// Kills `kills` writers, one after the other, and checks the file that each has left.
///
/// # Errors
/// If processes cannot be started, or files cannot be made.
pub fn kill(
    path: &Path,
    seed: u64,
    kills: u64,
    peer: Option<&mut Peer>,
    interrupted: &AtomicBool,
) -> Result<NamesReport> {
    let mut lives = Lives { path: path.to_owned(), seed, peer, done: NamesReport::default() };
    while lives.done.kills < kills && lives.done.violations.len() < 20 && !interrupted.load(Ordering::Acquire) {
        let begun = lives.done.kills / KILLS_OF_A_FILE;
        let profile = if begun % 3 == 2 { LibVer::Earliest } else { LibVer::default() };
        lives.run_file(profile, mix(seed ^ mix(begun)), KILLS_OF_A_FILE.min(kills - lives.done.kills), interrupted)?;
    }
    Ok(lives.done)
}

struct Lives<'a> {
    path: PathBuf,
    seed: u64,
    peer: Option<&'a mut Peer>,
    done: NamesReport,
}

impl Lives<'_> {
    fn run_file(&mut self, profile: LibVer, seed: u64, kills: u64, interrupted: &AtomicBool) -> Result<()> {
        let plan = Plan::new(profile, seed);
        plan.create(&self.path, profile)?;
        let mut known = plan.at_first();
        let mut step = 0;
        for life in 0..kills {
            if interrupted.load(Ordering::Acquire) || self.done.violations.len() >= 20 {
                break;
            }
            let random = mix(seed ^ mix(life));
            let flushed_steps = self.live(seed, step, random)?;
            (step..flushed_steps).for_each(|step| plan.apply_step_to_known(step, &mut known));
            match self.examine(&plan, &known, flushed_steps, random) {
                Some(found) => known = found,
                None => break,
            }
            step = flushed_steps + 1;
        }
        Ok(())
    }

    fn wrong(&mut self, detail: String) {
        let kept = self.path.with_extension(format!("kept{}.h5", self.done.violations.len()));
        // The violation is told in any case.
        let kept = std::fs::copy(&self.path, &kept).map_or_else(|e| e.to_string(), |_| kept.display().to_string());
        self.done.violations.push(format!("kill {} (seed {}): {detail}; kept as {kept}", self.done.kills, self.seed));
    }

    /// One writer, until it is killed. Returns how many steps were flushed.
    fn live(&mut self, seed: u64, step: u64, random: u64) -> Result<u64> {
        let (seed, first) = (seed.to_string(), step.to_string());
        let arguments = ["stress", "--names", "--role=writer", "--seed", &seed, "--step", &first];
        let mut troupe = WriterAndReaders::new(&self.path.as_path().into(), &[]);
        troupe.spawn_writer(&arguments).map_err(Error::Process)?;
        if random.is_multiple_of(8) {
            // Perhaps before it has opened the file, or while it puts it in order.
            thread::sleep(Duration::from_micros((random >> 32) % 20_000));
        } else {
            if !troupe.wait_until_or_writer_gone(PATIENCE, |troupe| !troupe.flushes.is_empty()) {
                troupe.record_violation(StressInvariant::Progress, "the writer does not flush");
            }
            thread::sleep(Duration::from_micros((random >> 32) % 30_000));
        }
        troupe.kill_writer().map_err(Error::Process)?;
        self.done.kills += 1;
        self.done.early += u64::from(troupe.flushes.is_empty());
        self.done.flushes += troupe.flushes.len() as u64;
        let violations = std::mem::take(&mut troupe.violations);
        violations.into_iter().for_each(|violation| self.wrong(violation.detail));
        Ok(troupe.flushes.last().and_then(|flush| flush.row_counts.first()).copied().unwrap_or(step))
    }

    /// Checks the file that a writer has left, before and after its repair. Returns its contents; `None` if they cannot
    /// be read.
    fn examine(&mut self, plan: &Plan, known: &Found, flushed_steps: u64, random: u64) -> Option<Found> {
        let found = match plan.found(&self.path) {
            Ok(found) => found,
            Err(fault) => {
                self.wrong(fault);
                return None;
            }
        };
        if let Some(fault) = plan.fault(&found, known, flushed_steps) {
            self.wrong(fault);
        }
        let ordered = self.path.with_extension("ordered.h5");
        self.done.unsettled += u64::from(unsound(&self.path, true).is_ok_and(|said| said.unsettled));
        let after = match bring_into_order(&self.path, &ordered, random.is_multiple_of(REPAIRED)) {
            Ok(()) => self.examine_ordered(plan, &ordered, &found, flushed_steps),
            Err(error) => {
                self.wrong(format!("brought into order: {}", error_with_causes(&error)));
                found
            }
        };
        // It is not there if it could not be made.
        let _ = std::fs::remove_file(&ordered);
        Some(after)
    }

    /// Checks the file after its repair. Returns its contents, which the next writer finds, too.
    fn examine_ordered(&mut self, plan: &Plan, ordered: &Path, found: &Found, flushed_steps: u64) -> Found {
        let after = match plan.found(ordered) {
            Ok(after) => after,
            Err(fault) => {
                self.wrong(format!("brought into order: {fault}"));
                found.clone()
            }
        };
        if let Some(fault) = plan.recovery_fault(found, &after, flushed_steps) {
            self.wrong(format!("brought into order: {fault}"));
        }
        match unsound(ordered, false) {
            Ok(Said { finding: None, .. }) => {}
            Ok(Said { finding: Some(finding), .. }) => self.wrong(format!("brought into order: {finding}")),
            Err(error) => self.wrong(format!("brought into order: {error}")),
        }
        if let Some(peer) = &mut self.peer
            && let Err(fault) = peer
                .ask(&json!({ "path": ordered, "entries": plan.entries(&after) }))
                .and_then(|said| if said == "ok" { Ok(()) } else { Err(said) })
        {
            self.wrong(format!("the other program: {fault}"));
        } else if self.peer.is_some() {
            // It has changed the file.
            match unsound(ordered, false) {
                Ok(Said { finding: None, .. }) => {}
                Ok(Said { finding: Some(finding), .. }) => {
                    self.wrong(format!("written on by the other program: {finding}"))
                }
                Err(error) => self.wrong(format!("written on by the other program: {error}")),
            }
        }
        after
    }
}

/// The output of the file checker.
struct Said {
    finding: Option<String>,
    /// Whether there are sums that a writer brings into order last.
    unsettled: bool,
}

fn unsound(path: &Path, live: bool) -> std::io::Result<Said> {
    let filters = h5live_cli::open::filter_engine();
    let report = check_path_with(
        path,
        CheckOptions { may_be_live: live, filter_engine: Some(&filters), ..CheckOptions::default() },
    )?;
    let all = counted(report.findings.len(), "finding");
    let finding = report.findings.first().map(|finding| format!("{finding} (of {all})"));
    let unsettled = report.notes.iter().any(|note| note.cause.kind() == "count") || finding.is_some();
    Ok(Said { finding, unsettled })
}

/// Repairs a copy of a file, by `repair` or by a writer.
fn bring_into_order(from: &Path, to: &Path, repairs: bool) -> Result<()> {
    let copied = std::fs::copy(from, to);
    copied.map_err(|source| Error::Io { path: to.to_owned(), source })?;
    if repairs {
        h5live::repair(to)?;
        return Ok(());
    }
    Ok(File::options().write().open(to)?.close()?)
}
