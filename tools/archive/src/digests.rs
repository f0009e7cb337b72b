//! The digests of a file's contents, and whether contents have theirs.

use h5live::File;
use h5live::archive::layout::SAMPLE_DIGEST;

use crate::digest::{ContentHasher, DigestAlgorithm};
use crate::error::Result;
use crate::tables::{read_byte_rows, read_digest_algorithm};

/// The digests that were made at the import, by samples.
#[derive(Debug)]
pub struct SampleDigests {
    algorithm: DigestAlgorithm,
    bytes: Vec<u8>,
}

impl SampleDigests {
    /// Those of a file; `None` if it has none.
    ///
    /// # Errors
    /// [`crate::Error::UnsuitableFile`] if the algorithm is unknown; [`crate::Error::File`].
    pub fn read_from(file: &File) -> Result<Option<Self>> {
        let Some(algorithm) = read_digest_algorithm(file)? else { return Ok(None) };
        let bytes = read_byte_rows(&file.dataset(SAMPLE_DIGEST)?, algorithm.digest_len())?;
        Ok(Some(SampleDigests { algorithm, bytes }))
    }

    /// The digest of a sample; `None` if the import has not come so far.
    pub fn get(&self, sample: u64) -> Option<&[u8]> {
        self.bytes.chunks_exact(self.algorithm.digest_len()).nth(usize::try_from(sample).ok()?)
    }

    /// A digest of nothing yet.
    pub fn hasher(&self) -> ContentHasher {
        self.algorithm.hasher()
    }

    /// Whether the contents of a sample may be these: they have its digest, or there is none of it yet.
    pub fn matches_or_unknown(&self, sample: u64, contents: &[u8]) -> bool {
        self.get(sample).is_none_or(|digest| digest == self.algorithm.digest(contents))
    }
}
