//! Paths: from a group along links to an object.

use std::collections::HashSet;
use std::sync::OnceLock;

use h5live_model::{self as model, Link, LinkTarget, Name, NewObject, ObjectId, ObjectKind};
use smallvec::SmallVec;

use crate::error::ErrorKind;
use crate::link_rules::MAX_SYMBOLIC_LINKS_PER_PATH;
use crate::linked_files::{self, OpenFor};
use crate::{Error, File};

/// The object at the end of a path.
pub(crate) struct ResolvedObject {
    pub(crate) file: File,
    pub(crate) id: ObjectId,
    pub(crate) path: String,
}

/// Most paths have few names.
pub(crate) type PathNames = SmallVec<[Name; 2]>;

/// The names of a path.
pub(crate) fn path_names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

/// Sorts links bytewise by name.
pub(crate) fn sort_links_by_name(links: &mut [Link]) {
    // Most names differ in the bytes after those that all have in common; so the names themselves need not be visited.
    let Some(first) = links.first().map(|link| link.name.clone()) else { return };
    let common = |shared: usize, link: &Link| {
        let name = link.name.as_bytes().iter().zip(&first.as_bytes()[..shared]);
        name.take_while(|(a, b)| a == b).count()
    };
    let shared = links.iter().fold(first.as_bytes().len(), common);
    let key = |link: &Link| {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(&link.name.as_bytes()[shared..]).for_each(|(byte, of_name)| *byte = *of_name);
        u64::from_be_bytes(bytes)
    };
    links.sort_by_cached_key(key);
    let alike = links.chunk_by_mut(|a, b| key(a) == key(b));
    alike.for_each(|alike| alike.sort_unstable_by(|a, b| a.name.cmp(&b.name)));
}

/// A path below a group, shown.
pub(crate) fn join_path(group: &str, name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    let mut path = String::with_capacity(group.len() + 1 + name.len());
    path.push_str(group);
    if !group.ends_with('/') {
        path.push('/');
    }
    path.push_str(name);
    path
}

/// The object at a path that starts in a group.
pub(crate) fn find_object(file: &File, group: ObjectId, at: &str, path: &str) -> Result<ResolvedObject, Error> {
    find_object_at_bytes(file, group, at, path.as_bytes())
}

/// As [`find_object`], along names of any bytes.
pub(crate) fn find_object_at_bytes(
    file: &File,
    group: ObjectId,
    at: &str,
    path: &[u8],
) -> Result<ResolvedObject, Error> {
    let shown = join_path(at, &String::from_utf8_lossy(path));
    let mut links = MAX_SYMBOLIC_LINKS_PER_PATH;
    match follow_links(file, group, path, &mut links) {
        Ok((file, id)) => Ok(ResolvedObject { file, id, path: shown }),
        Err(kind) => Err(file.error(Some(&shown), kind)),
    }
}

fn follow_links(file: &File, group: ObjectId, path: &[u8], links: &mut usize) -> Result<(File, ObjectId), ErrorKind> {
    let mut file = file.clone();
    let mut id = if path.starts_with(b"/") { file.session().root } else { group };
    for name in path_names(path) {
        let name = Name::from(name);
        let link = file.store().link(id, &name)?.ok_or_else(|| model::Error::NotFound(name))?;
        let target = match link.target {
            LinkTarget::Hard(target) => {
                id = target;
                continue;
            }
            target => target,
        };
        *links = links.checked_sub(1).ok_or(ErrorKind::TooManySymbolicLinksInPath)?;
        (file, id) = match target {
            LinkTarget::Soft(path) => follow_links(&file, id, path.as_bytes(), links)?,
            LinkTarget::UserDefined { class, .. } => return Err(ErrorKind::UserDefinedLink(class)),
            LinkTarget::External { file: name, path } => {
                let other = linked_files::open_linked(&file, &name, OpenFor::Link)?;
                let other = other.ok_or(ErrorKind::MissingLinkedFile(name))?;
                follow_links(&other, other.session().root, path.as_bytes(), links)?
            }
            LinkTarget::Hard(target) => (file, target),
        };
    }
    Ok((file, id))
}

/// The place of a new object: the part of its path that exists, and the part that does not.
pub(crate) struct NewLinkPath {
    pub(crate) file: File,
    /// The last group that is there.
    group: ObjectId,
    /// Groups on the way that are not there.
    missing_groups: Vec<Name>,
    name: Name,
    /// The topmost link that was made here: its group, and its name. Other threads may have made the groups above.
    made: OnceLock<(ObjectId, Name)>,
}

