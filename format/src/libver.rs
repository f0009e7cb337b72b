//! Which versions of the structures a file may hold.

pub use h5live_model::LibVer;

/// Which versions of structures a profile stands for.
///
/// Messages choose the version to write by their `version_for`; a feature may need a later version than the profile.
pub trait StructureVersions: Copy {
    /// The superblock version.
    fn min_superblock_version(self) -> u8;

    /// The object header version.
    fn min_object_header_version(self) -> u8;

    /// Whether groups keep their links in messages and dense storage, not in symbol tables.
    fn prefers_link_messages(self) -> bool;

    /// Whether chunked datasets are indexed by extensible arrays, fixed arrays and version 2 B-trees.
    fn prefers_version_4_chunk_indexes(self) -> bool;
}

impl StructureVersions for LibVer {
    fn min_superblock_version(self) -> u8 {
        match self {
            LibVer::Earliest => 0,
            LibVer::V18 => 2,
            _ => 3,
        }
    }

    fn min_object_header_version(self) -> u8 {
        match self {
            LibVer::Earliest => 1,
            _ => 2,
        }
    }

    fn prefers_link_messages(self) -> bool {
        self != LibVer::Earliest
    }

    fn prefers_version_4_chunk_indexes(self) -> bool {
        self > LibVer::V18
    }
}
