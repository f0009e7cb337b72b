//! The targets of stored references.

use crate::{Name, ObjectId, Selection};

/// The target of a stored reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referent {
    /// The file of the object, as the reference names it; `None` for the file that holds the reference.
    pub file: Option<Name>,
    /// The object, in its file.
    pub object: ObjectId,
    /// The part of the object.
    pub part: ReferentPart,
}

/// The part of an object to which a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferentPart {
    /// All of it.
    Whole,
    /// Elements of the dataset.
    Region(Selection),
    /// The attribute of this name.
    Attribute(Name),
}
