//! What is in an archive, and what is wrong with it.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use h5live::archive::normalized_path;
use twox_hash::XxHash3_128;

use crate::contents::{DataOrHole, EntryContents};
use crate::count_with_examples::CountWithExamples;
use crate::digest::DigestAlgorithm;
use crate::entry::TarEntry;
use crate::error::{Error, Result};
use crate::layout_check::{LayoutChecker, LayoutFindings};
use crate::paths::safe_path;
use crate::scanner::TarScanner;
use crate::shown_name::escaped;
use crate::source::{Compression, TarSource};

/// Bytes of contents that are in memory at once.
const PIECE_BYTES: u64 = 1 << 20;

/// What an archive has.
#[derive(Debug)]
pub struct TarReport {
    /// How it is compressed.
    pub compression: Compression,
    /// All entries.
    pub entries: u64,
    /// Entries by what they are.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Files with contents: those that the document's program counts.
    pub nonempty_files: u64,
    /// Files without contents.
    pub empty_files: u64,
    /// Files of more than 64 KiB, which the document warns of.
    pub files_over_64_kib: u64,
    /// Files that are too large for a compact dataset.
    pub files_over_max_compact: u64,
    /// Bytes of all contents, with the holes of sparse files.
    pub content_bytes: u64,
    /// The largest file: path and bytes.
    pub largest_file: Option<(String, u64)>,
    /// Files whose contents another file has already, and the bytes of those.
    pub duplicate_contents: CountWithExamples,
    /// Bytes of the contents that are there more than once.
    pub duplicate_bytes: u64,
    /// Entries whose path an earlier one has.
    pub path_collisions: CountWithExamples,
    /// Entries whose path leads out of the folder where they would be extracted.
    pub unsafe_paths: CountWithExamples,
    /// What each layout refuses, or keeps in the tables alone.
    pub layouts: Vec<LayoutFindings>,
    /// Bytes of the archive, without compression, that were read.
    pub uncompressed_bytes: u64,
    /// What ended the reading too early.
    pub fault: Option<Error>,
    /// Where another archive begins behind the end (byte). Its entries were not looked at.
    pub next_archive_offset: Option<u64>,
}

/// The kind of an entry, for people.
pub fn kind_name(entry: &TarEntry) -> &'static str {
    match entry.kind {
        _ if entry.segments.is_some() => "sparse file",
        0 if entry.path.ends_with(b"/") => "folder",
        b'1' => "hard link",
        b'2' => "symbolic link",
        b'3' => "character device",
        b'4' => "block device",
        b'5' => "folder",
        b'6' => "pipe",
        _ if entry.is_file() => "file",
        _ => "other",
    }
}

/// How far a check is.
#[derive(Debug, Clone, Copy)]
pub struct CheckProgress {
    /// Entries so far.
    pub entries: u64,
    /// Bytes that were read of the archive's file.
    pub file_bytes_read: u64,
}

