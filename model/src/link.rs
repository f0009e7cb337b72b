//! Links: the named edges of the object graph.

use crate::{Name, ObjectId};

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// An object of the same store.
    Hard(ObjectId),
    /// A path in the same store, resolved when it is followed.
    Soft(Name),
    /// A path in another file.
    External {
        /// The other file, as the link names it.
        file: Name,
        /// The path in it.
        path: Name,
    },
    /// A link of a class (64 to 255) that only its user knows.
    UserDefined {
        /// The link class.
        class: u8,
        /// Its data.
        data: Vec<u8>,
    },
}

/// A link of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name, without slashes.
    pub name: Name,
    /// The target.
    pub target: LinkTarget,
    /// The position in the order of creation, if the group tracks it.
    pub creation_order: Option<i64>,
}
