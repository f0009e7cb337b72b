//! `--mirror`: a domain of an object store that follows the recording.
//!
//! A thread reads the file as every reader does, with a session of its own. So what it mirrors was flushed to the file before,
//! and a server that fails or is slow never holds the recording up.

mod target;

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use h5live::{Location, OpenError, StoreErrorKind};

use crate::error::{Error, Result};
use crate::open;
use crate::output::eprint_prefixed;
use crate::wait::seconds;

use target::MirrorTarget;

/// The longest pause between two attempts on a server that fails.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The options of a mirror.
#[derive(Debug, Clone, clap::Args)]
pub struct MirrorArgs {
    /// Mirror the file to this new domain of an object store (hsds+s3://bucket/run, hsds:run), so that others follow it there,
    /// with a delay. What cannot be mirrored is said at the end; the recording goes on
    #[arg(long, value_name = "LOCATION")]
    mirror: Option<Location>,
    /// Seconds between two looks for rows to mirror
    #[arg(long, value_name = "SECONDS", requires = "mirror", default_value_t = 5.0, value_parser = seconds)]
    mirror_every: f64,
    /// Seconds after the end of the recording in which a server that fails is asked again
    #[arg(long, value_name = "SECONDS", requires = "mirror", default_value_t = 120.0, value_parser = seconds)]
    mirror_wait: f64,
    /// Replace the domain if it is there already, when the first rows are mirrored
    #[arg(long, requires = "mirror")]
    replace_mirror: bool,
}

/// What became of a mirror.
#[derive(Debug, Clone)]
pub struct MirrorReport {
    location: Location,
    /// Rows of the recorded dataset that others see in the mirror.
    rows: u64,
    /// Whether it has all that the file has.
    is_complete: bool,
    /// How often something failed.
    failures: u64,
    /// The last failure.
    error: Option<String>,
    /// What it does not have as the file has it, in lines.
    losses: Vec<String>,
}

/// A mirror that is being written.
#[derive(Debug)]
pub struct Mirror {
    /// Without it the thread ends as soon as it would begin.
    begin: Option<Sender<()>>,
    stop: Sender<bool>,
    thread: Option<JoinHandle<MirrorReport>>,
}

impl MirrorArgs {
    /// The mirror of the dataset at `dataset_path` of the file at `source`, which need not be there before
    /// [`Mirror::start`]; `None` if nobody wants one.
    ///
    /// # Errors
    /// [`Error::OpenFailed`] and [`Error::File`] if the mirror cannot be made. A server that does not answer is no error.
    pub fn prepare_mirror(&self, source: &Location, dataset_path: &str) -> Result<Option<Mirror>> {
        let Some(location) = &self.mirror else { return Ok(None) };
        let refused = |location: &Location, text: &str| {
            let source = Box::new(OpenError::InvalidLocation(text.to_owned()));
            Error::OpenFailed { location: location.to_string(), source }
        };
        if !open::is_hsds_location(location)? {
            let text = "a mirror is a domain of an object store: hsds+s3://bucket/run, or hsds:run in a folder";
            return Err(refused(location, text));
        }
        if open::native_file_path(source)?.is_none() {
            return Err(refused(source, "only a file is mirrored"));
        }
        let mut target =
            MirrorTarget::new(source.clone(), dataset_path.to_owned(), location.clone(), self.replace_mirror);
        let report = MirrorReport::new(location.clone());
        let seconds = Duration::from_secs_f64;
        let mut worker = MirrorWorker { report, interval: seconds(self.mirror_every), wait: seconds(self.mirror_wait) };
        if let Err(error) = target.connect() {
            if is_lasting(&error) || matches!(store_kind(&error), Some(StoreErrorKind::InUse(_))) {
                return Err(error);
            }
            worker.count_failure(&error);
        }
        let ((begin, begun), (stop, stopped)) = (channel(), channel());
        let work = move || match begun.recv() {
            Ok(()) => worker.run(target, &stopped),
            Err(_) => worker.report,
        };
        let thread = thread::Builder::new().name("h5live-mirror".to_owned()).spawn(work);
        let failed = |source| Error::Io { path: location.to_string().into(), source };
        Ok(Some(Mirror { begin: Some(begin), stop, thread: Some(thread.map_err(failed)?) }))
    }
}

impl Mirror {
    /// Begins, for the source is there.
    pub fn start(&self) {
        let _ = self.begin.as_ref().map(|begin| begin.send(()));
    }

