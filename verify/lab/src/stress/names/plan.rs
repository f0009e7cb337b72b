//! The changes of the writers of attributes and links, and the contents of a file after them.

use std::collections::BTreeMap;
use std::path::Path;

use h5live::model::{CreationOrder, LinkOrAttributeStorageSpec, LinkTarget};
use h5live::{File, Group, LibVer};
use serde_json::{Value, json};

use crate::stress::rule::mix;
use h5live_cli::error::Result;
use h5live_cli::error::error_with_causes;
use h5live_cli::open;

/// An attribute of more words than this fits no block of a heap.
const HUGE: u16 = 600;

/// The kind of object that has entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Attributes,
    Links,
}

/// A group with entries that come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    group: &'static str,
    kind: Kind,
    order: CreationOrder,
    /// How many entries there may be: where they are few, they move into the header and out of it.
    entries: u64,
}

const fn place(group: &'static str, kind: Kind, order: CreationOrder, entries: u64) -> Place {
    Place { group, kind, order, entries }
}

const PLACES: [Place; 8] = [
    place("a", Kind::Attributes, CreationOrder::Untracked, 40),
    place("few-a", Kind::Attributes, CreationOrder::Untracked, 12),
    place("l", Kind::Links, CreationOrder::Untracked, 40),
    place("few-l", Kind::Links, CreationOrder::Untracked, 12),
    place("ordered-a", Kind::Attributes, CreationOrder::Indexed, 40),
    place("few-ordered-a", Kind::Attributes, CreationOrder::Indexed, 12),
    place("ordered-l", Kind::Links, CreationOrder::Indexed, 40),
    place("few-ordered-l", Kind::Links, CreationOrder::Indexed, 12),
];
/// The places of files for old programs: groups with symbol tables, and attributes in headers.
const OLD: usize = 4;

/// The words of each entry: a link of one word is a hard link.
type Entries = BTreeMap<u64, u16>;

/// The entries of each place.
pub type Found = Vec<Entries>;

/// A change: the place, the entry, and the words of its contents afterwards (`None`: it is removed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change(usize, u64, Option<u16>);

/// The changes, step after step.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    places: &'static [Place],
    seed: u64,
}

fn name(entry: u64) -> String {
    format!("n{entry}")
}

fn path(entry: u64, words: u16) -> String {
    format!("/{entry}/{}", "word".repeat(words.into()))
}

fn value(entry: u64, words: u16) -> Vec<u64> {
    vec![entry << 32 | u64::from(words); words.into()]
}

impl Plan {
    /// The plan for a file of this profile.
    pub fn new(profile: LibVer, seed: u64) -> Self {
        let places = if profile == LibVer::Earliest { PLACES.get(..OLD) } else { PLACES.get(..) };
        Plan { places: places.unwrap_or_default(), seed }
    }

