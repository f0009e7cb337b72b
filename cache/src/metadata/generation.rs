//! Generations: how files are followed whose structures have no checksums.
//!
//! A flush first writes all its changes in place to one redo record. A word before the record then says that the record
//! is in force. When all bytes are in place, the word says that the file is at rest again. A reader whose read begins
//! and ends in the same generation has seen that generation and no other.

use h5live_format::{Addr, GenerationWord, RedoRecord};

use super::entry_images::EntryImages;
use super::flush_step::FlushStep;
use super::generation_state::PublishedGeneration;
use super::redo::redo_record;
use crate::{
    barrier_kind::BarrierKind,
    cache::Cache,
    dependency_kind::DependencyKind,
    error::{Error, Result, StorageAction},
};

/// The steps of a flush around its changes.
pub(super) struct GenerationSteps {
    /// Before raw data is written.
    pub(super) before: Vec<FlushStep>,
    /// Before what the file leads to is changed.
    pub(super) between: Vec<FlushStep>,
    pub(super) after: Vec<FlushStep>,
}

impl Cache {
    /// The generation that the file shows, if readers go by it.
    pub(crate) fn generation(&self) -> Option<GenerationWord> {
        self.generation_publisher.0.lock().current
    }

    /// Whether readers go by generations.
    pub fn publishes_generations(&self) -> bool {
        self.generation().is_some()
    }

    /// From now on readers go by generations. The file shows the generation after `last_published`. The superblock is written
    /// only if it must announce a new end.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Encode`], [`Error::ReadOnly`].
    pub fn start_publishing_generations(&self, last_published: Option<GenerationWord>) -> Result<()> {
        let _only = self.flush_lock.lock();
        // Nobody writes raw data where the word is to be.
        let _beyond = self.redo_state.past_eof_lock.write();
        let first = last_published.map_or(GenerationWord::FIRST, |last| last.next_changing().change_completed());
        match self.superblock_update()? {
            None => self.init_generation_at(self.space.superblock_eof(), first),
            Some((_, _, end)) => {
                self.space.ensure_len(end, &*self.storage)?;
                self.init_generation_at(end, first)?;
                self.write_superblock_with_eof(end)
            }
        }
    }

    /// Writes the word at `end` before that end is announced, and clears the bytes behind it, so that they are no redo
    /// record.
    pub(crate) fn init_generation_at(&self, end: u64, generation: GenerationWord) -> Result<()> {
        let place = GenerationWord::word_addr(Addr::new(end)).ok_or(Error::UndefinedAddr)?;
        let mut bytes = generation.to_bytes().to_vec();
        bytes.resize(GenerationWord::SIZE + RedoRecord::HEAD_BYTES, 0);
        self.write_past_eof(place, &bytes)?;
        self.generation_publisher.0.lock().current = Some(generation);
        Ok(())
    }

    /// Before the file is cut at `end`, and that is announced: the word there is none at which a reader could rest.
    pub(crate) fn clear_generation_at(&self, end: u64) -> Result<()> {
        let Some(last) = self.generation() else { return Ok(()) };
        // A redo record that may still be in force is kept: it is the last one.
        let last = if last.is_changing() { last } else { last.next_changing() };
        self.init_generation_at(end, last)?;
        *self.generation_publisher.0.lock() = PublishedGeneration::default();
        Ok(())
    }

    /// Writes the word. A write that fails may have been made all the same. Then readers go by the redo record, which
    /// must be finished.
    pub(super) fn write_generation_word(&self, at: Addr, generation: GenerationWord) -> Result<()> {
        if generation.is_changing() {
            self.generation_publisher.0.lock().current = Some(generation);
        }
        self.write_past_eof(at, &generation.to_bytes())?;
        self.generation_publisher.0.lock().current = Some(generation);
        Ok(())
    }

    /// Sets the redo record that the next word brings into force.
    pub(super) fn set_pending_redo(&self, record: &RedoRecord) {
        let mut state = self.generation_publisher.0.lock();
        if state.current.is_some() {
            state.record = record.clone();
        }
    }

    fn write_past_eof(&self, at: Addr, bytes: &[u8]) -> Result<()> {
        let end = at.get().ok_or(Error::UndefinedAddr)?.saturating_add(bytes.len() as u64);
        self.space.raise_used_end_for_redo(end);
        self.space.ensure_len(end, &*self.storage)?;
        self.write_counted(StorageAction::WriteRedo, at, bytes)
    }

    /// Completes the changes of a flush that failed.
    pub(crate) fn complete_generation(&self) -> Result<()> {
        let (current, record) = {
            let state = self.generation_publisher.0.lock();
            match state.current {
                Some(current) if current.is_changing() => (current, state.record.clone()),
                _ => return Ok(()),
            }
        };
        let place = GenerationWord::word_addr(Addr::new(self.space.superblock_eof())).ok_or(Error::UndefinedAddr)?;
        self.write_generation_word(place, current)?;
        for write in &record.writes {
            self.write_counted(StorageAction::WriteRedo, write.at, &write.bytes)?;
        }
        self.write_generation_word(place, current.change_completed())
    }

    /// The steps of a flush around its `changes` in place, if readers go by generations.
    pub(super) fn generation_steps(
        &self,
        barriers: bool,
        changes: &[FlushStep],
        images: &EntryImages,
    ) -> Result<Option<GenerationSteps>> {
        let Some(now) = self.generation().map(GenerationWord::change_completed) else { return Ok(None) };
        let barrier = |kind| barriers.then_some(FlushStep::Barrier(kind));
        let (mut before, mut between, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut end = self.space.superblock_eof();
        if let Some((at, bytes, new)) = self.superblock_update()? {
            before.extend([FlushStep::ExtendTo(new), FlushStep::WriteGenerationAtNewEof { end: new, generation: now }]);
            before.extend(barrier(BarrierKind::GenerationAtNewEof));
            before.push(FlushStep::Superblock { at, bytes, end: new });
            end = new;
        }
        let end = Addr::new(end);
        let (place, record_addr) =
            GenerationWord::word_addr(end).zip(GenerationWord::redo_record_addr(end)).ok_or(Error::UndefinedAddr)?;
        if !changes.is_empty() {
            let record = redo_record(record_addr, changes, images);
            let step = FlushStep::WriteRedo { record, is_visible: false };
            let under_way = FlushStep::SetGeneration { at: place, generation: now.next_changing() };
            between.extend(barrier(BarrierKind::NewData));
            between.push(step);
            between.extend(barrier(BarrierKind::Redo));
            between.extend((!self.mutant_lacks_dependency(DependencyKind::Generation)).then_some(under_way));
            after.push(FlushStep::SetGeneration { at: place, generation: now.next_changing().change_completed() });
        }
        Ok(Some(GenerationSteps { before, between, after }))
    }
}
