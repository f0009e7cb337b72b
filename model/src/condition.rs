//! The state of a file, and which processes have it open.

use std::fmt;

/// A process that has a file open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHolderProcess {
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

impl FileHolderProcess {
    /// The process that asks.
    pub fn this_process() -> Self {
        let name = std::env::current_exe().ok();
        let name = name.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        FileHolderProcess { pid: std::process::id(), name: name.unwrap_or_default() }
    }

    /// Whether it is the process that asks.
    pub fn is_this_process(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl fmt::Display for FileHolderProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOpenState {
    /// Its last writer has closed it.
    Closed,
    /// A process has it open for writing.
    OpenForWriting {
        /// Whether others may follow that writer.
        live: bool,
        /// The processes, where the system names them.
        holders: Vec<FileHolderProcess>,
    },
    /// The superblock says that it is open for writing, and no process has it.
    Abandoned {
        /// Whether others could follow that writer.
        live: bool,
    },
    /// The superblock says that it is open for writing, and the system cannot tell whether it is.
    OpenOrAbandoned {
        /// Whether others may follow that writer.
        live: bool,
    },
}

/// The state that a file announces, without its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiagnosis {
    /// The state.
    pub open_state: FileOpenState,
    /// The version of the superblock; `None` for a store that has none. Before version 3 it does not say that the file
    /// is open for writing.
    pub superblock_version: Option<u8>,
    /// Bytes of the file.
    pub length: u64,
    /// The end of file that the superblock announces, in bytes from the start of the file. While a writer is at work,
    /// it may be beyond the last byte that is stored. Without a superblock, it is the length.
    pub announced_length: u64,
    /// The other processes that have a native file open just to read it, as far as the system names them. Freed space of a
    /// live file waits for them, and a plain writer is refused while one has opened a file that nobody writes.
    pub other_readers: Vec<FileHolderProcess>,
}

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairReport {
    /// The file before the repair.
    pub before: FileDiagnosis,
    /// The file after the repair.
    pub after: FileDiagnosis,
    /// What the repair could not do, each with its cause: chunks that stay stored without the filters of their dataset,
    /// and objects that cannot be read. The file is in order all the same.
    pub unrepaired: Vec<String>,
}

impl FileDiagnosis {
    /// Of a store without a superblock, whose length is what it announces.
    pub fn without_superblock(open_state: FileOpenState, length: u64) -> Self {
        let (superblock_version, other_readers) = (None, Vec::new());
        FileDiagnosis { open_state, superblock_version, length, announced_length: length, other_readers }
    }

    /// Whether programs refuse to open the file though nobody writes it: a repair helps.
    pub fn needs_repair(&self) -> bool {
        matches!(self.open_state, FileOpenState::Abandoned { .. }) || self.length < self.announced_length
    }
}

impl RepairReport {
    /// Whether anything was changed.
    pub fn has_diagnosis_changed(&self) -> bool {
        self.before != self.after
    }
}

/// A change that another program has made to a file while it was open here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForeignFileChange {
    /// Another file has its place.
    Replaced,
    /// It was deleted.
    Deleted,
    /// The file was truncated; some of its contents are lost.
    Truncated,
}

impl fmt::Display for ForeignFileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ForeignFileChange::Replaced => "replaced",
            ForeignFileChange::Deleted => "deleted",
            ForeignFileChange::Truncated => "truncated",
        })
    }
}
