//! Errors of the protocol between one writer and many readers.

use std::io;
use std::path::PathBuf;

use h5live_format::{Addr, DecodeError};
use h5live_model::{FileHolderProcess, ForeignFileChange, StoreErrorKind, SwmrInvariant};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a file could not be opened, locked or followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, created or locked.
    #[error("cannot {action}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another file has been put where this one was opened.
    #[error(
        "the file has been replaced: another one is at its path, and what is written to this one is not seen there"
    )]
    Replaced,
    /// The file has no name any more.
    #[error("the file has been deleted, and what is written to it is lost")]
    Deleted,
    /// The lock that shows that this process writes the file is no longer held.
    #[error("the lock that shows that this process writes the file is lost: others may write it too")]
    LivenessLockLost,
    /// There is no superblock in the file.
    #[error("this is not an HDF5 file")]
    NotHdf5,
    /// The file has no contents but in the revisions of HDF5's onion driver.
    #[error("this is a file of HDF5's onion driver: its contents are in revisions, which are not read")]
    OnionFile,
    /// A directory was given instead of a file.
    #[error("this is a directory")]
    IsDirectory,
    /// The path is that of a pipe, a socket or a device.
    #[error("it is a pipe, a socket or a device, which has no places to read from")]
    NotSeekable,
    /// The superblock is damaged.
    #[error("the superblock is damaged")]
    Superblock(#[source] DecodeError),
    /// The file is shorter than its superblock says, or than it was.
    #[error("the file is truncated: {len} bytes of {stated} are there")]
    Truncated {
        /// Bytes that are there.
        len: u64,
        /// Bytes that the superblock states, or that were there.
        stated: u64,
    },
    /// A process (this one or another) has the file open in a way that excludes this use.
    #[error("{}", in_use_text(.holders, .reason))]
    InUse {
        /// Why it excludes this one.
        reason: OpenConflict,
        /// The processes that have the file open for writing, where the system names them; for a lock that this process
        /// itself holds, this process.
        holders: Vec<FileHolderProcess>,
    },
    /// More freed space than allowed waits for readers to close the file.
    #[error("{bytes} bytes that are no longer used wait for {}, more than the {limit} bytes that are allowed", waiters_text(.openers))]
    TooMuchUnreclaimed {
        /// Bytes that wait.
        bytes: u64,
        /// Bytes that may wait.
        limit: u64,
        /// The other processes that have the file open, as far as the system names them.
        openers: Vec<FileHolderProcess>,
    },
    /// The file exists, and was not to be replaced.
    #[error("the file exists")]
    Exists(PathBuf),
    /// The file cannot be read while it is written.
    #[error("the file cannot be read while it is written: {0}")]
    SwmrUnsupported(SwmrUnsupportedReason),
    /// The superblock is being written, and did not become whole.
    #[error("{}", torn_read_message(*attempts, source.is_overtaken(), source.violated_invariant()))]
    Torn {
        /// How often it was read.
        attempts: u32,
        /// The error of the last attempt.
        source: Box<Error>,
    },
    /// The read took so long that its space may have been used again meanwhile.
    #[error("reading took {took:?}, longer than pointers of a file that is being written are valid")]
    ReadTookTooLong {
        /// From the reading of the object header to the end.
        took: std::time::Duration,
    },
    /// The file changed while it was being read.
    #[error("the file changed while it was being read")]
    ChangedDuringRead,
}

/// The text of an error after so many attempts: the writer was faster each time, or what it writes did not become whole.
pub fn torn_read_message(attempts: u32, is_overtaken: bool, invariant: Option<SwmrInvariant>) -> String {
    let suffix = invariant.map(|invariant| format!(" (not met: {invariant})")).unwrap_or_default();
    match is_overtaken {
        true => format!(
            "{attempts} attempts to read this took longer than the writer takes from one change to the next{suffix}"
        ),
        false => format!(
            "a structure did not become whole in {attempts} attempts: its writer died or stalled in the middle of \
             it{suffix}"
        ),
    }
}

/// The reason why a process may not open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenConflict {
    /// Another process writes, and lets no reader in.
    Writer,
    /// Another process writes, and lets readers follow it.
    SwmrWriter,
    /// Other processes read the file.
    Readers,
    /// Another process holds a lock: a writer, or (for writers) a reader.
    Lock,
    /// The superblock says that the file is being written, and the system cannot tell whether it is.
    PossiblyDeadWriter,
}

/// Why a file cannot be read while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SwmrUnsupportedReason {
    /// The superblock has no place for what readers go by.
    #[error("its superblock is of version {0}; a copy of the file with another profile can be followed")]
    SuperblockVersion(u8),
    /// The handle is open for reading.
    #[error("it is open for reading only")]
    ReadOnly,
}

