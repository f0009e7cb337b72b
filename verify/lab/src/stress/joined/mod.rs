//! Several writers that have joined one log, each in a process of its own. They are killed while they write, or leave and
//! come back. What was flushed is there, batches are seen whole and in their order, and the others go on.

mod plan;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::File;
use h5live_checker::file::CheckOptions;

use h5live_cli::error::{Error, Result, error_with_causes};
use h5live_cli::live::message::{TimedExtents, WorkerMessage};
use h5live_cli::live::processes::{ExitResult, Process, ProcessEvent, ProcessSpawner};
use h5live_cli::output::StdoutWriter;

use super::rule::mix;
use plan::{Found, Plan, follow, location};

/// After this a writer hangs that has not flushed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Kills after which a new file is begun.
const KILLS_OF_A_FILE: u64 = 40;
/// One in this many kills is of all writers.
const KILLS_OF_ALL: u64 = 8;
/// One in this many kills is followed by a look of the follower that stalls in between.
const KILLS_OF_STALL: u64 = 7;
/// The most writers that leave at the same time, before each kill.
const MAX_LEAVING: u64 = 2;

/// The results of the writers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinedWritersReport {
    /// Writers that were killed.
    pub kills: u64,
    /// Writers that left while others stayed.
    pub leaves: u64,
    /// Flushes.
    pub flushes: u64,
    /// How often a follower has looked at everything while writers were at work.
    pub looks: u64,
    /// Violations: events that must never happen.
    pub violations: Vec<String>,
}

impl fmt::Display for JoinedWritersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JoinedWritersReport { kills, leaves, flushes, looks, violations } = self;
        write!(
            f,
            "{kills} joined writers killed, {leaves} have left, {flushes} flushes, {looks} looks at everything: "
        )?;
        write!(f, "{} violations", violations.len())?;
        violations.iter().try_for_each(|violation| write!(f, "\n    {violation}"))
    }
}

/// Writes as one of several writers, from `step` on, and says after each flush how many steps were made.
///
/// # Errors
/// As [`h5live_cli::error::Error`] says.
pub fn write(path: &Path, writer: u64, (writers, seed): (u64, u64), mut step: u64, stop: &AtomicBool) -> Result<()> {
    let plan = Plan { writers, seed };
    let file = File::options().swmr_write().open(location(path, true))?;
    let mut out = StdoutWriter::stdout();
    while !stop.load(Ordering::Acquire) {
        plan.apply_step(&file, writer, step)?;
        file.flush()?;
        step += 1;
        out.line(WorkerMessage::Flushed(TimedExtents::now(vec![step])))?;
        out.flush()?;
    }
    Ok(file.close()?)
}

/// Kills `kills` writers of up to four at a time, and checks the file while they write, and after each kill.
///
/// # Errors
/// If processes cannot be started, or files cannot be made.
pub fn kill(path: &Path, seed: u64, kills: u64, interrupted: &AtomicBool) -> Result<JoinedWritersReport> {
    let mut done = JoinedWritersReport::default();
    let mut begun = 0;
    while done.kills < kills && done.violations.is_empty() && !interrupted.load(Ordering::Acquire) {
        let plan = Plan { writers: 1 + begun % 4, seed: mix(seed ^ mix(begun)) };
        let path = path.with_extension(format!("{begun}.h5"));
        plan.create(&path)?;
        let goal = kills.min(done.kills + KILLS_OF_A_FILE);
        let mut troupe = Troupe::new(path.clone(), plan, &mut done)?;
        troupe.run(goal, interrupted)?;
        remove(&path, done.violations.is_empty());
        begun += 1;
    }
    Ok(done)
}

/// Removes a file with its subfiles, unless it is to be kept.
fn remove(path: &Path, is_clean: bool) {
    if is_clean {
        // What cannot be removed stays in the folder for temporary files.
        let _ = std::fs::remove_file(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let _ = std::fs::remove_dir_all(path.with_file_name(format!("{name}.subfiles")));
    } else {
        eprintln!("h5live: {}: kept, for there are violations", path.display());
    }
}

/// The writers of one file, and a follower.
struct Troupe<'a> {
    path: PathBuf,
    plan: Plan,
    spawner: ProcessSpawner<u64>,
    writers: Vec<Process>,
    /// The steps that each writer has said to be flushed.
    flushed: Vec<u64>,
    follower: File,
    /// Another follower, which stalls while writers come, leave and die.
    sleeper: File,
    seen: Found,
    done: &'a mut JoinedWritersReport,
}

