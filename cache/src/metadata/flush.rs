//! Writing what is dirty, in two phases: a snapshot, then the writes.
//!
//! The snapshot is taken while no operation is under way: it orders what is dirty, encodes it, and takes the raw
//! data that waits. The writes go on beside new operations; what they make dirty is for the next flush.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use h5live_format::{Addr, Generation, Intent, Turn};

use super::generation::Frame;
use super::intent;
use super::order::{Picked, Scope, Take, What};
use crate::{
    cache::{Cache, Settings},
    chunks::{Pieces, RawFlight},
    edge::EdgeKind,
    entry::EntryId,
    error::{Action, Error, Result},
    primitive::{MutexGuard, RwLockWriteGuard},
    reentry::{Inside, Mark, enter},
    stats::count,
};

/// One step of a flush.
#[non_exhaustive]
pub enum Step {
    /// The file is made at least this long, in bytes from the base address.
    Extend(u64),
    /// Everything before becomes durable.
    Barrier,
    /// What is about to be changed in place is written down behind the announced end of the file.
    Intent {
        /// What, and where it is written down.
        intent: Intent,
        /// Whether raw data that readers may be reading is part of it.
        is_seen: bool,
    },
    /// The intent of an earlier flush is made invalid: what it says is in its place.
    Forget(Addr),
    /// As [`Step::Forget`], of an intent of this flush.
    Settle(Addr),
    /// Before `end` is announced: the generation is shown there.
    Show {
        /// In bytes from the base address.
        end: u64,
        /// The generation, which stays the same.
        generation: Generation,
    },
    /// Another generation is shown.
    Generation {
        /// Where.
        at: Addr,
        /// The generation.
        generation: Generation,
    },
    /// Small pieces of new raw data, to which nothing leads yet, are written.
    Early(EarlyPieces),
    /// Raw data is written, in any order.
    Raw(Vec<RawFlight>),
    /// Raw data is written over what readers may be reading, each part after an intent of its own.
    InPlace(Vec<RawFlight>),
    /// The superblock is written.
    Superblock {
        /// Where it is.
        at: Addr,
        /// Its bytes.
        bytes: Vec<u8>,
        /// The end of file that it announces, in bytes from the base address.
        end: u64,
    },
    /// An entry is written.
    Entry {
        /// Its identity.
        id: EntryId,
        /// Where it is.
        at: Addr,
        /// The name of its type.
        name: &'static str,
        /// Its bytes.
        image: Vec<u8>,
        /// Whether the file leads to it already: it is changed in place.
        in_place: bool,
        /// Whether something must be written before it in the same flush.
        waits: bool,
    },
}

impl Step {
    /// Where an entry is, in bytes from the base address.
    fn place(&self) -> Option<u64> {
        match self {
            Step::Entry { at, .. } => at.get(),
            _ => None,
        }
    }

    /// Where the entry is, if it is one that the file did not have.
    fn new_entry(&self) -> Option<Addr> {
        match self {
            Step::Entry { at, in_place: false, .. } => Some(*at),
            _ => None,
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Extend(len) => write!(f, "extend to {len:#x}"),
            Step::Barrier => f.write_str("barrier"),
            Step::Intent { intent, .. } => write!(f, "intent at {}, {} writes", intent.place, intent.writes.len()),
            Step::Forget(at) | Step::Settle(at) => write!(f, "forget the intent at {at}"),
            Step::Show { end, generation } => write!(f, "show {generation:?} at the end {end:#x}"),
            Step::Generation { generation, .. } => write!(f, "{generation:?}"),
            Step::Early(pieces) => write!(f, "{} bytes of new raw data", pieces.0.weight()),
            Step::Raw(flights) | Step::InPlace(flights) => {
                f.debug_list().entries(flights.iter().map(|flight| flight.chunk())).finish()
            }
            Step::Superblock { end, .. } => write!(f, "announce {end:#x}"),
            Step::Entry { id, at, name, image, .. } => write!(f, "{name} {id:?} at {at}, {} bytes", image.len()),
        }
    }
}