    /// The plan for this file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: &File, seed: u64) -> Result<Self> {
        let is_new = file.root().contains("ordered-a")?;
        Ok(Plan::new(if is_new { LibVer::default() } else { LibVer::Earliest }, seed))
    }

    /// Makes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(&self, path: &Path, profile: LibVer) -> Result<()> {
        let file = File::options().create().libver(profile).open(path)?;
        file.root().create_group("target")?;
        for (at, place) in self.places.iter().enumerate() {
            let storage = LinkOrAttributeStorageSpec { order: place.order, ..LinkOrAttributeStorageSpec::default() };
            match place.order {
                CreationOrder::Untracked => file.root().create_group(place.group)?,
                _ => file.root().new_group().link_storage(storage).attribute_storage(storage).create(place.group)?,
            };
            for entry in 0..place.entries / 2 {
                self.apply(&file, &Change(at, entry, Some(1)))?;
            }
        }
        Ok(file.close()?)
    }

    /// The contents that [`Plan::create`] has made.
    pub fn at_first(&self) -> Found {
        self.places.iter().map(|place| (0..place.entries / 2).map(|entry| (entry, 1)).collect()).collect()
    }

    /// The changes between two flushes.
    pub fn changes(&self, step: u64) -> Vec<Change> {
        let number = 1 + mix(self.seed ^ mix(step)) % 3;
        let change = |n: u64| {
            let random = mix(self.seed ^ mix(step.wrapping_mul(8).wrapping_add(n + 1)));
            let at = (random % self.places.len() as u64) as usize;
            let place = self.places.get(at)?;
            let words = match (random >> 40) % 16 {
                0..6 => None,
                6 => Some(if place.kind == Kind::Attributes { HUGE } else { 1 }),
                some => Some(1 + (some % 5) as u16),
            };
            Some(Change(at, (random >> 16) % place.entries, words))
        };
        (0..number).filter_map(change).collect()
    }

    /// Makes a change, unless the entry has the wanted state already.
    ///
    /// # Errors
    /// If the file cannot be read or changed.
    pub fn apply(&self, file: &File, &Change(at, entry, words): &Change) -> Result<()> {
        let Some(place) = self.places.get(at) else { return Ok(()) };
        let group = file.group(place.group)?;
        let name = name(entry);
        if place.kind == Kind::Attributes {
            let is_there = group.attribute_names()?.iter().any(|held| *held == *name.as_str());
            return match words {
                Some(words) => {
                    let attribute = group.new_attribute(&name).shape(&[words.into()]);
                    Ok(attribute.write(&value(entry, words))?)
                }
                None if is_there => Ok(group.remove_attribute(&name)?),
                None => Ok(()),
            };
        }
        if group.contains(&name)? {
            group.unlink(&name)?;
        }
        match words {
            Some(1) => Ok(group.link_hard(&name, file.group("target")?.id())?),
            Some(words) => Ok(group.link_soft(&name, &path(entry, words))?),
            None => Ok(()),
        }
    }

    /// Applies the same changes to the known contents of the file.
    pub fn apply_step_to_known(&self, step: u64, found: &mut Found) {
        for Change(at, entry, words) in self.changes(step) {
            if let Some(entries) = found.get_mut(at) {
                match words {
                    Some(words) => entries.insert(entry, words),
                    None => entries.remove(&entry),
                };
            }
        }
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// The part that cannot be read, or that was never written.
    pub fn found(&self, path: &Path) -> Result<Found, String> {
        let file = open::for_reading(path).map_err(|error| error_with_causes(&error))?;
        self.places.iter().map(|place| place.found(&file)).collect()
    }

    /// The fault of the contents after a writer was killed. It had flushed `known` after `flushed_steps` steps.
    pub fn fault(&self, found: &Found, known: &Found, flushed_steps: u64) -> Option<String> {
        let changes = self.changes(flushed_steps);
        for (at, ((found, known), place)) in found.iter().zip(known).zip(self.places).enumerate() {
            for entry in 0..place.entries {
                let words = found.get(&entry).copied();
                // A link is replaced in two steps.
                let is_new = |change: &Change| {
                    change.0 == at
                        && change.1 == entry
                        && (change.2 == words || words.is_none() && place.kind == Kind::Links)
                };
                if words != known.get(&entry).copied() && !changes.iter().any(is_new) {
                    let (group, known) = (place.group, known.get(&entry));
                    return Some(format!("{group}: n{entry} has {words:?} words instead of {known:?}; {changes:?}"));
                }
            }
        }
        None
    }

    /// The fault of what a recovery has made of `before`, where a writer was killed after `flushed_steps` steps. It may finish what
    /// the writer had begun, because a redo record has it; it undoes nothing.
    pub fn recovery_fault(&self, before: &Found, after: &Found, flushed_steps: u64) -> Option<String> {
        let changes = self.changes(flushed_steps);
        for (at, ((before, after), place)) in before.iter().zip(after).zip(self.places).enumerate() {
            for entry in 0..place.entries {
                let (was, is) = (before.get(&entry).copied(), after.get(&entry).copied());
                let of_entry: Vec<_> = changes.iter().filter(|change| (change.0, change.1) == (at, entry)).collect();
                let made = of_entry.iter().rposition(|change| change.2 == was).map_or(0, |last| last + 1);
                // A link is replaced in two steps.
                let is_next = |change: &&Change| change.2 == is || is.is_none() && place.kind == Kind::Links;
                if was != is && !of_entry.into_iter().skip(made).any(|change| is_next(&change)) {
                    return Some(format!("{}: n{entry} had {was:?} words, and has {is:?}; {changes:?}", place.group));
                }
            }
        }
        None
    }

    /// The names in each group, for another program.
    pub fn entries(&self, found: &Found) -> Value {
        let names = |(place, entries): (&Place, &Entries)| {
            let names: Vec<_> = entries.keys().map(|entry| name(*entry)).collect();
            json!([place.group, place.kind == Kind::Links, place.order == CreationOrder::Indexed, names])
        };
        self.places.iter().zip(found).map(names).collect()
    }
}

