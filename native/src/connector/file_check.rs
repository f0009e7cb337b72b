//! The check of a native file as of any other store, by the checker of files.

use std::fs::File;
use std::path::Path;

use h5live_cache::FileStorage;
use h5live_checker::file::{CheckOptions, FileCheckReport, Finding, check_path_with};
use h5live_model::{FileOpenState, Leak, LeakLocation, OpenRequest, StoreCheckOptions, StoreCheckReport, StoreFinding};
use h5live_swmr::locate_and_rebase_superblock;

use crate::error::{Error, Result};

/// A fault of a structure.
#[derive(Debug, thiserror::Error)]
#[error("{structure} at {offset:#x}: {cause}")]
struct StructureFault {
    structure: &'static str,
    /// In bytes from the start of the file.
    offset: u64,
    #[source]
    cause: h5live_checker::file::FindingCause,
}

/// Checks the file at a path. A process may write it meanwhile.
///
/// # Errors
/// If it cannot be read; errors of reading the superblock if it is no HDF5 file.
pub fn check(path: &Path, how: &OpenRequest<'_>, what: StoreCheckOptions) -> Result<StoreCheckReport> {
    let options = CheckOptions {
        reports_leaks: what.find_lost_domains,
        unfilters_all_chunks: what.verify_data,
        filter_engine: Some(&*how.filter_engine),
        max_chunk_bytes: how.max_allocation.bytes(),
        ..CheckOptions::default()
    };
    // A file that is none of HDF5 has no structures to check.
    locate_and_rebase_superblock(&FileStorage::new(File::open(path).map_err(Error::io("open the file"))?))?;
    let before = is_live(path)?;
    let mut report = check_as(path, CheckOptions { may_be_live: before, ..options })?;
    // Its writer may have come just now.
    if !report.is_clean() && !before && is_live(path)? {
        report = check_as(path, CheckOptions { may_be_live: true, ..options })?;
    }
    Ok(store_report(report))
}

fn check_as(path: &Path, options: CheckOptions<'_>) -> Result<FileCheckReport> {
    check_path_with(path, options).map_err(Error::io("read the file"))
}

/// Whether a process writes the file while others may follow.
fn is_live(path: &Path) -> Result<bool> {
    let found = h5live_swmr::diagnose_open_state(path)?;
    Ok(matches!(found.open_state, FileOpenState::OpenForWriting { live: true, .. }))
}

fn store_report(report: FileCheckReport) -> StoreCheckReport {
    // Only the headers are known to be those of objects.
    let leaks = report.unreachable_header_offsets.iter().map(|offset| Leak {
        place: LeakLocation::ObjectHeaderOffset(*offset),
        kind: None,
        bytes: 0,
    });
    StoreCheckReport {
        unchecksummed_bytes: Some(report.unchecksummed_bytes),
        leak_count: report.unreachable_header_offsets.len() as u64,
        leaks: leaks.take(StoreCheckReport::MAX_FINDINGS).collect(),
        unverified_part_count: report.unverified_part_count,
        object_count: report.object_count,
        metadata_bytes: report.metadata_bytes,
        raw_bytes: report.raw_bytes,
        findings: report.findings.into_iter().map(store_finding).collect(),
    }
}

fn store_finding(finding: Finding) -> StoreFinding {
    let Finding { object_path: path, structure, offset, cause } = finding;
    StoreFinding {
        object: None,
        path: Some(path).filter(|path| !path.is_empty()),
        kind: "structure",
        cause: Box::new(StructureFault { structure, offset, cause }),
    }
}
