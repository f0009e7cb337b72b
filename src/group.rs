//! Groups and their links.

use std::borrow::Cow;
use std::fmt;

use h5live_model::{self as model, GroupSpec, Link, LinkTarget, Name, ObjectId, ObjectKind, ObjectScope, ObjectSpec};

use crate::error::ErrorKind;
use crate::path::{self, NewLinkPath, ResolvedObject};
use crate::{Attribute, AttributeValue, File, Result, attribute};

/// A group: names that link to objects.
#[derive(Clone)]
pub struct Group {
    file: File,
    id: ObjectId,
    path: Cow<'static, str>,
}

impl Group {
    pub(crate) fn new(file: File, id: ObjectId, path: impl Into<Cow<'static, str>>) -> Self {
        Group { file, id, path: path.into() }
    }

    pub(crate) fn find(&self, path: &str) -> Result<ResolvedObject> {
        path::find_object(&self.file, self.id, &self.path, path)
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The identity of the group in its file.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The path by which the group was opened.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The group at a path.
    ///
    /// # Errors
    /// As [`Group::object`]; another kind of object is [`model::Error::WrongKind`].
    pub fn group(&self, path: &str) -> Result<Group> {
        let found = self.find(path)?;
        path::check_kind(&found, ObjectKind::Group, "group")?;
        Ok(Group::new(found.file, found.id, found.path))
    }

    /// How the group keeps its links.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the group cannot be read.
    pub fn spec(&self) -> Result<GroupSpec> {
        self.file.store().spec(self.id).and_then(ObjectSpec::into_group).map_err(|error| self.error(error))
    }

    /// Whether there is a link of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the group cannot be read.
    pub fn contains(&self, name: &str) -> Result<bool> {
        Ok(self.link(name)?.is_some())
    }

    /// As [`Group::contains`], for a name that may be other than UTF-8.
    ///
    /// # Errors
    /// As [`Group::contains`].
    pub fn contains_bytes(&self, name: &[u8]) -> Result<bool> {
        let found = self.file.store().link(self.id, &name.into()).map_err(|error| self.error(error))?;
        Ok(found.is_some())
    }

    /// The link of this name, not followed.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the group cannot be read.
    pub fn link(&self, name: &str) -> Result<Option<Link>> {
        self.file.store().link(self.id, &name.into()).map_err(|error| self.error(error))
    }

    /// The links, sorted bytewise by name.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the group cannot be read.
    pub fn links(&self) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        let mut each = |link| {
            links.push(link);
            true
        };
        self.file.store().for_each_link(self.id, &mut each).map_err(|error| self.error(error))?;
        path::sort_links_by_name(&mut links);
        Ok(links)
    }

    /// The names of the links, sorted bytewise.
    ///
    /// # Errors
    /// As [`Group::links`].
    pub fn names(&self) -> Result<Vec<Name>> {
        Ok(self.links()?.into_iter().map(|link| link.name).collect())
    }

    /// Adds a soft link: a path that is resolved when it is followed.
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub fn link_soft(&self, name: &str, target: &str) -> Result<()> {
        self.add_link(name, &LinkTarget::Soft(target.into()))
    }

    /// Adds an external link: a path in another file.
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub fn link_external(&self, name: &str, file: &str, path: &str) -> Result<()> {
        self.add_link(name, &LinkTarget::External { file: file.into(), path: path.into() })
    }

    /// Adds a further name for an object.
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub fn link_hard(&self, name: &str, target: ObjectId) -> Result<()> {
        self.add_link(name, &LinkTarget::Hard(target))
    }

    fn add_link(&self, name: &str, target: &LinkTarget) -> Result<()> {
        self.file
            .writer()
            .and_then(|writer| writer.add_link(self.id, &name.into(), target))
            .map_err(|error| self.error(error))
    }

    /// Removes the link at a path; an object to which none leads any more is deleted.
    ///
    /// Groups that lead to each other in a circle of hard links stay in the file, because each has a link, as with libhdf5.
    /// `h5live check --leaks` shows them, [`repair_and_reclaim_unreachable`](crate::repair_and_reclaim_unreachable()) (`h5live repair --reclaim`) deletes them, and a copy of
    /// the file does not have them.
    ///
    /// # Errors
    /// [`model::Error::NotFound`], [`model::Error::ReadOnly`].
    pub fn unlink(&self, path: &str) -> Result<()> {
        self.unlink_at_bytes(path.as_bytes())
    }

    /// As [`Group::unlink`], along names that may be other than UTF-8, as other programs make them.
    ///
    /// # Errors
    /// As [`Group::unlink`].
    pub fn unlink_at_bytes(&self, path: &[u8]) -> Result<()> {
        let remove = || -> Result<(), ErrorKind> {
            let (file, parent, name) = path::resolve_last_link(&self.file, self.id, path)?;
            file.shared().write_out_variable_length();
            Ok(file.writer()?.remove_link(parent, &name)?)
        };
        remove().map_err(|kind| self.path_error(path, kind))
    }

