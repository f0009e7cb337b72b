//! Paths of archives as paths of objects.
//!
//! A path is split at its slashes; empty names and `.` are left out, as HDF5 does. `..` is a name like any other there.

use std::collections::{HashMap, HashSet};

use h5live::archive::layout::TABLE_GROUP;
use h5live::model::{self, GroupSpec, LinkTarget, Name, NewObject, ObjectId, ObjectKind, ObjectSpec};
use h5live::{Dataset, File, Object};

use super::options::ImportCollisionPolicy;
use crate::count_with_examples::CountWithExamples;
use crate::error::{Result, TarFault};

/// Groups that are known by their path.
const MAX_KNOWN_GROUPS: usize = 4096;

/// The most names that are tried for a path that is taken.
const MAX_SUFFIX: u32 = 1 << 20;

/// The most names of a path: as many as the longest path of a system has.
pub const MAX_PATH_NAMES: usize = 2048;

/// Where contents go.
#[derive(Debug)]
pub enum DatasetPlacement {
    /// A name in a group.
    InGroup(ObjectId, Name),
    /// This object has them already.
    ExistingWithSameContents(ObjectId),
}

/// Why there is no place for a path.
#[derive(Debug)]
pub enum PlacementError {
    /// Something failed.
    Failed(crate::Error),
    /// The path is the cause.
    PathFault(TarFault),
}

impl<E: Into<crate::Error>> From<E> for PlacementError {
    fn from(error: E) -> Self {
        PlacementError::Failed(error.into())
    }
}

/// What belongs to entries that are committed.
#[derive(Debug, Default)]
pub struct KeptObjects {
    /// The paths of entries.
    paths: HashSet<Vec<u8>>,
    /// The datasets of samples.
    objects: HashSet<ObjectId>,
}

impl KeptObjects {
    /// Adds the path of an entry.
    pub fn add_path(&mut self, path: &[u8]) {
        self.paths.insert(split_path(path).join(&b'/'));
    }

    /// Adds the dataset of a sample.
    pub fn add_object(&mut self, id: ObjectId) {
        self.objects.insert(id);
    }
}

/// The groups of a file.
#[derive(Debug)]
pub struct ObjectPlacer {
    file: File,
    /// The groups of paths, and whether one of the names has a suffix.
    known: HashMap<Vec<u8>, (ObjectId, bool)>,
    /// Paths of entries that have no object under them, because they are taken or cannot be.
    pub entries_not_at_own_path: CountWithExamples,
    /// What a continued import found in its tables. Other objects make room.
    committed: Option<KeptObjects>,
}

/// Why a path cannot be that of an object of an archive; `None` if it can be.
pub fn unusable_path_reason(path: &[u8]) -> Option<&'static str> {
    let names = split_path(path);
    match names.first() {
        None => Some("it has no name"),
        Some(_) if names.len() > MAX_PATH_NAMES => Some("it has more than 2048 names"),
        Some(_) if is_reserved(&names) => Some("it is that of the tables of the import"),
        Some(_) => None,
    }
}

/// Whether a path is that of the tables, or below it.
fn is_reserved(names: &[&[u8]]) -> bool {
    names.first() == Some(&TABLE_GROUP.as_bytes())
}

/// The names of a path.
pub fn split_path(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".").collect()
}

impl ObjectPlacer {
    /// Those of a file.
    pub fn new(file: &File) -> Self {
        ObjectPlacer {
            file: file.clone(),
            known: HashMap::new(),
            entries_not_at_own_path: CountWithExamples::default(),
            committed: None,
        }
    }

    /// Says what belongs to entries that are committed. Everything else is left from an import that was interrupted.
    pub fn set_committed(&mut self, committed: KeptObjects) {
        self.committed = Some(committed);
    }

    /// An error of the store.
    pub fn error(&self, error: model::Error) -> crate::Error {
        crate::Error::Store { file: self.file.name().to_owned(), source: error }
    }

    fn child(&self, group: ObjectId, name: &Name) -> Result<Option<LinkTarget>> {
        let link = self.file.store().link(group, name).map_err(|error| self.error(error))?;
        Ok(link.map(|link| link.target))
    }

    /// The group under a name, which is made if nothing is there; `None` if something else is.
    fn child_group(&self, group: ObjectId, name: &Name) -> Result<Option<ObjectId>> {
        match self.child(group, name)? {
            Some(LinkTarget::Hard(id)) => {
                let kind = self.file.store().kind(id).map_err(|error| self.error(error))?;
                Ok((kind == ObjectKind::Group).then_some(id))
            }
            Some(_) => Ok(None),
            None => {
                let spec: ObjectSpec = GroupSpec::default().into();
                let writer = self.file.writer();
                let made = writer.and_then(|writer| writer.create(&NewObject::linked(group, name, &spec)));
                made.map(Some).map_err(|error| self.error(error))
            }
        }
    }

