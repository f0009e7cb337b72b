//! Flushes of a session: what was changed becomes visible, or durable, or free to be used again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_cache::{EdgeKind, EntryPatch, FlushScope, Handle, Owner, UnpublishedPart};
use h5live_format::{Addr, EncodeError, ObjectHeader};
use h5live_model::Stats;
use h5live_swmr::Error as SwmrError;

use super::{NEVER_CHECKED, NativeSession};
use crate::Result;

/// Least freed bytes that are worth a flush, so that they can be used again.
const MIN_RECLAIM_BYTES: u64 = 4 << 10;

/// Operations between two such flushes: structures that a flush has written are copied when they next change.
const MAX_OPERATIONS_BETWEEN_RECLAIMS: u64 = 128;
const MIN_OPERATIONS_BETWEEN_RECLAIMS: u64 = 16;

/// Bytes of a file for each operation between two such flushes.
const FILE_BYTES_PER_OPERATION: u64 = 256 << 10;

/// Bytes of a heap of names that are written for each operation, at most, so that names can be used again: if they
/// cannot, the heap is moved sooner or later.
const MAX_NAME_BYTES_PER_OPERATION: u64 = 512;

/// The time for which a check of the ownership of the file is valid...
const OWNERSHIP_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// ...and this long for a flush that is followed by another check. So the check delays nobody who waits for the flush.
const FLUSH_OWNERSHIP_CHECK_INTERVAL: Duration = Duration::from_millis(2);

impl NativeSession {
    /// Makes the operation that is under way atomic: it changes several structures that belong together. They are there
    /// as a whole or not at all, even if the flush fails that writes them. Followers of a live file see one structure
    /// after the other in any case.
    pub fn require_atomic_flush(&self) {
        if !self.has_followers() {
            self.cache.require_atomic_flush();
        }
    }

    /// Whether flushes are durable.
    pub fn is_durable(&self) -> bool {
        self.durable
    }