    /// Moves a link to another path of the same file, in one step. Missing groups on the way to the new path are
    /// created. The object does not change.
    ///
    /// # Errors
    /// [`model::Error::NotFound`]; [`model::Error::Exists`] if the new path is taken; [`model::Error::Invalid`] if the
    /// new path is below the object itself, so that nothing would lead to it any more; [`model::Error::ReadOnly`].
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.rename_at_bytes(from.as_bytes(), to.as_bytes())
    }

    /// As [`Group::rename`], along names that may be other than UTF-8, as other programs make them.
    ///
    /// # Errors
    /// As [`Group::rename`].
    pub fn rename_at_bytes(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let rename = || -> Result<(), ErrorKind> {
            let (file, group, name) = path::resolve_last_link(&self.file, self.id, from)?;
            let link = file.store().link(group, &name)?.ok_or_else(|| model::Error::NotFound(name.clone()))?;
            let place = NewLinkPath::resolve(&self.file, self.id, to)?;
            if !std::ptr::addr_eq(file.store(), place.file.store()) {
                return Err(model::Error::Invalid("a link does not go to another file".into()).into());
            }
            place.rename_link((group, &name), &link.target)
        };
        rename().map_err(|kind| self.path_error(from, kind))
    }

    /// Reads what the writer of a live file has published since the last refresh.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the group cannot be read any more.
    pub fn refresh(&self) -> Result<()> {
        self.file.store().refresh(ObjectScope::Objects(&[self.id])).map_err(|error| self.error(error))
    }

    fn path_error(&self, path: &[u8], kind: ErrorKind) -> crate::Error {
        self.file.error(Some(&path::join_path(&self.path, &String::from_utf8_lossy(path))), kind)
    }

    fn error(&self, error: model::Error) -> crate::Error {
        self.file.error(Some(&self.path), error)
    }
}

impl File {
    /// The root group.
    pub fn root(&self) -> Group {
        Group::new(self.clone(), self.session().root, "/")
    }

    /// The group at a path.
    ///
    /// # Errors
    /// As [`Group::group`].
    pub fn group(&self, path: &str) -> Result<Group> {
        self.root().group(path)
    }

    /// An attribute of the root group.
    ///
    /// # Errors
    /// As [`Group::attribute`].
    pub fn attribute(&self, name: &str) -> Result<Attribute> {
        self.root().attribute(name)
    }

    /// Sets an attribute of the root group.
    ///
    /// # Errors
    /// As [`Group::set_attribute`].
    pub fn set_attribute<T: AttributeValue + ?Sized>(&self, name: &str, value: &T) -> Result<()> {
        self.root().set_attribute(name, value)
    }

    /// Removes the link at a path; an object to which none leads any more is deleted.
    ///
    /// # Errors
    /// As [`Group::unlink`].
    pub fn unlink(&self, path: &str) -> Result<()> {
        self.root().unlink(path)
    }

    /// Moves a link to another path, in one step. The object does not change.
    ///
    /// ```
    /// use h5live::File;
    ///
    /// let file = File::in_memory();
    /// file.set_attribute("run", &7)?;
    /// file.new_dataset::<u8>().shape(&[3]).create("draft")?;
    /// file.rename("draft", "results/final")?;
    /// assert_eq!(file.dataset("results/final")?.shape()?, [3]);
    /// file.unlink("results")?;
    /// assert!(!file.root().contains("results")?);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Group::rename`].
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.root().rename(from, to)
    }
}

attribute::attributes!(Group);

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({}:{})", self.file.name(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_SYMBOLIC_LINKS_PER_PATH;

    #[test]
    fn a_loop_of_soft_links_is_an_error_that_names_the_path() {
        let file = File::in_memory();
        let group = file.create_group("group").unwrap();
        group.link_soft("here", "there").unwrap();
        group.link_soft("there", "/group/here").unwrap();
        let error = file.object("group/here/below").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TooManySymbolicLinksInPath));
        assert_eq!(error.object(), Some("/group/here/below"));
    }

    #[test]
    fn links_get_other_paths_and_go() {
        let file = File::in_memory();
        let root = file.root();
        let id = file.create_group("a/b").unwrap().id();
        root.rename("a/b", "c/d").unwrap();
        assert_eq!(file.group("c/d").unwrap().id(), id);
        assert!(root.group("a").unwrap().names().unwrap().is_empty());
        let error = root.rename("a/b", "new/e").unwrap_err();
        assert!(error.is_not_found_in_file(), "{error}");
        assert!(!root.contains("new").unwrap(), "nothing was made on the way");
        assert!(root.rename("a", "c").is_err());
        file.create_group("c/d/e").unwrap();
        for below in ["c/new", "c/d/new", "c/d/e/x/new"] {
            let error = root.rename("c", below).unwrap_err().to_string();
            assert!(error.ends_with("a group does not go below itself"), "{error}");
        }
        root.rename("c/d/e", "c/e").unwrap();
        root.unlink("c/e").unwrap();
        root.unlink("c/d").unwrap();
        assert!(root.group("c").unwrap().names().unwrap().is_empty());
        assert!(root.unlink("c/d").unwrap_err().is_not_found_in_file());
    }

    #[test]
    fn a_path_leads_through_so_many_links() {
        let file = File::in_memory();
        let root = file.root();
        file.create_group("l0").unwrap();
        for i in 1..=MAX_SYMBOLIC_LINKS_PER_PATH + 1 {
            root.link_soft(&format!("l{i}"), &format!("l{}", i - 1)).unwrap();
        }
        assert_eq!(
            root.group(&format!("l{MAX_SYMBOLIC_LINKS_PER_PATH}")).unwrap().id(),
            root.group("l0").unwrap().id()
        );
        assert!(root.group(&format!("l{}", MAX_SYMBOLIC_LINKS_PER_PATH + 1)).is_err());
    }
}
