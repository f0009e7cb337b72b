//! A flush, in two phases: a snapshot, then the writes.
//!
//! The snapshot is taken while no operation is under way. It orders the dirty entries, encodes them, and takes the raw
//! data that waits. The writes go on beside new operations. Entries that these make dirty belong to the next flush.

use std::{fmt, sync::atomic::Ordering};

use h5live_format::{Addr, SeqlockCounter};

use super::entry_images::{EntryImages, ImageRange};
use super::flush_order::{FlushItem, FlushItemKind, FlushScope, FlushSelection};
use super::flush_step::{BufferedWrites, FlushStep};
use super::generation::GenerationSteps;
use super::redo;
use crate::{
    barrier_kind::BarrierKind,
    cache::Cache,
    cache_counters::add_to_counter,
    dependency_kind::DependencyKind,
    error::{Error, Result, StorageAction},
    primitive::{MutexGuard, RwLockWriteGuard},
    raw_data::ChunkFlushWrite,
    reentry::{ReentryGuard, ReentryScope, enter_scope},
};

/// The steps of a flush, in order. While it exists, no other flush runs. Entries that are not written when it is
/// dropped are dirty again.
pub struct PendingFlush<'a> {
    cache: &'a Cache,
    steps: Vec<FlushStep>,
    steps_done: usize,
    /// Everything that was dirty in a scope is in the steps.
    is_whole_file: bool,
    /// [`CacheOptions::has_barriers`](crate::CacheOptions::has_barriers) at the time of the snapshot.
    barriers: bool,
    /// As [`Cache::make_next_flush_atomic`].
    is_atomic: bool,
    succeeded: bool,
    /// While there are redo records, nothing else is written behind the announced end.
    past_eof_lock: Option<RwLockWriteGuard<'a, ()>>,
    /// The bytes of its entries. While it has them, no other flush runs.
    images: MutexGuard<'a, EntryImages>,
    _inside: ReentryGuard,
}

impl fmt::Debug for PendingFlush<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.steps).finish()
    }
}

/// Elements that a flush writes over others, more than this many bytes in memory, are not written down first.
const MAX_REDO_RAW_BYTES: usize = 1 << 20;

/// A list of fewer items is not made shorter while it is worked off.
const MIN_SHRUNK_ITEMS: usize = 1 << 12;

/// Most bytes of entries that one write takes.
const MAX_MERGED_ENTRY_BYTES: usize = 1 << 20;

/// The steps of a flush beside writing dirty entries and raw data.
#[derive(Default)]
struct ProtocolSteps {
    before: Vec<FlushStep>,
    /// Before what the file leads to is changed.
    between: Vec<FlushStep>,
    /// Redo records, each before the change with this number.
    redo_writes: Vec<(usize, FlushStep)>,
    after: Vec<FlushStep>,
}

impl Cache {
    /// Writes the dirty entries and raw data in `scope`. First it makes the file long enough. Then it writes raw data,
    /// then the superblock if it must announce a new end, then entries, children before parents. It returns when the
    /// operating system has all of it; it is not durable before [`Cache::sync_flushed`]. Operations go on meanwhile.
    ///
    /// Must not be called inside an operation.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Encode`]; whatever was not written is still dirty. [`Error::ReadOnly`].
    pub fn flush(&self, scope: FlushScope) -> Result<()> {
        self.begin_flush(scope)?.write_steps()
    }

