//! What an import says of itself.

use crate::count_with_examples::CountWithExamples;
use crate::error::Error;

/// How far an import is.
#[derive(Debug, Clone, Copy)]
pub struct ImportProgress {
    /// Entries of all archives.
    pub entries_so_far_all_archives: u64,
    /// Bytes that were read of the archive's file.
    pub file_bytes_read: u64,
}

/// What an import has done.
#[derive(Debug)]
pub struct ImportReport {
    /// Entries of this archive.
    pub entries_in_this_archive: u64,
    /// Files with contents in all archives of the file.
    pub samples_in_all_archives: u64,
    /// Bytes of their contents.
    pub content_bytes_in_all_archives: u64,
    /// Why the rest of the archive is missing ([`finishes_import_at_fault`](super::ImportOptions::finishes_import_at_fault)).
    pub fault: Option<Error>,
    /// Where another archive begins behind the end of this one, whose entries were not imported (byte).
    pub unread_archive_offset: Option<u64>,
    /// Entries of this archive that have no object under their path ([`on_collision`](super::ImportOptions::on_collision)).
    pub files_denied_own_path: CountWithExamples,
}

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackReport {
    /// Entries that were dropped.
    pub removed_entries: u64,
    /// Archives that the file has.
    pub kept_archives: u64,
    /// Links that were removed, of the layouts with objects: all that were made since the import began.
    pub removed_links: CountWithExamples,
}
