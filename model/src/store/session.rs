//! What a session is and what it can do, as data.

use crate::{Capabilities, Location, Mode, ObjectId, ReferenceKind};

/// A session on a store: [`Store::session`](crate::Store::session). It stays the same until the session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The name of the kind of store, as `native`.
    pub connector: &'static str,
    /// Where the store is, if it is anywhere that another process could find it.
    pub location: Option<Location>,
    /// What the session may do.
    pub mode: Mode,
    /// The group from which paths start.
    pub root: ObjectId,
    /// Sizes of elements that lead elsewhere.
    pub forms: ElementForms,
    /// What the session can do.
    pub capabilities: Capabilities,
    /// How the container was made: what only stores of the same kind understand.
    pub settings: Settings,
}

impl Session {
    /// A session that knows only what every session has. `root` is the group from which paths start.
    pub fn new(connector: &'static str, mode: Mode, root: ObjectId, capabilities: Capabilities) -> Self {
        Session {
            connector,
            location: None,
            mode,
            root,
            forms: ElementForms::default(),
            capabilities,
            settings: Settings::default(),
        }
    }
}

/// The sizes of stored elements that lead elsewhere (bytes). [`Datatype::with_forms`](crate::Datatype::with_forms)
/// makes a type fit a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementForms {
    /// A variable-length element.
    pub vlen: u32,
    /// A reference to an object ([`ReferenceKind::Object1`]).
    pub object: u32,
    /// A reference to a region ([`ReferenceKind::Region1`]).
    pub region: u32,
    /// A reference of the kinds of HDF5 1.12.
    pub standard: u32,
}

impl ElementForms {
    /// The sizes in an HDF5 file whose addresses have `bytes` bytes.
    pub const fn with_offset_size(bytes: u32) -> Self {
        // A count and a place in a heap (address and number); an address; a place in a heap; two bytes of a header, a
        // length, and a place in a heap.
        ElementForms { vlen: bytes + 8, object: bytes, region: bytes + 4, standard: bytes + 10 }
    }

    /// Bytes of a reference of a kind.
    pub const fn reference(&self, kind: ReferenceKind) -> u32 {
        match kind {
            ReferenceKind::Object1 => self.object,
            ReferenceKind::Region1 => self.region,
            ReferenceKind::Object2 | ReferenceKind::Region2 | ReferenceKind::Attribute => self.standard,
        }
    }
}

impl Default for ElementForms {
    /// As in an HDF5 file with addresses of 8 bytes.
    fn default() -> Self {
        ElementForms::with_offset_size(8)
    }
}

/// Named values as text, in the order in which they were set. Which names there are, and what they mean, is the affair
/// of one kind of store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Sets a value in place of one of the same name.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_replaces_the_one_of_the_same_name() {
        let mut settings = Settings::default();
        assert!(settings.is_empty());
        settings.set("page_size", 4096);
        settings.set("persist", true);
        settings.set("page_size", 8192);
        assert_eq!(settings.iter().collect::<Vec<_>>(), [("page_size", "8192"), ("persist", "true")]);
        assert_eq!(settings.get("persist"), Some("true"));
        assert_eq!(settings.get("threshold"), None);
    }
}
