//! Attributes and links that come and go: the changes of the writer, and the states that may be found after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use h5live::{File, Group, Result};
use h5live_model::{CreationOrder, LinkOrAttributeStorageSpec, LinkTarget};

use crate::observer::error_chain_text;
use crate::{Workload, WriterRecorder, WriterSetup};

/// The kind of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// The attributes of a group.
    Attributes,
    /// The links of a group: those of one word are hard links, others soft ones.
    Links,
}

/// A step of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    /// The entry with this number gets a value of this many words.
    Put(u8, u16),
    /// The entry of this number goes.
    Remove(u8),
    /// The changes are flushed.
    Flush,
}

/// Entries of a group that come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryChanges {
    /// Their kind.
    pub kind: EntryKind,
    /// How the group keeps them.
    pub order: CreationOrder,
    /// How many there are at first, each of one word.
    pub start_count: u8,
    /// Their changes.
    pub changes: &'static [EntryChange],
}

/// The words of each entry.
type EntryWords = BTreeMap<u8, u16>;

/// The entry that the next writer adds, and its words.
const LAST: (u8, u16) = (250, 3);

/// Records a writer that changes the entries of a group.
pub fn change_entries(setup: WriterSetup, names: EntryChanges) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let storage = LinkOrAttributeStorageSpec { order: names.order, ..LinkOrAttributeStorageSpec::default() };
    let root = lab.file().root();
    let made = root.create_group("t").and_then(|_| match names.order {
        CreationOrder::Untracked => root.create_group("g"),
        _ => root.new_group().link_storage(storage).attribute_storage(storage).create("g"),
    });
    let group = made.expect("a group can be made");
    (0..names.start_count).for_each(|number| names.put_entry(&group, number, 1).expect("an entry can be made"));
    lab.start_trace(0);
    for what in ["n.issued", "n.flushed", "n.durable"] {
        lab.mark_count(what, 0);
    }
    for (number, change) in (1..).zip(names.changes) {
        lab.mark_count("n.issued", number);
        match *change {
            EntryChange::Flush => lab.file().flush(),
            EntryChange::Put(entry, words) => names.put_entry(&group, entry, words),
            EntryChange::Remove(entry) => names.remove_entry(&group, entry),
        }
        .expect("entries of a file in memory can be changed");
        if *change == EntryChange::Flush {
            lab.mark_flushed("n", number);
        }
    }
    drop((group, root));
    Workload { names: Some(names), ..lab.finish_after(3) }
}

fn entry_name(entry: u8) -> String {
    format!("n{entry}")
}

/// The target of a soft link of this many words.
fn soft_link_path(entry: u8, words: u16) -> String {
    format!("/{entry}/{}", "word".repeat(words.into()))
}

/// The words of an attribute.
fn attribute_words(entry: u8, words: u16) -> Vec<u64> {
    vec![u64::from(entry) << 32 | u64::from(words); words.into()]
}

impl EntryChanges {
    fn put_entry(&self, group: &Group, entry: u8, words: u16) -> Result<()> {
        match (self.kind, words) {
            (EntryKind::Attributes, _) => {
                let attribute = group.new_attribute(&entry_name(entry)).shape(&[words.into()]);
                attribute.write(&attribute_words(entry, words))
            }
            (EntryKind::Links, 1) => group.link_hard(&entry_name(entry), group.file().group("t")?.id()),
            (EntryKind::Links, _) => group.link_soft(&entry_name(entry), &soft_link_path(entry, words)),
        }
    }

    fn remove_entry(&self, group: &Group, entry: u8) -> Result<()> {
        match self.kind {
            EntryKind::Attributes => group.remove_attribute(&entry_name(entry)),
            EntryKind::Links => group.unlink(&entry_name(entry)),
        }
    }

    /// The entries after this many steps.
    fn entries_after(&self, steps: u64) -> EntryWords {
        let mut state: EntryWords = (0..self.start_count).map(|entry| (entry, 1)).collect();
        for change in self.changes.iter().take(usize::try_from(steps).unwrap_or(usize::MAX)) {
            match *change {
                EntryChange::Put(entry, words) => drop(state.insert(entry, words)),
                EntryChange::Remove(entry) => drop(state.remove(&entry)),
                EntryChange::Flush => {}
            }
        }
        state
    }

    /// The entries of a file.
    fn read_entries(&self, file: &File) -> Result<EntryWords, String> {
        let error_text = |error: h5live::Error| error_chain_text(&error);
        let group = file.group("g").map_err(error_text)?;
        let mut found = EntryWords::new();
        let mut add = |name: &str, words: &mut dyn FnMut(u8) -> Option<u16>| {
            let entry = name.strip_prefix('n').and_then(|number| number.parse().ok());
            match entry.and_then(|entry| Some((entry, words(entry)?))) {
                Some((entry, words)) if found.insert(entry, words).is_none() => Ok(()),
                _ => Err(format!("the entry {name} is not what anybody wrote")),
            }
        };
        match self.kind {
            EntryKind::Attributes => {
                for attribute in group.attributes().map_err(error_text)? {
                    let words: Vec<u64> = attribute.read().map_err(error_text)?;
                    let len = u16::try_from(words.len()).ok();
                    add(&attribute.name().to_string(), &mut |entry| {
                        len.filter(|len| words == attribute_words(entry, *len))
                    })?;
                }
            }
            EntryKind::Links => {
                let target = file.group("t").map_err(error_text)?.id();
                for link in group.links().map_err(error_text)? {
                    let words = |entry: u8| match &link.target {
                        LinkTarget::Hard(id) => (*id == target).then_some(1),
                        LinkTarget::Soft(text) => {
                            let words = text.to_string().matches("word").count().try_into().ok()?;
                            (text.to_string() == soft_link_path(entry, words)).then_some(words)
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
    /// them. If another writer went on, or may have, the changes of [`EntryChanges::change_once_more`] may be there.
    pub(crate) fn check_entries(
        &self,
        file: &File,
        steps: RangeInclusive<u64>,
        written_on: Option<bool>,
    ) -> Result<(), String> {
        let found = self.read_entries(file)?;
        let states: Vec<EntryWords> = steps.map(|steps| self.entries_after(steps)).collect();
        let entries: BTreeSet<u8> = states.iter().flat_map(EntryWords::keys).chain(found.keys()).copied().collect();
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
    pub(crate) fn change_once_more(&self, file: &File) -> Result<(), String> {
        let error_text = |error: h5live::Error| error_chain_text(&error);
        let group = file.group("g").map_err(error_text)?;
        let first = self.read_entries(file)?.first_key_value().map(|(entry, _)| *entry);
        self.put_entry(&group, LAST.0, LAST.1).map_err(error_text)?;
        first.map_or(Ok(()), |entry| self.remove_entry(&group, entry)).map_err(error_text)
    }
}
