//! Engines of explorations: one that breaks a rule when it commits, and one that shows a reader recorded states.

use std::sync::Arc;
use std::time::Duration;

use h5live_kv::engine::{EditBatch, Engine, EngineError, EngineWatch, MemoryView, Result, View};
use h5live_kv::layout::{EngineKey, MetadataField, RecordKey};
use h5live_model::{PublishLevel, WatchEvent};
use parking_lot::Mutex;
use strum::VariantArray;

/// A rule that an engine does not keep when it commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum KvMutant {
    /// It keeps all rules.
    None,
    /// A batch becomes two.
    SplitBatch,
    /// A link is there before its object.
    LinkBeforeObject,
    /// The number of links to an object is not updated.
    StaleCount,
    /// A blob is freed before the chunk that leads to it is replaced.
    BlobFreedFirst,
    /// An object is freed before the link to it.
    ObjectFreedFirst,
    /// A blob that nothing leads to any more is not freed.
    LeakedBlob,
    /// The positions of links in the order of creation are not updated when a link is removed.
    StaleOrder,
}

/// What is to become of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    First,
    Second,
    Dropped,
}

impl KvMutant {
    /// The mutants.
    pub fn all() -> impl Iterator<Item = KvMutant> {
        KvMutant::VARIANTS.iter().copied().filter(|mutant| *mutant != KvMutant::None)
    }

    fn fate(self, record: &RecordKey<'_>, is_put: bool, is_in_first_half: bool) -> Fate {
        let is_count = matches!(record, RecordKey::Metadata(MetadataField::RefCount));
        let first = match self {
            KvMutant::None => true,
            KvMutant::SplitBatch => is_in_first_half,
            KvMutant::LinkBeforeObject => is_put && matches!(record, RecordKey::Link(_)),
            KvMutant::StaleCount if is_put && is_count => return Fate::Dropped,
            KvMutant::LeakedBlob if !is_put && matches!(record, RecordKey::Blob(_)) => return Fate::Dropped,
            KvMutant::StaleOrder if matches!(record, RecordKey::LinkOrder(_)) && !is_put => return Fate::Dropped,
            KvMutant::StaleCount | KvMutant::LeakedBlob | KvMutant::StaleOrder => true,
            KvMutant::BlobFreedFirst => !is_put && matches!(record, RecordKey::Blob(_)),
            KvMutant::ObjectFreedFirst => !is_put && matches!(record, RecordKey::Metadata(_)),
        };
        if first { Fate::First } else { Fate::Second }
    }
}

/// An engine that lacks a rule. It stands over all that turns keys into others.
#[derive(Debug)]
pub struct MutantEngine<E> {
    inner: E,
    mutant: KvMutant,
}

impl<E: Engine> MutantEngine<E> {
    /// Over an engine that keeps all rules.
    pub fn new(inner: E, mutant: KvMutant) -> Self {
        MutantEngine { inner, mutant }
    }
}

impl<E: Engine> Engine for MutantEngine<E> {
    fn view(&self) -> Result<Arc<dyn View>> {
        self.inner.view()
    }

    fn newest_version(&self) -> Result<u64> {
        self.inner.newest_version()
    }

    fn commit(&self, edits: &EditBatch, publish: PublishLevel) -> Result<()> {
        let (mut first, mut second) = (EditBatch::new(), EditBatch::new());
        let before = self.inner.view()?;
        let counts = edits.key_count_records(|key| before.has(key))?;
        let counts = counts.iter().map(|(key, number)| (*key, Some(&**number)));
        for (number, (key, value)) in edits.iter().chain(counts).enumerate() {
            let (_, record) = EngineKey::parse(key).map_err(|_| EngineError::Damaged("a key is none of the layout"))?;
            let fate = match self.mutant.fate(&record, value.is_some(), number < edits.len() / 2) {
                // What is new has a count in any case.
                Fate::Dropped if self.mutant == KvMutant::StaleCount && !before.get(key, &mut |_| {})? => Fate::First,
                fate => fate,
            };
            let edits = match fate {
                Fate::First => &mut first,
                Fate::Second => &mut second,
                Fate::Dropped => continue,
            };
            match value {
                Some(value) => edits.put(key, value.to_vec()),
                None => edits.delete(key),
            }
        }
        [first, second].iter().filter(|edits| !edits.is_empty()).try_for_each(|part| self.inner.commit(part, publish))
    }