    pub fn flush(&self, scope: FlushScope) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Ok(());
        }
        let pending = if scope == FlushScope::All { self.unlinked.take_pending() } else { Vec::new() };
        let flushed = self.flush_once(scope);
        match flushed {
            Ok(()) if pending.is_empty() => return Ok(()),
            Ok(()) => self.finalize_deletes(pending)?,
            Err(error) => {
                self.unlinked.delete_later(pending);
                return Err(error);
            }
        }
        self.flush_once(scope)
    }

    /// Refuses to write on where nobody reads it, or where others may write too, as far as was seen `hold` ago at most.
    fn check_ownership(&self, now: Duration, hold: Duration) -> Result<()> {
        let looked = self.ownership_checked_at.load(Ordering::Relaxed);
        if looked != NEVER_CHECKED && nanos(now).saturating_sub(looked) < nanos(hold) {
            return Ok(());
        }
        self.ownership_checked_at.store(NEVER_CHECKED, Ordering::Relaxed);
        self.opened.check(self.cache.space().least_length())?;
        if self.has_liveness_lock && !self.lock.is_liveness_locked() {
            return Err(SwmrError::LockLost.into());
        }
        self.ownership_checked_at.store(nanos(now), Ordering::Relaxed);
        Ok(())
    }

    /// As [`NativeSession::check_ownership`], as of now: nothing is promised to last that does not.
    pub(super) fn check_hold_now(&self) -> Result<()> {
        self.ownership_checked_at.store(NEVER_CHECKED, Ordering::Relaxed);
        self.check_ownership(self.clock.now(), OWNERSHIP_CHECK_INTERVAL)
    }

    /// Makes everything that was flushed durable.
    fn sync(&self) -> Result<()> {
        self.cache.sync()?;
        self.check_hold_now()
    }

    fn flush_once(&self, scope: FlushScope) -> Result<()> {
        self.timed_flush(|| self.flush_untimed(scope))
    }

    /// Publishes elements that no reader can see yet by the fast path, with the header that states them. Returns
    /// `false` if the fast path cannot be used.
    pub fn publish_fast<'a>(
        &self,
        part: UnpublishedPart<'_>,
        header: &Handle<ObjectHeader>,
        change: impl FnOnce(&mut ObjectHeader, u64) -> Option<std::result::Result<EntryPatch<'a>, EncodeError>>,
    ) -> Result<bool> {
        let len = header.read().prefix.chunk_len();
        self.timed_flush(|| Ok(self.cache.publish_part(part, header, len, change)?))
    }

    fn timed_flush<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = self.clock.now();
        self.check_ownership(begin, FLUSH_OWNERSHIP_CHECK_INTERVAL)?;
        if self.reuse_unread && self.has_followers() {
            self.cache.space().reclaim_if(|| self.lock.is_sole_handle());
        }
        let flushed = write();
        let end = self.clock.now();
        // The write has been made. If the file is no longer ours, the next flush is refused.
        let _refused = self.check_ownership(end, OWNERSHIP_CHECK_INTERVAL);
        let took = nanos(end.saturating_sub(begin));
        self.flush_nanos.fetch_add(took, Ordering::Relaxed);
        self.longest_flush_nanos.fetch_max(took, Ordering::Relaxed);
        flushed
    }

    /// Statistics of this session.
    pub fn stats(&self) -> Stats {
        let totals = self.cache.stats();
        let counts = self.retry.counts();
        let time = |count: &AtomicU64| Duration::from_nanos(count.load(Ordering::Relaxed));
        let mut stats = Stats::default();
        stats.bytes_read = totals.bytes_read;
        stats.bytes_written = totals.bytes_written;
        stats.writes = totals.writes;
        stats.hits = totals.hits;
        stats.misses = totals.misses;
        stats.torn = counts.torn.load(Ordering::Relaxed);
        stats.retries = counts.retries.load(Ordering::Relaxed);
        stats.flushes = totals.flushes;
        stats.flush_time = time(&self.flush_nanos);
        stats.longest_flush = time(&self.longest_flush_nanos);
        stats
    }

    fn flush_untimed(&self, scope: FlushScope) -> Result<()> {
        let generation = self.heap.lock().begin_flush();
        if scope == FlushScope::All {
            self.heap_reuse.begin_flush();
        }
        self.cache.flush(scope)?;
        if scope == FlushScope::All {
            self.heap.lock().end_flush(generation);
        }
        if self.durable && scope == FlushScope::All { self.sync() } else { Ok(()) }
    }

    /// Flushes now and then if much was given back that can be used again only after a flush. Call it after operations
    /// that give space back or take some, between operations.
    ///
    /// # Errors
    /// If the flush fails; the operation is done then, and is flushed later.
    pub fn reclaim_space(&self) -> Result<()> {
        // While others follow, only the flushes of the program decide what they see.
        if self.has_followers() {
            return Ok(());
        }
        self.cache.flush_excess()?;
        let operations = self.operations_since_reclaim.fetch_add(1, Ordering::Relaxed);
        // In a small file, the waiting space is much of the file.
        let many = (self.cache.space().end() / FILE_BYTES_PER_OPERATION)
            .clamp(MIN_OPERATIONS_BETWEEN_RECLAIMS, MAX_OPERATIONS_BETWEEN_RECLAIMS);
        if u64::from(operations) < many {
            return Ok(());
        }
        let space = self.cache.space();
        // The end need not have moved if there had been a flush before.
        let share = if space.end() > self.end_at_reclaim.load(Ordering::Relaxed) { 512 } else { 128 };
        let names = self.heap_reuse.pending_name_bytes();
        let are_names_worth_it = names > 0 && u64::from(operations) >= names / MAX_NAME_BYTES_PER_OPERATION;
        if space.pending_free_bytes() <= (space.end() / share).max(MIN_RECLAIM_BYTES) && !are_names_worth_it {
            return Ok(());
        }
        self.operations_since_reclaim.store(0, Ordering::Relaxed);
        self.end_at_reclaim.store(space.end(), Ordering::Relaxed);
        self.flush(FlushScope::All)
    }

    /// Flushes, and returns when everything of that will outlast a power failure.
    pub fn flush_durable(&self, scope: FlushScope) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Ok(());
        }
        self.cache.enable_barriers();
        self.has_barriers.store(true, Ordering::Release);
        self.check_hold_now()?;
        self.flush(scope)?;
        self.sync()
    }

    /// Orders two headers: later changes of the header at `later` are written only after the present changes of the
    /// header at `earlier`, and after everything to which that leads.
    pub fn publish_after(&self, later: Addr, earlier: Addr) -> Result<()> {
        self.check_writable()?;
        let circle = {
            let _operation = self.cache.begin_operation();
            let (later, earlier) = (self.header(later)?, self.header(earlier)?);
            later.chunk_nodes().any(|parent| {
                let mut children = earlier.chunk_nodes();
                children.any(|child| self.cache.add_dependency_once(parent, child, EdgeKind::PublishAfter).is_err())
            })
        };
        // Something of the earlier one already waits for the later one, which is thus to be written first and again.
        if circle { self.flush(FlushScope::Owner(Owner::new(earlier))) } else { Ok(()) }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
