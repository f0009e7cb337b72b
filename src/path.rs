//! Paths: from a group along links to an object.

use h5live_model::{self as model, LinkTarget, Name, ObjectId, ObjectKind};

use crate::beside::{self, Prefix};
use crate::error::ErrorKind;
use crate::{Error, File};

/// Soft and external links that one path may lead through (libhdf5's default).
pub const MAX_LINKS: usize = 16;

/// An object that a path led to.
pub(crate) struct Found {
    pub(crate) file: File,
    pub(crate) id: ObjectId,
    pub(crate) path: String,
}

/// The names of a path.
pub(crate) fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

/// A path below a group, shown.
pub(crate) fn join(group: &str, name: &str) -> String {
    match name.strip_prefix('/') {
        Some(_) => name.to_owned(),
        None if group.ends_with('/') => format!("{group}{name}"),
        None => format!("{group}/{name}"),
    }
}

/// The object at a path that starts in a group.
pub(crate) fn find(file: &File, group: ObjectId, at: &str, path: &str) -> Result<Found, Error> {
    let shown = join(at, path);
    let mut links = MAX_LINKS;
    match walk(file, group, path.as_bytes(), &mut links) {
        Ok((file, id)) => Ok(Found { file, id, path: shown }),
        Err(kind) => Err(file.error(Some(&shown), kind)),
    }
}

fn walk(file: &File, group: ObjectId, path: &[u8], links: &mut usize) -> Result<(File, ObjectId), ErrorKind> {
    let mut file = file.clone();
    let mut id = if path.starts_with(b"/") { file.store().root() } else { group };
    for name in names(path) {
        let name = Name::from(name);
        let link = file.store().link(id, &name)?.ok_or_else(|| model::Error::NotFound(name))?;
        let target = match link.target {
            LinkTarget::Hard(target) => {
                id = target;
                continue;
            }
            target => target,
        };
        *links = links.checked_sub(1).ok_or(ErrorKind::TooManyLinks)?;
        (file, id) = match target {
            LinkTarget::Soft(path) => walk(&file, id, path.as_bytes(), links)?,
            LinkTarget::UserDefined { class, .. } => return Err(ErrorKind::UserDefinedLink(class)),
            LinkTarget::External { file: name, path } => {
                let other = beside::open(&file, &name, Prefix::ExternalLink);
                let other = other.map_err(|error| ErrorKind::OtherFile(Box::new(error)))?;
                let other = other.ok_or(ErrorKind::NoExternalFile(name))?;
                walk(&other, other.store().root(), path.as_bytes(), links)?
            }
            LinkTarget::Hard(target) => (file, target),
        };
    }
    Ok((file, id))
}

/// Follows a path to its last name, making groups that are not there.
///
/// Returns the group and the last name.
pub(crate) fn parent(file: &File, group: ObjectId, path: &str) -> Result<(File, ObjectId, Name), ErrorKind> {
    let mut names: Vec<_> = names(path.as_bytes()).map(Name::from).collect();
    let last = names.pop().ok_or_else(|| model::Error::Invalid("the path names nothing new".into()))?;
    let mut file = file.clone();
    let mut id = if path.starts_with('/') { file.store().root() } else { group };
    for name in names {
        match walk(&file, id, name.as_bytes(), &mut { MAX_LINKS }) {
            Ok(next) => (file, id) = next,
            Err(ErrorKind::Store(model::Error::NotFound(missing)))
                if missing == name && file.store().link(id, &name)?.is_none() =>
            {
                id = file.store().create(id, &name, &model::ObjectSpec::group())?;
            }
            Err(kind) => return Err(kind),
        }
    }
    Ok((file, id, last))
}

/// The group in which the last link of a path is, and the name of that link.
pub(crate) fn last(file: &File, group: ObjectId, path: &str) -> Result<(File, ObjectId, Name), ErrorKind> {
    let mut above: Vec<_> = names(path.as_bytes()).collect();
    let name = Name::from(above.pop().ok_or_else(|| model::Error::Invalid("the path names no link".into()))?);
    let start = if path.starts_with('/') { file.store().root() } else { group };
    let (file, id) = walk(file, start, &above.join(&b'/'), &mut { MAX_LINKS })?;
    Ok((file, id, name))
}

/// Checks what kind of object an identity stands for.
pub(crate) fn expect(found: &Found, kind: ObjectKind, expected: &'static str) -> Result<(), Error> {
    match found.file.store().kind(found.id) {
        Ok(found) if found == kind => Ok(()),
        Ok(_) => Err(found.file.error(Some(&found.path), model::Error::WrongKind { expected })),
        Err(error) => Err(found.file.error(Some(&found.path), error)),
    }
}
