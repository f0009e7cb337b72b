//! Moving a domain to another path of its bucket.
//!
//! Objects carry the identity of the root group, and not the path: only the object of the domain moves. It is written at the
//! new path before it is deleted at the old one. A move that was killed in between leaves both, which have the same objects;
//! the same move again ends it.

use h5live_model::{Location, Mode, OpenError};

use super::removal::{check_user, read_document};
use super::{open_engine, open_other};
use crate::engine::{DocumentPut, ObjectEngine, ObjectPut};
use crate::error::{HsdsError, damaged_object_error};
use crate::layout::{AclRight, DomainDocument, DomainId};
use crate::open_domain::{check_create_right, parents};
use crate::session::{domain_document_key, unix_seconds_now};

/// Moves the domain at a location to another path of its bucket, and returns this path. If `to` ends in a slash, it is the
/// folder into which the domain moves. Folders that are missing are made.
///
/// # Errors
/// [`OpenError::Store`] if no domain is there, something is at the new path, another process writes one of the two, or the
/// user of the location may not do this.
pub fn move_domain(at: &Location, to: &str) -> Result<String, OpenError> {
    let (from, domain, options) = open_engine(at, Mode::Write)?;
    let document = read_document(&*from, &domain)?;
    let key = domain_document_key(&domain);
    let Some(root) = document.domain_id().map_err(damaged_object_error(&key))? else {
        return Err(OpenError::Store(HsdsError::FolderNotMovable(format!("/{domain}")).into()));
    };
    check_user(&document, &options.user, AclRight::Delete, &format!("/{domain}"))?;
    let name = domain.rsplit('/').next().unwrap_or_default();
    let to = match to.strip_suffix('/') {
        Some(folder) => format!("{folder}/{name}"),
        None => to.to_owned(),
    };
    let to = to.trim_start_matches('/').to_owned();
    if to == domain {
        return Err(OpenError::Store(HsdsError::AlreadyExists(format!("/{to}")).into()));
    }
    let user = Some(options.user.as_str()).filter(|user| !user.is_empty());
    check_create_right(&*from, user, &to)?;
    let target = open_other(at, &to, Mode::CreateNew)?;
    match put_domain(&*from, &*target, document, root, &to) {
        Ok(()) => target.close()?,
        Err(error) => {
            // What is there now stays.
            let _ = target.close_never_created();
            return Err(OpenError::Store(error));
        }
    }
    from.delete_many(&[key])?;
    from.sync()?;
    from.release_claim(&root.key_prefix_without_slash())?;
    from.close_after_deletion()?;
    Ok(format!("/{to}"))
}

/// Writes the object of the domain at its new path, unless it is there already.
fn put_domain(
    from: &dyn ObjectEngine,
    target: &dyn ObjectEngine,
    mut document: DomainDocument,
    root: DomainId,
    to: &str,
) -> h5live_model::Result<()> {
    let key = domain_document_key(to);
    if let Some(found) = target.get(&key)? {
        let there = DomainDocument::parse(&found.bytes)
            .and_then(|there| there.domain_id())
            .map_err(damaged_object_error(&key))?;
        return if there == Some(root) { Ok(()) } else { Err(HsdsError::AlreadyExists(format!("/{to}")).into()) };
    }
    // Whoever looks for objects to which no domain leads must not miss both paths.
    from.claim(&root.key_prefix_without_slash())?;
    for parent in parents(to) {
        let key = domain_document_key(&parent);
        if target.get(&key)?.is_none() {
            let folder = DomainDocument::new(None, document.owner().unwrap_or("admin"), unix_seconds_now());
            target.put_many(vec![ObjectPut { key, bytes: folder.to_bytes() }])?;
        }
    }
    document.set_last_modified(unix_seconds_now());
    let object = ObjectPut { key, bytes: document.to_bytes() };
    target.put_documents(vec![DocumentPut { object, expected_tag: None }])?;
    target.sync()
}
