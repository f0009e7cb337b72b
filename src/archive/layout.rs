//! What an archive in a file is made of: `docs/tar.md` describes it byte by byte.

use crate::H5Type;

/// The group of the tables that an import adds to what the layout holds.
pub const TABLE_GROUP: &str = ".h5live_tar";
/// Attribute of the group: the version of the tables.
pub const VERSION_ATTRIBUTE: &str = "version";
/// The version of the tables that this library writes.
pub const TABLE_VERSION: u32 = 1;
/// Attribute of the group: the layout, by its name.
pub const LAYOUT_ATTRIBUTE: &str = "layout";
/// Attribute of the group: 1 as long as an import is under way.
pub const IMPORT_STATE_ATTRIBUTE: &str = "importing";
/// Attribute of the offsets: 1 if the last one is the end of the last element.
pub const HAS_SENTINEL_ATTRIBUTE: &str = "sentinel";
/// Attribute of the name index: for how many entries it was made.
pub const INDEXED_ENTRY_COUNT_ATTRIBUTE: &str = "entries";
/// Attribute of the digests: the algorithm, by its name.
pub const DIGEST_ALGORITHM_ATTRIBUTE: &str = "algorithm";

/// Bytes of all records of the archives that are not contents of files: headers, padding, ends.
pub const HEADERS_AND_PADDING: &str = ".h5live_tar/header";
/// One [`EntryRow`] for each entry of the archives.
pub const ENTRY_TABLE: &str = ".h5live_tar/entry";
/// The path of each entry, and where its link leads; both end with a NUL.
pub const PATH_AND_LINK_TARGET: &str = ".h5live_tar/path";
/// One [`ArchiveRow`] for each archive.
pub const ARCHIVE_TABLE: &str = ".h5live_tar/archive";
/// The segments of sparse files: `[segments, 3]`, the entry, the offset in its contents, bytes.
pub const SPARSE_SEGMENT_TABLE: &str = ".h5live_tar/sparse";
/// The digest of each sample: `[samples, bytes of a digest]`.
pub const SAMPLE_DIGEST: &str = ".h5live_tar/digest";
/// The dataset of each sample, as an object reference (layouts with one dataset for each).
pub const SAMPLE_REFERENCE: &str = ".h5live_tar/object";
/// The hash table of names: `[slots]`.
pub const NAME_INDEX: &str = ".h5live_tar/name_index";
/// Contents that have no place of their own under their name.
pub const UNPLACED_CONTENT_GROUP: &str = ".h5live_tar/content";
/// As long as an import is under way: a hash of the path of each link that was there before it, `[links, 16]`.
pub const LINK_HASHES_BEFORE_IMPORT: &str = ".h5live_tar/before";

/// The contents of all samples, one after another (layout `shredder`).
pub const SAMPLE_CONTENTS: &str = "image";
/// Where each sample begins in the image (bytes), and where the last one ends.
pub const SAMPLE_OFFSET: &str = "image_offset";
/// The name of each sample, with a NUL behind it.
pub const SAMPLE_NAME: &str = "name";
/// Where each name begins (bytes), and where the last one ends.
pub const SAMPLE_NAME_OFFSET: &str = "name_offset";
/// Bytes of a chunk of the image and of the names.
pub const SHREDDER_BYTES_PER_CHUNK: u64 = 1 << 20;
/// Elements of a chunk of offsets.
pub const SHREDDER_OFFSETS_PER_CHUNK: u64 = 1 << 17;

/// In [`EntryRow::sample`]: the entry has no contents of its own.
pub const NO_SAMPLE: u64 = u64::MAX;

/// An entry of an archive: what its headers say, and where its parts are.
#[derive(H5Type, Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRow {
    /// Where its records begin in [`HEADERS_AND_PADDING`] (bytes): behind those of the entry before it.
    pub header_offset: u64,
    /// Bytes of its records: the padding of the contents before it, and its headers.
    pub header_length: u64,
    /// Bytes of the contents, with the holes of a sparse file.
    pub size: u64,
    /// Bytes of the contents in the archive.
    pub stored_size: u64,
    /// The number of the sample that has the contents, or [`NO_SAMPLE`].
    pub sample: u64,
    /// Where the path begins in [`PATH_AND_LINK_TARGET`] (bytes).
    pub path_offset: u64,
    /// Bytes of the path.
    pub path_length: u32,
    /// Bytes of the target of a link, which begins a byte behind the path.
    pub link_length: u32,
    /// Permissions.
    pub mode: u32,
    /// Nanoseconds of the time of the last change.
    pub mtime_nanos: u32,
    /// Seconds of the time of the last change, since 1970.
    pub mtime: i64,
    /// The number of the owner.
    pub uid: u64,
    /// The number of the group.
    pub gid: u64,
    /// The type flag of the header.
    pub kind: u8,
}

/// An archive that was imported to its end.
#[derive(H5Type, Debug, Clone, PartialEq, Eq)]
pub struct ArchiveRow {
    /// The first of its entries.
    pub first_entry: u64,
    /// How many entries it has.
    pub entries: u64,
    /// Where its records begin in [`HEADERS_AND_PADDING`] (bytes).
    pub header_start: u64,
    /// Where they end, with the end of the archive.
    pub header_end: u64,
    /// The name of the file.
    pub name: String,
}
