//! The recorder: it takes what its input yields, until that ends.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use h5live::File;

use super::error::Result;
use super::input::InputEvent;
use super::observer::RecordObserver;
use super::options::{FrameFormat, InputFormat, RecordOptions};
use super::reader::{self, InputReaderFormat};
use super::session::{RecordSession, RecordSummary, RecordingResult};

/// How long rows that came in before an interruption are still taken.
const INTERRUPTED_TIME: Duration = Duration::from_secs(1);

/// Appends rows of text to a dataset of an open file, which other processes can follow meanwhile.
pub struct Recorder<'a> {
    session: RecordSession<'a>,
}

impl<'a> Recorder<'a> {
    /// A recorder of rows into the dataset at `path` of a file that is open for writing. The dataset is made when the types
    /// of its columns are known; of frames, at once. `observer` hears what is decided and refused.
    ///
    /// # Errors
    /// [`Error::RejectFileIsHdf5`](super::error::Error::RejectFileIsHdf5) and [`Error::RejectFile`](super::error::Error::RejectFile) if
    /// refused rows cannot be appended to their file. Of frames also [`Error::File`](super::error::Error::File) and
    /// [`Error::Dataset`](super::error::Error::Dataset).
    pub fn new(file: &File, path: &str, options: RecordOptions, observer: &'a mut dyn RecordObserver) -> Result<Self> {
        Ok(Recorder { session: RecordSession::new(file, path, options, observer)? })
    }

    /// Records rows until the input ends, something fails, or `interrupted` is set. Then rows that have come in already are
    /// still taken, for at most a second. Whatever ended the recording, what came before is stored and flushed. The file
    /// stays open.
    ///
    /// The input is read by threads of their own, which end with it, or when they find more of it after the recording has
    /// ended.
    pub fn record(mut self, input: impl Read + Send + 'static, interrupted: &Arc<AtomicBool>) -> RecordingResult {
        let (format, idle) = (format(self.session.options()), self.session.options().flush.idle);
        let events = reader::spawn_input_reader(
            format,
            self.session.needs_raw_text(),
            self.session.row_nesting_depth(),
            input,
            interrupted.clone(),
        );
        let mut deadline = None;
        let ended = loop {
            if interrupted.load(Ordering::Acquire) {
                deadline.get_or_insert_with(|| Instant::now() + INTERRUPTED_TIME);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                break Ok(());
            }
            let taken = match events.recv_timeout(idle) {
                Ok(InputEvent::Failed(_)) if interrupted.load(Ordering::Acquire) => break Ok(()),
                Ok(event) => self.session.handle_event(event),
                Err(RecvTimeoutError::Timeout) if deadline.is_none() => self.session.on_idle(),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if taken.is_err() {
                break taken;
            }
        };
        self.session.end(ended)
    }
}

impl RecordOptions {
    /// Records an input to its end into the dataset at `path` of a file that is open for writing.
    ///
    /// # Errors
    /// [`Error`](super::error::Error) if something cannot be stored. What came before it is in the dataset; a [`Recorder`]
    /// says how much.
    pub fn record(self, file: &File, path: &str, input: impl Read + Send + 'static) -> Result<RecordSummary> {
        let RecordingResult { summary, outcome: ended } =
            Recorder::new(file, path, self, &mut ())?.record(input, &Arc::default());
        ended.map(|()| summary)
    }
}

fn format(options: &RecordOptions) -> InputReaderFormat {
    match (&options.frames, options.format) {
        (Some(frames), _) => InputReaderFormat::FramesOfSize(FrameFormat::frame_bytes(frames)),
        (None, InputFormat::Guess) => InputReaderFormat::Guess(options.csv, options.new_keys),
        (None, InputFormat::Csv) => InputReaderFormat::Csv(options.csv),
        (None, InputFormat::Json) => InputReaderFormat::Json(options.new_keys),
        (None, InputFormat::Lines) => InputReaderFormat::Lines,
    }
}