/// Reads an archive to its end, or to the first fault; with `ignores_zeros`, also the archives behind its end.
/// `on_progress` is called after every entry.
///
/// # Errors
/// None but those of the machine: what is wrong with the archive is in the report.
pub fn check(source: TarSource, ignores_zeros: bool, on_progress: &mut dyn FnMut(CheckProgress)) -> Result<TarReport> {
    let bytes_read = source.file_bytes_read.clone();
    let mut scanner = TarScanner::new(source.decompressed, &source.name).ignore_zeros(ignores_zeros);
    let mut checker = Checker {
        report: TarReport::new(source.compression),
        seen: HashMap::new(),
        paths: HashMap::new(),
        layouts: LayoutChecker::new(),
    };
    loop {
        match checker.next_entry(&mut scanner) {
            Ok(true) => {
                let bytes_read = bytes_read.load(std::sync::atomic::Ordering::Relaxed);
                on_progress(CheckProgress { entries: checker.report.entries, file_bytes_read: bytes_read });
            }
            Ok(false) => break,
            Err(error @ Error::Archive { .. }) => {
                checker.report.fault = Some(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    checker.report.next_archive_offset = scanner.unread_archive_offset();
    checker.report.uncompressed_bytes = scanner.position();
    checker.report.layouts = checker.layouts.into_findings();
    Ok(checker.report)
}

impl TarReport {
    fn new(compression: Compression) -> Self {
        TarReport {
            compression,
            entries: 0,
            kinds: BTreeMap::new(),
            nonempty_files: 0,
            empty_files: 0,
            files_over_64_kib: 0,
            files_over_max_compact: 0,
            content_bytes: 0,
            largest_file: None,
            duplicate_contents: CountWithExamples::default(),
            duplicate_bytes: 0,
            path_collisions: CountWithExamples::default(),
            unsafe_paths: CountWithExamples::default(),
            layouts: Vec::new(),
            uncompressed_bytes: 0,
            fault: None,
            next_archive_offset: None,
        }
    }

    /// Whether the archive is sound, and can be extracted and imported without a choice.
    pub fn is_clean(&self) -> bool {
        self.fault.is_none()
            && self.next_archive_offset.is_none()
            && self.unsafe_paths.count == 0
            && self.path_collisions.count == 0
            && self.layouts.iter().all(|layout| layout.refused_by_reason.is_empty())
    }
}

struct Checker {
    report: TarReport,
    /// Digests of contents: they are compared by these alone.
    seen: HashMap<Vec<u8>, ()>,
    paths: HashMap<u128, ()>,
    layouts: LayoutChecker,
}

impl Checker {
    fn next_entry<R: Read>(&mut self, scanner: &mut TarScanner<R>) -> Result<bool> {
        let Some(entry) = scanner.next_entry(&mut ())? else { return Ok(false) };
        let digest = if entry.has_file_contents() { Some(digest_of(scanner, &entry)?) } else { None };
        self.layouts.check_entry(&entry);
        let report = &mut self.report;
        report.entries += 1;
        *report.kinds.entry(kind_name(&entry)).or_default() += 1;
        if safe_path(&entry.path).is_err() {
            report.unsafe_paths.add(&entry.path);
        }
        if self.paths.insert(XxHash3_128::oneshot(normalized_path(&entry.path)), ()).is_some()
            && kind_name(&entry) != "folder"
        {
            report.path_collisions.add(&entry.path);
        }
        let Some(digest) = digest else {
            report.empty_files += u64::from(entry.is_file());
            return Ok(true);
        };
        report.nonempty_files += 1;
        report.files_over_64_kib += u64::from(entry.size > 64 << 10);
        report.files_over_max_compact += u64::from(entry.size > crate::import::MAX_COMPACT_BYTES);
        report.content_bytes = report.content_bytes.saturating_add(entry.size);
        if report.largest_file.as_ref().is_none_or(|(_, size)| entry.size > *size) {
            report.largest_file = Some((escaped(&entry.path), entry.size));
        }
        if self.seen.insert(digest, ()).is_some() {
            report.duplicate_contents.add(&entry.path);
            report.duplicate_bytes = report.duplicate_bytes.saturating_add(entry.size);
        }
        Ok(true)
    }
}

/// A digest that tells contents apart: of the data, the places of holes, and the size. A hole takes no time.
fn digest_of<R: Read>(scanner: &mut TarScanner<R>, entry: &TarEntry) -> Result<Vec<u8>> {
    let mut hasher = DigestAlgorithm::Blake3.hasher();
    let mut contents = EntryContents::new(scanner, entry, DigestAlgorithm::Xxh3_128.hasher());
    let mut buffer = Vec::new();
    let mut at = 0u64;
    loop {
        match contents.peek() {
            DataOrHole::Data(bytes) => {
                buffer.resize(bytes.min(PIECE_BYTES) as usize, 0);
                contents.read_data_unhashed(&mut buffer)?;
                hasher.update(&buffer);
                at += buffer.len() as u64;
            }
            DataOrHole::Hole(bytes) => {
                contents.skip_hole_unhashed();
                hasher.update(&at.to_le_bytes());
                hasher.update(&bytes.to_le_bytes());
                at += bytes;
            }
            DataOrHole::End => return Ok(hasher.finish()),
        }
    }
}