impl NewLinkPath {
    /// Resolves a path that starts in a group. Creates nothing.
    pub(crate) fn resolve(file: &File, group: ObjectId, path: impl AsRef<[u8]>) -> Result<Self, ErrorKind> {
        let path = path.as_ref();
        let start = if path.starts_with(b"/") { file.session().root } else { group };
        NewLinkPath::resolve_names(file, start, path_names(path).map(Name::from).collect())
    }

    /// As [`NewLinkPath::resolve`], of these names.
    pub(crate) fn resolve_names(file: &File, group: ObjectId, mut names: PathNames) -> Result<Self, ErrorKind> {
        file.writer()?;
        let name = names.pop().ok_or_else(|| model::Error::Invalid("the path names nothing new".into()))?;
        let (mut file, mut id) = (file.clone(), group);
        let mut names = names.into_iter();
        let mut missing = Vec::new();
        for next in names.by_ref() {
            // One look decides: another thread may make the group between two.
            match file.store().link(id, &next)? {
                None => {
                    missing.push(next);
                    break;
                }
                Some(Link { target: LinkTarget::Hard(target), .. }) => id = target,
                Some(_) => (file, id) = follow_links(&file, id, next.as_bytes(), &mut { MAX_SYMBOLIC_LINKS_PER_PATH })?,
            }
        }
        missing.extend(names);
        Ok(NewLinkPath { file, group: id, missing_groups: missing, name, made: OnceLock::new() })
    }

    /// # Errors
    /// [`model::Error::Exists`] if there is a link already.
    pub(crate) fn check_absent(&self) -> Result<(), ErrorKind> {
        match self.missing_groups.is_empty() && self.file.store().link(self.group, &self.name)?.is_some() {
            true => Err(model::Error::Exists(self.name.clone()).into()),
            false => Ok(()),
        }
    }

    /// Whether objects can be made before a link leads to them.
    pub(crate) fn supports_unlinked(&self) -> bool {
        self.file.store().session().capabilities.features.has(model::StoreFeatures::UNLINKED)
    }

    /// Calls `put` to add the last name to its group. Missing groups on the way are created. They appear by one link,
    /// together with their contents, or not at all; one by one in a store that has no objects without links. Groups that
    /// another thread has made meanwhile are used.
    pub(crate) fn add_link_with<T>(&self, put: impl Fn(ObjectId, &Name) -> model::Result<T>) -> Result<T, ErrorKind> {
        let new_groups = &self.file.shared().new_groups;
        let (mut group, mut missing) = (self.group, &self.missing_groups[..]);
        if !missing.is_empty() {
            // Nobody else adds a link meanwhile: what `put` has linked below new groups is never discarded with them.
            let _alone = new_groups.write();
            while let Some((first, others)) = missing.split_first() {
                match self.file.store().link(group, first)? {
                    Some(Link { target: LinkTarget::Hard(id), .. }) => (group, missing) = (id, others),
                    Some(_) => return Err(model::Error::Exists(first.clone()).into()),
                    None => break,
                }
            }
            if let Some(first) = missing.first() {
                let done = self.add_link_below(group, missing, &put)?;
                let _ = self.made.set((group, first.clone()));
                return Ok(done);
            }
        }
        let _shared = new_groups.read();
        Ok(put(group, &self.name)?)
    }

    /// Calls `put` to add the last name below a group, in which the first of some groups is missing.
    fn add_link_below<T>(
        &self,
        group: ObjectId,
        missing: &[Name],
        put: &impl Fn(ObjectId, &Name) -> model::Result<T>,
    ) -> Result<T, ErrorKind> {
        let Some((first, others)) = missing.split_first() else { return Ok(put(group, &self.name)?) };
        let (writer, spec) = (self.file.writer()?, model::ObjectSpec::group());
        let make = |id, name| writer.create(&NewObject::linked(id, name, &spec));
        if !self.supports_unlinked() {
            let top = make(group, first)?;
            let fill = || put(others.iter().try_fold(top, make)?, &self.name);
            return Ok(fill().inspect_err(|_| drop(writer.remove_link(group, first)))?);
        }
        let top = writer.create(&NewObject::unlinked(&spec))?;
        let fill = || -> Result<T, ErrorKind> {
            let done = put(others.iter().try_fold(top, make)?, &self.name)?;
            writer.add_link(group, first, &LinkTarget::Hard(top))?;
            Ok(done)
        };
        fill().inspect_err(|_| drop(writer.discard(top)))
    }

    /// Makes an object there.
    pub(crate) fn create_object(&self, spec: &model::ObjectSpec) -> Result<ObjectId, ErrorKind> {
        self.add_link_with(|group, name| self.file.writer()?.create(&NewObject::linked(group, name, spec)))
    }

