//! Errors that end a command.

use std::io;
use std::path::PathBuf;

use crate::counted::counted;
use crate::dump::slices::SliceBoundsError;
use crate::from_json::JsonValueError;
use crate::new::DescriptionFault;

pub use h5live_text::error_with_causes;

/// A result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How a command ended that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOutcome {
    /// All is well.
    Clean,
    /// There are violations, differences, or other findings.
    Findings,
    /// As the exit code of another program says.
    Status(u8),
}

impl CommandOutcome {
    /// The user has interrupted the command before it had anything to show: the exit code that a shell has for it.
    pub const INTERRUPTED: CommandOutcome = CommandOutcome::Status(130);

    /// An error, which was told already.
    pub const FAILED: CommandOutcome = CommandOutcome::Status(2);

    /// The outcome of both.
    pub fn worse(self, other: CommandOutcome) -> CommandOutcome {
        match (self, other) {
            (CommandOutcome::Clean, other) | (CommandOutcome::Findings, other @ CommandOutcome::Status(_)) => other,
            _ => self,
        }
    }
}

/// Why a command did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library refused something; it names the file and the object.
    #[error(transparent)]
    File(#[from] h5live::Error),
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No store can open a location.
    #[error("{location}: {source}")]
    OpenFailed {
        /// The location.
        location: String,
        /// The reason.
        source: Box<h5live::OpenError>,
    },
    /// The log of a file could not be read.
    #[error("{location}: {source}")]
    Log {
        /// The file.
        location: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An archive, or a file made of one, could not be read or written.
    #[error(transparent)]
    Archive(#[from] h5live_archive::Error),
    /// No command is called so.
    #[error("no command is called {0:?}; `h5live help` lists them")]
    UnknownCommand(String),
    /// A command that needs a native file was given the location of another store.
    #[error("{location}: this command needs a native HDF5 file")]
    NotNativeFile {
        /// The location.
        location: String,
    },
    /// A file is not of the expected kind.
    #[error("{}: {problem}", path.display())]
    UnsuitableFile {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: FileProblem,
    },
    /// Something in a file is not to be changed so.
    #[error("{}: {path}: {why}", file.display())]
    ChangeRefused {
        /// The file.
        file: PathBuf,
        /// The path of the object that should have been changed.
        path: String,
        /// Why not.
        why: ChangeRefusal,
    },
    /// A counterexample cannot be read.
    #[error("{}: {source}", path.display())]
    UnreadableCounterexample {
        /// The file.
        path: PathBuf,
        /// Why.
        source: h5live_checker::trace::TraceFileError,
    },
    /// A description cannot be read.
    #[error("standard input: {0}")]
    Stdin(#[source] io::Error),
    /// A description is none, or contradicts itself.
    #[error("{}: {fault}", file.as_deref().unwrap_or("standard input".as_ref()).display())]
    InvalidDescription {
        /// The file with it; `None` for standard input.
        file: Option<PathBuf>,
        /// The fault.
        #[source]
        fault: DescriptionFault,
    },
    /// The store refused something.
    #[error("{}: {path}: {source}", file.display())]
    Store {
        /// The file.
        file: PathBuf,
        /// The object.
        path: String,
        /// Why.
        source: h5live::model::Error,
    },
    /// A new file does not take its place.
    #[error(transparent)]
    NewFile(h5live_output::Error),
    /// A file is not to be replaced.
    #[error("{}: the file exists; --force replaces it", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },
    /// Values are not to be written over what a raw file holds.
    #[error("{}: the raw file exists, and the values of {dataset} would replace bytes of it; --force allows it", path.display())]
    RawFileExists {
        /// The raw file.
        path: PathBuf,
        /// The dataset.
        dataset: String,
    },
    /// A description names a raw file that is not beside the new file.
    #[error(
        "the raw file {name} of {dataset} is not in the folder of the new file: the values are not written there; --force allows it"
    )]
    RawFileElsewhere {
        /// The name, as the description has it.
        name: String,
        /// The dataset.
        dataset: String,
    },
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Stdout(#[source] io::Error),
    /// The rows of standard input, or the dataset that is to take them, are not fit for each other.
    #[error("{place}: {source}")]
    Record {
        /// What is at fault: standard input, or the file.
        place: String,
        /// Why.
        source: Box<h5live_recorder::Error>,
    },
    /// Rows cannot be recorded; the text names what is at fault.
    #[error(transparent)]
    RecordWithoutPlace(Box<h5live_recorder::Error>),
    /// A path that would be made is the way in which another one is printed.
    #[error(
        "{0}: an object is there whose name is printed so, and it cannot be given to this command; another name: h5live mv"
    )]
    EscapedPathTaken(String),
    /// A type of raw frames was given for an input of rows of text.
    #[error("--dtype is the type of an element of a raw frame, and the format of the input is {0}")]
    DtypeForTextInput(&'static str),
    /// Something did not come in time.
    #[error("{place}: waited {seconds} s for {awaited}")]
    WaitTimeout {
        /// The file, and the object if it is what did not come.
        place: String,
        /// How long (seconds).
        seconds: f64,
        /// For what.
        awaited: WaitTarget,
    },
    /// A process of a run cannot be started or ended.
    #[error("a process of this run: {0}")]
    Process(#[source] io::Error),
    /// Files cannot be served.
    #[cfg(feature = "serve")]
    #[error("{0}")]
    Serve(#[source] Box<h5live_serve::StartError>),
    /// The counters of this machine cannot be read.
    #[error("/proc: {0}")]
    MachineCounters(#[source] io::Error),
}

/// A problem of a file that the library does not report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// There is no superblock.
    #[error("not an HDF5 file: no signature at 0, 512, 1024, ...")]
    NoSignature,
    /// The superblock cannot be decoded.
    #[error("{0}")]
    Superblock(h5live_format::DecodeError),
    /// An offset lies outside the file.
    #[error("offset {offset:#x} lies beyond the end ({})", counted(*len, "byte"))]
    BeyondEnd {
        /// The offset (bytes).
        offset: u64,
        /// Bytes of the file.
        len: u64,
    },
    /// Nothing known begins at an offset.
    #[error("no structure that could be known begins at {0:#x}")]
    NoStructure(u64),
    /// Groups are inside each other deeper than a description may be.
    #[error("{0} is too deep inside other groups for a description")]
    GroupTooDeep(String),
    /// A slice that a dataset does not have.
    #[error("{path}: {fault}")]
    SliceOutOfBounds {
        /// The dataset.
        path: String,
        /// Why.
        fault: SliceBoundsError,
    },
    /// CSV cannot have a column for each part of a row.
    #[error("{path}: a row has {number} columns, and CSV may have {max_columns}; --slice takes some")]
    TooManyCsvColumns {
        /// The dataset or attribute.
        path: String,
        /// Its columns.
        number: u64,
        /// Most of them.
        max_columns: u64,
    },
}

impl Error {
    /// Whether the reader of our output has gone away. This is no error.
    pub fn is_broken_pipe(&self) -> bool {
        let error = match self {
            Error::Stdout(error) | Error::Archive(h5live_archive::Error::Io { source: error, .. }) => error,
            _ => return false,
        };
        error.kind() == io::ErrorKind::BrokenPipe
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitTarget {
    /// The file.
    #[error("this file, which is not there")]
    FileCreation,
    /// A process that has the file for itself.
    #[error("the process that has the file open and lets nobody read it")]
    FileRelease,
    /// An object or attribute of the file.
    #[error("this object, which is not in the file")]
    ObjectCreation,
}

impl From<h5live_output::Error> for Error {
    fn from(error: h5live_output::Error) -> Self {
        match error {
            h5live_output::Error::Exists { path } => Error::FileExists { path },
            error => Error::NewFile(error),
        }
    }
}

impl From<DescriptionFault> for Error {
    fn from(fault: DescriptionFault) -> Self {
        Error::InvalidDescription { file: None, fault }
    }
}

/// Why something in a file does not take a value.
#[derive(Debug, thiserror::Error)]
pub enum ChangeRefusal {
    /// The value does not fit.
    #[error("{0}")]
    InvalidValue(#[from] JsonValueError),
    /// There is no map, and what is put does not say of which types it is to be.
    #[error("the map is not there, and its types are not clear: --key-type and --value-type say them")]
    UnclearMapTypes,
    /// The file was not there, and is when it is to take its place.
    #[error("another process has made the file meanwhile, and nothing was put into it: put the pairs again")]
    FileCreatedMeanwhile,
    /// A key is there twice in an object.
    #[error("{0:?} is there twice")]
    RepeatedKey(String),
    /// It is neither a dataset nor an attribute.
    #[error("this is neither a dataset nor an attribute")]
    NotDatasetOrAttribute,
    /// It is the root group.
    #[error("the root group stays where it is")]
    Root,
}
