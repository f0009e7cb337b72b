//! Quarantine: freed space waits for the flush that makes it unreachable, then for that flush to be durable if flushes
//! are durable, and then as the [`ReusePolicy`] says, because readers may still follow pointers that they have read
//! before: until it is known that nobody has the file open, or for a grace.

use std::collections::BTreeMap;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::ReusePolicy;
use super::sections_awaiting_no_readers::SectionsAwaitingNoReaders;
use super::space_kind::FreedSection;
use crate::entry_id::Owner;
use crate::metadata::FlushScope;

#[derive(Debug, Default)]
pub(super) struct Quarantine {
    policy: ReusePolicy,
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
    /// Unreachable, but some process may have had the file open ever since.
    unproven: SectionsAwaitingNoReaders,
    /// The last snapshot of a whole flush before which everything that was given back is unreachable, but likewise.
    unproven_snapshot: u64,
    /// Unreachable; by the time from which it is free.
    timed: BTreeMap<Duration, Vec<FreedSection>>,
    /// Bytes of that.
    timed_bytes: u64,
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
    pub fn new(durable_flushes: bool) -> Self {
        Quarantine { durable: durable_flushes, ..Quarantine::default() }
    }

    /// From now on the file has pages of `page` bytes.
    pub fn set_page_size(&mut self, page: u64) {
        self.unproven.set_page_size(page);
    }

    /// From now on a flush counts only once it is durable.
    pub fn require_durable_flushes(&mut self) {
        self.durable = true;
    }

    /// Decides what becomes of space after it becomes unreachable. Under [`ReusePolicy::Never`], no waiting space
    /// becomes free.
    pub fn set_policy(&mut self, policy: ReusePolicy) {
        self.policy = policy;
        if policy == ReusePolicy::Never {
            let lost = self.waiting.saturating_add(self.unreachable_bytes());
            self.given.clear();
            self.awaiting_flush = UnreachablePending::default();
            self.awaiting_sync = UnreachablePending::default();
            self.timed.clear();
            self.settling.clear();
            (self.timed_bytes, self.waiting) = (0, 0);
            self.unproven.take_all();
            self.unproven.add_abandoned_bytes(lost);
        }
    }

    /// Whether nobody reads the file meanwhile.
    pub fn assumes_no_readers(&self) -> bool {
        self.policy == ReusePolicy::AfterFlush
    }

    /// Adds a freed section. With an `sole_owner`, only structures of that object lead there.
    pub fn add_section(&mut self, section: FreedSection, sole_owner: Option<Owner>) {
        if self.policy == ReusePolicy::Never {
            return self.unproven.add_abandoned_bytes(section.1);
        }
        self.given.entry(sole_owner).or_default().push(section);
        self.waiting = self.waiting.saturating_add(section.1);
    }

    /// Other objects lead to `owner` and its freed space too. So only a whole flush makes that unreachable.
    pub fn require_full_flush_for_owner(&mut self, owner: Owner) {
        if let Some(sections) = self.given.remove(&Some(owner)) {
            self.given.entry(None).or_default().extend(sections);
        }
    }

    /// Bytes for which a flush has to come.
    pub fn freed_bytes_awaiting_flush(&self) -> u64 {
        self.waiting
    }

    /// The sections that were freed since the last flush of everything, of no object alone.
    pub fn freed_sections_awaiting_full_flush(&self) -> impl Iterator<Item = FreedSection> {
        self.given.get(&None).into_iter().flatten().copied()
    }

    pub fn begun_full_flush_count(&self) -> u64 {
        self.snapshots
    }

