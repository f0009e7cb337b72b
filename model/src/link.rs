//! Links: the named edges of the object graph.

use crate::{Error, Name, ObjectId, Result};

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

impl Name {
    /// Refuses what cannot be the name of a link. Every store calls it before it adds one.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_as_link_name(&self) -> Result<()> {
        match self.as_bytes() {
            b"" | b"." => Err(Error::Invalid(format!("{self:?} is no name for a link"))),
            bytes if bytes.contains(&b'/') || bytes.contains(&0) => {
                Err(Error::Invalid(format!("{self:?} has a slash or a NUL in it")))
            }
            _ => Ok(()),
        }
    }
}
