//! The reader's operations, which may fail only while the writer is in their way.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use h5live_checker::schedule::{ReaderHistory, ReaderView};
use h5live_native::{Clock, Mode, MutantOptions, NativeFile, OpenOptions, RetryPolicy};
use h5live_swmr::GenerationReadEvent;

use crate::generation_observer::{GenerationReaderState, GenerationsInTrace, ObservedStorage};

/// Part of a fault: an operation failed although nothing changed meanwhile.
pub const FAILED_AT_REST: &str = ", with the file at rest: ";

/// Part of a fault: a reader has waited for something that was missing, as long as it ever does, while its writer
/// paused.
pub const WAITED_IN_VAIN: &str = ", and it was waited for";

/// Attempts at an operation of the reader: the first one, one more, one for which it looks up what the writer was about
/// to write, and the last one.
const ATTEMPTS: u32 = 4;

/// Attempts of a reader that goes by generations. One that does not count leaves nothing in memory.
const MAX_READ_ATTEMPTS: u32 = 3;

/// An error with its causes.
pub(crate) fn error_chain_text(error: &dyn std::error::Error) -> String {
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

/// The file as a reader sees it, and whether its last operation has waited in vain.
pub(crate) struct ConcurrentObserver<'a> {
    pub view: &'a Arc<ReaderView>,
    state: Arc<GenerationReaderState>,
    waited_in_vain: Arc<AtomicBool>,
}

/// Why a run of a reader ends.
pub(crate) enum RunEnd {
    /// The writer was in the way.
    Torn,
    /// Something is wrong.
    Wrong(String),
    /// Another run has been here.
    Merged,
}

impl From<String> for RunEnd {
    fn from(fault: String) -> Self {
        RunEnd::Wrong(fault)
    }
}

/// The verdict of a reader on its run.
pub(crate) fn run_verdict(done: Result<(), RunEnd>) -> Result<(), String> {
    match done {
        Ok(()) | Err(RunEnd::Torn | RunEnd::Merged) => Ok(()),
        Err(RunEnd::Wrong(fault)) => Err(fault),
    }
}

/// Runs operations, and judges their failures.
pub(crate) trait Observer {
    /// The result of an operation.
    fn observe<T, E: std::error::Error>(
        &self,
        what: &str,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, RunEnd>;

    /// Says that the rest of the run depends on `state` only.
    fn reset(&self, _state: impl Hash) -> Result<(), RunEnd> {
        Ok(())
    }

    /// Says that the rest of the run depends only on `state`, and on what the file itself keeps.
    fn checkpoint_state(&self, _state: impl Hash) -> Result<(), RunEnd> {
        Ok(())
    }
}

/// The file without other processes: nothing may fail.
pub(crate) struct SoleObserver;

impl Observer for SoleObserver {
    fn observe<T, E: std::error::Error>(
        &self,
        what: &str,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, RunEnd> {
        operation().map_err(|error| RunEnd::Wrong(format!("cannot {what}: {}", error_chain_text(&error))))
    }
}

impl Observer for ConcurrentObserver<'_> {
    fn checkpoint_state(&self, state: impl Hash) -> Result<(), RunEnd> {
        // Of what else the file keeps something is a matter of the history.
        if self.state.follows_generations() { self.checkpoint(state) } else { Ok(()) }
    }

    fn reset(&self, state: impl Hash) -> Result<(), RunEnd> {
        self.view.replace_history(ReaderHistory::NONE);
        self.checkpoint(state)
    }

    fn observe<T, E: std::error::Error>(
        &self,
        what: &str,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, RunEnd> {
        self.view.mark_operation_restart();
        self.view.stop_writer_beyond(None);
        self.waited_in_vain.store(false, Relaxed);
        let began = self.view.writer_time();
        let done = operation();
        if self.view.is_duplicate_run() {
            return Err(RunEnd::Merged);
        }
        match done {
            Ok(found) => Ok(found),
            // A reader that is slow again and again may give up.
            Err(_) if !self.view.operation_must_succeed() || self.view.writer_time() > began => Err(RunEnd::Torn),
            Err(error) => Err(RunEnd::Wrong(format!("cannot {what}{FAILED_AT_REST}{}", error_chain_text(&error)))),
        }
    }
}

impl Drop for ConcurrentObserver<'_> {
    fn drop(&mut self) {
        self.state.close();
    }
}

impl<'a> ConcurrentObserver<'a> {
    /// The observer of a reader that has seen nothing yet.
    pub fn new(view: &'a Arc<ReaderView>, generations: &Arc<GenerationsInTrace>) -> Self {
        let state = Arc::new(GenerationReaderState::new(generations.clone()));
        ConcurrentObserver { view, state, waited_in_vain: Arc::default() }
    }

    /// Whether the last operation has waited in vain.
    pub fn has_waited_in_vain(&self) -> bool {
        self.waited_in_vain.load(Relaxed)
    }

    /// The end of a reader that has waited in vain for something that must be there. This is a fault, unless the writer
    /// was in its way.
    pub fn absence_end(&self, fault: &str) -> RunEnd {
        match self.view.operation_must_succeed() {
            true => RunEnd::Wrong(format!("{fault}{WAITED_IN_VAIN}")),
            false => RunEnd::Torn,
        }
    }

    /// The file.
    pub fn open(&self) -> Result<NativeFile, RunEnd> {
        let view = self.view.clone();
        let attempts = if self.state.generations_in_trace().are_shown() { MAX_READ_ATTEMPTS } else { ATTEMPTS };
        let policy = RetryPolicy::new(attempts, move |_| view.mark_operation_restart());
        let (view, kept, missed) = (self.view.clone(), self.state.clone(), self.waited_in_vain.clone());
        let policy = policy.with_hook(move |moment| match moment {
            GenerationReadEvent::PollTimedOut => missed.store(true, Relaxed),
            _ => kept.record_event(&view, moment),
        });
        let trial = MutantOptions { cache_shard_count: Some(1), ..MutantOptions::default() };
        let view = self.view.clone();
        let options = OpenOptions {
            mode: Mode::SwmrRead,
            retry: policy,
            mutant: trial,
            clock: Clock::new(move || view.writer_time()),
            ..OpenOptions::default()
        };
        let storage = Arc::new(ObservedStorage(self.view.clone(), self.state.clone()));
        let file = self.observe("open the file", || NativeFile::open_storage(storage, &options))?;
        self.state.open(file.clone());
        Ok(file)
    }

    /// As [`ReaderView::replace_history`]. A reader that goes by generations asks the file at each checkpoint for its kept
    /// state, and needs no parts of the history.
    pub fn set_history(&self, history: ReaderHistory) -> ReaderHistory {
        if self.state.follows_generations() { ReaderHistory::NONE } else { self.view.replace_history(history) }
    }

    /// Notes something on which the reader depends, that depends on the present position of the writer, and that no
    /// checkpoint has stated.
    pub fn add_to_history(&self, known: impl Hash) {
        if self.state.follows_generations() {
            self.view.replace_history(self.view.history().with_reader_state(known));
        }
    }

    /// Goes on, unless another run has been here in the same state.
    pub fn checkpoint(&self, state: impl Hash) -> Result<(), RunEnd> {
        let kept = self.state.state_between_operations(self.view);
        if self.view.try_enter_checkpoint((state, kept)) { Ok(()) } else { Err(RunEnd::Merged) }
    }
}