    /// Creates a compact dataset there, with its encoded elements.
    pub(crate) fn create_compact_dataset(
        &self,
        spec: &model::ObjectSpec,
        elements: &[u8],
    ) -> Result<ObjectId, ErrorKind> {
        self.add_link_with(|group, name| {
            self.file.writer()?.create(&NewObject::linked(group, name, spec).with_compact_elements(elements))
        })
    }

    /// Adds a link there.
    pub(crate) fn add_link(&self, target: &LinkTarget) -> Result<(), ErrorKind> {
        let group = self.add_link_with(|group, name| {
            self.file.writer()?.add_link(group, name, target)?;
            Ok(group)
        })?;
        // Unless it came with groups.
        let _ = self.made.set((group, self.name.clone()));
        Ok(())
    }

    /// Whether the last group that is there is `top`, or below it.
    fn is_below(&self, top: ObjectId) -> Result<bool, ErrorKind> {
        let store = self.file.store();
        let (mut seen, mut waiting) = (HashSet::from([top]), vec![top]);
        while let Some(id) = waiting.pop() {
            if id == self.group {
                return Ok(true);
            }
            if store.kind(id)? == ObjectKind::Group {
                store.for_each_link(id, &mut |link| {
                    if let LinkTarget::Hard(id) = link.target
                        && seen.insert(id)
                    {
                        waiting.push(id);
                    }
                    true
                })?;
            }
        }
        Ok(false)
    }

    /// Removes the link of [`NewLinkPath::add_link`], with the groups that were made for it.
    pub(crate) fn remove_link(&self) -> Result<(), ErrorKind> {
        let Some((group, name)) = self.made.get() else { return Ok(()) };
        Ok(self.file.writer()?.remove_link(*group, name)?)
    }

    /// Removes the groups that were made for a link, which is not there. What another thread has put into them stays, with
    /// the groups above.
    fn remove_made_groups(&self, last: ObjectId) -> Result<(), ErrorKind> {
        let store = self.file.store();
        let mut has_links = false;
        store.for_each_link(last, &mut |_| {
            has_links = true;
            false
        })?;
        if has_links { Ok(()) } else { self.remove_link() }
    }

    /// Moves a link of the same file there, which leads to `target`.
    pub(crate) fn rename_link(&self, from: (ObjectId, &Name), target: &LinkTarget) -> Result<(), ErrorKind> {
        let store = self.file.store();
        if let LinkTarget::Hard(id) = *target
            && from.0 != self.group
            && store.info(id)?.hard_link_count < 2
            && self.is_below(id)?
        {
            return Err(model::Error::Invalid("a group does not go below itself".into()).into());
        }
        // The object is never below a group to which nothing in the file leads.
        let group = self.add_link_with(|group, _| Ok(group))?;
        let renamed = self.file.writer()?.rename_link(from, (group, &self.name));
        Ok(renamed.inspect_err(|_| drop(self.remove_made_groups(group)))?)
    }
}

/// The group of the last link of a path, and the name of that link. The link will be changed.
pub(crate) fn resolve_last_link(
    file: &File,
    group: ObjectId,
    path: &[u8],
) -> Result<(File, ObjectId, Name), ErrorKind> {
    file.writer()?;
    let mut above: Vec<_> = path_names(path).collect();
    let name = Name::from(above.pop().ok_or_else(|| model::Error::Invalid("the path names no link".into()))?);
    let start = if path.starts_with(b"/") { file.session().root } else { group };
    let (file, id) = follow_links(file, start, &above.join(&b'/'), &mut { MAX_SYMBOLIC_LINKS_PER_PATH })?;
    Ok((file, id, name))
}

/// The group at a path that starts at the root.
pub(crate) fn find_group(file: &File, path: &str) -> Result<ResolvedObject, Error> {
    let found = find_object(file, file.session().root, "/", path)?;
    check_kind(&found, ObjectKind::Group, "group")?;
    Ok(found)
}

/// The group at a path that starts at the root. It is made if it is not there.
pub(crate) fn find_or_create_group(file: &File, path: &str) -> Result<ObjectId, Error> {
    match find_group(file, path) {
        Err(error) if error.is_not_found_in_file() => {
            let make =
                || NewLinkPath::resolve(file, file.session().root, path)?.create_object(&model::ObjectSpec::group());
            make().map_err(|kind| file.error(Some(&join_path("/", path)), kind))
        }
        found => Ok(found?.id),
    }
}

/// Checks what kind of object an identity stands for.
pub(crate) fn check_kind(found: &ResolvedObject, kind: ObjectKind, expected: &'static str) -> Result<(), Error> {
    match found.file.store().kind(found.id) {
        Ok(found) if found == kind => Ok(()),
        Ok(_) => Err(found.file.error(Some(&found.path), model::Error::WrongKind { expected })),
        Err(error) => Err(found.file.error(Some(&found.path), error)),
    }
}
