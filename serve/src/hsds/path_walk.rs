//! Objects by their paths, as HSDS finds them: soft and external links are followed only if the request says so.

use std::collections::VecDeque;

use h5live::Object;
use h5live::model::LinkTarget;

use super::call::Call;
use super::faults::{bad_request, not_found};
use super::opened_domain::OpenedDomain;
use crate::catalog::Named;
use crate::fault::Fault;
use crate::state::AppState;

/// Soft and external links that one path leads through, at most.
const MAX_LINKS: usize = 64;

/// Which links are followed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FollowedLinks {
    pub soft: bool,
    pub external: bool,
}

/// What is at a path.
pub(super) struct FoundObject {
    pub object: Object,
    /// The domain where it is, if that is another one.
    pub other: Option<OpenedDomain>,
}

impl FollowedLinks {
    pub fn of(call: &Call) -> Self {
        FollowedLinks { soft: call.flag("follow_soft_links"), external: call.flag("follow_external_links") }
    }
}

/// The object at a path that begins at the group of this identity, or else at the root.
///
/// # Errors
/// 404 if it is not there, 400 if a link leads there that is not to be followed.
pub(super) fn find(
    state: &AppState,
    domain: &OpenedDomain,
    start: Option<&str>,
    path: &str,
    follow: FollowedLinks,
) -> Result<FoundObject, Fault> {
    let start = match start.filter(|_| !path.starts_with('/')) {
        Some(id) => domain.group(id)?,
        None => domain.file().root(),
    };
    let mut found = FoundObject { object: Object::Group(start), other: None };
    let mut parts: VecDeque<String> = names(path).collect();
    let mut left = MAX_LINKS;
    while let Some(name) = parts.pop_front() {
        let Object::Group(group) = &found.object else {
            return Err(not_found(format!("{path}: what is before {name:?} is not a group")));
        };
        let link = group.link(&name)?.ok_or_else(|| not_found(format!("{path}: there is no link {name:?}")))?;
        let target = match link.target {
            LinkTarget::Hard(_) => {
                found.object = group.object(&name)?;
                continue;
            }
            _ if left == 0 => return Err(bad_request(format!("{path}: too many links lead one to the other"))),
            LinkTarget::Soft(_) if !follow.soft => {
                return Err(bad_request(format!(
                    "{path}: {name:?} is a soft link, and follow_soft_links is not given"
                )));
            }
            LinkTarget::External { .. } if !follow.external => {
                let text = format!("{path}: {name:?} is an external link, and follow_external_links is not given");
                return Err(bad_request(text));
            }
            LinkTarget::Soft(target) => target.to_string(),
            LinkTarget::External { file, path } => {
                let here = found.other.as_ref().unwrap_or(domain);
                let other = linked_domain(state, here, &file.to_string())?;
                found.object = Object::Group(other.file().root());
                found.other = Some(other);
                path.to_string()
            }
            _ => return Err(not_found(format!("{path}: {name:?} is a link that only its user knows"))),
        };
        left -= 1;
        if target.starts_with('/') {
            found.object = Object::Group(found.other.as_ref().unwrap_or(domain).file().root());
        }
        names(&target).rev().for_each(|part| parts.push_front(part));
    }
    Ok(found)
}

/// The names of a path.
fn names(path: &str) -> impl DoubleEndedIterator<Item = String> + '_ {
    path.split('/').filter(|name| !name.is_empty() && *name != ".").map(str::to_owned)
}

/// The domain to which an external link leads: by its whole path, or beside the domain that has the link.
fn linked_domain(state: &AppState, from: &OpenedDomain, file: &str) -> Result<OpenedDomain, Fault> {
    let file = file.strip_prefix("hdf5:/").unwrap_or(file);
    let name = match file.starts_with('/') {
        true => file.to_owned(),
        false => format!("{}/{file}", from.name.rsplit_once('/').map_or("", |(folder, _)| folder)),
    };
    match state.catalog.find(&name)? {
        Named::Store(place) => OpenedDomain::open(state, &name, &place),
        Named::Folder(_) | Named::Roots => Err(bad_request(format!("{name} is a folder"))),
    }
}
