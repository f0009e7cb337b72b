//! The reader's operations, which may fail only while the writer is in their way.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use h5live_checker::schedule::{History, View};
use h5live_swmr::{Clock, Mode, Moment, NativeFile, OpenOptions, Patience, Trial};

use crate::kept::{Generations, Kept, Watched};

/// What a fault says when an operation failed without a reason to: nothing changed meanwhile.
pub const FAILED_AT_REST: &str = ", with the file at rest: ";

/// What a fault says when a reader has waited for what it did not find as long as it ever does: its writer rested meanwhile.
pub const WAITED_IN_VAIN: &str = ", and it was waited for";

/// Attempts at an operation of the reader: the first one, one more, one for which it looks up what the writer was about to
/// write, and the last one.
const ATTEMPTS: u32 = 4;

/// Attempts of a reader that goes by generations, of which one that does not count leaves nothing.
const LOOKS: u32 = 3;

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

/// The file as a reader sees it, and whether its last operation has waited in vain for what was not there.
pub(crate) struct Eyes<'a>(pub &'a Arc<View>, Arc<Kept>, Arc<AtomicBool>);

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

    /// Says that nothing but what is in `state`, and what the file itself keeps, is used any more of what was seen so far.
    fn step(&self, _state: impl Hash) -> Result<(), End> {
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
    fn step(&self, state: impl Hash) -> Result<(), End> {
        // Of what else the file keeps something is a matter of the history.
        if self.1.goes_by_generations() { self.checkpoint(state) } else { Ok(()) }
    }

    fn forget(&self, state: impl Hash) -> Result<(), End> {
        self.0.set_history(History::NONE);
        self.checkpoint(state)
    }

    fn see<T, E: std::error::Error>(&self, what: &str, operation: impl FnOnce() -> Result<T, E>) -> Result<T, End> {
        self.0.begin_anew();
        self.0.rest_beyond(None);
        self.2.store(false, Relaxed);
        let began = self.0.time();
        let done = operation();
        if self.0.is_merged() {
            return Err(End::Merged);
        }
        match done {
            Ok(found) => Ok(found),
            // A reader that is slow again and again may give up.
            Err(_) if !self.0.is_at_rest() || self.0.time() > began => Err(End::Torn),
            Err(error) => Err(End::Wrong(format!("cannot {what}{FAILED_AT_REST}{}", explain(&error)))),
        }
    }
}

impl Drop for Eyes<'_> {
    fn drop(&mut self) {
        self.1.close();
    }
}

impl<'a> Eyes<'a> {
    /// The eyes of a reader that has seen nothing yet.
    pub fn new(view: &'a Arc<View>, generations: &Arc<Generations>) -> Self {
        Eyes(view, Arc::new(Kept::new(generations.clone())), Arc::default())
    }

    /// Whether the last operation has waited in vain for what was not there.
    pub fn has_waited(&self) -> bool {
        self.2.load(Relaxed)
    }

    /// The end of a reader that has waited in vain for what must be there: a fault, unless the writer was in its way.
    pub fn missed(&self, fault: &str) -> End {
        match self.0.is_at_rest() {
            true => End::Wrong(format!("{fault}{WAITED_IN_VAIN}")),
            false => End::Torn,
        }
    }

    /// The file.
    pub fn open(&self) -> Result<NativeFile, End> {
        let view = self.0.clone();
        let attempts = if self.1.generations().are_shown() { LOOKS } else { ATTEMPTS };
        let patience = Patience::new(attempts, move |_| view.begin_anew());
        let (view, kept, missed) = (self.0.clone(), self.1.clone(), self.2.clone());
        let patience = patience.watched(move |moment| match moment {
            Moment::Missed => missed.store(true, Relaxed),
            _ => kept.note(&view, moment),
        });
        let trial = Trial { shards: Some(1), ..Trial::default() };
        let view = self.0.clone();
        let options = OpenOptions {
            mode: Mode::SwmrRead,
            patience,
            trial,
            clock: Clock::new(move || view.time()),
            ..OpenOptions::default()
        };
        let storage = Arc::new(Watched(self.0.clone(), self.1.clone()));
        let file = self.see("open the file", || NativeFile::on(storage, &options))?;
        self.1.open(file.clone());
        Ok(file)
    }

    /// As [`View::set_history`]. Who goes by generations asks the file at each checkpoint what is kept of it, and needs no
    /// parts of the history.
    pub fn set_history(&self, history: History) -> History {
        if self.1.goes_by_generations() { History::NONE } else { self.0.set_history(history) }
    }

    /// Says what the reader goes on with that depends on where the writer was just now, and that no checkpoint has told.
    pub fn remember(&self, known: impl Hash) {
        if self.1.goes_by_generations() {
            self.0.set_history(self.0.history().and(known));
        }
    }

    /// Goes on, unless another run has been here in the same state.
    pub fn checkpoint(&self, state: impl Hash) -> Result<(), End> {
        let kept = self.1.begin(self.0);
        if self.0.checkpoint((state, kept)) { Ok(()) } else { Err(End::Merged) }
    }
}
