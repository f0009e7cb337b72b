//! References: values that lead to objects.

use std::fmt;

use h5live_model::{self as model, Datatype, ReferenceKind, VlenAndReferenceSizes};
use smallvec::SmallVec;

use crate::convert::{ConvertError, class};
use crate::types::{ConversionContext, H5Type};

/// A reference to an object, a region of a dataset, or an attribute, as the file has it (format specification 4.0,
/// IV.A.2.d "Reference"). It means something in its file only:
/// [`File::dereference`](crate::File::dereference).
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

    /// The kind of its target.
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

    /// The type of elements that are references of a kind.
    pub fn datatype_of(kind: ReferenceKind) -> Datatype {
        Datatype::Reference(model::ReferenceType { kind, size: VlenAndReferenceSizes::default().reference_size(kind) })
    }
}

impl fmt::Display for Reference {
    /// Its stored form in hexadecimal, since what it leads to is known in its file only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
        Datatype::Reference(model::ReferenceType { kind: ReferenceKind::Object1, size: 8 })
    }

    fn placeholder() -> Self {
        Reference::default()
    }

    fn decoder(file: &Datatype) -> Result<ReferenceKind, ConvertError> {
        match file {
            Datatype::Reference(reference) => Ok(reference.kind),
            _ => Err(ConvertError::Class { file: class(file), memory: "reference" }),
        }
    }

    fn decode(
        decoder: &ReferenceKind,
        element: &[u8],
        into: &mut Self,
        _heap: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        *into = Reference::new(*decoder, element);
        Ok(())
    }

    fn encoder(file: &Datatype) -> Result<ReferenceKind, ConvertError> {
        Self::decoder(file)
    }

    fn encode(
        &self,
        encoder: &ReferenceKind,
        element: &mut [u8],
        _heap: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        if self.is_null() {
            element.fill(0);
            return Ok(());
        }
        if self.kind != *encoder {
            return Err(ConvertError::Class { file: "reference of another kind", memory: "reference" });
        }
        if self.bytes.len() != element.len() {
            return Err(ConvertError::Truncated { expected: element.len(), found: self.bytes.len() });
        }
        element.copy_from_slice(&self.bytes);
        Ok(())
    }
}
