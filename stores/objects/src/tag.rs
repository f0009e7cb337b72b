//! Which state of an object is meant.

use std::time::SystemTime;

/// Names one state of an object: its ETag, and its version where a store has versions. It is never equal for two states
/// of an object that differ, if the store gives tags at all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ObjectChangeTag {
    pub(crate) etag: Option<String>,
    pub(crate) version: Option<String>,
}

impl ObjectChangeTag {
    /// The state of an object with this ETag.
    pub fn of_etag(etag: impl Into<String>) -> Self {
        ObjectChangeTag { etag: Some(etag.into()), version: None }
    }

    /// The state with this version too, if it has one.
    #[must_use]
    pub fn with_version(mut self, version: Option<String>) -> Self {
        self.version = version;
        self
    }

    /// The version, if the store has versions.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Whether the store gives no tags: then nothing can be asked for on condition of one.
    pub fn lacks_etag(&self) -> bool {
        self.etag.is_none()
    }

    /// The ETag, if there is one.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Bytes.
    pub size: u64,
    /// The state.
    pub tag: ObjectChangeTag,
    /// When it was written.
    pub modified: SystemTime,
}

impl From<&object_store::ObjectMeta> for ObjectMeta {
    fn from(meta: &object_store::ObjectMeta) -> Self {
        ObjectMeta {
            size: meta.size,
            tag: ObjectChangeTag { etag: meta.e_tag.clone(), version: meta.version.clone() },
            modified: meta.last_modified.into(),
        }
    }
}
