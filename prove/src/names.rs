//! Attributes and links that come and go: the changes of the writer, and the states that may be found after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use h5live::{File, Group, Result};
use h5live_model::{CreationOrder, EntryStorage, LinkTarget};

use crate::observer::explain;
use crate::{Workload, WriterRecorder, WriterSetup};

/// The kind of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The attributes of a group.
    Attributes,
    /// The links of a group: those of one word are hard links, others soft ones.
    Links,
}

/// A step of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The entry with this number gets a value of this many words.
    Put(u8, u16),
    /// The entry of this number goes.
    Remove(u8),
    /// The changes are flushed.
    Flush,
}

/// Entries of a group that come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// Their kind.
    pub kind: Kind,
    /// How the group keeps them.
    pub order: CreationOrder,
    /// How many there are at first, each of one word.
    pub start: u8,
    /// Their changes.
    pub changes: &'static [Change],
}

/// The words of each entry.
type State = BTreeMap<u8, u16>;

/// The entry that the next writer adds, and its words.
const LAST: (u8, u16) = (250, 3);

/// Records a writer that changes the entries of a group.
pub fn names(setup: WriterSetup, names: Names) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let storage = EntryStorage { order: names.order, ..EntryStorage::default() };
    let root = lab.file().root();
    let made = root.create_group("t").and_then(|_| match names.order {
        CreationOrder::Untracked => root.create_group("g"),
        _ => root.new_group().link_storage(storage).attribute_storage(storage).create("g"),
    });
    let group = made.expect("a group can be made");
    (0..names.start).for_each(|number| names.put(&group, number, 1).expect("an entry can be made"));
    lab.start_trace(0);
    for what in ["n.issued", "n.flushed", "n.durable"] {
        lab.mark_count(what, 0);
    }
    for (number, change) in (1..).zip(names.changes) {
        lab.mark_count("n.issued", number);
        match *change {
            Change::Flush => lab.file().flush(),
            Change::Put(entry, words) => names.put(&group, entry, words),
            Change::Remove(entry) => names.remove(&group, entry),
        }
        .expect("entries of a file in memory can be changed");
        if *change == Change::Flush {
            lab.mark_flushed("n", number);
        }
    }
    drop((group, root));
    Workload { names: Some(names), ..lab.finish_after(3) }
}

fn name(entry: u8) -> String {
    format!("n{entry}")
}

/// The target of a soft link of this many words.
fn path(entry: u8, words: u16) -> String {
    format!("/{entry}/{}", "word".repeat(words.into()))
}

/// The words of an attribute.
fn value(entry: u8, words: u16) -> Vec<u64> {
    vec![u64::from(entry) << 32 | u64::from(words); words.into()]
}

impl Names {
    fn put(&self, group: &Group, entry: u8, words: u16) -> Result<()> {
        match (self.kind, words) {
            (Kind::Attributes, _) => {
                let attribute = group.new_attribute(&name(entry)).shape(&[words.into()]);
                attribute.write(&value(entry, words))
            }
            (Kind::Links, 1) => group.link_hard(&name(entry), group.file().group("t")?.id()),
            (Kind::Links, _) => group.link_soft(&name(entry), &path(entry, words)),
        }
    }

    fn remove(&self, group: &Group, entry: u8) -> Result<()> {
        match self.kind {
            Kind::Attributes => group.remove_attribute(&name(entry)),
            Kind::Links => group.unlink(&name(entry)),
        }
    }

    /// The entries after this many steps.
    fn state(&self, steps: u64) -> State {
        let mut state: State = (0..self.start).map(|entry| (entry, 1)).collect();
        for change in self.changes.iter().take(usize::try_from(steps).unwrap_or(usize::MAX)) {
            match *change {
                Change::Put(entry, words) => drop(state.insert(entry, words)),
                Change::Remove(entry) => drop(state.remove(&entry)),
                Change::Flush => {}
            }
        }
        state
    }

    /// The entries of a file.
    fn found(&self, file: &File) -> Result<State, String> {
        let error_text = |error: h5live::Error| explain(&error);
        let group = file.group("g").map_err(error_text)?;
        let mut found = State::new();
        let mut add = |name: &str, words: &mut dyn FnMut(u8) -> Option<u16>| {
            let entry = name.strip_prefix('n').and_then(|number| number.parse().ok());
            match entry.and_then(|entry| Some((entry, words(entry)?))) {
                Some((entry, words)) if found.insert(entry, words).is_none() => Ok(()),
                _ => Err(format!("the entry {name} is not what anybody wrote")),
            }
        };
        match self.kind {
            Kind::Attributes => {
                for attribute in group.attributes().map_err(error_text)? {
                    let words: Vec<u64> = attribute.read().map_err(error_text)?;
                    let len = u16::try_from(words.len()).ok();
                    add(&attribute.name().to_string(), &mut |entry| len.filter(|len| words == value(entry, *len)))?;
                }
            }
            Kind::Links => {
                let target = file.group("t").map_err(error_text)?.id();
                for link in group.links().map_err(error_text)? {
                    let words = |entry: u8| match &link.target {
                        LinkTarget::Hard(id) => (*id == target).then_some(1),
                        LinkTarget::Soft(text) => {
                            let words = text.to_string().matches("word").count().try_into().ok()?;
                            (text.to_string() == path(entry, words)).then_some(words)
                        }
                        _ => None,
                    };
                    add(&link.name.to_string(), &mut { words })?;
                }
            }
        }
        Ok(found)
    }

    /// Checks a file whose writer has taken a number of steps in `steps`. Each entry must be as it was after one of
    /// them. If another writer went on, or may have, the changes of [`Names::write_on`] may be there.
    pub(crate) fn check(
        &self,
        file: &File,
        steps: RangeInclusive<u64>,
        written_on: Option<bool>,
    ) -> Result<(), String> {
        let found = self.found(file)?;
        let states: Vec<State> = steps.map(|steps| self.state(steps)).collect();
        let entries: BTreeSet<u8> = states.iter().flat_map(State::keys).chain(found.keys()).copied().collect();
        for entry in entries {
            let words = found.get(&entry).copied();
            let is_right = match written_on {
                Some(sure) if entry == LAST.0 => words == Some(LAST.1) || words.is_none() && !sure,
                // One that was there has been removed.
                Some(_) if words.is_none() => true,
                _ => states.iter().any(|state| state.get(&entry).copied() == words),
            };
            if !is_right {
                return Err(format!("the entry n{entry} has {words:?} words; it may be as in one of {states:?}"));
            }
        }
        Ok(())
    }

    /// Adds an entry, and removes one.
    pub(crate) fn write_on(&self, file: &File) -> Result<(), String> {
        let error_text = |error: h5live::Error| explain(&error);
        let group = file.group("g").map_err(error_text)?;
        let first = self.found(file)?.first_key_value().map(|(entry, _)| *entry);
        self.put(&group, LAST.0, LAST.1).map_err(error_text)?;
        first.map_or(Ok(()), |entry| self.remove(&group, entry)).map_err(error_text)
    }
}
