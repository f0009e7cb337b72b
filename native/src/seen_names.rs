//! Names that a reader has seen in a file that libhdf5 is writing.
//!
//! libhdf5 changes the name indexes of large groups, and of objects with many attributes, in place. For a moment an
//! entry is in neither of two nodes that are both sound. So a name that a reader has seen counts as torn, not as
//! removed, until the attempts are used up. Writers of h5live copy such nodes, so names that they remove are gone at
//! once.

use std::collections::{HashMap, HashSet};

use h5live_format::Addr;
use h5live_model::Name;
use parking_lot::Mutex;

use crate::Error;

/// Most names that are kept.
const MAX_SEEN_NAMES: usize = 1 << 20;

/// The owner of a set of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NameOwner {
    /// The links of the group at this address.
    Links(Addr),
    /// The attributes of the object at this address.
    Attributes(Addr),
}

/// The names that were seen.
#[derive(Debug, Default)]
pub(crate) struct SeenNames(Mutex<SeenNamesState>);

#[derive(Debug, Default)]
struct SeenNamesState {
    names: HashMap<NameOwner, HashSet<Name>>,
    count: usize,
}

impl SeenNames {
    /// These were seen.
    pub fn add_names<'a>(&self, of: NameOwner, seen: impl Iterator<Item = &'a Name>) {
        let SeenNamesState { names, count } = &mut *self.0.lock();
        let names = names.entry(of).or_default();
        for name in seen {
            if *count < MAX_SEEN_NAMES && !names.contains(name) {
                names.insert(name.clone());
                *count += 1;
            }
        }
    }

    /// Whether a name was seen.
    pub fn contains_name(&self, of: NameOwner, name: &Name) -> bool {
        self.0.lock().names.get(&of).is_some_and(|names| names.contains(name))
    }

    /// Whether `found` has all that were seen.
    pub fn is_subset_of(&self, of: NameOwner, found: &HashSet<&Name>) -> bool {
        self.0.lock().names.get(&of).is_none_or(|names| names.iter().all(|name| found.contains(name)))
    }

    /// Only these are there any more.
    pub fn retain_names(&self, of: NameOwner, kept: impl FnMut(&Name) -> bool) {
        let SeenNamesState { names, count } = &mut *self.0.lock();
        let Some(names) = names.get_mut(&of) else { return };
        let before = names.len();
        names.retain(kept);
        *count -= before - names.len();
    }
}

impl NameOwner {
    /// The error of a name that is not there, and should be.
    pub fn missing_name_error(self) -> Error {
        let (NameOwner::Links(header) | NameOwner::Attributes(header)) = self;
        Error::DamagedObject { header, rule: "a name that was there is there" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_until_they_are_known_to_be_gone() {
        let seen = SeenNames::default();
        let (group, other) = (NameOwner::Links(Addr::new(96)), NameOwner::Attributes(Addr::new(96)));
        let [a, b] = ["a", "b"].map(Name::from);
        seen.add_names(group, [&a, &b].into_iter());
        assert!(seen.contains_name(group, &a) && !seen.contains_name(other, &a));
        assert!(!seen.is_subset_of(group, &HashSet::from([&a])) && seen.is_subset_of(other, &HashSet::new()));
        seen.retain_names(group, |name| *name == a);
        assert!(seen.is_subset_of(group, &HashSet::from([&a])) && !seen.contains_name(group, &b));
    }
}