impl Place {
    fn found(&self, file: &File) -> Result<Entries, String> {
        let group = file.group(self.group).map_err(|error| error_with_causes(&error))?;
        let entries = match self.kind {
            Kind::Attributes => attributes(&group),
            Kind::Links => links(file, &group),
        };
        let entries = entries.map_err(|error| format!("{}: {}", self.group, error_with_causes(&error)))?;
        let mut found = Entries::new();
        for (name, words) in entries {
            let entry = name.strip_prefix('n').and_then(|number| number.parse().ok());
            match entry.and_then(|entry: u64| Some((entry, words(entry)?))) {
                Some((entry, words)) if found.insert(entry, words).is_none() => {}
                _ => return Err(format!("{}: {name} is not what anybody wrote", self.group)),
            }
        }
        Ok(found)
    }
}

/// A name, and a function that returns the number of words of an entry's contents, if they are its contents.
type Named = (String, Box<dyn Fn(u64) -> Option<u16>>);

fn attributes(group: &Group) -> h5live::Result<Vec<Named>> {
    let named = |attribute: h5live::Attribute| {
        let words: Vec<u64> = attribute.read()?;
        let len = u16::try_from(words.len()).ok();
        let is: Box<dyn Fn(u64) -> Option<u16>> = Box::new(move |entry| len.filter(|len| words == value(entry, *len)));
        Ok((attribute.name().to_string(), is))
    };
    group.attributes()?.into_iter().map(named).collect()
}

fn links(file: &File, group: &Group) -> h5live::Result<Vec<Named>> {
    let target = file.group("target")?.id();
    let named = |link: h5live::model::Link| {
        let is: Box<dyn Fn(u64) -> Option<u16>> = match link.target {
            LinkTarget::Hard(id) => Box::new(move |_| (id == target).then_some(1)),
            LinkTarget::Soft(text) => Box::new(move |entry| {
                let words = text.to_string().matches("word").count().try_into().ok()?;
                (text.to_string() == path(entry, words)).then_some(words)
            }),
            _ => Box::new(|_| None),
        };
        (link.name.to_string(), is)
    };
    Ok(group.links()?.into_iter().map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_the_plan_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.h5");
        for profile in [LibVer::default(), LibVer::Earliest] {
            let plan = Plan::new(profile, 7);
            plan.create(&path, profile).unwrap();
            let mut known = plan.at_first();
            let file = File::options().write().open(&path).unwrap();
            for step in 0..60 {
                plan.changes(step).iter().for_each(|change| plan.apply(&file, change).unwrap());
                plan.apply_step_to_known(step, &mut known);
            }
            file.close().unwrap();
            let found = plan.found(&path).unwrap();
            assert_eq!(found, known);
            assert_eq!(plan.fault(&found, &known, 60), None);
            let mut lost = found.clone();
            let (gone, _) = lost[0].pop_first().unwrap();
            assert_eq!(plan.fault(&lost, &known, 60).is_none(), plan.changes(60).contains(&Change(0, gone, None)));
        }
    }

    #[test]
    fn a_recovery_may_finish_a_step_and_undoes_none() {
        let plan = Plan::new(LibVer::default(), 7);
        let mut before = plan.at_first();
        let mut forwards = 0;
        for step in 0..200 {
            let mut after = before.clone();
            plan.apply_step_to_known(step, &mut after);
            assert_eq!(plan.recovery_fault(&before, &after, step), None);
            assert_eq!(plan.recovery_fault(&after, &after, step), None);
            if before != after {
                forwards += 1;
                assert!(plan.recovery_fault(&after, &before, step).is_some(), "{:?}", plan.changes(step));
                assert!(plan.recovery_fault(&before, &after, step + 1000).is_some());
            }
            before = after;
        }
        assert!(forwards > 100);
    }
}
