//! What users may do ("Domain ACLs").

use serde_json::{Value, json};

use super::json::Members;

/// The rights of all users that are not named.
pub const DEFAULT_ACL_USER: &str = "default";

/// A right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclRight {
    /// Make objects, links and attributes.
    Create,
    /// Read.
    Read,
    /// Change values and extents.
    Update,
    /// Delete objects, links and attributes.
    Delete,
    /// See who may do what.
    ReadAcl,
    /// Say who may do what.
    UpdateAcl,
}

impl AclRight {
    /// All rights.
    pub const ALL: [AclRight; 6] =
        [AclRight::Create, AclRight::Read, AclRight::Update, AclRight::Delete, AclRight::ReadAcl, AclRight::UpdateAcl];

    /// The name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            AclRight::Create => "create",
            AclRight::Read => "read",
            AclRight::Update => "update",
            AclRight::Delete => "delete",
            AclRight::ReadAcl => "readACL",
            AclRight::UpdateAcl => "updateACL",
        }
    }
}

/// The rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessRights([bool; 6]);

impl AccessRights {
    /// Everything.
    pub const ALL: AccessRights = AccessRights([true; 6]);
    /// Only reading.
    pub const READ: AccessRights = AccessRights([false, true, false, false, false, false]);

    /// These rights.
    pub fn of_rights(rights: &[AclRight]) -> Self {
        AccessRights(AclRight::ALL.map(|right| rights.contains(&right)))
    }

    /// Whether a right is among them.
    pub fn has(self, right: AclRight) -> bool {
        self.0.get(right as usize).copied().unwrap_or(false)
    }

    /// The rights.
    pub fn rights(self) -> impl Iterator<Item = AclRight> {
        AclRight::ALL.into_iter().filter(move |right| self.has(*right))
    }

    /// The JSON.
    pub fn to_json(self) -> Value {
        AclRight::ALL.into_iter().map(|right| (right.name().to_owned(), json!(self.has(right)))).collect()
    }

    /// The rights that a JSON gives. What is not there is not allowed.
    pub fn from_json(json: &Value) -> Self {
        AccessRights(AclRight::ALL.map(|right| json.get(right.name()).and_then(Value::as_bool).unwrap_or(false)))
    }

    /// The rights of a user with an object, if it has rights; those of nobody named, if the user is not.
    pub fn from_acls_member(members: &Members, user: &str) -> Option<Self> {
        let acls = members.get("acls")?.as_object()?;
        Some(acls.get(user).or(acls.get(DEFAULT_ACL_USER)).map(AccessRights::from_json).unwrap_or_default())
    }
}
