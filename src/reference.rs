//! References: values that lead to objects.

use h5live_model::{self as model, Datatype, ElementForms, ReferenceKind, ReferentPart, Selection, UNLIMITED};
use smallvec::SmallVec;

use crate::convert::{ConvertError, class};
use crate::types::{H5Type, Heap};
use crate::{Dataset, File, Object, Result, Select};

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
            _ => Err(ConvertError::Class { file: class(file), memory: "a reference" }),
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
            return Err(ConvertError::Class { file: "reference of another kind", memory: "a reference" });
        }
        if self.bytes.len() != element.len() {
            return Err(ConvertError::Truncated { expected: element.len(), found: self.bytes.len() });
        }
        element.copy_from_slice(&self.bytes);
        Ok(())
    }
}

impl File {
    /// The object to which a reference of this file leads; `None` if the reference is null or the object is deleted. A
    /// reference to a region or an attribute leads to the object that has it. The object is named by its identity,
    /// because it may have many paths.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the object cannot be read or the store does not know the kind.
    pub fn dereference(&self, reference: &Reference) -> Result<Option<Object>> {
        if reference.is_null() {
            return Ok(None);
        }
        let found = self.store().referent(reference.kind, &reference.bytes).map_err(|error| self.error(None, error))?;
        let here = found.filter(|referent| referent.file.is_none()).map(|referent| referent.object);
        let id = here.filter(|id| self.store().kind(*id).is_ok());
        id.map(|id| self.root().object_by_id(id, &id.to_string())).transpose()
    }
}

impl Object {
    /// A reference of the kinds of HDF5 1.12 (`H5T_STD_REF`) to the object, or to its attribute of this name.
    ///
    /// # Errors
    /// As [`Object::reference`].
    pub fn std_reference(&self, attribute: Option<&str>) -> Result<Reference> {
        let (kind, part) = match attribute {
            None => (ReferenceKind::Object2, ReferentPart::Whole),
            Some(name) => (ReferenceKind::Attribute, ReferentPart::Attribute(name.into())),
        };
        new_reference(self.file(), self.path(), kind, model::Referent { file: None, object: self.id(), part })
    }

    /// A reference to the object, for elements of datasets and attributes of its file.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store has no references.
    pub fn reference(&self) -> Result<Reference> {
        let to = model::Referent { file: None, object: self.id(), part: ReferentPart::Whole };
        new_reference(self.file(), self.path(), ReferenceKind::Object1, to)
    }
}

impl Dataset {
    /// A reference to elements of the dataset, for elements of datasets and attributes of its file.
    ///
    /// ```
    /// use h5live::{Datatype, File, Reference, ReferenceTarget, Selection, Value};
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<u8>().shape(&[9]).create("data")?;
    /// let region = data.region_reference(2..5)?;
    /// let of = Reference::datatype_of(region.kind());
    /// file.root().new_attribute("interesting").datatype(of).write(&[region])?;
    /// let found = file.attribute("interesting")?.read_scalar::<Reference>()?;
    /// let Some(ReferenceTarget::Region(found, selection)) = file.referent(&found)? else { panic!("a region") };
    /// assert_eq!((found.id(), selection), (data.id(), Selection::block(&[2], &[3])));
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Selection`](crate::ErrorKind::Selection) if the selection does not fit the dataset,
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store has no references to regions.
    pub fn region_reference(&self, selection: impl Select) -> Result<Reference> {
        let dims = self.shape()?;
        let selection = clip_blocks(selection.selection(dims.len()), &dims);
        selection.bind(&dims).map_err(|error| self.file().error(Some(self.path()), error))?;
        let to = model::Referent { file: None, object: self.id(), part: ReferentPart::Region(selection) };
        new_reference(self.file(), self.path(), ReferenceKind::Region1, to)
    }
}

impl Reference {
    /// The type of elements that are references of a kind.
    pub fn datatype_of(kind: ReferenceKind) -> Datatype {
        Datatype::Reference(model::ReferenceType { kind, size: ElementForms::default().reference(kind) })
    }
}

fn new_reference(file: &File, path: &str, kind: ReferenceKind, to: model::Referent) -> Result<Reference> {
    let form = model::ReferenceType { kind, size: file.session().forms.reference(kind) };
    let bytes =
        file.writer().and_then(|writer| writer.reference(&form, &to)).map_err(|error| file.error(Some(path), error))?;
    Ok(Reference::new(kind, &bytes))
}

/// The selection, with its blocks cut to the dataset.
fn clip_blocks(selection: Selection, dims: &[u64]) -> Selection {
    let Selection::Hyperslab(mut slab) = selection else { return selection };
    for (i, dim) in dims.iter().enumerate() {
        if let (Some(block), Some(start)) = (slab.block.get_mut(i), slab.start.get(i))
            && *block == UNLIMITED
        {
            *block = dim.saturating_sub(*start);
        }
    }
    Selection::Hyperslab(slab)
}
