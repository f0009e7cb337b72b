//! Names that a reader has seen in a file that libhdf5 is writing.
//!
//! libhdf5 changes the indexes of names of large groups, and of objects with many attributes, in place: for a moment an
//! entry is in none of two nodes that are both sound. So a name that was there counts as torn, not as gone, until the
//! reader's patience is at its end. Writers of h5live copy such nodes; what they removed is gone at once.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use h5live_format::Addr;
use h5live_model::Name;
use parking_lot::Mutex;

use crate::session::Session;
use crate::{Error, Result};

/// Most names that are kept.
const MOST: usize = 1 << 20;

/// What has names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Names {
    /// Of the links of the group at this address.
    Links(Addr),
    /// Of the attributes of the object at this address.
    Attributes(Addr),
}

/// The names that were seen.
#[derive(Debug, Default)]
pub(crate) struct Sightings(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    names: HashMap<Names, HashSet<Name>>,
    count: usize,
}

impl Sightings {
    fn note<'a>(&self, of: Names, seen: impl Iterator<Item = &'a Name>) {
        let Seen { names, count } = &mut *self.0.lock();
        let names = names.entry(of).or_default();
        for name in seen {
            if *count < MOST && !names.contains(name) {
                names.insert(name.clone());
                *count += 1;
            }
        }
    }

    fn has(&self, of: Names, name: &Name) -> bool {
        self.0.lock().names.get(&of).is_some_and(|names| names.contains(name))
    }

    fn all_in(&self, of: Names, found: &HashSet<&Name>) -> bool {
        self.0.lock().names.get(&of).is_none_or(|names| names.iter().all(|name| found.contains(name)))
    }

    /// Only these are there any more.
    fn keep(&self, of: Names, kept: impl FnMut(&Name) -> bool) {
        let Seen { names, count } = &mut *self.0.lock();
        let Some(names) = names.get_mut(&of) else { return };
        let before = names.len();
        names.retain(kept);
        *count -= before - names.len();
    }
}

impl Names {
    fn vanished(self) -> Error {
        let (Names::Links(header) | Names::Attributes(header)) = self;
        Error::Object { header, rule: "a name that was there is there" }
    }
}

impl Session {
    /// Whether somebody writes the file who may change indexes of names in place. Other programs do not reach a storage
    /// that is no file.
    fn is_written_by_others(&self) -> bool {
        self.follows() && self.lock.lacks_beacon()
    }

    /// What `find` finds under a name.
    ///
    /// # Errors
    /// As `find`.
    pub fn sought<T>(&self, of: Names, name: &Name, mut find: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
        let vanished = Cell::new(false);
        let found = self.patience.retry(|| {
            vanished.set(false);
            let found = find()?;
            if !self.follows() {
                return Ok(found);
            }
            match (found.is_some(), self.sightings.has(of, name)) {
                (true, false) if self.is_written_by_others() => self.sightings.note(of, [name].into_iter()),
                (false, true) if self.is_written_by_others() => {
                    vanished.set(true);
                    return Err(of.vanished());
                }
                _ => {}
            }
            Ok(found)
        });
        match found {
            Err(_) if vanished.get() => {
                self.sightings.keep(of, |kept| kept != name);
                Ok(None)
            }
            found => found,
        }
    }

    /// All that `list` lists, each of which `name_of` tells the name.
    ///
    /// # Errors
    /// As `list`.
    pub fn gathered<T>(
        &self,
        of: Names,
        name_of: impl Fn(&T) -> &Name,
        mut list: impl FnMut(&mut dyn FnMut(T) -> bool) -> Result<()>,
    ) -> Result<Vec<T>> {
        let mut less = None;
        let gathered = self.patience.retry(|| {
            less = None;
            let mut all = Vec::new();
            list(&mut |item| {
                all.push(item);
                true
            })?;
            if !self.is_written_by_others() {
                return Ok(all);
            }
            let names = all.iter().map(&name_of).collect();
            if !self.sightings.all_in(of, &names) {
                drop(names);
                less = Some(all);
                return Err(of.vanished());
            }
            self.sightings.note(of, names.into_iter());
            Ok(all)
        });
        match (gathered, less) {
            (Err(_), Some(all)) => {
                let names: HashSet<_> = all.iter().map(name_of).collect();
                self.sightings.keep(of, |name| names.contains(name));
                Ok(all)
            }
            (gathered, _) => gathered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_until_they_are_known_to_be_gone() {
        let seen = Sightings::default();
        let (group, other) = (Names::Links(Addr::new(96)), Names::Attributes(Addr::new(96)));
        let [a, b] = ["a", "b"].map(Name::from);
        seen.note(group, [&a, &b].into_iter());
        assert!(seen.has(group, &a) && !seen.has(other, &a));
        assert!(!seen.all_in(group, &HashSet::from([&a])) && seen.all_in(other, &HashSet::new()));
        seen.keep(group, |name| *name == a);
        assert!(seen.all_in(group, &HashSet::from([&a])) && !seen.has(group, &b));
    }
}