    /// The group of these names, and whether one of them has a suffix: something else has the name, and that may be. `None` if
    /// the path is taken and keeps what it has.
    fn group(
        &mut self,
        path: &[&[u8]],
        on_collision: ImportCollisionPolicy,
    ) -> Result<Option<(ObjectId, bool)>, PlacementError> {
        let key = path.join(&b'/');
        let ends = path.iter().scan(0, |end, name| {
            let this = *end + name.len();
            *end = this + 1;
            Some(this)
        });
        let ends: Vec<usize> = ends.collect();
        let (mut depth, mut found) = (0, (self.file.session().root, false));
        let known = ends.iter().enumerate().rev().find_map(|(at, end)| Some((at, self.known.get(&key[..*end])?)));
        if let Some((at, group)) = known {
            (depth, found) = (at + 1, *group);
        }
        for at in depth..path.len() {
            let is_table = at == 0 && is_reserved(path);
            let Some((id, has_suffix)) = self.group_below(found.0, path[at], is_table, on_collision)? else {
                return Ok(None);
            };
            found = (id, found.1 || has_suffix);
            if self.known.len() >= MAX_KNOWN_GROUPS {
                self.known.clear();
            }
            self.known.insert(key[..ends[at]].to_vec(), found);
        }
        Ok(Some(found))
    }

    /// The group of this name in another, and whether the name has a suffix. `is_table`: the name is that of the tables.
    fn group_below(
        &self,
        parent: ObjectId,
        name: &[u8],
        is_table: bool,
        on_collision: ImportCollisionPolicy,
    ) -> Result<Option<(ObjectId, bool)>, PlacementError> {
        let mut found = if is_table { None } else { self.child_group(parent, &Name::from(name))? };
        let mut suffix = 0;
        while found.is_none() {
            match on_collision {
                ImportCollisionPolicy::Error => return Err(PlacementError::PathFault(TarFault::PathCollision)),
                ImportCollisionPolicy::StoreWithoutPath => return Ok(None),
                ImportCollisionPolicy::AliasIfSameElseSuffix | ImportCollisionPolicy::Suffix => {}
            }
            suffix += 1;
            found = self.child_group(parent, &with_suffix(name, suffix)?)?;
        }
        Ok(found.map(|id| (id, suffix > 0)))
    }

    /// Whether what is under a path is left from an import that was interrupted; then it is removed.
    fn remove_leftover(&self, path: &[&[u8]], group: ObjectId, name: &Name, target: &LinkTarget) -> Result<bool> {
        let Some(committed) = &self.committed else { return Ok(false) };
        let mut full = path.to_vec();
        full.push(name.as_bytes());
        let is_kept = match target {
            LinkTarget::Hard(id) => {
                let kind = self.file.store().kind(*id).map_err(|error| self.error(error))?;
                // Others may be in a group.
                kind == ObjectKind::Group || committed.objects.contains(id)
            }
            _ => false,
        };
        if is_kept || committed.paths.contains(&full.join(&b'/')) {
            return Ok(false);
        }
        let removed = self.file.writer().and_then(|writer| writer.remove_link(group, name));
        removed.map(|()| true).map_err(|error| self.error(error))
    }

    /// Says that what gets this path is no leftover.
    fn keep(&mut self, path: &[&[u8]], name: &Name) {
        if let Some(committed) = &mut self.committed {
            committed.paths.insert([path, &[name.as_bytes()]].concat().join(&b'/'));
        }
    }

    /// The place for a file with a path; `None` if it is taken and keeps what it has.
    ///
    /// # Errors
    /// [`PlacementError`].
    pub fn make_placement(
        &mut self,
        path: &[u8],
        on_collision: ImportCollisionPolicy,
        is_same: &dyn Fn(&Dataset) -> Result<bool>,
    ) -> Result<Option<DatasetPlacement>, PlacementError> {
        let names = split_path(path);
        let fault = |text| PlacementError::PathFault(TarFault::UnusablePath(text));
        let obstacle = unusable_path_reason(path);
        if let Some(text) = obstacle
            && on_collision == ImportCollisionPolicy::Error
        {
            return Err(fault(text));
        }
        // A name with a suffix is none of the tables. The other paths cannot be mended so.
        let Some((last, before)) = names.split_last().filter(|_| obstacle.is_none() || is_reserved(&names)) else {
            return Ok(None);
        };
        if before.len() >= MAX_PATH_NAMES {
            return Ok(None);
        }
        let Some((group, mut is_moved)) = self.group(before, on_collision)? else { return Ok(None) };
        let mut name = Name::from(*last);
        for suffix in 1..MAX_SUFFIX {
            let target = self.child(group, &name)?;
            let is_free = match &target {
                Some(target) => self.remove_leftover(before, group, &name, target)?,
                None => true,
            };
            let Some(target) = target.filter(|_| !is_free) else {
                self.keep(before, &name);
                if is_moved {
                    self.entries_not_at_own_path.add(path);
                }
                return Ok(Some(DatasetPlacement::InGroup(group, name)));
            };
            match on_collision {
                ImportCollisionPolicy::Error => return Err(PlacementError::PathFault(TarFault::PathCollision)),
                ImportCollisionPolicy::StoreWithoutPath => return Ok(None),
                ImportCollisionPolicy::Suffix => {}
                ImportCollisionPolicy::AliasIfSameElseSuffix => {
                    if let LinkTarget::Hard(id) = target
                        && let Object::Dataset(dataset) = self.file.root().object_by_id(id, "")?
                        && is_same(&dataset)?
                    {
                        return Ok(Some(DatasetPlacement::ExistingWithSameContents(id)));
                    }
                }
            }
            name = with_suffix(last, suffix)?;
            is_moved = true;
        }
        Err(fault("too many files have it"))
    }

