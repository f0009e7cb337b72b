//! The targets of references: objects, regions, attributes.

use h5live_model::{LinkUse, Name, Referent as Stored, ReferentPart, Selection};

use crate::error::ErrorKind;
use crate::linked_files;
use crate::{Attribute, Dataset, File, Object, Reference, Result};

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
    /// The target of a reference of this file; `None` if the reference is null. Objects are named by their identity,
    /// because they may have many paths.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the reference is damaged or its object is not there any more;
    /// [`ErrorKind::NoExternalFile`] or [`ErrorKind::OtherFile`] if it is in another file that cannot be opened.
    pub fn referent(&self, reference: &Reference) -> Result<Option<ReferenceTarget>> {
        if reference.is_null() {
            return Ok(None);
        }
        let found =
            self.store().referent(reference.kind(), reference.as_bytes()).map_err(|error| self.error(None, error))?;
        let Some(Stored { file, object, part }) = found else { return Ok(None) };
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
            (ReferentPart::Region(_), _) => {
                Err(file.error(None, h5live_model::Error::WrongKind { expected: "dataset" }))
            }
            (ReferentPart::Attribute(name), object) => {
                let attribute = Attribute::open(&file, object.id(), object.path(), &name)?;
                Ok(Some(ReferenceTarget::Attribute(attribute)))
            }
        }
    }

    fn referenced_file(&self, name: &Name) -> Result<File> {
        let found = linked_files::open_linked(self, name, LinkUse::ExternalLink);
        let file = found.and_then(|file| file.ok_or_else(|| ErrorKind::NoExternalFile(name.clone())));
        file.map_err(|error| self.error(None, error))
    }
}