impl<'a> Troupe<'a> {
    fn new(path: PathBuf, plan: Plan, done: &'a mut JoinedWritersReport) -> Result<Self> {
        let (follower, sleeper) = (follow(&path)?, follow(&path)?);
        let flushed = vec![0; plan.writers as usize];
        let seen = Found { steps: flushed.clone(), ..Found::default() };
        let (spawner, writers) = (ProcessSpawner::default(), Vec::new());
        Ok(Troupe { path, plan, spawner, writers, flushed, follower, sleeper, seen, done })
    }

    fn start(&self, writer: u64, step: u64) -> Result<Process> {
        let numbers = [writer, self.plan.writers, self.plan.seed, step].map(|number| number.to_string());
        let [writer_text, writers, seed, step] = &numbers;
        let arguments = [
            "stress",
            "--log",
            "--role=writer",
            "--number",
            writer_text,
            "--writers",
            writers,
            "--seed",
            seed,
            "--step",
            step,
        ];
        self.spawner.start_self(writer, &arguments, &self.path).map_err(Error::Process)
    }

    fn wrong(&mut self, detail: String) {
        let (seed, kills) = (self.plan.seed, self.done.kills);
        self.done.violations.push(format!("{} writers, seed {seed}, kill {kills}: {detail}", self.plan.writers));
    }

    fn run(&mut self, goal: u64, interrupted: &AtomicBool) -> Result<()> {
        for writer in 0..self.plan.writers {
            self.writers.push(self.start(writer, 0)?);
        }
        while self.done.kills < goal && self.done.violations.is_empty() && !interrupted.load(Ordering::Acquire) {
            let random = mix(self.plan.seed ^ mix(self.done.kills));
            self.let_write(random);
            self.leave(random)?;
            self.let_write(random >> 3);
            if random.is_multiple_of(KILLS_OF_ALL) {
                self.kill_all()?;
            } else {
                self.kill_one(random / KILLS_OF_ALL % self.plan.writers)?;
            }
            if random.is_multiple_of(KILLS_OF_STALL) {
                self.look("the follower that stalled", &self.sleeper.clone());
            }
        }
        self.end(&(0..self.plan.writers).collect::<Vec<_>>())?;
        self.look_from_the_start("after all have left");
        self.check_files();
        Ok(())
    }

    /// Waits until each writer has flushed once more, or a random time, with looks of the follower.
    fn let_write(&mut self, random: u64) {
        let before = self.flushed.clone();
        let begin = Instant::now();
        let waits = !random.is_multiple_of(5);
        while waits && self.flushed.iter().zip(&before).any(|(now, before)| now <= before) {
            if begin.elapsed() > PATIENCE {
                return self.wrong(format!("writers do not flush: {before:?}, then {:?}", self.flushed));
            }
            self.collect(Duration::from_millis(1));
            self.follow();
            if !self.done.violations.is_empty() {
                return;
            }
        }
        thread::sleep(Duration::from_micros((random >> 32) % 15_000));
        self.follow();
    }

    /// Takes up the messages of the writers.
    fn collect(&mut self, wait: Duration) {
        while let Ok((writer, event)) = self.spawner.events.recv_timeout(wait) {
            match event {
                ProcessEvent::Message(WorkerMessage::Flushed(steps)) => {
                    self.done.flushes += 1;
                    let steps = steps.row_counts.first().copied().unwrap_or(0);
                    self.flushed[writer as usize] = self.flushed[writer as usize].max(steps);
                }
                ProcessEvent::Noise(line) => self.wrong(format!("writer {writer} said {line:?}")),
                _ => {}
            }
        }
    }

    fn follow(&mut self) {
        self.look("the follower", &self.follower.clone());
    }

    /// Has a follower look at everything.
    fn look(&mut self, who: &str, follower: &File) {
        let flushed = self.flushed.clone();
        let looked = follower.root().refresh().map_err(|error| format!("refresh: {error:#}"));
        self.done.looks += 1;
        match looked.and_then(|_| self.plan.found(follower)) {
            Ok(found) => self.compare(who, &found, &flushed),
            Err(fault) => self.wrong(format!("{who}: {fault}")),
        }
    }