/// What [`Cache::write_raw_through`] gathered.
pub struct EarlyPieces(Arc<Pieces>);

/// What a flush will write, in order. While it exists, no other flush runs. What is not written when it is dropped
/// is dirty again.
pub struct FlushPlan<'a> {
    cache: &'a Cache,
    steps: Vec<Step>,
    done: usize,
    /// Everything that was dirty in a scope is in the steps.
    whole: bool,
    /// As [`Settings::barriers`], as it was when the snapshot was taken.
    barriers: bool,
    /// As [`Cache::write_as_one`].
    as_one: bool,
    succeeded: bool,
    /// While there are intents, nothing else is written behind the announced end.
    beyond: Option<RwLockWriteGuard<'a, ()>>,
    _only: MutexGuard<'a, ()>,
    _inside: Mark,
}

impl fmt::Debug for FlushPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.steps).finish()
    }
}

/// Elements that a flush writes over others, more than this many bytes in memory, are not written down first.
const WRITTEN_TWICE: usize = 1 << 20;

/// Most bytes of entries that one write takes.
const WRITTEN_AT_ONCE: usize = 1 << 20;

/// What a flush does beside writing what was dirty.
#[derive(Default)]
struct Joints {
    before: Vec<Step>,
    /// Before what the file leads to is changed.
    between: Vec<Step>,
    /// Intents, each before the change with this number.
    intents: Vec<(usize, Step)>,
    after: Vec<Step>,
}

impl Cache {
    /// Writes what is dirty in `scope`: first the file is made long enough, then raw data is written, then the
    /// superblock if it must announce a new end, then entries, children before parents. Returns when the
    /// operating system has it all; it is not durable before [`Cache::sync`]. Operations go on meanwhile.
    ///
    /// Must not be called inside an operation.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Encode`]; what was not written is still dirty. [`Error::ReadOnly`].
    pub fn flush(&self, scope: Scope) -> Result<()> {
        match scope {
            Scope::Owner(owner) if self.flush_chain(owner)? => Ok(()),
            _ => self.plan(scope)?.write(),
        }
    }

    /// Takes the snapshot of a flush, without writing it.
    ///
    /// # Errors
    /// [`Error::Encode`] if an entry cannot be written.
    pub fn plan(&self, scope: Scope) -> Result<FlushPlan<'_>> {
        self.snapshot(Take::Scope(scope))
    }

    /// Writes part of what is dirty, if it takes more memory than it should. Call it between operations.
    ///
    /// # Errors
    /// As [`Cache::flush`].
    pub fn trim(&self) -> Result<()> {
        let too_dirty = self.ledger.graph.lock().dirty_weight() > self.settings.dirty_budget;
        let raw = self.chunks.waiting() > self.settings.raw_budget;
        if !too_dirty && !raw {
            return Ok(());
        }
        let leave = if too_dirty { self.settings.dirty_budget / 2 } else { usize::MAX };
        self.snapshot(Take::Excess { leave, raw })?.write()?;
        // Raw data that waits for metadata of other objects (global heaps) goes only with a whole flush.
        if self.chunks.waiting() > self.settings.raw_budget {
            self.flush(Scope::All)?;
        }
        Ok(())
    }

    fn snapshot(&self, take: Take) -> Result<FlushPlan<'_>> {
        let inside = enter(self, Inside::Flush, &[Inside::Operation, Inside::Flush]);
        let only = self.flushing.lock();
        let _gate = self.gate.write();
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let as_one = matches!(take, Take::Scope(_)) && self.as_one.swap(false, Ordering::AcqRel);
        let take = if as_one { Take::Scope(Scope::All) } else { take };
        let scope = match take {
            Take::Scope(scope) => Some(scope),
            Take::Excess { .. } => None,
        };
        let picked = self.ledger.graph.lock().take(take);
        if let Some(scope) = scope {
            self.space.begin_flush(scope);
        }
        let mut plan = FlushPlan {
            cache: self,
            steps: Vec::new(),
            done: 0,
            whole: scope.is_some(),
            barriers: self.has_barriers(),
            as_one,
            succeeded: false,
            beyond: None,
            _only: only,
            _inside: inside,
        };
        if !picked.is_empty() || scope == Some(Scope::All) {
            plan.fill(picked)?;
        }
        Ok(plan)
    }

    /// The one place where a flush writes.
    fn write_step(&self, step: &Step) -> Result<()> {
        match step {
            Step::Extend(len) => self.space.reach(*len, &*self.storage),
            Step::Barrier => self.sync(),
            Step::Intent { intent, is_seen } => self.write_intent(intent, *is_seen),
            Step::Forget(at) => self.forget_intent(*at),
            Step::Settle(at) => self.settle_intent(*at),
            Step::Show { end, generation } => self.show_generation_at(*end, *generation),
            Step::Generation { at, generation } => self.write_generation(*at, *generation),
            Step::Early(pieces) => self.write_early(&pieces.0),
            Step::Raw(flights) => self.write_flights(flights),
            Step::InPlace(flights) => self.write_in_place(flights),
            Step::Superblock { at, bytes, end } => {
                self.write_at(Action::WriteSuperblock, *at, bytes)?;
                self.space.set_announced(*end);
                Ok(())
            }
            Step::Entry { at, name, image, .. } => self.write_at(Action::WriteEntry(name), *at, image),
        }
    }

    pub(crate) fn write_at(&self, action: Action, at: Addr, bytes: &[u8]) -> Result<()> {
        let at = at.get().ok_or(Error::Undefined)?;
        let len = bytes.len() as u64;
        self.storage.write_at(bytes, at).map_err(Error::io(action, at, len))?;
        self.count_write(bytes.len());
        Ok(())
    }

    pub(super) fn count_write(&self, bytes: usize) {
        count(&self.stats.writes, 1);
        count(&self.stats.bytes_written, bytes as u64);
    }
}

