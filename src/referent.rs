//! From references to their targets (objects, regions, attributes), and back.

use h5live_model::{self as model, Name, ObjectId, ReferenceKind, Referent, ReferentPart, Selection, UNLIMITED};

use crate::error::ErrorKind;
use crate::linked_files::{self, OpenFor};
use crate::{Attribute, Dataset, File, Object, Reference, Result, Select};

/// The target of a reference.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReferenceTarget {
    /// An object.
    Object(Object),
    /// Elements of a dataset.
    Region(Dataset, Selection),
    /// An attribute.
    Attribute(Attribute),
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
        let found =
            self.store().referent(reference.kind(), reference.as_bytes()).map_err(|error| self.error(None, error))?;
        let here = found.filter(|referent| referent.file.is_none()).map(|referent| referent.object);
        let id = here.filter(|id| self.store().kind(*id).is_ok());
        id.map(|id| self.root().object_by_id(id, &id.to_string())).transpose()
    }

    /// The target of a reference of this file; `None` if the reference is null. Objects are named by their identity,
    /// because they may have many paths.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the reference is damaged or its object is not there any more;
    /// [`ErrorKind::MissingLinkedFile`] or [`ErrorKind::OtherFile`] if it is in another file that cannot be opened.
    pub fn reference_target(&self, reference: &Reference) -> Result<Option<ReferenceTarget>> {
        if reference.is_null() {
            return Ok(None);
        }
        let found =
            self.store().referent(reference.kind(), reference.as_bytes()).map_err(|error| self.error(None, error))?;
        let Some(Referent { file, object, part }) = found else { return Ok(None) };
        let file = match &file {
            None => self.clone(),
            Some(name) => self.referenced_file(name)?,
        };
        let object = file.root().object_by_id(object, &object.to_string())?;
        match (part, object) {
            (ReferentPart::Whole, object) => Ok(Some(ReferenceTarget::Object(object))),
            (ReferentPart::Region(selection), Object::Dataset(dataset)) => {
                Ok(Some(ReferenceTarget::Region(dataset, selection)))
            }
            (ReferentPart::Region(_), _) => Err(file.error(None, model::Error::WrongKind { expected: "dataset" })),
            (ReferentPart::Attribute(name), object) => {
                let attribute = Attribute::open(&file, object.id(), object.path(), &name)?;
                Ok(Some(ReferenceTarget::Attribute(attribute)))
            }
        }
    }

    fn referenced_file(&self, name: &Name) -> Result<File> {
        let found = linked_files::open_linked(self, name, OpenFor::Link);
        let file = found.and_then(|file| file.ok_or_else(|| ErrorKind::MissingLinkedFile(name.clone())));
        file.map_err(|error| self.error(None, error))
    }
}

fn object_reference(file: &File, id: ObjectId, path: Option<&str>) -> Result<Reference> {
    let to = Referent { file: None, object: id, part: ReferentPart::Whole };
    new_reference(file, path, ReferenceKind::Object1, to)
}

impl File {
    /// As [`Object::reference`], to an object that need not be opened.
    ///
    /// # Errors
    /// As [`Object::reference`]; [`ErrorKind::Store`](crate::ErrorKind::Store) if there is no such object.
    pub fn reference_to(&self, id: ObjectId) -> Result<Reference> {
        object_reference(self, id, None)
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
        new_reference(self.file(), Some(self.path()), kind, Referent { file: None, object: self.id(), part })
    }

    /// A reference to the object, for elements of datasets and attributes of its file.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store has no references.
    pub fn reference(&self) -> Result<Reference> {
        object_reference(self.file(), self.id(), Some(self.path()))
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
    /// let Some(ReferenceTarget::Region(found, selection)) = file.reference_target(&found)? else { panic!("a region") };
    /// assert_eq!((found.id(), selection), (data.id(), Selection::block(&[2], &[3])));
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Selection`](crate::ErrorKind::Selection) if the selection does not fit the dataset,
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store has no references to regions.
    pub fn region_reference(&self, selection: impl Select) -> Result<Reference> {
        let dims = self.shape()?;
        let error = |error| self.file().error(Some(self.path()), error);
        let selection = selection.resolve(&dims).and_then(|found| found.into_selection(&dims)).map_err(error)?;
        let selection = clip_blocks(selection, &dims);
        selection.bind(&dims).map_err(error)?;
        let to = Referent { file: None, object: self.id(), part: ReferentPart::Region(selection) };
        new_reference(self.file(), Some(self.path()), ReferenceKind::Region1, to)
    }
}

fn new_reference(file: &File, path: Option<&str>, kind: ReferenceKind, to: Referent) -> Result<Reference> {
    let form = model::ReferenceType { kind, size: file.session().vlen_and_reference_sizes.reference_size(kind) };
    let bytes = file.encode_reference(&form, &to).map_err(|error| file.error(path, error))?;
    Ok(Reference::new(kind, &bytes))
}

/// The selection, with its blocks cut to the dataset.
fn clip_blocks(selection: Selection, dims: &[u64]) -> Selection {
    let Selection::Hyperslab(mut slab) = selection else { return selection };
    for (i, dim) in dims.iter().enumerate() {
        let (Some(start), Some(stride)) = (slab.start.get(i), slab.stride.get(i)) else { continue };
        let rest = dim.saturating_sub(*start);
        slab.block.iter_mut().skip(i).take(1).filter(|block| **block == UNLIMITED).for_each(|block| *block = rest);
        let steps = rest.div_ceil((*stride).max(1));
        slab.count.iter_mut().skip(i).take(1).filter(|count| **count == UNLIMITED).for_each(|count| *count = steps);
    }
    Selection::Hyperslab(slab)
}
