//! Whether contents are those that were imported.

use h5live::archive::layout::NO_SAMPLE;

use crate::digest::ContentHasher;
use crate::digests::SampleDigests;
use crate::error::{Error, Result, UnsuitableFileReason, WRONG_DIGEST};
use crate::reader::{CONTENT_PIECE_BYTES, ImportedTar};
use crate::shown_name::escaped;

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// Samples.
    pub samples: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Whether there are digests with which contents were compared. A file of the original shredder has none.
    pub has_digests: bool,
    /// Paths of files whose contents have another digest, or another size, or cannot be read, and why.
    pub wrong: Vec<(String, String)>,
}

/// Reads all contents, and compares their digests, if the file was imported. `on_sample_count` is told how many samples were read.
///
/// # Errors
/// [`Error::UnsuitableFile`] if there are no digests; [`Error::File`] if they cannot be read.
pub fn verify(tar: &ImportedTar, on_sample_count: &mut dyn FnMut(u64)) -> Result<VerifyReport> {
    let mut report = VerifyReport { samples: 0, bytes: 0, has_digests: true, wrong: Vec::new() };
    if tar.has_only_names_and_contents() {
        read_all(tar, &mut report, on_sample_count);
        return Ok(report);
    }
    let digests = SampleDigests::read_from(tar.file())?
        .ok_or_else(|| Error::unsuitable_file(tar.file(), UnsuitableFileReason::NoDigests))?;
    for row in tar.rows().iter().filter(|row| row.sample != NO_SAMPLE) {
        let wrong = |why: String| (escaped(tar.path(row)), why);
        let Some(stored) = digests.get(row.sample) else {
            report.wrong.push(wrong("there is no digest of it".to_owned()));
            continue;
        };
        match digest_of(tar, row.sample, row.size, digests.hasher()) {
            Ok(digest) if digest == stored => {}
            Ok(_) => report.wrong.push(wrong(WRONG_DIGEST.to_owned())),
            Err(error) => report.wrong.push(wrong(error.to_string())),
        }
        report.samples += 1;
        report.bytes = report.bytes.saturating_add(row.size);
        on_sample_count(report.samples);
    }
    Ok(report)
}

/// Reads all contents, to which there are no digests.
fn read_all(tar: &ImportedTar, report: &mut VerifyReport, each: &mut dyn FnMut(u64)) {
    report.has_digests = false;
    for row in tar.rows() {
        if let Err(error) = tar.for_each_piece_then_verify(row, &mut |_, _| Ok(())) {
            report.wrong.push((escaped(tar.path(row)), error.to_string()));
        }
        report.samples += 1;
        report.bytes = report.bytes.saturating_add(row.size);
        each(report.samples);
    }
}

fn digest_of(tar: &ImportedTar, sample: u64, size: u64, mut hasher: ContentHasher) -> Result<Vec<u8>> {
    if tar.sample_archive().sample_len(sample)? != size {
        return Err(tar.inconsistent_tables_error("a file has another size than its entry says"));
    }
    let mut at = 0;
    while at < size {
        let end = size.min(at + CONTENT_PIECE_BYTES);
        hasher.update(&tar.read_sample_range_unverified(sample, at..end)?);
        at = end;
    }
    Ok(hasher.finish())
}
