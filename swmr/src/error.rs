//! Errors of the native store.

use std::io;
use std::path::PathBuf;

use h5live_format::{Addr, DecodeError, EncodeError, Fault};
use h5live_model::{self as model, FileChange, Holder, Invariant, Retry, StoreError, StoreErrorKind};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why the native store could not do what was asked.
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
    LockLost,
    /// There is no superblock in the file.
    #[error("this is not an HDF5 file")]
    NotHdf5,
    /// A directory was given instead of a file.
    #[error("this is a directory")]
    Directory,
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
    #[error("{}", in_use(.holders, .reason))]
    InUse {
        /// Why it excludes this one.
        reason: OpenConflict,
        /// The processes that have the file open for writing, where the system names them; for a lock that this process
        /// itself holds, this process.
        holders: Vec<Holder>,
    },
    /// The file exists, and was not to be replaced.
    #[error("the file exists")]
    Exists(PathBuf),
    /// The file cannot be read while it is written.
    #[error("the file cannot be read while it is written: {0}")]
    NotLive(NotLiveReason),
    /// The superblock is being written, and did not settle.
    #[error(
        "a structure did not become whole in {attempts} attempts: its writer died or stalled in the middle of it{}",
        broken_invariant_text(source)
    )]
    Torn {
        /// How often it was read.
        attempts: u32,
        /// The error of the last attempt.
        source: Box<Error>,
    },
    /// The read took so long that its space may have been used again meanwhile.
    #[error("reading took {took:?}, longer than pointers of a file that is being written are valid")]
    ReadTooOld {
        /// From the reading of the object header to the end.
        took: std::time::Duration,
    },
    /// The file changed while it was being read.
    #[error("the file changed while it was being read")]
    ChangedDuringRead,
    /// A structure could not be read, written or ordered.
    #[error(transparent)]
    Cache(#[from] h5live_cache::Error),
    /// The chunk index failed.
    #[error(transparent)]
    Index(#[from] h5live_indexes::Error),
    /// A message of an object header is damaged.
    #[error("the object header at {header} is damaged")]
    Message {
        /// The object header.
        header: Addr,
        /// The fault of the message.
        source: DecodeError,
    },
    /// One of the files into which a file was cut could not be opened.
    #[error("cannot open the member {}", .file.display())]
    Member {
        /// The member.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A raw file that holds elements could not be read.
    #[error("cannot read the raw file {}", .file.display())]
    External {
        /// The file, as the dataset names it.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A structure cannot be written.
    #[error("a value does not fit the format")]
    Encode(#[from] EncodeError),
    /// Structures of an object contradict each other, or lead nowhere.
    #[error("the object at {header} is damaged: {rule}")]
    Object {
        /// The object header.
        header: Addr,
        /// The rule that does not hold.
        rule: &'static str,
    },
    /// The request contradicts the data model, or needs something that this store cannot do.
    #[error(transparent)]
    Model(#[from] model::Error),
    /// An earlier write failed, and with it the order in which readers may see things: nothing more is written.
    #[error("the file was closed")]
    Closed,
}

fn broken_invariant_text(error: &Error) -> String {
    error.invariant().map(|invariant| format!(" (not met: {invariant})")).unwrap_or_default()
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
    UnknownWriter,
}

/// Why a file cannot be read while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLiveReason {
    /// The superblock has no place for what readers go by.
    #[error("its superblock is of version {0}; a copy of the file with another profile can be followed")]
    Superblock(u8),
    /// The handle is open for reading.
    #[error("it is open for reading only")]
    ReadOnly,
}

fn in_use(holders: &[Holder], reason: &OpenConflict) -> String {
    let own = holders.iter().any(Holder::is_this_process);
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
        (OpenConflict::UnknownWriter, _) => {
            "the superblock says that the file is open for writing, and whether its writer still lives cannot be told"
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
    /// Whether a writer that is at work in the same place could be the cause: reading again may help.
    pub fn may_be_torn(&self) -> bool {
        match self {
            Error::Cache(h5live_cache::Error::Decode { .. } | h5live_cache::Error::PastEnd { .. })
            | Error::Index(
                h5live_indexes::Error::Cache(h5live_cache::Error::Decode { .. } | h5live_cache::Error::PastEnd { .. })
                | h5live_indexes::Error::Contradiction { .. },
            )
            | Error::Superblock(_)
            | Error::ReadTooOld { .. }
            | Error::ChangedDuringRead
            | Error::Message { .. }
            | Error::Object { .. } => true,
            Error::Cache(error) => error.may_be_torn(),
            Error::Index(error) => error.may_be_torn(),
            _ => false,
        }
    }

    /// The change of the file by another program that caused this error, if there was one.
    pub fn file_change(&self) -> Option<FileChange> {
        use h5live_cache::Error as CacheError;
        match self {
            Error::Replaced => Some(FileChange::Replaced),
            Error::Deleted => Some(FileChange::Deleted),
            Error::Truncated { .. }
            | Error::Cache(CacheError::Cut { .. })
            | Error::Index(h5live_indexes::Error::Cache(CacheError::Cut { .. })) => Some(FileChange::Truncated),
            _ => None,
        }
    }

    /// Which promise a writer has not kept, if this is met while it is followed, and that is known.
    pub fn invariant(&self) -> Option<Invariant> {
        use h5live_cache::Error as CacheError;
        let cache = match self {
            Error::Torn { source, .. } => return source.invariant(),
            Error::Superblock(_) => return Some(Invariant::TornWritesAreSeen),
            Error::Cache(error) | Error::Index(h5live_indexes::Error::Cache(error)) => error,
            _ => return None,
        };
        match cache {
            CacheError::PastEnd { .. } | CacheError::Undefined => Some(Invariant::NoDanglingAddress),
            CacheError::Decode { source, .. } => match source.fault {
                Fault::Checksum { .. } => Some(Invariant::TornWritesAreSeen),
                // There is another structure, or none.
                Fault::Signature { .. } | Fault::Version { .. } => Some(Invariant::NoDanglingAddress),
                _ => None,
            },
            _ => None,
        }
    }

    /// The portable kind of this failure.
    pub fn kind(&self) -> StoreErrorKind {
        if let Some(change) = self.file_change() {
            return StoreErrorKind::Changed(change);
        }
        match self {
            Error::Io { source, .. } | Error::Member { source, .. } | Error::External { source, .. } => source.into(),
            Error::LockLost => StoreErrorKind::Fenced,
            Error::InUse { holders, .. } => StoreErrorKind::InUse(holders.clone()),
            Error::NotHdf5 | Error::Directory => StoreErrorKind::NotThisFormat,
            Error::Exists(_) => StoreErrorKind::Occupied,
            Error::Torn { .. } | Error::ReadTooOld { .. } | Error::ChangedDuringRead => StoreErrorKind::Unfinished,
            Error::Cache(error) | Error::Index(h5live_indexes::Error::Cache(error)) => cache_kind(error),
            Error::Superblock(_) | Error::Index(_) | Error::Message { .. } | Error::Object { .. } => {
                StoreErrorKind::Damaged
            }
            _ => StoreErrorKind::Io,
        }
    }

    /// Where the structure is that could not be read.
    pub(crate) fn addr(&self) -> Option<Addr> {
        use h5live_cache::Error as CacheError;
        match self {
            Error::Cache(CacheError::Decode { at, .. } | CacheError::PastEnd { at, .. })
            | Error::Index(h5live_indexes::Error::Cache(
                CacheError::Decode { at, .. } | CacheError::PastEnd { at, .. },
            ))
            | Error::Index(h5live_indexes::Error::Contradiction { at, .. })
            | Error::Message { header: at, .. }
            | Error::Object { header: at, .. } => Some(*at),
            Error::Torn { source, .. } => source.addr(),
            _ => None,
        }
    }

    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, source }
    }
}

fn cache_kind(error: &h5live_cache::Error) -> StoreErrorKind {
    use h5live_cache::Error as CacheError;
    match error {
        CacheError::Io { source, .. } => source.into(),
        CacheError::Full { .. } => StoreErrorKind::Full,
        CacheError::PastEnd { .. }
        | CacheError::Decode { .. }
        | CacheError::WrongType { .. }
        | CacheError::Undefined => StoreErrorKind::Damaged,
        _ => StoreErrorKind::Io,
    }
}

impl From<Error> for model::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Model(error) => error,
            other => {
                let retry = if matches!(other, Error::Torn { .. }) { Retry::Exhausted } else { Retry::Never };
                let (kind, broken) = (other.kind(), other.invariant());
                StoreError::new(kind, other).retry(retry).broken(broken).into()
            }
        }
    }
}
