//! Whether contents are those that were imported.

use h5live::archive::layout::{DIGEST, NO_SAMPLE};

use crate::error::{Error, Problem, Result};
use crate::reader::TarFile;
use crate::tables::{algorithm, read_rows};

/// Bytes of contents that are in memory at once.
const PIECE_BYTES: u64 = 4 << 20;

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// Samples.
    pub samples: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Paths of files whose contents have another digest, or another size, or cannot be read, and why.
    pub wrong: Vec<(String, String)>,
}

/// Reads all contents, and compares their digests. `each` is told how many samples were read.
///
/// # Errors
/// [`Error::Unfit`] if there are no digests; [`Error::File`] if they cannot be read.
pub fn verify(tar: &TarFile, each: &mut dyn FnMut(u64)) -> Result<VerifyReport> {
    let algorithm = algorithm(tar.file())?.ok_or_else(|| Error::unfit(tar.file(), Problem::NoDigests))?;
    let digests = read_rows(&tar.file().dataset(DIGEST)?, algorithm.digest_len())?;
    let mut report = VerifyReport { samples: 0, bytes: 0, wrong: Vec::new() };
    for row in tar.rows().iter().filter(|row| row.sample != NO_SAMPLE) {
        let wrong = |why: String| (String::from_utf8_lossy(tar.path(row)).into_owned(), why);
        let stored =
            usize::try_from(row.sample).ok().and_then(|sample| digests.chunks(algorithm.digest_len()).nth(sample));
        let Some(stored) = stored else {
            report.wrong.push(wrong("there is no digest of it".to_owned()));
            continue;
        };
        match digest_of(tar, row.sample, row.size, algorithm) {
            Ok(digest) if digest == stored => {}
            Ok(_) => report.wrong.push(wrong("its contents have another digest".to_owned())),
            Err(error) => report.wrong.push(wrong(error.to_string())),
        }
        report.samples += 1;
        report.bytes = report.bytes.saturating_add(row.size);
        each(report.samples);
    }
    Ok(report)
}

fn digest_of(tar: &TarFile, sample: u64, size: u64, algorithm: crate::DigestAlgorithm) -> Result<Vec<u8>> {
    if tar.archive().sample_len(sample)? != size {
        return Err(tar.damaged("a file has another size than its entry says"));
    }
    let mut hasher = algorithm.hasher();
    let mut at = 0;
    while at < size {
        let end = size.min(at + PIECE_BYTES);
        hasher.update(&tar.contents(sample, at..end)?);
        at = end;
    }
    Ok(hasher.finish())
}
