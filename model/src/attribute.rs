//! Attributes: small named values on an object.

use crate::{Dataspace, Datatype, Error, Name, ObjectId, Result};

/// A named value on an object. The value is whole, in the file's datatype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeData {
    /// The name.
    pub name: Name,
    /// The type of an element.
    pub datatype: Datatype,
    /// The committed datatype of the same store that is the type, if it is one.
    pub committed_datatype: Option<ObjectId>,
    /// The shape.
    pub dataspace: Dataspace,
    /// The elements, row-major, as stored (heap places for variable-length data).
    pub value: Vec<u8>,
    /// The position in the order of creation, if the object tracks it.
    pub creation_order: Option<u16>,
}

impl AttributeData {
    /// Refuses a name that none can have, and a value that does not fit type and shape. Every store calls it before it sets an attribute.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        if self.name.as_bytes().is_empty() || self.name.as_bytes().contains(&0) {
            return Err(Error::Invalid(format!("{:?} is no name for an attribute", self.name)));
        }
        self.dataspace.check()?;
        let bytes = self.dataspace.element_count().and_then(|n| n.checked_mul(self.datatype.size().into()));
        if bytes == Some(self.value.len() as u64) {
            return Ok(());
        }
        Err(Error::Invalid(format!("the value of attribute {:?} is not of its size", self.name)))
    }
}
