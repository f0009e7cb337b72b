//! Flushes of a session: what was changed becomes visible, or durable, or free to be used again.

use std::sync::atomic::Ordering;

use h5live_cache::{DependencyKind, EntryPatch, FlushScope, Handle, Owner, UnpublishedChunkData};
use h5live_format::{Addr, EncodeError, FirstHeaderChunk};
use h5live_model::Stats;

use super::NativeSession;
use super::file_hold::{CHECK_INTERVAL, FLUSH_CHECK_INTERVAL};
use crate::Result;

impl NativeSession {
    /// Makes the operation that is under way atomic: it changes several structures that belong together. They are there
    /// as a whole or not at all, even if the flush fails that writes them. Followers of a live file see one structure
    /// after the other in any case.
    pub fn make_flush_atomic_unless_followed(&self) {
        if !self.may_be_followed() {
            self.cache.make_next_flush_atomic();
        }
    }

    pub fn flush(&self, scope: FlushScope) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Ok(());
        }
        let pending = if scope == FlushScope::All { self.unlinked.take_pending_deletes() } else { Vec::new() };
        let flushed = self.flush_guarded(scope);
        match flushed {
            Ok(()) if pending.is_empty() => return Ok(()),
            Ok(()) => self.finalize_deletes(pending)?,
            Err(error) => {
                self.unlinked.delete_later(pending);
                return Err(error);
            }
        }
        self.flush_guarded(scope)
    }

    /// Refuses to go on if the file is not ours any more, as of now: nothing is promised to last that does not.
    pub(super) fn check_file_held(&self) -> Result<()> {
        self.hold.check_held_now(self.cache.space().min_storage_len())
    }

    /// Makes everything that was flushed durable.
    fn sync(&self) -> Result<()> {
        self.cache.sync_flushed()?;
        self.check_file_held()
    }

    fn flush_guarded(&self, scope: FlushScope) -> Result<()> {
        self.run_guarded_flush(|| self.flush_scope(scope))
    }

    /// Publishes elements that no reader can see yet in place, with the header that states them. Returns `false` if
    /// more must be done.
    pub fn try_publish_in_place<'a>(
        &self,
        part: UnpublishedChunkData<'_>,
        header: &Handle<FirstHeaderChunk>,
        change: impl FnOnce(&mut FirstHeaderChunk, u64) -> Option<std::result::Result<EntryPatch<'a>, EncodeError>>,
    ) -> Result<bool> {
        let len = header.read().prefix.first_chunk_len();
        self.run_guarded_flush(|| Ok(self.cache.try_publish_in_place(part, header, len, change)?))
    }

    fn run_guarded_flush<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        let (hold, space) = (&self.hold, self.cache.space());
        let begin = hold.clock.now();
        hold.check_held_with_max_age(|| space.min_storage_len(), begin, FLUSH_CHECK_INTERVAL)?;
        self.followers.begin_grace_and_check_limit(space, hold.lock_handle())?;
        let flushed = write();
        let end = hold.clock.now();
        // The write has been made. If the file is no longer ours, the next flush is refused.
        let _refused = hold.check_held_with_max_age(|| space.min_storage_len(), end, CHECK_INTERVAL);
        self.flush_times.record_flush(end.saturating_sub(begin));
        flushed
    }

    /// Statistics of this session.
    pub fn session_stats(&self) -> Stats {
        let totals = self.cache.stats();
        let counts = self.retry.counters();
        let mut stats = Stats::default();
        stats.bytes_read = totals.bytes_read;
        stats.bytes_written = totals.bytes_written;
        stats.writes = totals.writes;
        stats.hits = totals.hits;
        stats.misses = totals.misses;
        stats.torn = counts.retried_operations.load(Ordering::Relaxed);
        stats.retries = counts.retries.load(Ordering::Relaxed);
        stats.flushes = totals.flushes;
        let resting = self.cache.space().quarantine_stats();
        stats.resting_bytes = resting.unreachable_bytes.saturating_add(resting.abandoned_bytes);
        self.flush_times.copy_to_stats(&mut stats);
        stats
    }

    fn flush_scope(&self, scope: FlushScope) -> Result<()> {
        let generation = self.global_heap.begin_flush();
        if scope == FlushScope::All {
            self.heaps.reset_largest_reclaimable_name_heap();
        }
        self.cache.flush(scope)?;
        self.global_heap.end_flush(generation);
        if self.durable_flushes.is_always() && scope == FlushScope::All { self.sync() } else { Ok(()) }
    }

    /// Flushes now and then if much was given back that can be used again only after a flush. Call it after operations
    /// that give space back or take some, between operations.
    ///
    /// # Errors
    /// If the flush fails; the operation is done then, and is flushed later.
    pub fn count_operation_and_flush_if_due(&self) -> Result<()> {
        // While others follow, only the flushes of the program decide what they see.
        if self.may_be_followed() {
            return Ok(());
        }
        self.cache.flush_over_budget()?;
        let is_due = self
            .reclaims
            .count_operation_and_check_due(self.cache.space(), || self.heaps.largest_reclaimable_name_heap_bytes());
        if is_due { self.flush(FlushScope::All) } else { Ok(()) }
    }

    /// Flushes, and returns when everything of that will outlast a power failure.
    pub fn flush_durable(&self, scope: FlushScope) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Ok(());
        }
        self.durable_flushes.enable_barriers(&self.cache);
        self.check_file_held()?;
        self.flush(scope)?;
        self.sync()
    }

    /// Orders two headers: later changes of the header at `later` are written only after the present changes of the
    /// header at `earlier`, and after everything to which that leads.
    pub fn order_headers(&self, later: Addr, earlier: Addr) -> Result<()> {
        self.check_writable()?;
        let circle = {
            let _operation = self.cache.begin_atomic_change();
            let (later, earlier) = (self.load_header(later)?, self.load_header(earlier)?);
            later.chunk_nodes().any(|parent| {
                let mut children = earlier.chunk_nodes();
                children.any(|child| {
                    self.cache.add_dependency_until_clean(parent, child, DependencyKind::PublishAfter).is_err()
                })
            })
        };
        // Something of the earlier one already waits for the later one, which is thus to be written first and again.
        if circle { self.flush(FlushScope::Owner(Owner::new(earlier))) } else { Ok(()) }
    }
}
