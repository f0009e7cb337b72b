//! What is at a path: an object, or a link that is not followed.

use axum::http::StatusCode;
use h5live::model::{Error as ModelError, Link, LinkTarget, Name};
use h5live::{Error, ErrorKind, File, Group, Object, OpenError, WalkItem};

use super::links::LinkResolution;
use crate::fault::Fault;

/// What is at a path.
#[derive(Debug)]
pub(super) struct ResolvedEntity {
    pub path: String,
    pub entity: Entity,
}

#[derive(Debug)]
pub(super) enum Entity {
    Object(Object),
    Soft(Name),
    External {
        file: Name,
        path: Name,
    },
    /// A link of a class that only its user knows.
    Other,
}

impl ResolvedEntity {
    /// The last part of the path.
    pub fn base_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Whether an error says that a path leads nowhere, or where it must not lead.
fn leads_nowhere(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Store(ModelError::NotFound(_) | ModelError::NoObject(_) | ModelError::WrongKind { .. })
        | ErrorKind::TooManySymbolicLinksInPath
        | ErrorKind::UserDefinedLink(_)
        | ErrorKind::MissingLinkedFile(_)
        | ErrorKind::OtherFile(_) => true,
        ErrorKind::Open(open) => matches!(**open, OpenError::LinkRefused { .. }),
        _ => false,
    }
}

/// A path below another one.
pub(super) fn join(prefix: &str, name: &str) -> String {
    format!("{}/{name}", prefix.trim_end_matches('/'))
}

/// What is at a path of a file that clients call `file_name`.
pub(super) fn find(file: &File, path: &str, links: LinkResolution, file_name: &str) -> Result<ResolvedEntity, Fault> {
    let nowhere = |error: Error| match leads_nowhere(&error) {
        true => Fault::path_not_found(path, file_name),
        false => error.into(),
    };
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() && path.starts_with('/') {
        let entity = Entity::Object(Object::Group(file.root()));
        return Ok(ResolvedEntity { path: path.to_owned(), entity });
    }
    let (parent, name) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
    if name.is_empty() {
        return Err(Fault::path_not_found(path, file_name));
    }
    let parent = if parent.is_empty() { file.root() } else { file.group(parent).map_err(nowhere)? };
    let link = parent.link(name).map_err(nowhere)?.ok_or_else(|| Fault::path_not_found(path, file_name))?;
    let entity = follow(&parent, &link, links, || {
        let target = link_text(&link.target);
        Fault::new(StatusCode::NOT_FOUND, format!("Cannot resolve {target} at {path} of {file_name}"))
    })?;
    Ok(ResolvedEntity { path: path.to_owned(), entity })
}

/// What a link of a group is, or leads to.
pub(super) fn follow(
    group: &Group,
    link: &Link,
    links: LinkResolution,
    unresolved: impl Fn() -> Fault,
) -> Result<Entity, Fault> {
    let name = link.name.to_string();
    if let LinkTarget::Hard(id) = link.target {
        return Ok(Entity::Object(group.object_by_id(id, &name)?));
    }
    if links != LinkResolution::None {
        match group.object(&name) {
            Ok(object) => return Ok(Entity::Object(object)),
            Err(_) if links == LinkResolution::All => return Err(unresolved()),
            Err(_) => {}
        }
    }
    Ok(match &link.target {
        LinkTarget::Soft(path) => Entity::Soft(path.clone()),
        LinkTarget::External { file, path } => Entity::External { file: file.clone(), path: path.clone() },
        _ => Entity::Other,
    })
}

/// A link as h5py shows it.
fn link_text(target: &LinkTarget) -> String {
    match target {
        LinkTarget::Soft(path) => format!("<SoftLink to \"{path}\">"),
        LinkTarget::External { file, path } => format!("<ExternalLink to \"{path}\" in file \"{file}\">"),
        _ => "a link of another class".to_owned(),
    }
}

/// The paths of everything below a group, as a list in JSON.
pub(super) fn paths_json(
    found: &ResolvedEntity,
    links: LinkResolution,
    file_name: &str,
    max_bytes: u64,
) -> Result<String, Fault> {
    let Entity::Object(Object::Group(group)) = &found.entity else {
        return Err(Fault::unprocessable(format!("{} is not a group", found.path)));
    };
    // The walk has paths of the group as it was opened; a link may have led there.
    let start = group.path().trim_end_matches('/').len();
    let mut text = format!("[{}", serde_json::Value::from(&*found.path));
    for item in group.walk().skip(1) {
        let item = item?;
        let below = item.path().get(start..).unwrap_or_default().trim_start_matches('/');
        let path = join(&found.path, below);
        if let (WalkItem::UnfollowedLink { target, .. }, LinkResolution::All) = (&item, links)
            && group.object(below).is_err()
        {
            let message = format!("Cannot resolve {} at {path} of {file_name}", link_text(target));
            return Err(Fault::new(StatusCode::NOT_FOUND, message));
        }
        text.push(',');
        text.push_str(&serde_json::Value::from(path).to_string());
        if text.len() as u64 > max_bytes {
            return Err(Fault::answer_too_large(text.len() as u64, max_bytes));
        }
    }
    text.push(']');
    Ok(text)
}
