//! Who may do what in a domain: read and changed, as `h5live acl` does.

use h5live_model::{Location, Mode, OpenError};

use crate::domains::open_engine;
use crate::engine::{DocumentPut, ObjectChangeTag, ObjectEngine, ObjectPut};
use crate::error::{HsdsError, damaged_object_error};
use crate::layout::{AccessRights, AclRight, DEFAULT_ACL_USER, DomainDocument};
use crate::session::{domain_document_key, unix_seconds_now};

/// The object of a domain or a folder, on its engine.
struct OpenDocument {
    engine: Box<dyn ObjectEngine>,
    key: String,
    path: String,
    user: String,
    document: DomainDocument,
    /// The state of the object that was read.
    tag: ObjectChangeTag,
}

impl OpenDocument {
    fn open(at: &Location, mode: Mode) -> Result<Self, OpenError> {
        let (engine, domain, options) = open_engine(at, mode)?;
        let (key, path) = (domain_document_key(&domain), format!("/{domain}"));
        OpenDocument::read(engine, key, path, options.user)
    }

    fn read(engine: Box<dyn ObjectEngine>, key: String, path: String, user: String) -> Result<Self, OpenError> {
        let found = engine.get(&key)?.ok_or_else(|| OpenError::Store(HsdsError::NoDomain(path.clone()).into()))?;
        let document = DomainDocument::parse(&found.bytes).map_err(damaged_object_error(&key))?;
        Ok(OpenDocument { engine, key, path, user, document, tag: found.tag })
    }

    /// Writes the object with other rights of a user, unless somebody has changed it since it was read.
    fn write(mut self, user: &str, access: Option<AccessRights>) -> Result<(), OpenError> {
        self.document.set_access(user, access).map_err(damaged_object_error(&self.key))?;
        self.document.set_last_modified(unix_seconds_now());
        let object = ObjectPut { key: self.key, bytes: self.document.to_bytes() };
        self.engine.put_documents(vec![DocumentPut { object, expected_tag: Some(self.tag) }])?;
        self.engine.close()?;
        Ok(())
    }

    fn check(&self, right: AclRight) -> Result<(), OpenError> {
        if self.user.is_empty() || self.document.access(&self.user).has(right) {
            return Ok(());
        }
        let (user, object) = (self.user.clone(), self.path.clone());
        Err(OpenError::Store(HsdsError::AccessDenied { user, right: right.name(), object }.into()))
    }
}

/// The users that have rights in the domain, or the folder, at a location, with these. A user of the location
/// (`?user=`) who may not see that sees the own rights, and those of everybody.
///
/// # Errors
/// [`OpenError::Store`] if there is no domain, or the user may not read it.
pub fn read_visible_acl(at: &Location) -> Result<Vec<(String, AccessRights)>, OpenError> {
    let open = OpenDocument::open(at, Mode::Read)?;
    open.check(AclRight::Read)?;
    let sees_all = open.check(AclRight::ReadAcl).is_ok();
    let mut users = open.document.acls();
    users.retain(|(user, _)| sees_all || *user == open.user || user == DEFAULT_ACL_USER);
    Ok(users)
}

/// Sets the rights of a user in the domain, or the folder, at a location; `None` takes them away, so that those of
/// everybody count.
///
/// # Errors
/// [`OpenError::Store`] if there is no domain, another process writes it or has just changed it, or the user of the location
/// may not do this.
pub fn set_user_access(at: &Location, user: &str, access: Option<AccessRights>) -> Result<(), OpenError> {
    let open = OpenDocument::open(at, Mode::Write)?;
    open.check(AclRight::UpdateAcl)?;
    open.write(user, access)
}

#[cfg(test)]
mod tests {
    use h5live_model::StoreErrorKind;

    use super::*;
    use crate::engine::MemoryEngine;

    #[test]
    fn rights_that_somebody_has_changed_meanwhile_are_not_overwritten() {
        let (engine, key) = (MemoryEngine::new(), domain_document_key("run"));
        let put = |document: &DomainDocument| {
            engine.put_many(vec![ObjectPut { key: key.clone(), bytes: document.to_bytes() }]).unwrap();
        };
        put(&DomainDocument::new(None, "owner", 1.0));
        let open = || OpenDocument::read(Box::new(engine.clone()), key.clone(), "/run".into(), String::new()).unwrap();
        let (late, mut other) = (open(), open().document);
        other.set_access("one", Some(AccessRights::default())).unwrap();
        put(&other);
        let refused = late.write("two", Some(AccessRights::default())).unwrap_err();
        let OpenError::Store(error) = refused else { panic!("{refused}") };
        assert!(matches!(error.store_error_kind(), Some(StoreErrorKind::Changed(_))), "{error}");
        open().write("two", Some(AccessRights::default())).unwrap();
        let users: Vec<String> = open().document.acls().into_iter().map(|(user, _)| user).collect();
        assert!(["one", "two"].iter().all(|user| users.iter().any(|found| found == user)), "{users:?}");
    }
}
