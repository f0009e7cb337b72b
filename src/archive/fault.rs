//! What is wrong with a training set.

use h5live_model::Name;

/// Why a training set cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveFault {
    /// The file is no training set.
    #[error("the file has neither the tables of an import nor the datasets image and image_offset")]
    NoArchive,
    /// There are not so many samples.
    #[error("there is no sample {sample}: there are {samples}")]
    SampleOutOfRange {
        /// The number that was asked for.
        sample: u64,
        /// How many there are.
        samples: u64,
    },
    /// No file in the archive has this name.
    #[error("no file of the archive is called {0:?}")]
    NameNotFound(Name),
    /// The tables contradict each other.
    #[error("the tables of the archive contradict each other: {0}")]
    InconsistentTables(&'static str),
    /// An order that cannot be: see the text.
    #[error("{0}")]
    InvalidEpochOptions(&'static str),
    /// A thread could not be started.
    #[error("cannot start a thread that reads ahead")]
    ThreadSpawn,
}
