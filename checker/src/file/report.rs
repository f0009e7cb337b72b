//! The result of the check of a file.

use std::fmt;

use super::{FileRange, FindingCause};

/// Something that is wrong with a file, or worth a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The object that it belongs to; empty for the file as a whole.
    pub object_path: String,
    /// The structure, as in the format specification.
    pub structure: &'static str,
    /// Where the structure is, in bytes from the start of the file.
    pub offset: u64,
    /// Its fault.
    pub cause: FindingCause,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.object_path.is_empty() { "-" } else { &self.object_path };
        write!(f, "{path}: {} at {:#x}: {}", self.structure, self.offset, self.cause)
    }
}

/// The result of the check of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileCheckReport {
    /// The faults. At most [`FileCheckReport::MAX_FINDINGS`]; then the check ends.
    pub findings: Vec<Finding>,
    /// Remarks about unusual but allowed things. At most [`FileCheckReport::MAX_FINDINGS`].
    pub notes: Vec<Finding>,
    /// Chunks and heap blocks that went through filters, were to be verified, and could not be. They may be sound. At most
    /// [`FileCheckReport::MAX_FINDINGS`].
    pub unverified_parts: Vec<Finding>,
    /// All of them.
    pub unverified_part_count: u64,
    /// Bytes that nothing uses, if they were asked for.
    pub leaks: Vec<FileRange>,
    /// Where object headers lie to which no path leads (bytes from the start of the file), if leaks were asked for. Only
    /// headers of version 2 can be told from other bytes.
    pub unreachable_header_offsets: Vec<u64>,
    /// The used ranges by address, if a map was asked for. Neighbours of one kind and object are one range.
    pub space_map: Vec<FileRange>,
    /// Whether there is a superblock: whether this is an HDF5 file at all, and can be read.
    pub is_hdf5: bool,
    /// Whether everything was followed that leads anywhere. If not, what seems to be unused may be used.
    pub has_followed_everything: bool,
    /// Objects that were visited.
    pub object_count: u64,
    /// Bytes of metadata that something uses.
    pub metadata_bytes: u64,
    /// Bytes of raw data that something uses.
    pub raw_bytes: u64,
    /// Bytes of both that no checksum covers: that they were changed is seen only where they contradict others. Of raw data,
    /// those of chunks that went through Fletcher32 or deflate have one.
    pub unchecksummed_bytes: u64,
    /// Datasets whose elements lie in other files, where nobody has looked.
    pub external_or_virtual_dataset_count: u64,
    /// Bytes of free space that the file's managers know.
    pub tracked_free_bytes: u64,
}

impl FileCheckReport {
    /// Most findings, notes and leaks that are kept.
    pub const MAX_FINDINGS: usize = 10_000;

    /// Whether nothing is wrong, as far as it was verified.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.is_hdf5
    }

    /// Whether there are as many findings as are kept, so that the check ended early.
    pub fn has_max_findings(&self) -> bool {
        self.findings.len() >= Self::MAX_FINDINGS
    }

    /// Ends a test that expected a clean file.
    ///
    /// # Panics
    /// If there are findings, with all of them.
    pub fn expect_clean(&self) {
        let lines: Vec<_> = self.findings.iter().map(Finding::to_string).collect();
        assert!(self.is_clean(), "{} findings:\n{}", lines.len(), lines.join("\n"));
    }
}
