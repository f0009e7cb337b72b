//! The object that describes a domain, or a folder of domains ("Domains").

use serde_json::{Value, json};

use super::LayoutError;
use super::access::{AccessRights, DEFAULT_ACL_USER};
use super::error::Result;
use super::id::DomainId;
use super::json::{Members, json_to_bytes, object_member_or_insert, parse_json_object, text_member};

/// The object that describes a domain, or a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainDocument(Members);

impl DomainDocument {
    /// A domain that is made now (seconds), or a folder if it has no root group. Everybody may read it.
    pub fn new(root: Option<DomainId>, owner: &str, now: f64) -> Self {
        let mut members = Members::new();
        if let Some(root) = root {
            members.insert("root".to_owned(), root.object_id_text(root.root()).into());
        }
        members.insert("owner".to_owned(), owner.into());
        let acls = json!({owner: AccessRights::ALL.to_json(), DEFAULT_ACL_USER: AccessRights::READ.to_json()});
        members.insert("acls".to_owned(), acls);
        members.insert("created".to_owned(), now.into());
        members.insert("lastModified".to_owned(), now.into());
        DomainDocument(members)
    }

    /// The document that the bytes of an object are.
    ///
    /// # Errors
    /// [`LayoutError::Json`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        parse_json_object(bytes).map(DomainDocument)
    }

    /// The bytes of the object.
    pub fn to_bytes(&self) -> Vec<u8> {
        json_to_bytes(&self.0)
    }

    /// The domain of its root group; `None` for a folder.
    ///
    /// # Errors
    /// [`LayoutError::InvalidId`], [`LayoutError::Schema1Id`].
    pub fn domain_id(&self) -> Result<Option<DomainId>> {
        if !self.0.contains_key("root") {
            return Ok(None);
        }
        let root = text_member(&self.0, "root")?;
        match DomainId::parse_object_id(root)? {
            (domain, id) if id == domain.root() => Ok(Some(domain)),
            _ => Err(LayoutError::InvalidId(root.to_owned())),
        }
    }

    /// The same with another root group, changed now (seconds).
    #[must_use]
    pub fn with_domain_id(mut self, root: DomainId, now: f64) -> Self {
        self.0.insert("root".to_owned(), root.object_id_text(root.root()).into());
        self.set_last_modified(now);
        self
    }

    /// Says when the domain was changed (seconds).
    pub fn set_last_modified(&mut self, now: f64) {
        self.0.insert("lastModified".to_owned(), now.into());
    }

    /// What a user may do. A domain without rights gives none.
    pub fn access(&self, user: &str) -> AccessRights {
        AccessRights::from_acls_member(&self.0, user).unwrap_or_default()
    }

    /// The users that have rights, with these.
    pub fn acls(&self) -> Vec<(String, AccessRights)> {
        let acls = self.0.get("acls").and_then(Value::as_object).into_iter().flatten();
        acls.map(|(user, access)| (user.clone(), AccessRights::from_json(access))).collect()
    }

    /// The owner.
    pub fn owner(&self) -> Option<&str> {
        self.0.get("owner").and_then(Value::as_str)
    }

    /// When the domain was made (seconds since 1970), if that is known.
    pub fn created(&self) -> Option<f64> {
        self.0.get("created").and_then(Value::as_f64)
    }

    /// When the domain was changed last (seconds since 1970), if that is known.
    pub fn last_modified(&self) -> Option<f64> {
        self.0.get("lastModified").and_then(Value::as_f64)
    }

    /// Sets the rights of a user; `None` takes them away.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`].
    pub fn set_access(&mut self, user: &str, access: Option<AccessRights>) -> Result<()> {
        let acls = object_member_or_insert(&mut self.0, "acls")?;
        match access {
            Some(access) => drop(acls.insert(user.to_owned(), access.to_json())),
            None => drop(acls.shift_remove(user)),
        }
        Ok(())
    }
}
