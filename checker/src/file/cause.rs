//! The faults that a file can have.

use std::fmt;

use h5live_format::{DecodeError, Fault};

/// A range of bytes that something uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRange {
    /// The object that it belongs to; empty for the file as a whole.
    pub object_path: String,
    /// The structure, or what raw data it is.
    pub structure: &'static str,
    /// The first byte, from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Writers put structures at multiples of so many bytes.
const ALIGNMENT: u64 = 8;

impl FileRange {
    /// Whether it is what the alignment of the structure behind it leaves, if nobody uses it: it is there in a file without
    /// leaks, too.
    pub fn may_be_padding(&self) -> bool {
        self.len < ALIGNMENT && self.offset.saturating_add(self.len).is_multiple_of(ALIGNMENT)
    }
}

impl fmt::Display for FileRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {} at {:#x}", self.len, self.structure, self.offset)?;
        if self.object_path.is_empty() { Ok(()) } else { write!(f, " ({})", self.object_path) }
    }
}

/// The fault of a structure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindingCause {
    /// The storage refuses to be read.
    #[error("cannot be read: {0}")]
    Io(std::io::ErrorKind),
    /// The bytes are not the structure.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It reaches over the end of the space in use.
    #[error("{len} bytes reach over the end of the space in use, {end:#x}")]
    BeyondEnd {
        /// Bytes of it.
        len: u64,
        /// The end that the superblock announces, or that of the file (bytes from the start of the file).
        end: u64,
    },
    /// Its writer died in the middle of a flush.
    #[error("{writes} writes of a flush that was cut off are still to be done; readers take them for done")]
    UnfinishedRedo {
        /// Their number.
        writes: u64,
    },
    /// It uses bytes that something else uses.
    #[error("{len} bytes, which overlap {with}")]
    Overlap {
        /// Bytes of it.
        len: u64,
        /// The other.
        with: FileRange,
    },
    /// There are so many ranges of raw data or of free space that some were not compared with the others.
    #[error("{ranges} of the ranges of raw data and free space were not compared: only {max_ranges} of each are")]
    UncomparedRanges {
        /// Ranges that were left out.
        ranges: u64,
        /// Most ranges that are kept of raw data, and of free space.
        max_ranges: usize,
    },
    /// Two statements about the same number differ.
    #[error("{what}: {stated} by statement, {found} in truth")]
    NumberMismatch {
        /// The counted things, or the field.
        what: &'static str,
        /// The stated number.
        stated: u64,
        /// The real number.
        found: u64,
    },
    /// A number is larger than it can be.
    #[error("{what}: {found} is above {limit}")]
    ExceedsLimit {
        /// Which number.
        what: &'static str,
        /// The number.
        found: u64,
        /// The largest possible.
        limit: u64,
    },
    /// Things that are sorted are not.
    #[error("{what} {index} is out of order")]
    OutOfOrder {
        /// The sorted things.
        what: &'static str,
        /// The position of the first that is not behind the one before it.
        index: u64,
    },
    /// An address leads nowhere.
    #[error("the address of the {0} is undefined")]
    UndefinedAddr(&'static str),
    /// Something is not there that has to be.
    #[error("there is no {0}")]
    Missing(&'static str),
    /// Something is there more often than it may.
    #[error("there is more than one {0}")]
    Repeated(&'static str),
    /// Two links or attributes have one name.
    #[error("the name {0:?} is there twice")]
    NameRepeated(String),
    /// The hash of a name or message is not that of its record.
    #[error("{what}: the hash is {stated:#010x} by statement, {found:#010x} in truth")]
    HashMismatch {
        /// The hashed bytes.
        what: &'static str,
        /// The stored one.
        stated: u32,
        /// The right one.
        found: u32,
    },
    /// A heap has no object where one is referred to.
    #[error("object {object:#x} of the {heap} at {at:#x} is not there")]
    MissingHeapObject {
        /// The kind of heap.
        heap: &'static str,
        /// The heap, in bytes from the start of the file.
        at: u64,
        /// The index or offset of the object.
        object: u64,
    },
    /// A writer has the file open, or died.
    #[error("status flags {0:#04x}: a writer has the file open, or did not close it")]
    NotClosed(u8),
    /// The filters of the bytes cannot be undone; what undoes them says why.
    #[error("its filters cannot be undone: {0}")]
    UnfilterFailed(String),
    /// Bytes that were to be verified, and are more than may be read at once. They may be sound.
    #[error("{bytes} bytes are not read at once, but {limit}: --max-allocation allows more")]
    TooLargeToVerify {
        /// Bytes, before or after the filters.
        bytes: u64,
        /// Most bytes.
        limit: u64,
    },
    /// Bytes that were to be verified, and cannot be decoded here. They may be sound.
    #[error("cannot be decoded here: {0}")]
    CannotVerify(String),
    /// There is a rule that is broken, and no number that says more.
    #[error("{0}")]
    BrokenRule(&'static str),
}

impl FindingCause {
    /// One word for the kind of cause, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            FindingCause::Io(_) => "io",
            FindingCause::Decode(error) => match error.fault {
                Fault::Checksum { .. } => "checksum",
                Fault::Signature { .. } => "signature",
                Fault::UnsupportedVersion { .. } => "version",
                Fault::Truncated { .. } | Fault::TrailingBytes(_) => "length",
                _ => "value",
            },
            FindingCause::BeyondEnd { .. } => "beyond-end",
            FindingCause::Overlap { .. } => "overlap",
            FindingCause::UncomparedRanges { .. } => "uncompared",
            FindingCause::NumberMismatch { .. } => "count",
            FindingCause::ExceedsLimit { .. } => "limit",
            FindingCause::OutOfOrder { .. } => "order",
            FindingCause::UndefinedAddr(_) => "undefined",
            FindingCause::Missing(_) => "missing",
            FindingCause::Repeated(_) | FindingCause::NameRepeated(_) => "repeated",
            FindingCause::HashMismatch { .. } => "hash",
            FindingCause::MissingHeapObject { .. } => "no-object",
            FindingCause::NotClosed(_) => "status",
            FindingCause::UnfilterFailed(_) => "filters",
            FindingCause::TooLargeToVerify { .. } => "too-large",
            FindingCause::CannotVerify(_) => "not-supported",
            FindingCause::BrokenRule(_) => "rule",
            FindingCause::UnfinishedRedo { .. } => "unfinished-redo",
        }
    }
}
