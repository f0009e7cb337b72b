//! Digests of contents.

use std::fmt;
use std::str::FromStr;

use sha1::Digest as _;
use twox_hash::XxHash3_128;

/// How the digest of a file is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestAlgorithm {
    /// SHA-1, 20 bytes.
    Sha1,
    /// BLAKE3, 32 bytes.
    Blake3,
    /// XXH3 with 128 bits: fast, and no protection against somebody who makes equal digests on purpose.
    Xxh3_128,
}

/// All of them.
const ALGORITHMS: [DigestAlgorithm; 3] = [DigestAlgorithm::Sha1, DigestAlgorithm::Blake3, DigestAlgorithm::Xxh3_128];

impl DigestAlgorithm {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            DigestAlgorithm::Sha1 => "sha1",
            DigestAlgorithm::Blake3 => "blake3",
            DigestAlgorithm::Xxh3_128 => "xxh3-128",
        }
    }

    /// Bytes of a digest.
    pub fn digest_len(self) -> usize {
        match self {
            DigestAlgorithm::Sha1 => 20,
            DigestAlgorithm::Blake3 => 32,
            DigestAlgorithm::Xxh3_128 => 16,
        }
    }

    /// A digest of nothing yet.
    pub fn hasher(self) -> ContentHasher {
        match self {
            DigestAlgorithm::Sha1 => ContentHasher::Sha1(sha1::Sha1::new()),
            DigestAlgorithm::Blake3 => ContentHasher::Blake3(Box::new(blake3::Hasher::new())),
            DigestAlgorithm::Xxh3_128 => ContentHasher::Xxh3_128(Box::new(XxHash3_128::new())),
        }
    }

    /// The digest of contents that are in memory.
    pub fn digest(self, contents: &[u8]) -> Vec<u8> {
        if self == DigestAlgorithm::Xxh3_128 {
            return XxHash3_128::oneshot(contents).to_be_bytes().to_vec();
        }
        let mut hasher = self.hasher();
        hasher.update(contents);
        hasher.finish()
    }
}

impl fmt::Display for DigestAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no algorithm has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is none of sha1, blake3, xxh3-128")]
pub struct UnknownDigestAlgorithm;

impl FromStr for DigestAlgorithm {
    type Err = UnknownDigestAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownDigestAlgorithm> {
        ALGORITHMS.into_iter().find(|algorithm| algorithm.name() == text).ok_or(UnknownDigestAlgorithm)
    }
}

/// A digest that is being made.
pub enum ContentHasher {
    /// See [`DigestAlgorithm::Sha1`].
    Sha1(sha1::Sha1),
    /// See [`DigestAlgorithm::Blake3`].
    Blake3(Box<blake3::Hasher>),
    /// See [`DigestAlgorithm::Xxh3_128`].
    Xxh3_128(Box<XxHash3_128>),
}

impl ContentHasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            ContentHasher::Sha1(hasher) => hasher.update(bytes),
            ContentHasher::Blake3(hasher) => drop(hasher.update(bytes)),
            ContentHasher::Xxh3_128(hasher) => hasher.write(bytes),
        }
    }

    /// The digest.
    pub fn finish(self) -> Vec<u8> {
        match self {
            ContentHasher::Sha1(hasher) => hasher.finalize().to_vec(),
            ContentHasher::Blake3(hasher) => hasher.finalize().as_bytes().to_vec(),
            ContentHasher::Xxh3_128(hasher) => hasher.finish_128().to_be_bytes().to_vec(),
        }
    }
}

impl fmt::Debug for ContentHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentHasher")
    }
}
