//! How an archive is imported.

use std::fmt;
use std::str::FromStr;

use h5live::model::FilterSpec;

use crate::digest::DigestAlgorithm;

/// How a file keeps the contents of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarLayout {
    /// One dataset for each file, under its path.
    Compactor,
    /// One dataset for each content, under its digest.
    Digest,
    /// All contents in one dataset, with offsets.
    Shredder,
}

impl TarLayout {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            TarLayout::Compactor => "compactor",
            TarLayout::Digest => "digest",
            TarLayout::Shredder => "shredder",
        }
    }
}

impl fmt::Display for TarLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is done with a file whose path is taken (layout `compactor`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportCollisionPolicy {
    /// The import ends with an error.
    Error,
    /// The path stays with the first file. The contents of the other one are kept in the tables.
    StoreWithoutPath,
    /// A file with the same contents gets no dataset of its own; another one gets another name, as with `Suffix`.
    AliasIfSameElseSuffix,
    /// The name of the other one gets `~1` behind it, or the next free number.
    Suffix,
}

impl ImportCollisionPolicy {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ImportCollisionPolicy::Error => "error",
            ImportCollisionPolicy::StoreWithoutPath => "skip",
            ImportCollisionPolicy::AliasIfSameElseSuffix => "alias",
            ImportCollisionPolicy::Suffix => "suffix",
        }
    }
}

/// How the chunks of the image are compressed (layout `shredder`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentsFilter {
    /// Deflate, which every program of HDF5 reads.
    Deflate,
    /// Zstandard.
    Zstd,
    /// LZ4.
    Lz4,
}

impl ContentsFilter {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ContentsFilter::Deflate => "deflate",
            ContentsFilter::Zstd => "zstd",
            ContentsFilter::Lz4 => "lz4",
        }
    }

    /// The filter of a dataset.
    pub(super) fn spec(self) -> FilterSpec {
        let (id, params) = match self {
            ContentsFilter::Deflate => (1, vec![6]),
            ContentsFilter::Zstd => (32_015, vec![3]),
            ContentsFilter::Lz4 => (32_004, Vec::new()),
        };
        FilterSpec { id, optional: true, name: None, params }
    }
}

/// A name that nothing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is none of {0}")]
pub struct NoneOfAllowedNames(&'static str);

impl FromStr for TarLayout {
    type Err = NoneOfAllowedNames;

    fn from_str(text: &str) -> Result<Self, NoneOfAllowedNames> {
        let all = [TarLayout::Compactor, TarLayout::Digest, TarLayout::Shredder];
        let found = all.into_iter().find(|layout| layout.name() == text);
        found.ok_or(NoneOfAllowedNames("compactor, digest, shredder"))
    }
}

impl FromStr for ContentsFilter {
    type Err = NoneOfAllowedNames;

    fn from_str(text: &str) -> Result<Self, NoneOfAllowedNames> {
        let all = [ContentsFilter::Deflate, ContentsFilter::Zstd, ContentsFilter::Lz4];
        let found = all.into_iter().find(|filter| filter.name() == text);
        found.ok_or(NoneOfAllowedNames("none, auto, deflate, zstd, lz4"))
    }
}

impl FromStr for ImportCollisionPolicy {
    type Err = NoneOfAllowedNames;

    fn from_str(text: &str) -> Result<Self, NoneOfAllowedNames> {
        let all = [
            ImportCollisionPolicy::Error,
            ImportCollisionPolicy::StoreWithoutPath,
            ImportCollisionPolicy::AliasIfSameElseSuffix,
            ImportCollisionPolicy::Suffix,
        ];
        let found = all.into_iter().find(|choice| choice.name() == text);
        found.ok_or(NoneOfAllowedNames("error, skip, alias, suffix"))
    }
}

/// How an archive is imported.
#[derive(Debug, Clone, Copy)]
pub struct ImportOptions {
    /// The layout of a new file.
    pub layout: TarLayout,
    /// The digests of a new file. The layout `digest` names datasets by them.
    pub digest: DigestAlgorithm,
    /// What is done with a path that is taken.
    pub on_collision: ImportCollisionPolicy,
    /// Whether offsets end with the end of the last element (layout `shredder`).
    pub offsets_have_sentinel: bool,
    /// The largest file that is stored with the description of its dataset (bytes; layouts with one dataset for each).
    pub compact_limit: u64,
    /// The most bytes of contents.
    pub max_total_content_bytes: u64,
    /// How contents are compressed (layout `shredder`). Compressed contents cannot be viewed in the file.
    pub filter: Option<ContentsFilter>,
    /// Bytes of contents after which what is there is published.
    pub commit_bytes: u64,
    /// Whether what can be read of a damaged archive counts as the whole.
    pub finishes_import_at_fault: bool,
    /// Whether blocks of zeros, which end an archive, are passed over: there may be others behind it.
    pub ignores_zeros: bool,
}

/// The largest compact dataset (bytes): an object header message has 65,535 with its own fields.
pub const MAX_COMPACT_BYTES: u64 = 65_520;

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions {
            layout: TarLayout::Shredder,
            digest: DigestAlgorithm::Xxh3_128,
            on_collision: ImportCollisionPolicy::Error,
            offsets_have_sentinel: true,
            compact_limit: MAX_COMPACT_BYTES,
            max_total_content_bytes: 1 << 44,
            filter: None,
            commit_bytes: 64 << 20,
            finishes_import_at_fault: false,
            ignores_zeros: false,
        }
    }
}
