//! Deleting a domain, or an empty folder of domains.

use h5live_model::{Error as ModelError, Location, Mode, OpenError};
use parking_lot::Mutex;

use super::{Result, open_engine};
use crate::engine::ObjectEngine;
use crate::error::{HsdsError, damaged_object_error};
use crate::layout::{AclRight, DomainDocument, DomainId, LayoutError};
use crate::session::domain_document_key;

/// Objects of domains that are read in one wave.
const DOMAINS_AT_ONCE: usize = 1024;
/// Objects that are deleted in one wave.
const DELETED_AT_ONCE: usize = 4096;

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovedDomain {
    /// The path in the bucket, with a slash in front.
    pub path: String,
    /// Whether it was a folder of domains.
    pub is_folder: bool,
    /// The objects that were deleted, without that of the domain.
    pub deleted_object_count: u64,
    /// Their bytes.
    pub deleted_bytes: u64,
    /// Another domain that has the same objects, which stay for it.
    pub objects_kept_for: Option<String>,
}

/// Deletes the domain, or the folder without content, at a location. The object of the domain goes first, so that nothing
/// opens that is incomplete: if this process is killed then, the objects are those of a lost domain.
///
/// # Errors
/// [`OpenError::Store`] if nothing is there, another process writes the domain, the user of the location may not delete it,
/// or the folder has content.
pub fn remove_domain_or_empty_folder(at: &Location) -> Result<RemovedDomain, OpenError> {
    let (engine, domain, options) = open_engine(at, Mode::Write)?;
    let key = domain_document_key(&domain);
    let path = format!("/{domain}");
    let document = read_document(&*engine, &domain)?;
    check_user(&document, &options.user, AclRight::Delete, &path)?;
    let Some(root) = document.domain_id().map_err(damaged_object_error(&key))? else {
        if engine
            .folder_names(&format!("{domain}/"))?
            .iter()
            .any(|name| !name.starts_with(crate::layout::OWN_NAME_PREFIX))
        {
            return Err(OpenError::Store(HsdsError::FolderNotEmpty(path).into()));
        }
        engine.delete_many(&[key])?;
        engine.close_after_deletion()?;
        return Ok(RemovedDomain { path, is_folder: true, ..RemovedDomain::default() });
    };
    // Whoever makes a domain of these objects claims them, too.
    engine.claim(&root.key_prefix_without_slash())?;
    let kept_for = other_domain(&*engine, root, &key)?;
    engine.delete_many(&[key])?;
    engine.sync()?;
    let mut removed = RemovedDomain { path, objects_kept_for: kept_for, ..RemovedDomain::default() };
    if removed.objects_kept_for.is_none() {
        delete_objects(&*engine, root, &mut removed)?;
    }
    engine.release_claim(&root.key_prefix_without_slash())?;
    engine.close_after_deletion()?;
    Ok(removed)
}

fn delete_objects(engine: &dyn ObjectEngine, root: DomainId, removed: &mut RemovedDomain) -> Result<()> {
    let listed = engine.list(&format!("{}/", root.key_prefix_without_slash()))?;
    let listed = listed.into_iter().filter(|object| !object.key.ends_with(crate::engine::BUCKET_CLAIM_FILE));
    let mut keys = Vec::new();
    for object in listed {
        removed.deleted_object_count += 1;
        removed.deleted_bytes = removed.deleted_bytes.saturating_add(object.size);
        keys.push(object.key);
    }
    keys.chunks(DELETED_AT_ONCE).try_for_each(|keys| engine.delete_many(keys))
}

/// The object of a domain, or of a folder.
///
/// # Errors
/// [`HsdsError::NoDomain`], [`HsdsError::DamagedObject`], and those of the engine.
pub(super) fn read_document(engine: &dyn ObjectEngine, domain: &str) -> Result<DomainDocument> {
    let key = domain_document_key(domain);
    let found = engine.get(&key)?.ok_or_else(|| HsdsError::NoDomain(format!("/{domain}")))?;
    DomainDocument::parse(&found.bytes).map_err(damaged_object_error(&key))
}

/// Refuses what a user may not do; without a user everything is allowed.
///
/// # Errors
/// [`HsdsError::AccessDenied`].
pub(super) fn check_user(document: &DomainDocument, user: &str, right: AclRight, path: &str) -> Result<()> {
    if user.is_empty() || document.access(user).has(right) {
        return Ok(());
    }
    Err(HsdsError::AccessDenied { user: user.to_owned(), right: right.name(), object: path.to_owned() }.into())
}

/// Another domain of the bucket that has these objects: the service can make one, and a move that was killed leaves one.
///
/// # Errors
/// [`HsdsError::DamagedObject`] if the object of a domain is damaged: nobody knows which objects it names. Those of the engine.
fn other_domain(engine: &dyn ObjectEngine, root: DomainId, own_key: &str) -> Result<Option<String>> {
    let keys = engine.all_domain_document_keys()?;
    for keys in keys.chunks(DOMAINS_AT_ONCE) {
        let other = Mutex::new(None);
        engine.get_many(keys, &|number, found| {
            let (Some(key), Some(found)) = (keys.get(number).filter(|key| *key != own_key), found) else {
                return Ok(());
            };
            match DomainDocument::parse(&found.bytes).and_then(|document| document.domain_id()) {
                Ok(named) if named == Some(root) => {
                    *other.lock() = Some(format!("/{}", key.rsplit_once('/').map_or("", |(path, _)| path)));
                }
                // Its objects are not below the prefixes of this schema.
                Ok(_) | Err(LayoutError::Schema1Id(_)) => {}
                Err(error) => return Err(damaged_object_error(key)(error)),
            }
            Ok::<_, ModelError>(())
        })?;
        if let Some(other) = other.into_inner() {
            return Ok(Some(other));
        }
    }
    Ok(None)
}
