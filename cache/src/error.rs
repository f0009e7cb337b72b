//! Errors between a file and its cached structures.

use std::{fmt, io};

use h5live_format::{Addr, DecodeError, EncodeError};
use h5live_model::AllocationError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why the cache could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage failed.
    #[error("{action} failed at {at:#x}, {len} bytes")]
    Io {
        /// The action that failed.
        action: StorageAction,
        /// Bytes from the base address.
        at: u64,
        /// Bytes to be read or written; the new length for [`StorageAction::Extend`] and [`StorageAction::Truncate`].
        len: u64,
        /// The storage's error.
        source: io::Error,
    },
    /// A block reaches beyond the end of the file.
    #[error("{wanted} bytes at {at} are needed, the file ends after {found} of them")]
    PastEnd {
        /// Where the block begins.
        at: Addr,
        /// Its size in bytes.
        wanted: u64,
        /// The bytes of it that are there.
        found: u64,
    },
    /// The storage is shorter than this cache has made it.
    #[error("the file was cut meanwhile: {len} bytes of {known} are there")]
    FileTruncated {
        /// Bytes that are there, from the base address on.
        len: u64,
        /// Bytes that were there.
        known: u64,
    },
    /// The bytes at an address are not the structure that should be there.
    #[error("no valid structure at {at}")]
    Decode {
        /// Where the structure should be.
        at: Addr,
        /// The fault in its bytes.
        source: DecodeError,
    },
    /// A structure cannot be written.
    #[error("the structure for {at} cannot be encoded")]
    Encode {
        /// The address for which it was encoded.
        at: Addr,
        /// The value that does not fit.
        source: EncodeError,
    },
    /// Two places in the file claim the same address for structures of different types.
    #[error("{at} is known as another structure: {}, and not {}", structure_name(.cached), structure_name(.wanted))]
    WrongEntryType {
        /// The address.
        at: Addr,
        /// The type of the cached entry.
        cached: &'static str,
        /// The type that was asked for.
        wanted: &'static str,
    },
    /// A flush dependency would close a circle.
    #[error(transparent)]
    Cycle(#[from] DependencyCycle),
    /// An undefined address was used to read or write.
    #[error("the address is undefined")]
    UndefinedAddr,
    /// Addresses of the file's width do not reach far enough for an allocation.
    #[error("{wanted} bytes do not fit behind {end:#x}: addresses end at {limit:#x}")]
    AddressSpaceFull {
        /// Bytes to be allocated.
        wanted: u64,
        /// The end of the allocated space, in bytes from the base address.
        end: u64,
        /// The largest address.
        limit: u64,
    },
    /// The file's end cannot be settled while entries or raw data are dirty.
    #[error("{0} entries are not flushed")]
    UnflushedEntries(usize),
    /// There is no memory for a length that the file states.
    #[error("no memory for what is at {at}")]
    MemoryAllocation {
        /// Its present or future address.
        at: Addr,
        /// Why.
        source: AllocationError,
    },
    /// The cache was opened for reading.
    #[error("the cache is open for reading only")]
    ReadOnly,
}

impl Error {
    /// Whether a writer that is at work in the same place could be the cause: reading again may help.
    pub fn may_be_torn(&self) -> bool {
        match self {
            // A length that is half-written may be any.
            Error::PastEnd { .. } | Error::MemoryAllocation { .. } => true,
            // A structure may be read before it leads to what others already count on.
            Error::UndefinedAddr => true,
            Error::Decode { source, .. } => source.may_be_torn(),
            _ => false,
        }
    }

    pub(crate) fn io(action: StorageAction, at: u64, len: u64) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, at, len, source }
    }
}

/// The action of the storage that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StorageAction {
    /// Reading bytes.
    Read,
    /// Asking for the length of the file.
    QueryLength,
    /// Writing a metadata entry of this type.
    WriteEntry(&'static str),
    /// Writing raw data.
    WriteRaw,
    /// Writing the superblock.
    WriteSuperblock,
    /// Writing a redo record.
    WriteRedo,
    /// Making the file longer.
    Extend,
    /// Cutting the file at its end.
    Truncate,
    /// Making everything durable.
    Sync,
}

impl fmt::Display for StorageAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageAction::Read => f.write_str("reading"),
            StorageAction::QueryLength => f.write_str("asking for the length"),
            StorageAction::WriteEntry(name) => write!(f, "writing a structure ({})", structure_name(name)),
            StorageAction::WriteRaw => f.write_str("writing raw data"),
            StorageAction::WriteSuperblock => f.write_str("writing the superblock"),
            StorageAction::WriteRedo => f.write_str("writing down what is to be written"),
            StorageAction::Extend => f.write_str("extending the file"),
            StorageAction::Truncate => f.write_str("cutting the file"),
            StorageAction::Sync => f.write_str("making the file durable"),
        }
    }
}

/// The name of a structure in plain words, from that of its type in this program.
fn structure_name(type_name: &str) -> String {
    let path = type_name.split('<').next().unwrap_or_default();
    let name = match path.rsplit("::").next().unwrap_or_default() {
        // What users know of it.
        "FirstHeaderChunk" => "ObjectHeader",
        name => name,
    };
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// The value, or [`Error::UndefinedAddr`]. `ok_or` would make an error, and drop it, for each value that is there, and hot
/// paths ask several times.
#[inline]
pub(crate) fn defined<T>(value: Option<T>) -> Result<T> {
    match value {
        Some(value) => Ok(value),
        None => Err(Error::UndefinedAddr),
    }
}

/// A flush dependency that would close a circle: the child is written before the parent already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the entry cannot be a flush-dependency parent: it is itself written before the child")]
pub struct DependencyCycle;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_structures_in_plain_words() {
        let at = Addr::new(16);
        let wrong = Error::WrongEntryType { at, cached: "h5live_format::FixedArrayHeader", wanted: "a::Node<b::Name>" };
        let text = wrong.to_string();
        assert!(text.ends_with("is known as another structure: fixed array header, and not node"), "{text}");
        let text = StorageAction::WriteEntry("h5live_format::object_header::FirstHeaderChunk").to_string();
        assert_eq!(text, "writing a structure (object header)");
    }
}
