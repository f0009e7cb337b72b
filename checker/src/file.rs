//! The file checker: walks over everything in an HDF5 file, and reports contradictions.
//!
//! It uses the decoders of `format`, and reads the file by `cache::FileStorage`. It shares nothing else with the code
//! that reads and writes files. Each structure claims its bytes in a map of the file before it is followed. So a
//! structure is visited once, whatever the file says.

mod attributes;
mod btree1;
mod btree2;
mod byte_ranges;
mod cause;
mod checked_heap;
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
mod libhdf5_refusals;
mod live_check;
mod local_heap;
mod object_table;
mod objects;
mod options;
mod passes;
mod report;
mod shared_index;
mod shared_messages;
mod space_map;
mod superblock;
mod symbol_table;
mod unreachable;
mod values;
mod visited_collections;
mod walk;

use std::fs::File;
use std::io;
use std::path::Path;

use h5live_cache::{FileStorage, Storage};

use live_check::confirmed_report;
use passes::check_file;

pub use cause::{FileRange, FindingCause};
pub use options::CheckOptions;
pub use report::{FileCheckReport, Finding};

/// Checks a file that no writer has open.
pub fn check_storage(storage: &dyn Storage) -> FileCheckReport {
    check_storage_with(storage, CheckOptions::default())
}

/// Checks the file of this name, which no writer has open.
///
/// # Errors
/// If it cannot be opened.
pub fn check_path(path: &Path) -> io::Result<FileCheckReport> {
    check_path_with(path, CheckOptions::default())
}

/// Checks the file of this name. If a writer may have it open ([`CheckOptions::may_be_live`]), it is checked again until a check
/// is clean or finds something for the second time.
///
/// # Errors
/// If it cannot be opened.
pub fn check_path_with(path: &Path, options: CheckOptions<'_>) -> io::Result<FileCheckReport> {
    let storage = FileStorage::new(File::open(path)?);
    let check = || Ok(check_storage_with(&storage, options));
    if options.may_be_live { confirmed_report(check) } else { check() }
}

/// Checks a file.
pub fn check_storage_with(storage: &dyn Storage, options: CheckOptions<'_>) -> FileCheckReport {
    check_file(storage, options)
}
