//! Information about an object beside its links, attributes and values.

use crate::{LinkOrAttributeStorageSpec, Name};

/// Information about an object beside its links, attributes and values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectInfo {
    /// Hard links that lead to it.
    pub hard_link_count: u32,
    /// When it was touched, where that is kept.
    pub times: Option<ObjectTimes>,
    /// The comment on it.
    pub comment: Option<Name>,
    /// How its attributes are kept.
    pub attribute_storage: LinkOrAttributeStorageSpec,
}

/// The times of an object (seconds since 1970-01-01 UTC; 0 for a time that is not stored).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectTimes {
    /// Last access.
    pub access: i64,
    /// Last modification of the raw data.
    pub modification: i64,
    /// Last change of the metadata.
    pub change: i64,
    /// Creation.
    pub birth: i64,
}
