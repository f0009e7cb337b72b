//! The reader's operations, which may fail only while the writer is in their way.

use std::hash::Hash;
use std::sync::Arc;

use h5live_checker::schedule::{History, View};
use h5live_swmr::{Clock, Mode, NativeFile, OpenOptions, Patience, Trial};

/// What a fault says when an operation failed without a reason to: nothing changed meanwhile.
pub const FAILED_AT_REST: &str = ", with the file at rest: ";

/// Attempts at an operation of the reader.
const ATTEMPTS: u32 = 4;

/// An error with what led to it.
pub(crate) fn explain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// The file as a reader sees it.
pub(crate) struct Eyes<'a>(pub &'a Arc<View>);

/// Why a run of a reader ends.
pub(crate) enum End {
    /// The writer was in the way.
    Torn,
    /// Something is wrong.
    Wrong(String),
    /// Another run has been here.
    Merged,
}

impl From<String> for End {
    fn from(fault: String) -> Self {
        End::Wrong(fault)
    }
}

/// What the reader makes of its run.
pub(crate) fn verdict(done: Result<(), End>) -> Result<(), String> {
    match done {
        Ok(()) | Err(End::Torn | End::Merged) => Ok(()),
        Err(End::Wrong(fault)) => Err(fault),
    }
}

/// Someone who does something, and judges its failure.
pub(crate) trait See {
    /// What an operation gives.
    fn see<T, E: std::error::Error>(&self, what: &str, operation: impl FnOnce() -> Result<T, E>) -> Result<T, End>;

    /// Says that nothing of what was seen so far is used any more, but what is in `state`.
    fn forget(&self, _state: impl Hash) -> Result<(), End> {
        Ok(())
    }
}

/// The file as one sees it who is alone with it: nothing may fail.
pub(crate) struct Sure;

impl See for Sure {
    fn see<T, E: std::error::Error>(&self, what: &str, operation: impl FnOnce() -> Result<T, E>) -> Result<T, End> {
        operation().map_err(|error| End::Wrong(format!("cannot {what}: {}", explain(&error))))
    }
}

impl See for Eyes<'_> {
    fn forget(&self, state: impl Hash) -> Result<(), End> {
        self.0.set_history(History::NONE);
        self.checkpoint(state)
    }

    fn see<T, E: std::error::Error>(&self, what: &str, operation: impl FnOnce() -> Result<T, E>) -> Result<T, End> {
        self.0.begin_anew();
        let began = self.0.time();
        match operation() {
            Ok(found) => Ok(found),
            // A reader that is slow again and again may give up.
            Err(_) if !self.0.is_at_rest() || self.0.time() > began => Err(End::Torn),
            Err(error) => Err(End::Wrong(format!("cannot {what}{FAILED_AT_REST}{}", explain(&error)))),
        }
    }
}

impl Eyes<'_> {
    /// The file.
    pub fn open(&self) -> Result<NativeFile, End> {
        let view = self.0.clone();
        let patience = Patience::new(ATTEMPTS, move |_| view.begin_anew());
        let trial = Trial { shards: Some(1), ..Trial::default() };
        let view = self.0.clone();
        let options = OpenOptions {
            mode: Mode::SwmrRead,
            patience,
            trial,
            clock: Clock::new(move || view.time()),
            ..OpenOptions::default()
        };
        self.see("open the file", || NativeFile::on(self.0.clone(), &options))
    }

    /// Goes on, unless another run has been here in the same state.
    pub fn checkpoint(&self, state: impl Hash) -> Result<(), End> {
        if self.0.checkpoint(state) { Ok(()) } else { Err(End::Merged) }
    }
}