    /// A place for contents that have none of their own.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn make_placement_by_sample_number(&mut self, group: &str, sample: u64) -> Result<DatasetPlacement> {
        let path: Vec<&[u8]> = split_path(group.as_bytes());
        let mut group = self.file.session().root;
        for name in &path {
            group = self.child_group(group, &Name::from(*name))?.unwrap_or(group);
        }
        let name = Name::from(sample.to_string().as_str());
        if let Some(target) = self.child(group, &name)? {
            self.remove_leftover(&path, group, &name, &target)?;
        }
        Ok(DatasetPlacement::InGroup(group, name))
    }

    /// Makes the group of a folder. Something else under its path stays.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn make_group_if_possible(&mut self, path: &[u8]) -> Result<()> {
        if unusable_path_reason(path).is_some() {
            return Ok(());
        }
        match self.group(&split_path(path), ImportCollisionPolicy::StoreWithoutPath) {
            Ok(_) | Err(PlacementError::PathFault(_)) => Ok(()),
            Err(PlacementError::Failed(error)) => Err(error),
        }
    }

    /// The place of a link; `None` if its path is taken or none.
    fn link_place(&mut self, path: &[u8]) -> Result<Option<(ObjectId, Name)>> {
        match self.make_placement(path, ImportCollisionPolicy::StoreWithoutPath, &|_| Ok(false)) {
            Ok(Some(DatasetPlacement::InGroup(group, name))) => Ok(Some((group, name))),
            Ok(_) | Err(PlacementError::PathFault(_)) => Ok(None),
            Err(PlacementError::Failed(error)) => Err(error),
        }
    }

    fn add_link(&self, (group, name): (ObjectId, Name), target: &LinkTarget) -> Result<()> {
        let added = self.file.writer().and_then(|writer| writer.add_link(group, &name, target));
        added.map_err(|error| self.error(error))
    }

    /// Adds a link to the dataset of another file, if it is there and the path is free.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn add_hard_link_if_possible(&mut self, path: &[u8], target: &[u8]) -> Result<()> {
        // A file of such a path is elsewhere.
        if unusable_path_reason(target).is_some() {
            return Ok(());
        }
        let mut found = self.file.session().root;
        for name in split_path(target) {
            match self.child(found, &Name::from(name))? {
                Some(LinkTarget::Hard(id)) => found = id,
                _ => return Ok(()),
            }
        }
        let kind = self.file.store().kind(found).map_err(|error| self.error(error))?;
        if kind != ObjectKind::Dataset {
            return Ok(());
        }
        match self.link_place(path)? {
            Some(place) => self.add_link(place, &LinkTarget::Hard(found)),
            None => Ok(()),
        }
    }

    /// Adds a soft link, if its target lies in the archive and the path is free.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn add_soft_link_if_possible(&mut self, path: &[u8], target: &[u8]) -> Result<()> {
        let Some(target) = resolve_symlink_target(path, target) else { return Ok(()) };
        match self.link_place(path)? {
            Some(place) => self.add_link(place, &LinkTarget::Soft(Name::from(&*target))),
            None => Ok(()),
        }
    }
}

/// The absolute path of the target of a symbolic link with this path; `None` if it lies outside of the archive, or is that of the
/// tables.
pub fn resolve_symlink_target(path: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let path = split_path(path);
    let target = path.split_last().and_then(|(_, folder)| resolve(folder, target))?;
    (!is_reserved(&split_path(&target))).then_some(target)
}

/// The absolute path of the target of a symbolic link in a folder; `None` if it lies outside of the archive.
fn resolve(folder: &[&[u8]], target: &[u8]) -> Option<Vec<u8>> {
    if target.starts_with(b"/") || target.is_empty() {
        return None;
    }
    let mut path: Vec<&[u8]> = folder.to_vec();
    for name in split_path(target) {
        match name {
            b".." => drop(path.pop()?),
            name => path.push(name),
        }
    }
    Some([b"/", &*path.join(&b'/')].concat())
}

fn with_suffix(name: &[u8], suffix: u32) -> Result<Name, PlacementError> {
    if suffix >= MAX_SUFFIX {
        return Err(PlacementError::PathFault(TarFault::UnusablePath("too many files have it")));
    }
    Ok(Name::from(&*[name, format!("~{suffix}").as_bytes()].concat()))
}
