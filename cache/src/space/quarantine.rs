//! Quarantine: freed space waits for the flush that makes it unreachable, then for that flush to be durable if flushes
//! are durable, and then for the grace. During the grace, readers may still follow pointers that they have read before.

use std::collections::BTreeMap;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::space_kind::SpaceKind;
use crate::entry_id::Owner;
use crate::metadata::FlushScope;

/// A section that waits: first byte, length (bytes), and its former purpose.
pub(super) type FreedSection = (u64, u64, SpaceKind);

#[derive(Debug, Default)]
pub(super) struct Quarantine {
    /// The time for which unreachable space rests; `None`: for ever.
    grace: Option<Duration>,
    /// Whether a flush counts only once it is durable.
    durable: bool,
    /// Space freed since the last snapshot: of a flush of the object that alone led there, or, without an object, of a
    /// flush of everything.
    given: FxHashMap<Option<Owner>, Vec<FreedSection>>,
    /// Given back before the snapshot of the flush that is under way.
    awaiting_flush: UnreachablePending,
    /// Unreachable, but not durably.
    awaiting_sync: UnreachablePending,
    /// Sections that have ever begun to rest.
    rested: u64,
    /// Unreachable; by the time from which it is free.
    resting: BTreeMap<Duration, Vec<FreedSection>>,
    /// Bytes of that.
    resting_bytes: u64,
    /// Bytes that wait for a flush.
    waiting: u64,
    /// Snapshots of whole flushes so far.
    snapshots: u64,
    /// The last of them before which everything that was given back is free, and those that will be: by the time.
    settled: u64,
    settling: BTreeMap<Duration, u64>,
}

#[derive(Debug, Default)]
struct UnreachablePending {
    sections: Vec<(Option<Owner>, FreedSection)>,
    /// The snapshot of a whole flush.
    snapshot: Option<u64>,
}

/// The state of flushing at one moment: the number of sections that were ever flushed, and the last snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlushMark {
    sections: u64,
    snapshot: Option<u64>,
}

/// Times are rounded up to this fraction of the grace, so that there are few different ones.
const GRACE_ROUNDING_PARTS: u32 = 64;

impl Quarantine {
    pub fn new(durable: bool) -> Self {
        Quarantine { grace: Some(Duration::ZERO), durable, ..Quarantine::default() }
    }

    /// From now on a flush counts only once it is durable.
    pub fn require_durable_flushes(&mut self) {
        self.durable = true;
    }

    /// Sets the time for which space rests after it becomes unreachable. Without a grace, no waiting space becomes
    /// free.
    pub fn set_grace(&mut self, grace: Option<Duration>) {
        self.grace = grace;
        if grace.is_none() {
            self.given.clear();
            self.awaiting_flush = UnreachablePending::default();
            self.awaiting_sync = UnreachablePending::default();
            self.resting.clear();
            self.settling.clear();
            (self.resting_bytes, self.waiting) = (0, 0);
        }
    }

    /// Whether nobody reads the file meanwhile.
    pub fn has_no_readers(&self) -> bool {
        self.grace == Some(Duration::ZERO)
    }

    /// Adds a freed section. With an `owner`, only structures of that object lead there.
    pub fn add_section(&mut self, section: FreedSection, owner: Option<Owner>) {
        if self.grace.is_some() {
            self.given.entry(owner).or_default().push(section);
            self.waiting = self.waiting.saturating_add(section.1);
        }
    }

    /// Other objects lead to `owner` and its freed space too. So only a whole flush makes that unreachable.
    pub fn clear_owner(&mut self, owner: Owner) {
        if let Some(sections) = self.given.remove(&Some(owner)) {
            self.given.entry(None).or_default().extend(sections);
        }
    }

