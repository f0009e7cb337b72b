//! The check of a store: whether everything in it is accounted for.

use std::error::Error;
use std::fmt;

use crate::{Leak, ObjectId};

/// What the check of a store looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreCheckOptions {
    /// Undo the filters of all chunks.
    pub verify_data: bool,
    /// In an object store, look beyond the domain for objects of domains that are not there. That lists the bucket.
    pub find_lost_domains: bool,
}

/// Something that is wrong with a store.
#[derive(Debug)]
pub struct StoreFinding {
    /// The object that it belongs to; `None` for the store as a whole.
    pub object: Option<ObjectId>,
    /// A path that leads to the object, if there is one.
    pub path: Option<String>,
    /// A word for the kind of fault, for programs.
    pub kind: &'static str,
    /// The fault.
    pub cause: Box<dyn Error + Send + Sync>,
}

/// The result of the check of a store.
#[derive(Debug, Default)]
pub struct StoreCheckReport {
    /// The faults. At most [`StoreCheckReport::MAX_FINDINGS`]; then the check ends.
    pub findings: Vec<StoreFinding>,
    /// Objects and other data to which nothing leads. That is no fault: [`crate::Maintenance::repair_and_reclaim_unreachable`] deletes them. At most
    /// [`StoreCheckReport::MAX_FINDINGS`] are listed.
    pub leaks: Vec<Leak>,
    /// All of them.
    pub leak_count: u64,
    /// Chunks, and entries of a log, that were to be verified and could not be: their filters are not known here, or the file
    /// that has them is not what it was.
    pub unverified_part_count: u64,
    /// Bytes of metadata and raw data that no checksum covers: whether they are what was written is not known. `None` where
    /// this is not counted.
    pub unchecksummed_bytes: Option<u64>,
    /// Objects that were looked at.
    pub object_count: u64,
    /// Bytes of metadata.
    pub metadata_bytes: u64,
    /// Bytes of raw data.
    pub raw_bytes: u64,
}

impl StoreCheckReport {
    /// Most findings that are kept, and most leaks.
    pub const MAX_FINDINGS: usize = 10_000;

    /// Whether nothing is wrong.
    pub fn has_no_findings(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether there are as many findings as are kept, so that the check ended early.
    pub fn has_max_findings(&self) -> bool {
        self.findings.len() >= Self::MAX_FINDINGS
    }
}

impl fmt::Display for StoreFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.object) {
            (Some(path), _) => write!(f, "{path}: {}", self.cause),
            (None, Some(id)) => write!(f, "object {id}: {}", self.cause),
            (None, None) => write!(f, "{}", self.cause),
        }
    }
}