    /// What is found must have all that was flushed, and all that was seen before.
    fn compare(&mut self, who: &str, found: &Found, flushed: &[u64]) {
        let is_back = |before: &[u64]| found.steps.iter().zip(before).any(|(now, before)| now < before);
        if is_back(flushed) {
            self.wrong(format!("{who} finds {:?} of {flushed:?} flushed steps", found.steps));
        }
        if is_back(&self.seen.steps) {
            self.wrong(format!("{who} finds {:?} after {:?}", found.steps, self.seen.steps));
        }
        if !found.rows.starts_with(&self.seen.rows) {
            let (now, before) = (found.rows.len(), self.seen.rows.len());
            self.wrong(format!("{who} finds {now} rows that do not begin with the {before} that were seen"));
        }
        self.seen = found.clone();
    }

    fn look_from_the_start(&mut self, when: &str) {
        let flushed = self.flushed.clone();
        let opened = follow(&self.path).map_err(|error| error_with_causes(&error));
        match opened.and_then(|file| self.plan.found(&file)) {
            Ok(found) => self.compare(when, &found, &flushed),
            Err(fault) => self.wrong(format!("{when}: {fault}")),
        }
    }

    fn kill_one(&mut self, writer: u64) -> Result<()> {
        self.writers[writer as usize].kill_and_wait().map_err(Error::Process)?;
        self.done.kills += 1;
        self.collect(Duration::ZERO);
        self.look_from_the_start("after a kill");
        self.restart(writer)
    }

    fn kill_all(&mut self) -> Result<()> {
        for number in 0..self.writers.len() {
            self.writers[number].kill_and_wait().map_err(Error::Process)?;
            self.done.kills += 1;
        }
        self.collect(Duration::ZERO);
        self.look_from_the_start("after all were killed");
        (0..self.plan.writers).try_for_each(|writer| self.restart(writer))
    }

    /// Has some writers leave while the others stay, and come back.
    fn leave(&mut self, random: u64) -> Result<()> {
        let count = 1 + (random >> 8) % MAX_LEAVING.min(self.plan.writers);
        let leaving: Vec<u64> = (0..count).map(|number| ((random >> 16) + number) % self.plan.writers).collect();
        self.end(&leaving)?;
        self.done.leaves += count;
        self.look_from_the_start("after some have left");
        leaving.into_iter().try_for_each(|writer| self.restart(writer))
    }

    /// Has writers come to their end, all at once: with success.
    fn end(&mut self, writers: &[u64]) -> Result<()> {
        // They end by themselves: their input is closed.
        writers.iter().for_each(|writer| self.writers[*writer as usize].close_stdin());
        for writer in writers {
            match self.writers[*writer as usize].wait(PATIENCE).map_err(Error::Process)? {
                ExitResult::Success => {}
                ExitResult::Failure(status) => self.wrong(format!("writer {writer} leaves with {status}")),
                ExitResult::Timeout => self.wrong(format!("writer {writer} does not leave")),
            }
        }
        self.collect(Duration::ZERO);
        Ok(())
    }

    /// Starts a writer anew, behind what it has flushed.
    fn restart(&mut self, writer: u64) -> Result<()> {
        let step = self.seen.steps[writer as usize];
        self.flushed[writer as usize] = step;
        self.writers[writer as usize] = self.start(writer, step)?;
        Ok(())
    }

    /// The main file and its subfiles are sound.
    fn check_files(&mut self) {
        let subfiles = (1..).map(|number| h5live_log::local_multi_writer_files::subfile_path(&self.path, number));
        let files: Vec<PathBuf> =
            std::iter::once(self.path.clone()).chain(subfiles.take_while(|path| path.exists())).collect();
        for file in files {
            let options = CheckOptions { reports_harmless_mismatches: true, ..CheckOptions::default() };
            match h5live_checker::file::check_path_with(&file, options) {
                Ok(report) if report.findings.is_empty() => {}
                Ok(report) => self.wrong(format!("{}: {:?}", file.display(), report.findings.first())),
                Err(error) => self.wrong(format!("{}: {error}", file.display())),
            }
        }
    }
}
