//! Committed datatypes.

use h5live_model::{Datatype, ObjectId};

use crate::error::ErrorKind;
use crate::path::{self, NewLinkPath};
use crate::{AttributeBuilder, File, Group, Result, attribute};

/// A committed datatype: a datatype that is an object with a link.
#[derive(Debug, Clone)]
pub struct NamedType {
    pub(crate) file: File,
    pub(crate) id: ObjectId,
    pub(crate) path: String,
    pub(crate) datatype: Datatype,
}

impl NamedType {
    /// The type.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The identity of the object in its file.
    pub fn id(&self) -> ObjectId {
        self.id
    }
}

attribute::attributes!(NamedType);

impl Group {
    /// Makes a committed datatype, which datasets and attributes may share as their type.
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub fn commit_datatype(&self, path: &str, datatype: &Datatype) -> Result<NamedType> {
        let shown = path::join_path(self.path(), path);
        let make = || -> Result<_, ErrorKind> {
            let place = NewLinkPath::resolve(self.file(), self.id(), path)?;
            let datatype = place.file.stored_type(datatype);
            let id = place.create_object(&datatype.clone().into())?;
            Ok(NamedType { file: place.file, id, path: shown.clone(), datatype })
        };
        make().map_err(|kind| self.file().error(Some(&shown), kind))
    }
}

impl AttributeBuilder {
    /// The type is a committed one of the same file.
    pub fn committed_datatype(mut self, datatype: &NamedType) -> Self {
        self.datatype = Some(datatype.datatype().clone());
        self.committed = Some(datatype.id());
        self
    }
}
