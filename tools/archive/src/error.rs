//! Errors, and where they happened.

use std::io;
use std::path::PathBuf;

/// What is said of contents that do not have their digest.
pub const WRONG_DIGEST: &str = "its contents have another digest than at the import";

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something with an archive failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The archive cannot be read any further.
    #[error("{archive}: at byte {at}{}: {fault}", of_entry(.entry))]
    Archive {
        /// The archive.
        archive: String,
        /// The byte of the archive, as it is without compression.
        at: u64,
        /// The last path that was read, if there is one.
        entry: Option<String>,
        /// What is wrong there.
        fault: TarFault,
    },
    /// The library refused something; it names the file and the object.
    #[error(transparent)]
    File(#[from] h5live::Error),
    /// The store refused something.
    #[error("{file}: {source}")]
    Store {
        /// The file.
        file: String,
        /// Why.
        source: h5live::model::Error,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of HDF5 is not what a command needs.
    #[error("{file}: {problem}")]
    UnsuitableFile {
        /// The file.
        file: String,
        /// What is wrong.
        problem: UnsuitableFileReason,
    },
}

/// What is wrong in an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TarFault {
    /// The archive ends within an entry.
    #[error("the archive ends here; {missing} bytes are missing")]
    Truncated {
        /// Bytes that should follow at least.
        missing: u64,
    },
    /// A header has another checksum than its bytes.
    #[error("the checksum of the header is wrong; its bytes give {expected}")]
    Checksum {
        /// What the bytes give.
        expected: u32,
    },
    /// The archive is one of another kind.
    #[error("this is {0}, and no tar archive")]
    OtherFormat(&'static str),
    /// A field of a header is no number, or none that it can have.
    #[error("the field {0} of the header is no valid number")]
    InvalidNumber(&'static str),
    /// An extended header is not made of records.
    #[error("the extended header is damaged")]
    InvalidExtendedHeader,
    /// A header has more bytes than any program writes.
    #[error("an extended header of {bytes} bytes, more than {limit}")]
    ExtendedHeadersTooLong {
        /// Its bytes.
        bytes: u64,
        /// The most bytes.
        limit: u64,
    },
    /// The map of a sparse file contradicts itself.
    #[error("the map of the sparse file is wrong: {0}")]
    InvalidSparseMap(&'static str),
    /// Contents are longer than the import may take.
    #[error("{bytes} bytes of contents, more than the {limit} that are allowed (--max-bytes)")]
    TotalContentLimitExceeded {
        /// Bytes of all contents until here.
        bytes: u64,
        /// The most bytes.
        limit: u64,
    },
    /// What should follow is not what the file has from an earlier import.
    #[error("this is not the archive whose import was interrupted: entry {0} is another one")]
    ResumedArchiveDiffersAtEntry(u64),
    /// A path cannot be the name of an object.
    #[error("the path cannot be the name of an object: {0} (--on-collision says what to do)")]
    UnusablePath(&'static str),
    /// The path of another entry is taken.
    #[error("an entry of this path is there already (--on-collision says what to do)")]
    PathCollision,
    /// The system or a codec failed.
    #[error("{0}")]
    Read(#[source] io::Error),
}

/// Why a file of HDF5 does not fit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnsuitableFileReason {
    /// The file has no tables of an import.
    #[error("the file was not made by `h5live tar import`")]
    NoTables,
    /// The file has an import that did not end.
    #[error(
        "an import into this file is under way or was interrupted; `h5live tar import --resume` continues it, `h5live tar rollback` takes it back"
    )]
    UnfinishedImport,
    /// The layout keeps contents as they are.
    #[error("the layout {0} does not compress contents; shredder does")]
    LayoutWithoutFilter(&'static str),
    /// The file has no import that could be continued.
    #[error("no import into this file was interrupted")]
    NoUnfinishedImport,
    /// The file has no list of what it had before an import.
    #[error(
        "the import was begun by an earlier version, which kept no list of what the file had before; `h5live tar import --resume` continues it"
    )]
    NoSavedLinkHashes,
    /// Tables of the file contradict each other.
    #[error("the tables of the file contradict each other: {0}")]
    InconsistentTables(&'static str),
    /// A file has several archives, and none was chosen.
    #[error("the file has {0} archives; --archive says which")]
    NeedsArchiveNumberBelow(u64),
    /// The file has no digests.
    #[error("the file has no digests of its contents")]
    NoDigests,
    /// Contents that are not those that were imported.
    #[error("{0}: {WRONG_DIGEST} (--no-verify reads them all the same)")]
    WrongContents(String),
    /// Digests that do not fit those of the file to which they would be added.
    #[error("the digests are not {0}, as those of the first file are")]
    DigestAlgorithmIsNot(&'static str),
    /// A layout that has no image.
    #[error("the layout is {0}; only files of the layout shredder become one by a virtual dataset")]
    LayoutNotShredder(&'static str),
    /// An algorithm that this version does not know.
    #[error("the algorithm {0:?} is unknown")]
    UnknownDigestAlgorithm(String),
}

fn of_entry(entry: &Option<String>) -> String {
    entry.as_ref().map(|path| format!(", after the header of {path:?}")).unwrap_or_default()
}

impl Error {
    /// An error of the file at a path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }

    /// A file of HDF5 that does not fit.
    pub fn unsuitable_file(file: &h5live::File, problem: UnsuitableFileReason) -> Error {
        Error::UnsuitableFile { file: file.name().to_owned(), problem }
    }
}
