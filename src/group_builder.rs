//! Descriptions of groups to be made.

use h5live_model::{CreationOrder, GroupSpec, LinkOrAttributeStorageSpec, ObjectSpec};

use crate::error::ErrorKind;
use crate::path::{self, NewLinkPath};
use crate::{File, Group, Result};

/// A group to be made, by [`Group::new_group`].
///
/// ```
/// use h5live::File;
/// use h5live::model::CreationOrder;
///
/// let file = File::in_memory();
/// let steps = file.root().new_group().link_order(CreationOrder::Indexed).create("steps")?;
/// steps.create_group("second")?;
/// steps.create_group("first")?;
/// assert_eq!(steps.link("first")?.and_then(|link| link.creation_order), Some(1));
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a group is made by `create`"]
pub struct GroupBuilder {
    group: Group,
    spec: GroupSpec,
    attributes: LinkOrAttributeStorageSpec,
    times: bool,
}

impl GroupBuilder {
    pub(crate) fn new(group: Group) -> Self {
        GroupBuilder {
            group,
            spec: GroupSpec::default(),
            attributes: LinkOrAttributeStorageSpec::default(),
            times: false,
        }
    }

    /// Whether the order in which links are added is kept.
    pub fn link_order(mut self, order: CreationOrder) -> Self {
        self.spec.link_storage.order = order;
        self
    }

    /// How links are kept.
    pub fn link_storage(mut self, storage: LinkOrAttributeStorageSpec) -> Self {
        self.spec.link_storage = storage;
        self
    }

    /// How attributes are kept.
    pub fn attribute_storage(mut self, storage: LinkOrAttributeStorageSpec) -> Self {
        self.attributes = storage;
        self
    }

    /// It is kept when the group was touched.
    pub fn track_times(mut self) -> Self {
        self.times = true;
        self
    }

    /// Makes the group, and the groups above it that are not there, which are like any others.
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub fn create(self, path: &str) -> Result<Group> {
        let spec = ObjectSpec { attribute_storage: self.attributes, track_times: self.times, ..self.spec.into() };
        let shown = path::join_path(self.group.path(), path);
        let make = || -> Result<_, ErrorKind> {
            let place = NewLinkPath::resolve(self.group.file(), self.group.id(), path)?;
            let id = place.create_object(&spec)?;
            Ok((place.file, id))
        };
        match make() {
            Ok((file, id)) => Ok(Group::new(file, id, shown)),
            Err(kind) => Err(self.group.file().error(Some(&shown), kind)),
        }
    }
}

impl Group {
    /// Makes a group, and the groups above it that are not there.
    ///
    /// # Errors
    /// [`model::Error::Exists`](h5live_model::Error::Exists) if the name is taken, [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly).
    pub fn create_group(&self, path: &str) -> Result<Group> {
        self.new_group().create(path)
    }

    /// A description of a new group.
    pub fn new_group(&self) -> GroupBuilder {
        GroupBuilder::new(self.clone())
    }
}

impl File {
    /// Makes a group, and the groups above it that are not there.
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub fn create_group(&self, path: &str) -> Result<Group> {
        self.root().create_group(path)
    }
}
