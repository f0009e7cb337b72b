//! References: values that lead to objects.

use h5live_model::{self as model, Datatype, ReferenceKind};
use smallvec::SmallVec;

use crate::convert::{ConvertError, class};
use crate::types::{H5Type, Heap};
use crate::{File, Object, Result};

/// A reference to an object, a region of a dataset, or an attribute, as the file has it (format specification 4.0,
/// IV.A.2.d "Reference"). It means something in its file only: [`File::dereference`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    kind: ReferenceKind,
    bytes: SmallVec<[u8; 16]>,
}

impl Reference {
    /// The reference of this kind that a file stores as these bytes.
    pub fn new(kind: ReferenceKind, bytes: &[u8]) -> Self {
        Reference { kind, bytes: bytes.into() }
    }

    /// What it refers to.
    pub fn kind(&self) -> ReferenceKind {
        self.kind
    }

    /// Its stored form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it refers to nothing: all its bytes are zero.
    pub fn is_null(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }
}

impl Default for Reference {
    /// A null reference to an object.
    fn default() -> Self {
        Reference::new(ReferenceKind::Object1, &[0; 8])
    }
}

impl H5Type for Reference {
    type Decoder = ReferenceKind;
    type Encoder = ReferenceKind;

    fn datatype() -> Datatype {
        Datatype::Reference(model::Reference { kind: ReferenceKind::Object1, size: 8 })
    }

    fn placeholder() -> Self {
        Reference::default()
    }

    fn decoder(file: &Datatype) -> Result<ReferenceKind, ConvertError> {
        match file {
            Datatype::Reference(reference) => Ok(reference.kind),
            _ => Err(ConvertError::Class { file: class(file), memory: "a Reference" }),
        }
    }

    fn decode(decoder: &ReferenceKind, element: &[u8], into: &mut Self, _heap: Heap<'_>) -> Result<(), ConvertError> {
        *into = Reference::new(*decoder, element);
        Ok(())
    }

    fn encoder(file: &Datatype) -> Result<ReferenceKind, ConvertError> {
        Self::decoder(file)
    }

    fn encode(&self, encoder: &ReferenceKind, element: &mut [u8], _heap: Heap<'_>) -> Result<(), ConvertError> {
        if self.is_null() {
            element.fill(0);
            return Ok(());
        }
        if self.kind != *encoder {
            return Err(ConvertError::Class { file: "reference of another kind", memory: "a Reference" });
        }
        if self.bytes.len() != element.len() {
            return Err(ConvertError::Truncated { expected: element.len(), found: self.bytes.len() });
        }
        element.copy_from_slice(&self.bytes);
        Ok(())
    }
}

impl File {
    /// The object that a reference of this file leads to; `None` if it is null, or the object is gone. Of a reference
    /// to a region or an attribute, the object that has it. It is called by its identity, for it may have many paths.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the object cannot be read or the store does not know the kind.
    pub fn dereference(&self, reference: &Reference) -> Result<Option<Object>> {
        if reference.is_null() {
            return Ok(None);
        }
        let id = self.store().dereference(reference.kind, &reference.bytes).map_err(|error| self.error(None, error))?;
        id.map(|id| self.root().object_by_id(id, &id.to_string())).transpose()
    }
}

impl Object {
    /// A reference to the object, for elements of datasets and attributes of its file.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store has no references.
    pub fn reference(&self) -> Result<Reference> {
        let file = self.file();
        let form = model::Reference { kind: ReferenceKind::Object1, size: 8 };
        let to = model::Referent { file: None, object: self.id(), part: model::ReferentPart::Whole };
        let bytes = file.store().reference(&form, &to).map_err(|error| file.error(Some(self.path()), error))?;
        Ok(Reference::new(ReferenceKind::Object1, &bytes))
    }
}
