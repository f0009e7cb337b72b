//! What stored references refer to.

use crate::{Name, ObjectId, Selection};

/// What a stored reference refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referent {
    /// The file of the object, as the reference names it; `None` for the file that holds the reference.
    pub file: Option<Name>,
    /// The object, in its file.
    pub object: ObjectId,
    /// What of it.
    pub part: ReferentPart,
}

/// What of an object a reference refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferentPart {
    /// All of it.
    Whole,
    /// Elements of the dataset.
    Region(Selection),
    /// The attribute of this name.
    Attribute(Name),
}