    /// Takes the snapshot of a flush, without writing it.
    ///
    /// # Errors
    /// [`Error::Encode`] if an entry cannot be written.
    pub fn begin_flush(&self, scope: FlushScope) -> Result<PendingFlush<'_>> {
        self.plan_selection(FlushSelection::Scope(scope))
    }

    /// Writes part of the dirty entries and raw data, if they take too much memory. Call it between operations.
    ///
    /// # Errors
    /// As [`Cache::flush`].
    pub fn flush_over_budget(&self) -> Result<()> {
        let too_dirty = self.shared_graph.graph.lock().dirty_weight() > self.options.dirty_metadata_budget_bytes;
        let raw = self.dirty_raw_data.waiting_bytes() > self.options.dirty_raw_budget_bytes;
        if !too_dirty && !raw {
            return Ok(());
        }
        let max_dirty_bytes_left = if too_dirty { self.options.dirty_metadata_budget_bytes / 2 } else { usize::MAX };
        self.plan_selection(FlushSelection::OverBudget { max_dirty_bytes_left, with_raw: raw })?.write_steps()?;
        // Raw data that waits for metadata of other objects (global heaps) goes only with a whole flush.
        if self.dirty_raw_data.waiting_bytes() > self.options.dirty_raw_budget_bytes {
            self.flush(FlushScope::All)?;
        }
        Ok(())
    }

    fn plan_selection(&self, take: FlushSelection) -> Result<PendingFlush<'_>> {
        let inside = enter_scope(self, ReentryScope::Flush, &[ReentryScope::Operation, ReentryScope::Flush]);
        let images = self.flush_lock.lock();
        let _gate = self.operation_gate.write();
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let as_one = matches!(take, FlushSelection::Scope(_)) && self.atomic_flush.swap(false, Ordering::AcqRel);
        let take = if as_one { FlushSelection::Scope(FlushScope::All) } else { take };
        let scope = match take {
            FlushSelection::Scope(scope) => Some(scope),
            FlushSelection::OverBudget { .. } => None,
        };
        let picked = self.shared_graph.graph.lock().take_dirty(take);
        if let Some(scope) = scope {
            self.space.begin_flush(scope);
        }
        let mut plan = PendingFlush {
            cache: self,
            steps: Vec::new(),
            steps_done: 0,
            is_whole_file: scope.is_some(),
            barriers: self.has_barriers(),
            is_atomic: as_one,
            succeeded: false,
            past_eof_lock: None,
            images,
            _inside: inside,
        };
        if !picked.is_empty() || scope == Some(FlushScope::All) {
            plan.encode_picked(picked)?;
        }
        Ok(plan)
    }

    /// All writes of a flush but those of neighbours, which `write_new_entries` joins.
    fn write_step(&self, step: &FlushStep, images: &EntryImages) -> Result<()> {
        match step {
            FlushStep::ExtendTo(len) => self.space.ensure_len(*len, &*self.storage),
            FlushStep::Barrier(kind) if self.options.mutant.lacks_barrier(*kind) => Ok(()),
            FlushStep::Barrier(_) => self.sync_flushed(),
            FlushStep::WriteRedo { record, is_visible } => self.write_redo(record, *is_visible),
            FlushStep::InvalidateEarlierRedo(at) => self.invalidate_redo(*at),
            FlushStep::InvalidateOwnRedo(at) => self.retire_redo(*at),
            FlushStep::WriteGenerationAtNewEof { end, generation } => self.init_generation_at(*end, *generation),
            FlushStep::SetGeneration { at, generation } => self.write_generation_word(*at, *generation),
            FlushStep::BufferedRaw(pieces) => self.write_buffered(&pieces.0),
            FlushStep::Raw(writes) => self.write_taken_raw_data(writes),
            FlushStep::RawWithOwnRedo(writes) => self.overwrite_with_redo(writes),
            FlushStep::Superblock { at, bytes, end } => {
                self.write_counted(StorageAction::WriteSuperblock, *at, bytes)?;
                self.space.set_superblock_eof(*end);
                Ok(())
            }
            FlushStep::Entry { at, name, image, .. } => {
                self.write_counted(StorageAction::WriteEntry(name), *at, images.image(image))
            }
        }
    }
}

/// Puts steps before others: each before the one that has its number now, which ascends. The steps stay where they are in
/// memory as far as they can: a flush may have millions.
fn insert_steps(steps: &mut Vec<FlushStep>, mut inserted: Vec<(usize, FlushStep)>) {
    let mut from = steps.len();
    let mut to = from + inserted.len();
    steps.reserve_exact(inserted.len());
    steps.resize_with(to, || FlushStep::ExtendTo(0));
    while let Some((number, step)) = inserted.pop() {
        while from > number {
            (from, to) = (from - 1, to - 1);
            steps.swap(from, to);
        }
        to -= 1;
        steps[to] = step;
    }
}

