//! Why a file does not take its place.

use std::io;
use std::path::PathBuf;

/// A result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file does not take its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be made.
    #[error("{}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A finished file cannot be moved to its place.
    #[error("{} cannot take its place: {source}", path.display())]
    Persist {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file is not to be replaced.
    #[error("{}: the file exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be replaced, for a process writes it.
    #[error("{}: it is not replaced: {source}", path.display())]
    FileNotReplaceable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<h5live_swmr::Error>,
    },
    /// A store cannot be replaced.
    #[error("{}: {source}", path.display())]
    StoreNotReplaceable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: Box<h5live::OpenError>,
    },
}
