//! Generations: how files are followed whose structures have no checksums.
//!
//! What a flush changes in place it first writes down as one intent. A word before the intent then says that it is in
//! force, and, when everything is in its place, that the file is at rest again. A reader whose look begins and ends in the
//! same generation has seen that and no other.

use h5live_format::{Addr, Generation, Intent};
use parking_lot::Mutex;

use super::flush::Step;
use super::intent::intent;
use crate::{
    cache::{Cache, Settings},
    edge::EdgeKind,
    error::{Action, Error, Result},
};

/// What a cache knows of the generations of its file. Changed by flushes alone, so not for loom to explore.
#[derive(Debug, Default)]
pub(crate) struct Generations(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The word in the file; `None` if nobody follows by it.
    current: Option<Generation>,
    /// The intent to which the word leads.
    intent: Intent,
}

/// What a flush does around its changes.
pub(super) struct Frame {
    /// Before raw data is written.
    pub(super) before: Vec<Step>,
    /// Before what the file leads to is changed.
    pub(super) between: Vec<Step>,
    pub(super) after: Vec<Step>,
}

impl Cache {
    /// The generation that the file shows, if readers go by it.
    pub(crate) fn generation(&self) -> Option<Generation> {
        self.generations.0.lock().current
    }

    /// Whether readers go by generations.
    pub fn has_generations(&self) -> bool {
        self.generation().is_some()
    }

    /// From now on readers go by generations, of which the file shows the one after `last`. The superblock is written only
    /// if it must announce a new end.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Encode`], [`Error::ReadOnly`].
    pub fn begin_generations(&self, last: Option<Generation>) -> Result<()> {
        let _only = self.flushing.lock();
        // Nobody writes raw data where the word is to be.
        let _beyond = self.intents.beyond.write();
        let first = last.map_or(Generation::FIRST, |last| last.next().at_rest());
        match self.announcement()? {
            None => self.show_generation_at(self.space.announced(), first),
            Some((_, _, end)) => {
                self.space.reach(end, &*self.storage)?;
                self.show_generation_at(end, first)?;
                self.announce_at(end)
            }
        }
    }

    /// Before `end` is announced: the word is there, and what comes after it is no intent, whatever it was.
    pub(crate) fn show_generation_at(&self, end: u64, generation: Generation) -> Result<()> {
        let place = Generation::place(Addr::new(end)).ok_or(Error::Undefined)?;
        let mut bytes = generation.to_bytes().to_vec();
        bytes.resize(Generation::SIZE + Intent::HEAD, 0);
        self.write_beyond(place, &bytes)?;
        self.generations.0.lock().current = Some(generation);
        Ok(())
    }

    /// Before the file is cut at `end`, and that is announced: the word there is none at which a reader could rest.
    pub(crate) fn end_generations(&self, end: u64) -> Result<()> {
        let Some(last) = self.generation() else { return Ok(()) };
        // What may still be in force is kept: it is the last.
        let last = if last.is_under_way() { last } else { last.next() };
        self.show_generation_at(end, last)?;
        *self.generations.0.lock() = State::default();
        Ok(())
    }

    /// A write that fails may have been made all the same: then readers go by the intent, which is to be finished.
    pub(super) fn write_generation(&self, at: Addr, generation: Generation) -> Result<()> {
        if generation.is_under_way() {
            self.generations.0.lock().current = Some(generation);
        }
        self.write_beyond(at, &generation.to_bytes())?;
        self.generations.0.lock().current = Some(generation);
        Ok(())
    }

    /// The intent that the next word brings into force.
    pub(super) fn keep_intent(&self, intent: &Intent) {
        let mut state = self.generations.0.lock();
        if state.current.is_some() {
            state.intent = intent.clone();
        }
    }

    fn write_beyond(&self, at: Addr, bytes: &[u8]) -> Result<()> {
        let end = at.get().ok_or(Error::Undefined)?.saturating_add(bytes.len() as u64);
        self.space.note_intent(end);
        self.space.reach(end, &*self.storage)?;
        self.write_at(Action::WriteIntent, at, bytes)
    }

    /// Puts in its place what a flush that failed has left on its way.
    pub(crate) fn finish_generation(&self) -> Result<()> {
        let (current, intent) = {
            let state = self.generations.0.lock();
            match state.current {
                Some(current) if current.is_under_way() => (current, state.intent.clone()),
                _ => return Ok(()),
            }
        };
        let place = Generation::place(Addr::new(self.space.announced())).ok_or(Error::Undefined)?;
        self.write_generation(place, current)?;
        for write in &intent.writes {
            self.write_at(Action::WriteIntent, write.at, &write.bytes)?;
        }
        self.write_generation(place, current.at_rest())
    }

    /// What a flush that makes `changes` in place does around them, if readers go by generations.
    pub(super) fn frame(&self, settings: &Settings, changes: &[Step]) -> Result<Option<Frame>> {
        let Some(now) = self.generation().map(Generation::at_rest) else { return Ok(None) };
        let barrier = || settings.barriers.then_some(Step::Barrier);
        let (mut before, mut between, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut end = self.space.announced();
        if let Some((at, bytes, new)) = self.announcement()? {
            before.extend([Step::Extend(new), Step::Show { end: new, generation: now }]);
            before.extend(barrier());
            before.push(Step::Superblock { at, bytes, end: new });
            end = new;
        }
        let end = Addr::new(end);
        let (place, place_of_intent) =
            Generation::place(end).zip(Generation::place_of_intent(end)).ok_or(Error::Undefined)?;
        if !changes.is_empty() {
            let step = Step::Intent { intent: intent(place_of_intent, changes), is_seen: false };
            let under_way = Step::Generation { at: place, generation: now.next() };
            between.extend(barrier());
            between.push(step);
            between.extend(barrier());
            // It is broken only for tests.
            between.extend((!settings.disabled_edges.contains(EdgeKind::Generation)).then_some(under_way));
            after.push(Step::Generation { at: place, generation: now.next().at_rest() });
        }
        Ok(Some(Frame { before, between, after }))
    }
}