impl PendingFlush<'_> {
    /// The steps, in the order in which they will be taken.
    pub fn steps(&self) -> &[FlushStep] {
        &self.steps
    }

    /// Takes all steps.
    ///
    /// # Errors
    /// [`Error::Io`] at the first step that fails; from it on everything is dirty again.
    pub fn write_steps(mut self) -> Result<()> {
        if !self.steps.is_empty() {
            add_to_counter(&self.cache.counters.flushes, 1);
            self.cache.replay_unfinished_redo(self.barriers)?;
        }
        self.cache.complete_generation()?;
        self.cache.write_buffer.wait_for_writers();
        while self.steps_done < self.steps.len() {
            self.steps_done = match self.new_entry_count() {
                0..=1 => {
                    self.cache.write_step(&self.steps[self.steps_done], &self.images)?;
                    self.steps_done + 1
                }
                several => self.write_new_entries(several)?,
            };
        }
        self.succeeded = true;
        Ok(())
    }

    /// How many of the next steps write new entries that wait for nothing: their order is free.
    fn new_entry_count(&self) -> usize {
        let next = self.steps[self.steps_done..].iter();
        next.take_while(|step| matches!(step, FlushStep::Entry { in_place: false, has_dependencies: false, .. }))
            .count()
    }

    /// Takes the next steps, as many as [`PendingFlush::new_entry_count`] said, in the order of their places: neighbours
    /// in one write. Returns the number of the step after them.
    fn write_new_entries(&mut self, several: usize) -> Result<usize> {
        let end = self.steps_done + several;
        self.steps[self.steps_done..end].sort_by_key(FlushStep::offset);
        let mut scratch = Vec::new();
        while self.steps_done < end {
            let (first, mut next, mut len) = (self.steps_done, self.steps_done, 0);
            let start = self.steps[first].offset();
            while let Some(FlushStep::Entry { at, image, .. }) = self.steps[..end].get(next) {
                let touches = start.and_then(|start| start.checked_add(len as u64)) == at.get();
                if next > first && !(touches && len + image.byte_count() <= MAX_MERGED_ENTRY_BYTES) {
                    break;
                }
                (next, len) = (next + 1, len + image.byte_count());
            }
            if let Some(FlushStep::Entry { at, name, .. }) = self.steps.get(first) {
                let images = self.steps[first..next].iter().filter_map(FlushStep::image);
                let bytes = self.images.joined_images(images, &mut scratch);
                self.cache.write_counted(StorageAction::WriteEntry(name), *at, bytes)?;
            }
            self.steps_done = next;
        }
        Ok(end)
    }

    /// Whether one redo record has all changes in place.
    fn has_single_redo(&self) -> bool {
        self.barriers || self.is_atomic || self.cache.publishes_generations()
    }

    fn encode_picked(&mut self, mut picked: Vec<FlushItem>) -> Result<()> {
        let mut changes = Vec::with_capacity(picked.len() + 2);
        self.begin_raw_writes(&picked, &mut changes);
        let (cache, mut new, mut failure) = (self.cache, Vec::new(), None);
        picked.reverse();
        // Each picked entry becomes a step even after a failure: dropping the plan makes them dirty again.
        while let Some(FlushItem { id, kind, has_dependencies }) = picked.pop() {
            // Of millions, the first ones leave room for the steps of the next.
            if picked.len() < picked.capacity() / 2 && picked.len() > MIN_SHRUNK_ITEMS {
                picked.shrink_to_fit();
            }
            match kind {
                FlushItemKind::Raw { .. } if !has_dependencies => {}
                FlushItemKind::Raw { chunk } => {
                    if let Some(write) = cache.dirty_raw_data.begin_chunk_write(chunk) {
                        self.add_waiting_raw_write(write, &mut new, &mut changes);
                    }
                }
                FlushItemKind::Entry(slot) => {
                    let at = slot.entry_header().addr;
                    let take = |images: &mut Vec<u8>| slot.take_dirty_image(cache.options.widths, images);
                    let image = match failure {
                        Some(_) => ImageRange::default(),
                        None => self.images.push_with(take).unwrap_or_else(|source| {
                            failure = Some(Error::Encode { at, source });
                            ImageRange::default()
                        }),
                    };
                    let in_place = slot.entry_header().is_in_file();
                    let step = FlushStep::Entry { id, at, name: slot.type_name(), image, in_place, has_dependencies };
                    // Nothing in the file leads to a new entry, so it may come before everything that will lead to it.
                    let first = self.has_single_redo() && !in_place;
                    if first { new.push(step) } else { changes.push(step) }
                }
            }
        }
        let steps = failure.map_or_else(|| self.protocol_steps(&changes), Err);
        self.order_steps(new, changes, steps)
    }

    /// Whether readers are kept from raw data while it is changed in place.
    fn guards_raw_in_place(&self) -> bool {
        let mutant = self.cache.options.mutant;
        !mutant.lacks_redo() && !mutant.lacks_edge(DependencyKind::RawOverwriteRedo)
    }

    /// The step that changes raw data in place: part of the flush's redo record, or each part after its own record.
    fn raw_overwrite_step(&self, writes: Vec<ChunkFlushWrite>) -> FlushStep {
        if self.has_single_redo() { FlushStep::Raw(writes) } else { FlushStep::RawWithOwnRedo(writes) }
    }

    /// Takes the raw data that waits for nothing. It comes first, or goes to `changes` if it replaces bytes to which
    /// the file leads.
    fn begin_raw_writes(&mut self, picked: &[FlushItem], changes: &mut Vec<FlushStep>) {
        let (cache, guarded) = (self.cache, self.guards_raw_in_place());
        let raw = picked.iter().filter_map(|pick| match &pick.kind {
            FlushItemKind::Raw { chunk } if !pick.has_dependencies => cache.dirty_raw_data.begin_chunk_write(*chunk),
            _ => None,
        });
        let (seen, raw): (Vec<ChunkFlushWrite>, Vec<_>) = raw.partition(|write| guarded && write.is_visible());
        let (over, raw): (Vec<ChunkFlushWrite>, _) =
            raw.into_iter().partition(|write| self.is_atomic && write.is_overwrite());
        let much = over.iter().fold(0, |sum: usize, write| sum.saturating_add(write.byte_count())) > MAX_REDO_RAW_BYTES;
        let (raw, over) = if much { (over.into_iter().chain(raw).collect(), Vec::new()) } else { (raw, over) };
        // Raw data may be written over it. Its space is part of the end that is announced later.
        self.steps
            .extend(cache.write_buffer.begin_write().map(|pieces| FlushStep::BufferedRaw(BufferedWrites(pieces))));
        self.steps.extend((!raw.is_empty()).then_some(FlushStep::Raw(raw)));
        changes.extend((!over.is_empty()).then_some(FlushStep::Raw(over)));
        changes.extend((!seen.is_empty()).then(|| self.raw_overwrite_step(seen)));
    }

    /// Adds raw data that waits for other entries: to the step before it if that is of its kind.
    fn add_waiting_raw_write(&self, write: ChunkFlushWrite, new: &mut Vec<FlushStep>, changes: &mut Vec<FlushStep>) {
        let seen = self.guards_raw_in_place() && write.is_visible();
        let unreachable = self.is_atomic && !write.is_overwrite() && !seen;
        let list = if unreachable { new } else { changes };
        match list.last_mut() {
            Some(FlushStep::Raw(writes)) if !seen || self.has_single_redo() => writes.push(write),
            Some(FlushStep::RawWithOwnRedo(writes)) if seen => writes.push(write),
            _ if seen => list.push(self.raw_overwrite_step(vec![write])),
            _ => list.push(FlushStep::Raw(vec![write])),
        }
    }

    /// Puts the steps in order: the `new` ones, then the `changes`, with the steps of the protocol around them. If that
    /// fails, the others are still steps.
    fn order_steps(
        &mut self,
        new: Vec<FlushStep>,
        mut changes: Vec<FlushStep>,
        steps: Result<ProtocolSteps>,
    ) -> Result<()> {
        let (ProtocolSteps { before, between, redo_writes, after }, done) = match steps {
            Ok(steps) => (steps, Ok(())),
            Err(error) => (ProtocolSteps::default(), Err(error)),
        };
        // At once, and not to twice as much: a flush may have millions of steps.
        let raw_count = self.steps.len();
        let more = [&before, &new, &between, &after].map(|steps| steps.len()).iter().sum::<usize>();
        changes.reserve_exact(redo_writes.len() + raw_count + more);
        insert_steps(&mut changes, redo_writes);
        let mut first = before;
        first.append(&mut self.steps);
        first.extend(new);
        first.extend(between);
        changes.splice(0..0, first);
        changes.extend(after);
        self.steps = changes;
        done
    }

    /// The steps beside writing dirty entries and raw data. `changes` are the steps from the first one on that changes
    /// something that the file leads to.
    fn protocol_steps(&mut self, changes: &[FlushStep]) -> Result<ProtocolSteps> {
        let cache = self.cache;
        let barriers = self.barriers;
        if let Some(GenerationSteps { before, between, after }) =
            cache.generation_steps(barriers, changes, &self.images)?
        {
            self.past_eof_lock = Some(cache.redo_state.past_eof_lock.write());
            return Ok(ProtocolSteps { before, between, after, ..ProtocolSteps::default() });
        }
        let joined = cache.active_redo().is_some() || cache.space.needs_superblock_eof();
        let groups = redo::group_redo_changes(&cache.options, changes, barriers, self.is_atomic, joined);
        if !groups.is_empty() || changes.iter().any(|change| matches!(change, FlushStep::RawWithOwnRedo(_))) {
            // Space that is allocated from now on is not part of this flush, and may be where redo records are.
            self.past_eof_lock = Some(cache.redo_state.past_eof_lock.write());
        }
        let announcement = cache.superblock_update()?;
        let end = announcement.as_ref().map_or(cache.space.superblock_eof(), |(_, _, end)| *end);
        let place = SeqlockCounter::word_addr(Addr::new(end)).ok_or(Error::UndefinedAddr)?;
        let mut redo_writes = Vec::with_capacity(groups.len());
        let mut is_visible = false;
        for group in groups {
            let changes = changes.get(group.clone()).unwrap_or_default();
            is_visible |= changes.iter().any(redo::overwrites_visible);
            let record = redo::redo_record(place, changes, &self.images);
            redo_writes.push((group.start, FlushStep::WriteRedo { record, is_visible }));
        }
        let mut steps = ProtocolSteps::default();
        let standing = cache.active_redo().filter(|at| *at == place);
        let changed_after = barriers.then(|| redo_writes.pop()).flatten().map(|(_, record)| record);
        if barriers && (announcement.is_some() || !changes.is_empty()) {
            steps.between.push(FlushStep::Barrier(BarrierKind::NewData));
        }
        // With barriers, the changes of an earlier redo record have long been durable in their places.
        steps.before.extend(standing.filter(|_| !barriers).map(FlushStep::InvalidateEarlierRedo));
        steps.redo_writes = redo_writes;
        let has_redo_write = changed_after.is_some();
        steps.between.extend(changed_after);
        if let Some((at, bytes, end)) = announcement {
            self.add_superblock_step(&mut steps, FlushStep::Superblock { at, bytes, end }, end);
        }
        if has_redo_write {
            steps.between.push(FlushStep::Barrier(BarrierKind::Redo));
        }
        if is_visible {
            steps.after.extend(barriers.then_some(FlushStep::Barrier(BarrierKind::InPlaceChanges)));
            steps.after.push(FlushStep::InvalidateOwnRedo(place));
        }
        Ok(steps)
    }

    fn add_superblock_step(&self, steps: &mut ProtocolSteps, superblock: FlushStep, end: u64) {
        // A mutant breaks it as thoroughly as can be.
        match self.cache.mutant_lacks_dependency(DependencyKind::FileLength) {
            false => steps.before.insert(0, FlushStep::ExtendTo(end)),
            true => steps.after.push(FlushStep::ExtendTo(end)),
        }
        match self.cache.mutant_lacks_dependency(DependencyKind::SuperblockEof) {
            false => steps.between.push(superblock),
            true => steps.after.insert(0, superblock),
        }
    }
}

