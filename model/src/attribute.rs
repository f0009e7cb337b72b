//! Attributes: small named values on an object.

use crate::{Dataspace, Datatype, Name, ObjectId};

/// A named value on an object. The value is whole, in the file's datatype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeData {
    /// The name.
    pub name: Name,
    /// The type of an element.
    pub datatype: Datatype,
    /// The committed datatype of the same store that is the type, if it is one.
    pub committed: Option<ObjectId>,
    /// The shape.
    pub dataspace: Dataspace,
    /// The elements, row-major, as stored (heap places for variable-length data).
    pub value: Vec<u8>,
    /// The position in the order of creation, if the object tracks it.
    pub creation_order: Option<u16>,
}