    /// Bytes for which a flush has to come.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting
    }

    /// The sections that were freed since the last flush of everything, of no object alone.
    pub fn waiting_sections(&self) -> impl Iterator<Item = FreedSection> {
        self.given.get(&None).into_iter().flatten().copied()
    }

    pub fn snapshot_count(&self) -> u64 {
        self.snapshots
    }

    /// The last snapshot before which everything that was given back is free.
    pub fn settled_snapshot(&self) -> u64 {
        self.settled
    }

    /// A flush takes its snapshot.
    pub fn begin_flush(&mut self, scope: FlushScope) {
        match scope {
            FlushScope::All => {
                self.snapshots += 1;
                self.awaiting_flush.snapshot = Some(self.snapshots);
                let given = self.given.drain().flat_map(|(owner, all)| all.into_iter().map(move |s| (owner, s)));
                self.awaiting_flush.sections.extend(given);
            }
            FlushScope::Owner(_) if self.durable => {}
            FlushScope::Owner(owner) => {
                let given = self.given.remove(&Some(owner)).into_iter().flatten();
                self.awaiting_flush.sections.extend(given.map(|section| (Some(owner), section)));
            }
        }
    }

    /// Ends a flush at the time `now`, and returns the sections that are free.
    pub fn end_flush(&mut self, succeeded: bool, now: Duration) -> Vec<FreedSection> {
        let UnreachablePending { sections, snapshot } = std::mem::take(&mut self.awaiting_flush);
        if !succeeded {
            for (owner, section) in sections {
                self.given.entry(owner).or_default().push(section);
            }
            return Vec::new();
        }
        let bytes = sections.iter().fold(0u64, |sum, (_, (_, len, _))| sum.saturating_add(*len));
        self.waiting = self.waiting.saturating_sub(bytes);
        self.awaiting_sync.sections.extend(sections);
        self.awaiting_sync.snapshot = snapshot.or(self.awaiting_sync.snapshot);
        if self.durable { Vec::new() } else { self.begin_grace(usize::MAX, now) }
    }

    /// The present state of flushing, for [`Quarantine::end_sync`].
    pub fn begin_sync(&self) -> FlushMark {
        FlushMark {
            sections: self.rested + self.awaiting_sync.sections.len() as u64,
            snapshot: self.awaiting_sync.snapshot,
        }
    }

    /// Ends a sync at the time `now`: everything that had been `flushed` is durable. Returns the sections that are
    /// free.
    pub fn end_sync(&mut self, flushed: FlushMark, now: Duration) -> Vec<FreedSection> {
        let FlushMark { sections, snapshot } = flushed;
        let later = std::mem::replace(&mut self.awaiting_sync.snapshot, snapshot).filter(|last| Some(*last) > snapshot);
        let free = self.begin_grace(sections.saturating_sub(self.rested) as usize, now);
        self.awaiting_sync.snapshot = later;
        free
    }

    /// The first `len` sections that have been flushed begin to rest.
    fn begin_grace(&mut self, len: usize, now: Duration) -> Vec<FreedSection> {
        let len = len.min(self.awaiting_sync.sections.len());
        self.rested += len as u64;
        let sections = self.awaiting_sync.sections.drain(..len).map(|(_, section)| section);
        let snapshot = self.awaiting_sync.snapshot.take();
        match self.grace {
            None => Vec::new(),
            Some(Duration::ZERO) => {
                self.settled = self.settled.max(snapshot.unwrap_or(0));
                sections.collect()
            }
            Some(grace) => {
                let until = rounded_deadline(grace, now);
                let resting = self.resting.entry(until).or_default();
                let before = resting.len();
                resting.extend(sections);
                let bytes = total_section_bytes(resting.get(before..).unwrap_or_default());
                self.resting_bytes = self.resting_bytes.saturating_add(bytes);
                if let Some(snapshot) = snapshot {
                    self.settling.insert(until, snapshot);
                }
                Vec::new()
            }
        }
    }

    /// A section to which nothing leads rests for `rest` from `now` on.
    pub fn defer_free(&mut self, section: FreedSection, rest: Duration, now: Duration) {
        self.resting_bytes = self.resting_bytes.saturating_add(section.1);
        self.resting.entry(rounded_deadline(rest, now)).or_default().push(section);
    }

    /// The time for which unreachable space rests.
    pub fn grace(&self) -> Option<Duration> {
        self.grace
    }

    /// Bytes of what rests.
    pub fn resting_bytes(&self) -> u64 {
        self.resting_bytes
    }

    pub fn has_no_resting(&self) -> bool {
        self.resting.is_empty() && self.settling.is_empty()
    }

    /// Nobody reads what rests.
    pub fn release_resting(&mut self) -> Vec<FreedSection> {
        self.release_expired(Duration::MAX)
    }

    /// Returns the sections whose grace is over at the time `now`.
    pub fn release_expired(&mut self, now: Duration) -> Vec<FreedSection> {
        while let Some(first) = self.settling.first_entry().filter(|first| *first.key() <= now) {
            self.settled = self.settled.max(first.remove());
        }
        let mut free = Vec::new();
        while let Some(first) = self.resting.first_entry().filter(|first| *first.key() <= now) {
            free.extend(first.remove());
        }
        self.resting_bytes = self.resting_bytes.saturating_sub(total_section_bytes(&free));
        free
    }
}

fn total_section_bytes(sections: &[FreedSection]) -> u64 {
    sections.iter().fold(0, |sum, (_, len, _)| sum.saturating_add(*len))
}

/// `grace` after `now`, or a little later.
fn rounded_deadline(grace: Duration, now: Duration) -> Duration {
    let part = (grace / GRACE_ROUNDING_PARTS).max(Duration::from_millis(1)).as_nanos();
    let until = now.saturating_add(grace).as_nanos().div_ceil(part).saturating_mul(part);
    u64::try_from(until).map_or(Duration::MAX, Duration::from_nanos)
}