impl Drop for PendingFlush<'_> {
    fn drop(&mut self) {
        let Cache { shared_graph, dirty_raw_data, write_buffer, space, options, .. } = self.cache;
        // As much as a flush for want of memory writes.
        self.images.clear(options.dirty_metadata_budget_bytes / 2);
        if !self.succeeded {
            // The changes of a generation are completed in another way.
            if !self.cache.publishes_generations() {
                self.cache.keep_unfinished_redo(&self.steps, self.steps_done, self.has_single_redo());
            }
            self.cache.atomic_flush.fetch_or(self.is_atomic, Ordering::AcqRel);
        }
        for (n, step) in self.steps.iter_mut().enumerate() {
            match step {
                FlushStep::BufferedRaw(pieces) => {
                    write_buffer.end_write(std::mem::take(&mut pieces.0), n < self.steps_done)
                }
                FlushStep::Raw(writes) | FlushStep::RawWithOwnRedo(writes) => {
                    writes
                        .drain(..)
                        .for_each(|write| dirty_raw_data.end_chunk_write(write, n < self.steps_done, shared_graph));
                }
                _ => {}
            }
        }
        let mut graph = shared_graph.graph.lock();
        for (n, step) in self.steps.iter().enumerate() {
            match step {
                FlushStep::Entry { id, .. } if n < self.steps_done => graph.complete_write(*id),
                FlushStep::Entry { id, .. } => graph.fail_write(*id),
                _ => {}
            }
        }
        drop(graph);
        if self.is_whole_file {
            space.end_flush(self.succeeded);
        } else {
            self.cache.evict_unused(self.steps[..self.steps_done].iter().filter_map(FlushStep::new_entry_addr));
        }
    }
}
