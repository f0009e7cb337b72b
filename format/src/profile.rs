//! Which versions of the structures a file may hold.

/// The oldest release of libhdf5 that shall be able to read what is written ("library version bound", low).
///
/// Messages choose the version to write by their `version_for`; a feature may need a later version than the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Profile {
    /// The earliest version that can hold the object.
    Earliest,
    /// HDF5 1.8.
    V18,
    /// HDF5 1.10: the first with single-writer/multiple-reader files.
    #[default]
    V110,
    /// HDF5 1.12.
    V112,
    /// HDF5 1.14.
    V114,
    /// HDF5 2.0.
    V200,
}

impl Profile {
    /// All profiles, oldest first.
    pub const ALL: [Profile; 6] =
        [Profile::Earliest, Profile::V18, Profile::V110, Profile::V112, Profile::V114, Profile::V200];

    /// The superblock version.
    pub const fn superblock(self) -> u8 {
        match self {
            Profile::Earliest => 0,
            Profile::V18 => 2,
            _ => 3,
        }
    }

    /// The object header version.
    pub const fn object_header(self) -> u8 {
        match self {
            Profile::Earliest => 1,
            _ => 2,
        }
    }

    /// Whether groups keep their links in messages and dense storage, not in symbol tables.
    pub const fn has_link_messages(self) -> bool {
        !matches!(self, Profile::Earliest)
    }

    /// Whether chunked datasets are indexed by extensible arrays, fixed arrays and version 2 B-trees.
    pub const fn has_chunk_indexes(self) -> bool {
        !matches!(self, Profile::Earliest | Profile::V18)
    }
}
