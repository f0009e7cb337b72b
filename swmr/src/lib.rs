//! The protocol by which one process writes an HDF5 file while others read it (SWMR: single writer, multiple readers).
//!
//! The file is all that the processes share. This crate has both sides of what they agree on:
//!
//! - who may open a file, and in which [`Mode`]: [`AccessOptions`], locks ([`LockHandle`]), the kernel's leases, the status
//!   flags of the superblock;
//! - how a reader deals with what it finds half-written: it reads again from the object header on, a bounded number of
//!   times ([`RetryPolicy`]), reads from the redo records of a writer that died ([`RedoReader`]), or goes by the
//!   generations of files without checksums ([`GenerationReader`]);
//! - how a follower waits for a change ([`Poller`]), and notices that the file was replaced, deleted or truncated
//!   ([`ForeignFileChangeDetector`]);
//! - what a dead writer has left ([`diagnose_open_state`]).
//!
//! The order in which a writer's changes reach the file is kept by the metadata cache (`h5live_cache`). What the
//! structures mean is the business of the native store (`h5live_native`).

mod access;
mod diagnosis;
mod error;
mod file_change;
mod generation;
mod generation_word;
mod inotify;
mod lease;
mod linked_paths;
mod lock_yield_registration;
mod locking;
mod path_watch;
mod pending_superblock;
mod poller;
mod redo;
mod replacement_lock;
mod retry;
mod superblock;

pub use access::{
    AccessOptions, CreatedOrOpenedFile, FileOpenedForWriting, FoundFileState, UncleanClose, has_dead_swmr_writer,
    refuse_directory_or_pipe,
};
pub use diagnosis::diagnose_open_state;
pub use error::{Error, OpenConflict, Result, RetryableError, SwmrUnsupportedReason, torn_read_message};
pub use file_change::ForeignFileChangeDetector;
pub use generation::{GenerationReader, ReaderSideCache};
pub use generation_word::read_generation_and_eof;
pub use h5live_model::{
    FileDiagnosis, FileHolderProcess, FileOpenState, ForeignFileChange, Mode, RepairReport, SwmrInvariant,
};
pub use inotify::SystemWakeSource;
pub use lease::OtherHandlePresence;
pub use linked_paths::linked_file_candidates;
pub use lock_yield_registration::LockYieldRegistration;
pub use locking::{LockAttempt, LockHandle, LockKind, LockPolicy, WriterPresence};
pub use path_watch::PathWatch;
pub use pending_superblock::PendingSuperblock;
pub use poller::{FileEvent, Poller, ProbeResult, WakeSource};
pub use redo::{RedoReader, find_redo_record, replay_redo_record};
pub use replacement_lock::ReplacementLock;
#[doc(hidden)]
pub use retry::GenerationReadEvent;
pub use retry::{RetryCounters, RetryPolicy};
pub use superblock::{
    check_file_len, is_marked_open_for_writing, is_onion, locate_and_rebase_superblock, read_superblock,
};