impl FlushPlan<'_> {
    /// The steps, in the order in which they will be taken.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes all steps.
    ///
    /// # Errors
    /// [`Error::Io`] at the first step that fails; from it on everything is dirty again.
    pub fn write(mut self) -> Result<()> {
        if !self.steps.is_empty() {
            count(&self.cache.stats.flushes, 1);
            self.cache.finish_intent(self.barriers)?;
        }
        self.cache.finish_generation()?;
        self.cache.early.await_others();
        while self.done < self.steps.len() {
            self.done = match self.new_entries() {
                0..=1 => {
                    self.cache.write_step(&self.steps[self.done])?;
                    self.done + 1
                }
                several => self.write_new(several)?,
            };
        }
        self.succeeded = true;
        Ok(())
    }

    /// How many of the next steps write new entries that wait for nothing: their order is free.
    fn new_entries(&self) -> usize {
        let next = self.steps[self.done..].iter();
        next.take_while(|step| matches!(step, Step::Entry { in_place: false, waits: false, .. })).count()
    }

    /// Takes the next steps, as many as [`FlushPlan::new_entries`] said, in the order of their places: neighbours in one
    /// write. Returns the number of the step after them.
    fn write_new(&mut self, several: usize) -> Result<usize> {
        let end = self.done + several;
        self.steps[self.done..end].sort_by_key(Step::place);
        let mut bytes = Vec::new();
        while self.done < end {
            let first = &self.steps[self.done];
            bytes.clear();
            let mut next = self.done;
            while let Some(Step::Entry { at, image, .. }) = self.steps[..end].get(next) {
                let touches = first.place().and_then(|start| start.checked_add(bytes.len() as u64)) == at.get();
                if next > self.done && !(touches && bytes.len() + image.len() <= WRITTEN_AT_ONCE) {
                    break;
                }
                bytes.extend_from_slice(image);
                next += 1;
            }
            if let Step::Entry { at, name, .. } = first {
                self.cache.write_at(Action::WriteEntry(name), *at, &bytes)?;
            }
            self.done = next;
        }
        Ok(end)
    }

    /// Whether all that is changed in place has one intent.
    fn is_one(&self) -> bool {
        self.barriers || self.as_one || self.cache.has_generations()
    }

    fn fill(&mut self, picked: Vec<Picked>) -> Result<()> {
        let cache = self.cache;
        let raw = picked.iter().filter_map(|pick| match &pick.what {
            What::Raw { chunk } if !pick.waits => cache.chunks.take(*chunk),
            _ => None,
        });
        let Settings { without_intents, disabled_edges, .. } = cache.settings;
        let guarded = !without_intents && !disabled_edges.contains(EdgeKind::RawInPlace);
        let (seen, raw): (Vec<RawFlight>, Vec<_>) = raw.partition(|flight| guarded && flight.is_seen());
        let (over, raw): (Vec<RawFlight>, _) = raw.into_iter().partition(|flight| self.as_one && flight.is_over());
        let much = over.iter().fold(0, |sum: usize, flight| sum.saturating_add(flight.weight())) > WRITTEN_TWICE;
        let (raw, over) = if much { (over.into_iter().chain(raw).collect(), Vec::new()) } else { (raw, over) };
        // Raw data may be written over it. The space that it is in is among what is announced below.
        self.steps.extend(cache.early.take().map(|pieces| Step::Early(EarlyPieces(pieces))));
        self.steps.extend((!raw.is_empty()).then_some(Step::Raw(raw)));
        let by_itself = self.is_one();
        // One intent of the flush says of it what is to be, or each its own.
        let in_place = if by_itself { Step::Raw } else { Step::InPlace };
        let mut changes = Vec::with_capacity(picked.len() + 2);
        changes.extend((!over.is_empty()).then_some(Step::Raw(over)));
        changes.extend((!seen.is_empty()).then(|| in_place(seen)));
        let mut new = Vec::new();
        let mut failure = None;
        // Each picked entry becomes a step even after a failure: dropping the plan makes them dirty again.
        for Picked { id, what, waits } in picked {
            match what {
                What::Raw { .. } if !waits => {}
                What::Raw { chunk } => {
                    let Some(flight) = cache.chunks.take(chunk) else { continue };
                    let seen = guarded && flight.is_seen();
                    let unreachable = self.as_one && !flight.is_over() && !seen;
                    let list = if unreachable { &mut new } else { &mut changes };
                    match list.last_mut() {
                        Some(Step::Raw(flights)) if !seen || by_itself => flights.push(flight),
                        Some(Step::InPlace(flights)) if seen => flights.push(flight),
                        _ if seen => list.push(in_place(vec![flight])),
                        _ => list.push(Step::Raw(vec![flight])),
                    }
                }
                What::Entry(slot) => {
                    let at = slot.head().addr;
                    let image = match failure {
                        Some(_) => Vec::new(),
                        None => slot.take_image(cache.settings.widths).unwrap_or_else(|source| {
                            failure = Some(Error::Encode { at, source });
                            Vec::new()
                        }),
                    };
                    let in_place = slot.head().is_stored();
                    let step = Step::Entry { id, at, name: slot.type_name(), image, in_place, waits };
                    // Nothing in the file leads to what is new, so it may come before all that does.
                    let first = by_itself && !in_place;
                    if first { new.push(step) } else { changes.push(step) }
                }
            }
        }
        let joints = failure.map_or_else(|| self.joints(&changes), Err);
        let (Joints { before, between, intents, after }, done) = match joints {
            Ok(joints) => (joints, Ok(())),
            Err(error) => (Joints::default(), Err(error)),
        };
        self.steps.splice(0..0, before);
        self.steps.reserve(new.len() + between.len() + changes.len() + intents.len() + after.len());
        self.steps.append(&mut new);
        self.steps.extend(between);
        let mut changes = changes.into_iter();
        let mut taken = 0;
        for (at, intent) in intents {
            self.steps.extend(changes.by_ref().take(at - taken));
            self.steps.push(intent);
            taken = at;
        }
        self.steps.extend(changes);
        self.steps.extend(after);
        done
    }

    /// What there is to do beside writing what was dirty. `changes` are the steps that begin with the first one to
    /// change what the file leads to; those before them are elsewhere.
    fn joints(&mut self, changes: &[Step]) -> Result<Joints> {
        let cache = self.cache;
        let settings = &Settings { barriers: self.barriers, ..cache.settings.clone() };
        if let Some(Frame { before, between, after }) = cache.frame(settings, changes)? {
            self.beyond = Some(cache.intents.beyond.write());
            return Ok(Joints { before, between, after, ..Joints::default() });
        }
        let joined = cache.standing_intent().is_some() || cache.space.must_announce();
        let groups = intent::groups(settings, changes, self.as_one, joined);
        if !groups.is_empty() || changes.iter().any(|change| matches!(change, Step::InPlace(_))) {
            // What is allocated from now on is not part of this flush, and must not be written where intents are.
            self.beyond = Some(cache.intents.beyond.write());
        }
        let announcement = cache.announcement()?;
        let end = announcement.as_ref().map_or(cache.space.announced(), |(_, _, end)| *end);
        let place = Turn::place(Addr::new(end)).ok_or(Error::Undefined)?;
        let mut intents = Vec::with_capacity(groups.len());
        let mut is_seen = false;
        for group in groups {
            let changes = changes.get(group.clone()).unwrap_or_default();
            is_seen |= changes.iter().any(intent::is_seen);
            intents.push((group.start, Step::Intent { intent: intent::intent(place, changes), is_seen }));
        }
        let mut joints = Joints::default();
        let standing = cache.standing_intent().filter(|at| *at == place);
        let changed_after = settings.barriers.then(|| intents.pop()).flatten().map(|(_, intent)| intent);
        if settings.barriers && (announcement.is_some() || !changes.is_empty()) {
            joints.between.push(Step::Barrier);
        }
        // With barriers, what an earlier intent says has long been durable in its place.
        joints.before.extend(standing.filter(|_| !settings.barriers).map(Step::Forget));
        joints.intents = intents;
        let has_intent = changed_after.is_some();
        joints.between.extend(changed_after);
        if let Some((at, bytes, end)) = announcement {
            self.announce(&mut joints, Step::Superblock { at, bytes, end }, end);
        }
        if has_intent {
            joints.between.push(Step::Barrier);
        }
        if is_seen {
            joints.after.extend(settings.barriers.then_some(Step::Barrier));
            joints.after.push(Step::Settle(place));
        }
        Ok(joints)
    }

    fn announce(&self, joints: &mut Joints, superblock: Step, end: u64) {
        let disabled = self.cache.settings.disabled_edges;
        // It is broken only for tests, and then as thoroughly as can be.
        match disabled.contains(EdgeKind::FileLength) {
            false => joints.before.insert(0, Step::Extend(end)),
            true => joints.after.push(Step::Extend(end)),
        }
        match disabled.contains(EdgeKind::EndOfFile) {
            false => joints.between.push(superblock),
            true => joints.after.insert(0, superblock),
        }
    }
}