    /// Mirrors the rest of the file, which is closed, if `source_is_kept`; otherwise nothing is left of a mirror without rows.
    pub fn finish(mut self, source_is_kept: bool) -> Option<MirrorReport> {
        self.end(source_is_kept)
    }

    fn end(&mut self, is_kept: bool) -> Option<MirrorReport> {
        self.begin = None;
        // The thread may have given up.
        let _ = self.stop.send(is_kept);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Mirror {
    /// Leaves nothing of a mirror without rows.
    fn drop(&mut self) {
        self.end(false);
    }
}

fn store_kind(error: &Error) -> Option<&StoreErrorKind> {
    match error {
        Error::File(error) => error.store_error_kind(),
        Error::OpenFailed { source, .. } => match &**source {
            OpenError::Store(error) => error.store_error_kind(),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an error comes again, however often it is tried. The lease of a session that failed is in use for a while.
fn is_lasting(error: &Error) -> bool {
    use StoreErrorKind::{InUse, Io, PermissionDenied, StorageFull, Torn, Unreachable};
    !matches!(store_kind(error), Some(Unreachable | Io | StorageFull | PermissionDenied | Torn | InUse(_)))
}

/// The work of the thread.
struct MirrorWorker {
    report: MirrorReport,
    /// The pause between two looks.
    interval: Duration,
    /// How long what fails is tried again once the recording has ended.
    wait: Duration,
}

impl MirrorWorker {
    fn count_failure(&mut self, error: &Error) {
        self.report.failures += 1;
        self.report.error = Some(error.to_string());
    }

    fn run(mut self, mut target: MirrorTarget, stopped: &Receiver<bool>) -> MirrorReport {
        let (mut pause, mut fails) = (self.interval, false);
        // Until when what fails is tried again, once the recording has ended.
        let mut last_attempt: Option<Instant> = None;
        loop {
            match last_attempt {
                Some(_) => thread::sleep(pause),
                None => match stopped.recv_timeout(pause) {
                    Ok(true) => last_attempt = Some(Instant::now() + self.wait),
                    Ok(false) | Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                },
            }
            let is_last = last_attempt.is_some();
            let done = if is_last { target.finish() } else { target.catch_up() };
            self.report.rows = target.mirrored_row_count();
            self.report.losses = target.losses().to_vec();
            match done {
                Ok(()) if is_last => {
                    (self.report.is_complete, self.report.error) = (true, None);
                    break;
                }
                Ok(()) => (pause, fails) = (self.interval, false),
                Err(error) => {
                    self.count_failure(&error);
                    target.disconnect();
                    if !std::mem::replace(&mut fails, true) && !is_last {
                        eprint_prefixed(format_args!(
                            "{error}; the recording goes on, and {} lags behind",
                            self.report.location
                        ));
                    }
                    pause = (pause * 2).clamp(Duration::from_millis(100), MAX_PAUSE);
                    if is_lasting(&error) || last_attempt.is_some_and(|last| last <= Instant::now() + pause) {
                        break;
                    }
                }
            }
        }
        self.report
    }
}

impl MirrorReport {
    fn new(location: Location) -> Self {
        MirrorReport { location, rows: 0, is_complete: false, failures: 0, error: None, losses: Vec::new() }
    }

    /// Whether the mirror has all that the file has.
    pub fn is_complete(&self) -> bool {
        self.is_complete && self.losses.is_empty()
    }

    /// Says in JSON what became of the mirror.
    pub fn add_to(&self, summary: &mut serde_json::Map<String, serde_json::Value>) {
        let error = self.error.clone().map_or(serde_json::Value::Null, Into::into);
        let mirror = serde_json::json!({
            "location": self.location.to_string(),
            "rows": self.rows,
            "complete": self.is_complete(),
            "failures": self.failures,
            "error": error,
            "losses": self.losses,
        });
        summary.insert("mirror".to_owned(), mirror);
    }
}

impl fmt::Display for MirrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = crate::counted::counted(self.rows, "row");
        match (&self.error, self.is_complete) {
            (_, true) if self.losses.is_empty() => write!(f, "{}: complete, with {rows}", self.location)?,
            (_, true) => write!(f, "{}: all of {rows}, but not all of the rest", self.location)?,
            (Some(error), _) => write!(f, "{}: incomplete, with {rows}: {error}", self.location)?,
            (None, _) => write!(f, "{}: incomplete, with {rows}", self.location)?,
        }
        self.losses.iter().try_for_each(|loss| write!(f, "\n{loss}"))
    }
}
