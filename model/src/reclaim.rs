//! What was deleted, because no path led to it.

use crate::ObjectKind;

/// An object to which no path led, and which was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReclaimedObject {
    /// Where it began, in bytes from the start of the store.
    pub offset: u64,
    /// Its kind; `None` for what was left of an object that had been deleted before.
    pub kind: Option<ObjectKind>,
    /// The bytes that it took, with its raw data.
    pub bytes: u64,
}

/// What was deleted, because no path led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaim {
    /// The objects, first those that existed, by their place.
    pub objects: Vec<ReclaimedObject>,
    /// Bytes of the store before.
    pub before: u64,
    /// Bytes of the store afterwards.
    pub after: u64,
}