    /// The last snapshot before which everything that was given back is free.
    pub fn reclaimable_before_full_flush(&self) -> u64 {
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
    pub fn flush_mark(&self) -> FlushMark {
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
        match self.policy {
            ReusePolicy::Never => Vec::new(),
            ReusePolicy::AfterFlush => {
                self.settled = self.settled.max(snapshot.unwrap_or(0));
                sections.collect()
            }
            ReusePolicy::WhenExclusive => {
                sections.for_each(|section| self.unproven.add_section(section));
                self.unproven_snapshot = self.unproven_snapshot.max(snapshot.unwrap_or(0));
                Vec::new()
            }
            ReusePolicy::AfterGrace(grace) => {
                let sections = sections.collect();
                self.rest_for(sections, snapshot, grace.max(ReusePolicy::MIN_GRACE), now);
                Vec::new()
            }
        }
    }

    /// Sections to which nothing leads, and everything that was given back before a snapshot, rest for `rest` from `now`
    /// on.
    fn rest_for(&mut self, sections: Vec<FreedSection>, snapshot: Option<u64>, rest: Duration, now: Duration) {
        let until = rounded_deadline(rest, now);
        self.timed_bytes = self.timed_bytes.saturating_add(total_section_bytes(&sections));
        if !sections.is_empty() {
            self.timed.entry(until).or_default().extend(sections);
        }
        if let Some(snapshot) = snapshot {
            self.settling.insert(until, snapshot);
        }
    }

    /// A section of an earlier session, to which nothing leads, rests as what is freed in this one. Returns it if it is
    /// free.
    pub fn adopt_section(&mut self, section: FreedSection, now: Duration) -> Option<FreedSection> {
        match self.policy {
            ReusePolicy::AfterFlush => return Some(section),
            ReusePolicy::Never => self.unproven.add_abandoned_bytes(section.1),
            ReusePolicy::WhenExclusive => self.unproven.add_section(section),
            ReusePolicy::AfterGrace(grace) => {
                self.rest_for(vec![section], None, grace.max(ReusePolicy::MIN_GRACE), now);
            }
        }
        None
    }

    /// Removes what rests until it is known that nobody has the file open, because it is known now. The caller lets
    /// it rest for a time ([`Quarantine::begin_min_grace`]).
    pub fn take_awaiting_no_readers(&mut self) -> Vec<FreedSection> {
        self.unproven.take_all()
    }

    /// No process has had the file open for a moment since the `sections` became unreachable. They rest for a moment
    /// more, for readers that have the file open only while they read a part of it.
    pub fn begin_min_grace(&mut self, sections: Vec<FreedSection>, now: Duration) {
        let snapshot = Some(self.unproven_snapshot).filter(|snapshot| *snapshot > self.settled);
        self.rest_for(sections, snapshot, ReusePolicy::MIN_GRACE, now);
    }

    /// Whether something waits for the knowledge that nobody has the file open: at least so many bytes, or, with `or_inside_structures`,
    /// space inside structures.
    pub fn has_awaiting_no_readers(&self, min_bytes: u64, or_inside_structures: bool) -> bool {
        let last_settling = self.settling.last_key_value().map_or(self.settled, |(_, snapshot)| *snapshot);
        self.unproven.total_bytes() >= min_bytes || or_inside_structures && self.unproven_snapshot > last_settling
    }

    /// The policy.
    pub fn policy(&self) -> ReusePolicy {
        self.policy
    }

    /// Bytes of what rests.
    pub fn unreachable_bytes(&self) -> u64 {
        self.timed_bytes.saturating_add(self.unproven.total_bytes())
    }

    /// Bytes of what rests until it is known that nobody has the file open.
    pub fn bytes_awaiting_no_readers(&self) -> u64 {
        self.unproven.total_bytes()
    }

    /// Bytes of what rests for a time only.
    pub fn bytes_in_grace_period(&self) -> u64 {
        self.timed_bytes
    }

    /// Bytes that nobody gets in this session.
    pub fn abandoned_bytes(&self) -> u64 {
        self.unproven.abandoned_bytes()
    }

    /// Whether nothing rests for a time.
    pub fn is_grace_period_empty(&self) -> bool {
        self.timed.is_empty() && self.settling.is_empty()
    }

    /// Nobody reads what rests for a time.
    pub fn release_all_in_grace(&mut self) -> Vec<FreedSection> {
        self.release_grace_expired(Duration::MAX)
    }

    /// Returns the sections whose grace is over at the time `now`.
    pub fn release_grace_expired(&mut self, now: Duration) -> Vec<FreedSection> {
        while let Some(first) = self.settling.first_entry().filter(|first| *first.key() <= now) {
            self.settled = self.settled.max(first.remove());
        }
        let mut free = Vec::new();
        while let Some(first) = self.timed.first_entry().filter(|first| *first.key() <= now) {
            free.extend(first.remove());
        }
        self.timed_bytes = self.timed_bytes.saturating_sub(total_section_bytes(&free));
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