    fn max_key_bytes(&self) -> usize {
        self.inner.max_key_bytes()
    }

    fn has_writer(&self) -> Result<bool> {
        self.inner.has_writer()
    }

    fn watch(&self) -> Result<Box<dyn EngineWatch>> {
        self.inner.watch()
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

/// A sequence of choices, and those that are still to be made.
#[derive(Debug, Default)]
pub struct Choices {
    /// What was chosen, and of how many.
    made: Vec<(usize, usize)>,
    next: usize,
}

impl Choices {
    /// Chooses a number below `of`.
    fn choose(&mut self, of: usize) -> usize {
        if self.next == self.made.len() {
            self.made.push((0, of));
        }
        let (chosen, _) = self.made[self.next];
        self.next += 1;
        chosen
    }

    /// Goes on to the next sequence; `false` if all were made.
    pub fn advance(&mut self) -> bool {
        self.next = 0;
        while let Some((chosen, of)) = self.made.last_mut() {
            if *chosen + 1 < *of {
                *chosen += 1;
                return true;
            }
            self.made.pop();
        }
        false
    }
}

/// The states that a writer has made, and how far it has come as the reader sees it.
#[derive(Debug)]
pub struct Schedule {
    states: Vec<MemoryView>,
    moves: Mutex<(Choices, usize)>,
}

impl Schedule {
    /// The writer is at the first of these states.
    pub fn new(states: Vec<MemoryView>) -> Self {
        Schedule { states, moves: Mutex::default() }
    }

    /// Begins again, with other moves of the writer; `false` if there are none.
    pub fn advance(&self) -> bool {
        let (choices, position) = &mut *self.moves.lock();
        *position = 0;
        choices.advance()
    }

    /// The state in which the reader has last found the writer.
    pub fn position(&self) -> usize {
        self.moves.lock().1
    }

    /// The moves of the writer, one for each look of the reader.
    pub fn story(&self) -> Vec<usize> {
        self.moves.lock().0.made.iter().map(|(chosen, _)| *chosen).collect()
    }

    /// Lets the writer go on, by any number of states.
    fn look(&self) -> MemoryView {
        let (choices, position) = &mut *self.moves.lock();
        *position += choices.choose(self.states.len() - *position);
        self.states[*position].clone()
    }
}

/// An engine of a reader: whenever it looks, the writer may have gone on.
#[derive(Debug, Clone)]
pub struct ScheduledEngine {
    schedule: Arc<Schedule>,
    max_key_bytes: usize,
}

impl ScheduledEngine {
    /// With keys of so many bytes.
    pub fn new(schedule: Arc<Schedule>, max_key_bytes: usize) -> Self {
        ScheduledEngine { schedule, max_key_bytes }
    }
}

impl Engine for ScheduledEngine {
    fn view(&self) -> Result<Arc<dyn View>> {
        Ok(Arc::new(self.schedule.look()))
    }

    fn newest_version(&self) -> Result<u64> {
        Ok(self.schedule.look().version())
    }

    fn commit(&self, _: &EditBatch, _: PublishLevel) -> Result<()> {
        Err(EngineError::ReadOnly)
    }

    fn max_key_bytes(&self) -> usize {
        self.max_key_bytes
    }

    fn has_writer(&self) -> Result<bool> {
        Ok(true)
    }

    fn watch(&self) -> Result<Box<dyn EngineWatch>> {
        Ok(Box::new(NoWatch))
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// Nobody waits here: a reader looks when its schedule says so.
#[derive(Debug)]
struct NoWatch;

impl EngineWatch for NoWatch {
    fn wait(&mut self, _: Duration) -> Result<WatchEvent> {
        Ok(WatchEvent::Timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_choices_are_made_once() {
        let mut choices = Choices::default();
        let mut seen = Vec::new();
        loop {
            let first = choices.choose(2);
            // The second choice depends on the first.
            seen.push((first, choices.choose(3 - first)));
            if !choices.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    }
}