/// Names the processes that keep space from being used again.
fn waiters_text(openers: &[FileHolderProcess]) -> String {
    match openers {
        [] => "whoever has the file open".to_owned(),
        some => {
            let names: Vec<_> = some.iter().map(ToString::to_string).collect();
            format!("those who have the file open ({})", names.join(", "))
        }
    }
}

fn in_use_text(holders: &[FileHolderProcess], reason: &OpenConflict) -> String {
    let own = holders.iter().any(FileHolderProcess::is_this_process);
    let mut text = match (reason, own) {
        (OpenConflict::Writer, true) => "this process has the file open for writing",
        (OpenConflict::SwmrWriter, true) => {
            "this process is writing the file, and it can be followed only by SWMR readers"
        }
        (OpenConflict::Readers, true) => "this process has the file open for reading",
        (OpenConflict::Lock, true) => "this process has the file locked",
        (OpenConflict::Writer, false) => "another process has the file open for writing",
        (OpenConflict::SwmrWriter, false) => {
            "another process is writing the file, and it can be followed only by SWMR readers"
        }
        (OpenConflict::Readers, false) => "other processes have the file open for reading",
        (OpenConflict::Lock, false) => "another process has the file locked",
        (OpenConflict::PossiblyDeadWriter, _) => {
            "the superblock says that the file is open for writing, and the system does not tell this user whether the \
             writer still lives: if you know that no process writes the file, take it over (--take-over, or \
             Options::take_over); the owner of the file, and root, need not"
        }
    }
    .to_owned();
    let others: Vec<_> = holders.iter().filter(|holder| !holder.is_this_process()).map(ToString::to_string).collect();
    if !others.is_empty() {
        text.push_str(if own { ", and so has " } else { ": " });
        text.push_str(&others.join(", "));
    }
    text
}

impl Error {
    /// The error of the system while it was to `action`.
    pub fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, source }
    }

    /// The change of the file by another program that caused this error, if there was one.
    pub fn file_change(&self) -> Option<ForeignFileChange> {
        match self {
            Error::Replaced => Some(ForeignFileChange::Replaced),
            Error::Deleted => Some(ForeignFileChange::Deleted),
            Error::Truncated { .. } => Some(ForeignFileChange::Truncated),
            _ => None,
        }
    }

    /// Which promise a writer has not kept, if this is met while it is followed, and that is known.
    pub fn violated_invariant(&self) -> Option<SwmrInvariant> {
        match self {
            Error::Torn { source, .. } => source.violated_invariant(),
            Error::Superblock(_) => Some(SwmrInvariant::NoLastingTornWrites),
            _ => None,
        }
    }

    /// The portable kind of this failure.
    pub fn kind(&self) -> StoreErrorKind {
        if let Some(change) = self.file_change() {
            return StoreErrorKind::Changed(change);
        }
        match self {
            Error::Io { source, .. } => source.into(),
            Error::LivenessLockLost => StoreErrorKind::Fenced,
            Error::InUse { holders, .. } => StoreErrorKind::InUse(holders.clone()),
            Error::TooMuchUnreclaimed { openers, .. } => StoreErrorKind::InUse(openers.clone()),
            Error::NotHdf5 | Error::OnionFile | Error::IsDirectory | Error::NotSeekable => {
                StoreErrorKind::NotThisFormat
            }
            Error::Exists(_) => StoreErrorKind::AlreadyExists,
            Error::Torn { .. } | Error::ReadTookTooLong { .. } | Error::ChangedDuringRead => StoreErrorKind::Torn,
            Error::Superblock(_) => StoreErrorKind::Damaged,
            _ => StoreErrorKind::Io,
        }
    }
}

/// An error of an operation that a [`RetryPolicy`](crate::RetryPolicy) may repeat.
pub trait RetryableError: From<Error> {
    /// Whether a writer that is at work in the same place could be the cause: reading again may help.
    fn may_be_torn(&self) -> bool;

    /// Whether a writer has certainly changed the file meanwhile, or may have used its space again.
    fn is_overtaken(&self) -> bool;

    /// The address of the structure that could not be read, if it is known.
    fn addr(&self) -> Option<Addr>;

    /// Whether the cause could be that another program has truncated the file.
    fn may_be_truncated(&self) -> bool;

    /// Makes an error that says that the structure stayed torn for so many attempts, the last of which ended in this
    /// one.
    fn into_torn_after_attempts(self, attempts: u32) -> Self;
}

impl RetryableError for Error {
    fn may_be_torn(&self) -> bool {
        matches!(self, Error::Superblock(_)) || self.is_overtaken()
    }

    fn is_overtaken(&self) -> bool {
        matches!(self, Error::ReadTookTooLong { .. } | Error::ChangedDuringRead)
    }

    fn addr(&self) -> Option<Addr> {
        None
    }

    fn may_be_truncated(&self) -> bool {
        true
    }

    fn into_torn_after_attempts(self, attempts: u32) -> Self {
        Error::Torn { attempts, source: Box::new(self) }
    }
}
