//! What nothing in a store leads to, and its deletion.

use std::fmt;

use crate::{ObjectId, ObjectKind};

/// An object or other data of a store to which nothing leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// Where it is.
    pub place: LeakLocation,
    /// Its kind; `None` for data that is no object, and for what was left of an object that had been deleted before.
    pub kind: Option<ObjectKind>,
    /// The bytes that it takes, with its raw data.
    pub bytes: u64,
}

/// Where something is to which nothing leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeakLocation {
    /// In bytes from the start of a file.
    ObjectHeaderOffset(u64),
    /// The records of an object.
    Object(ObjectId),
    /// The data of a variable-length element, under this UUID.
    Blob([u8; 16]),
    /// The objects of an object store that belong to one domain, which is not there.
    LostDomain {
        /// What the keys of the objects have in common: sixteen hexadecimal digits.
        prefix: u64,
        /// How many objects there are.
        objects: u64,
    },
}

/// What was deleted, because no path led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReclaimReport {
    /// The objects and other data, first those that existed, by their place.
    pub deleted_leaks: Vec<Leak>,
    /// Bytes of the store before.
    pub size_before: u64,
    /// Bytes of the store afterwards.
    pub size_after: u64,
}

impl fmt::Display for LeakLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeakLocation::ObjectHeaderOffset(offset) => write!(f, "at {offset:#x}"),
            LeakLocation::Object(id) => write!(f, "with the identity {id}"),
            LeakLocation::Blob(uuid) => {
                f.write_str("with the UUID ")?;
                uuid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            LeakLocation::LostDomain { prefix, objects } => {
                let noun = if *objects == 1 { "object" } else { "objects" };
                write!(f, "with the prefix {:08x}-{:08x}, {objects} {noun}", prefix >> 32, prefix & 0xffff_ffff)
            }
        }
    }
}
