//! The file checker: walks over everything in an HDF5 file, and reports contradictions.
//!
//! It uses the decoders of `format`, and reads the file by `cache::FileStorage`. It shares nothing else with the code
//! that reads and writes files. Each structure claims its bytes in a map of the file before it is followed. So a
//! structure is visited once, whatever the file says.

mod attributes;
mod btree1;
mod btree2;
mod cause;
mod chunks;
mod creation_order;
mod dataset;
mod extensible_array;
mod file_bytes;
mod fixed_array;
mod fractal_heap;
mod free_space;
mod global_heap;
mod groups;
mod header;
mod local_heap;
mod objects;
mod opening;
mod ranges;
mod report;
mod shared_messages;
mod space_map;
mod superblock;
mod symbol_table;
mod values;
mod walk;

use std::fs::File;
use std::io;
use std::path::Path;

use h5live_cache::{FileStorage, Storage};
use h5live_model::Unfilter;

pub use cause::{Cause, UnknownFilter, UsedRange};
pub use report::{Finding, Report};

/// How a file is checked.
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Whether bytes that nothing uses are reported. They are no fault.
    pub leaks: bool,
    /// Whether to make a map of the file: which structure uses which bytes.
    pub map: bool,
    /// Whether a writer may have the file open, or may have died: status flags, and sums that a writer brings into
    /// order last, are notes then.
    pub live: bool,
    /// Whether harmless contradictions are findings, too: objects that state more links than there are (as groups that
    /// link to each other in a circle leave them), and sums of heaps (which libhdf5 gets wrong when heaps shrink).
    pub strict: bool,
    /// Whether the filters of all chunks are undone, which shows damage to compressed and checksummed data.
    pub data: bool,
    /// Most bytes of raw data that are read for the heap objects to which values lead.
    pub values: u64,
    /// Undoes the filters of heaps and chunks; without it, what went through filters is not looked into. It answers
    /// [`UnknownFilter`] for filters that it does not know.
    pub filters: Option<&'a dyn Unfilter>,
}

impl Default for CheckOptions<'_> {
    fn default() -> Self {
        CheckOptions {
            leaks: false,
            map: false,
            live: false,
            strict: false,
            data: false,
            values: 1 << 30,
            filters: None,
        }
    }
}

/// Checks a file that no writer has open.
pub fn check(storage: &dyn Storage) -> Report {
    check_with(storage, CheckOptions::default())
}

/// Checks the file of this name, which no writer has open.
///
/// # Errors
/// If it cannot be opened.
pub fn check_path(path: &Path) -> io::Result<Report> {
    check_path_with(path, CheckOptions::default())
}

/// Checks the file of this name.
///
/// # Errors
/// If it cannot be opened.
pub fn check_path_with(path: &Path, options: CheckOptions<'_>) -> io::Result<Report> {
    Ok(check_with(&FileStorage::new(File::open(path)?), options))
}

/// Checks a file.
pub fn check_with(storage: &dyn Storage, options: CheckOptions<'_>) -> Report {
    walk::FileWalk::run(storage, options)
}
