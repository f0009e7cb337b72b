//! Objects of any kind, by path or identity.

use h5live_model::{ObjectId, ObjectKind, ObjectSpec};

use crate::path::{self, ResolvedObject};
use crate::{Dataset, File, Group, NamedType, Result, UntypedMap};

/// An object that a path leads to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Object {
    /// A group.
    Group(Group),
    /// A dataset.
    Dataset(Dataset),
    /// A committed datatype.
    Datatype(NamedType),
    /// A map.
    Map(UntypedMap),
}

impl Object {
    pub(crate) fn open(found: ResolvedObject) -> Result<Object> {
        let ResolvedObject { file, id, path } = found;
        let error = |error| file.error(Some(&path), error);
        Ok(match file.store().kind(id).map_err(error)? {
            ObjectKind::Group => Object::Group(Group::new(file, id, path)),
            ObjectKind::Dataset => Object::Dataset(Dataset::open(file, id, path)?),
            ObjectKind::Datatype => {
                let datatype = file.store().spec(id).and_then(ObjectSpec::into_datatype).map_err(error)?;
                Object::Datatype(NamedType { file, id, path, datatype })
            }
            ObjectKind::Map => Object::Map(UntypedMap::open(file, id, path)?),
        })
    }

    /// The identity of the object in its file: the same for every path that leads to it.
    pub fn id(&self) -> ObjectId {
        match self {
            Object::Group(group) => group.id(),
            Object::Dataset(dataset) => dataset.id(),
            Object::Datatype(datatype) => datatype.id(),
            Object::Map(map) => map.id(),
        }
    }

    /// The file of the object. It may be another file, after an external link.
    pub fn file(&self) -> &File {
        match self {
            Object::Group(group) => group.file(),
            Object::Dataset(dataset) => dataset.file(),
            Object::Datatype(datatype) => &datatype.file,
            Object::Map(map) => map.file(),
        }
    }

    /// The path by which the object was opened.
    pub fn path(&self) -> &str {
        match self {
            Object::Group(group) => group.path(),
            Object::Dataset(dataset) => dataset.path(),
            Object::Datatype(datatype) => datatype.path(),
            Object::Map(map) => map.path(),
        }
    }
}

impl Group {
    /// The object at a path, which starts here, or at the root if it begins with a slash. Soft links are followed.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if a name on the path is not there or cannot be read,
    /// [`ErrorKind::TooManySymbolicLinksInPath`](crate::ErrorKind::TooManySymbolicLinksInPath) for a loop of soft links.
    pub fn object(&self, path: &str) -> Result<Object> {
        Object::open(self.find(path)?)
    }

    /// The object with an identity, such as the target of a hard link; it is called by the name of the link.
    ///
    /// # Errors
    /// As [`Group::object`].
    pub fn object_by_id(&self, id: ObjectId, shown_path: &str) -> Result<Object> {
        Object::open(ResolvedObject { file: self.file().clone(), id, path: path::join_path(self.path(), shown_path) })
    }

    /// The dataset at a path.
    ///
    /// # Errors
    /// As [`Group::group`].
    pub fn dataset(&self, path: &str) -> Result<Dataset> {
        let found = self.find(path)?;
        Dataset::open(found.file, found.id, found.path)
    }
}

impl File {
    /// The object at a path whose names may be other than UTF-8, as other programs make them.
    ///
    /// # Errors
    /// As [`Group::object`].
    pub fn object_at_bytes(&self, path: &[u8]) -> Result<Object> {
        Object::open(path::find_object_at_bytes(self, self.session().root, "/", path)?)
    }

    /// The object at a path.
    ///
    /// # Errors
    /// As [`Group::object`].
    pub fn object(&self, path: &str) -> Result<Object> {
        self.root().object(path)
    }

    /// The dataset at a path.
    ///
    /// # Errors
    /// As [`Group::dataset`].
    pub fn dataset(&self, path: &str) -> Result<Dataset> {
        let found = path::find_object(self, self.session().root, "/", path)?;
        Dataset::open(found.file, found.id, found.path)
    }
}