impl Drop for FlushPlan<'_> {
    fn drop(&mut self) {
        let Cache { ledger, chunks, early, space, .. } = self.cache;
        if !self.succeeded {
            // What the generation says is under way is finished by itself.
            if !self.cache.has_generations() {
                self.cache.note_unfinished(&self.steps, self.done, self.is_one());
            }
            self.cache.as_one.fetch_or(self.as_one, Ordering::AcqRel);
        }
        for (n, step) in self.steps.iter_mut().enumerate() {
            match step {
                Step::Early(pieces) => early.land(std::mem::take(&mut pieces.0), n < self.done),
                Step::Raw(flights) | Step::InPlace(flights) => {
                    flights.drain(..).for_each(|flight| chunks.land(flight, n < self.done, ledger));
                }
                _ => {}
            }
        }
        let mut graph = ledger.graph.lock();
        for (n, step) in self.steps.iter().enumerate() {
            match step {
                Step::Entry { id, .. } if n < self.done => graph.written(*id),
                Step::Entry { id, .. } => graph.failed(*id),
                _ => {}
            }
        }
        drop(graph);
        if self.whole {
            space.end_flush(self.succeeded);
        } else {
            self.cache.evict_unused(self.steps[..self.done].iter().filter_map(Step::new_entry));
        }
    }
}
