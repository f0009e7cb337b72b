//! Space in the file: allocation, freed space, and the announced end of file.

mod free_list;
mod free_space;
mod metadata_blocks;
mod quarantine;
mod raw_reads;
mod reuse_policy;
mod sections_awaiting_no_readers;
mod space_kind;

use std::io;

use h5live_format::{Addr, Width};

pub use self::free_list::FreeList;
use self::free_space::FreeSpace;
pub(crate) use self::quarantine::FlushMark;
use self::quarantine::Quarantine;
pub use self::raw_reads::RawReadGuard;
use self::raw_reads::{FreesAwaitingReads, RawReads};
pub use self::reuse_policy::{QuarantineStats, ReusePolicy};
pub use self::space_kind::SpaceKind;
use self::space_kind::{FreedSection, METADATA_ALIGNMENT, OS_PAGE_BYTES};
use crate::{
    clock::Clock,
    entry_id::Owner,
    error::{Error, Result, StorageAction},
    metadata::FlushScope,
    primitive::Mutex,
    storage::Storage,
};

/// Addresses that are left behind the largest end of a file: what a writer writes down there needs some, too.
const RESERVED_TAIL_BYTES: u64 = 15;

/// Least resting bytes for which it is worth asking whether anybody has the file open.
const MIN_RECLAIM_QUERY_BYTES: u64 = 64 << 10;

/// Reclaim queries that are skipped after the answer "somebody has the file open", which is likely to stay the same.
const SKIPPED_RECLAIM_QUERIES: u32 = 31;

/// The space of one file.
#[derive(Debug)]
pub struct FileSpaceAllocator {
    state: Mutex<SpaceState>,
    clock: Clock,
    /// The length of the storage, which is never written beyond it. Taken before `state`, if with it.
    length: Mutex<Option<u64>>,
    raw_reads: RawReads,
}

#[derive(Debug)]
struct SpaceState {
    end: u64,
    superblock_eof: u64,
    /// The end of everything that was ever allocated or written, by whomever; behind it the storage holds zeros.
    used_end: u64,
    /// Whether that takes the length into account which the storage had at first: a writer that died may have left
    /// anything behind the end.
    is_length_known: bool,
    max_addr: u64,
    /// The end of the prefilled zeros behind the allocated space.
    zero_filled_end: u64,
    /// The end of what the storage was asked to find a place for.
    reserved_end: u64,
    free: FreeSpace,
    /// The largest end of any space that was ever freed.
    end_of_freed: u64,
    /// Freed space that is not free yet.
    quarantine: Quarantine,
    /// Unreachable, but a thread of this process may be reading it.
    unread_pending: FreesAwaitingReads,
    /// Reclaim queries that are still skipped.
    queries_to_skip: u32,
    /// Whether space inside a structure was wanted that rests.
    wants_epochs: bool,
}

/// Least bytes that the storage is asked to reserve ahead, and only for writes this near to the end...
const MIN_RESERVE_BYTES: u64 = 1 << 20;

/// ...and most bytes. A file system may search long for many bytes in one place.
const MAX_RESERVE_BYTES: u64 = 4 << 20;

/// The zeros for prefilling.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A moment between two snapshots of whole flushes, see [`FileSpaceAllocator::is_reclaimable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FreeEpoch(u64);

/// How far ahead of the allocated space a new end of file is announced, so that the superblock is seldom written.
fn eof_slack(end: u64) -> u64 {
    (end / 8).clamp(64 << 10, 16 << 20)
}

impl SpaceState {
    /// Frees space whose grace is over, and which nobody reads any more.
    fn reclaim_expired(&mut self, clock: &Clock, reads: &RawReads) {
        let mut free = Vec::new();
        if !self.quarantine.is_grace_period_empty() {
            free = self.quarantine.release_grace_expired(clock.now());
        }
        if !free.is_empty() || !self.unread_pending.is_empty() {
            self.free_sections(free, reads);
        }
    }

    fn raise_used_end(&mut self, end: u64) {
        self.used_end = self.used_end.max(end);
    }

    /// Frees what no structure leads to: at once, or raw data that is being read when nobody reads it any more.
    fn free_sections(&mut self, sections: Vec<FreedSection>, reads: &RawReads) {
        for section in sections {
            match section.2 {
                SpaceKind::Metadata => self.free_section(section),
                SpaceKind::Raw => self.unread_pending.add_section(section),
            }
        }
        for section in self.unread_pending.release_unread(reads) {
            self.free_section(section);
        }
    }

    /// Nobody has had the file open for a moment since what rests became unreachable.
    fn rest_unread(&mut self, clock: &Clock) {
        let merged = self.quarantine.take_awaiting_no_readers();
        let exact = merged.into_iter().flat_map(|section| self.free.split_at_boundaries(section)).collect();
        self.quarantine.begin_min_grace(exact, clock.now());
    }

    fn free_section(&mut self, (at, len, kind): FreedSection) {
        // Space that a damaged file frees may be outside of the file.
        if self.contains_range(at, len) {
            self.free.free_range(at, len, kind);
        }
    }

    /// Whether the `len` bytes at `at` lie in the allocated space.
    fn contains_range(&self, at: u64, len: u64) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.end)
    }
}

impl FileSpaceAllocator {
    /// The space of a file whose superblock announces `superblock_eof` (bytes from the base address), with addresses of `offset_width`
    /// width. With `durable_flushes`, freed space also waits until the flush that makes it unreachable is durable.
    pub fn new(superblock_eof: u64, offset_width: Width, clock: Clock, durable_flushes: bool) -> Self {
        let state = SpaceState {
            end: superblock_eof,
            superblock_eof,
            used_end: superblock_eof,
            is_length_known: false,
            max_addr: offset_width.max_value().saturating_sub(RESERVED_TAIL_BYTES),
            zero_filled_end: 0,
            reserved_end: 0,
            free: FreeSpace::default(),
            end_of_freed: 0,
            quarantine: Quarantine::new(durable_flushes),
            unread_pending: FreesAwaitingReads::default(),
            queries_to_skip: 0,
            wants_epochs: false,
        };
        FileSpaceAllocator { state: Mutex::new(state), clock, length: Mutex::new(None), raw_reads: RawReads::new() }
    }

    /// Space for `len` bytes.
    ///
    /// # Errors
    /// [`Error::AddressSpaceFull`] if addresses do not reach that far.
    pub fn alloc(&self, len: u64, kind: SpaceKind) -> Result<Addr> {
        self.alloc_with_zero_tail_offset(len, kind).map(|(addr, _)| addr)
    }

    /// As [`FileSpaceAllocator::alloc`], and the byte of the space from which on it is known to hold zeros for good: nothing was
    /// ever written there, and no redo record will be. It is `len` where nothing is known.
    ///
    /// # Errors
    /// As [`FileSpaceAllocator::alloc`].
    pub fn alloc_with_zero_tail_offset(&self, len: u64, kind: SpaceKind) -> Result<(Addr, u64)> {
        let state = &mut *self.state.lock();
        if let Some(at) = state.free.take_recently_freed(len, kind) {
            return Ok((Addr::new(at), len));
        }
        // The clock is not looked at for less than is wanted.
        if state.quarantine.bytes_in_grace_period() >= len || !state.unread_pending.is_empty() {
            state.reclaim_expired(&self.clock, &self.raw_reads);
        }
        let used = state.used_end;
        let at = state.free.alloc_free_or_extend(len, kind, &mut state.end, state.max_addr);
        state.raise_used_end(state.end);
        let at = at.ok_or(Error::AddressSpaceFull { wanted: len, end: state.end, limit: state.max_addr })?;
        let is_announced = at.checked_add(len).is_some_and(|end| end <= state.superblock_eof);
        let is_known = state.is_length_known && is_announced;
        Ok((Addr::new(at), if is_known { used.saturating_sub(at).min(len) } else { len }))
    }

    /// Space for `len` bytes that was free, and ends before `limit` (bytes from the base address).
    pub fn alloc_before(&self, len: u64, kind: SpaceKind, limit: u64) -> Option<Addr> {
        self.state.lock().free.take_below_limit(len, kind, limit).map(Addr::new)
    }

    /// Gives back the `len` bytes at `at` that held a structure.
    pub fn free_metadata_after_full_flush(&self, at: Addr, len: u64) {
        self.defer_free(at, len, SpaceKind::Metadata, None);
    }

    /// As [`FileSpaceAllocator::free_metadata_after_full_flush`], of a structure to which only structures of `owner` lead: to flush that object is enough.
    pub fn free_metadata_after_owner_flush(&self, owner: Owner, at: Addr, len: u64) {
        self.defer_free(at, len, SpaceKind::Metadata, Some(owner));
    }

    /// Gives back the `len` bytes at `at` that held raw data.
    pub fn free_raw_after_full_flush(&self, at: Addr, len: u64) {
        self.defer_free(at, len, SpaceKind::Raw, None);
    }

    /// As [`FileSpaceAllocator::free_raw_after_full_flush`], of raw data to which only structures of `owner` lead.
    pub fn free_raw_after_owner_flush(&self, owner: Owner, at: Addr, len: u64) {
        self.defer_free(at, len, SpaceKind::Raw, Some(owner));
    }

    /// A thread is about to read raw data, and looks up where it is after this. Raw data that is freed from now on is
    /// not overwritten before the guard is dropped.
    pub fn begin_raw_read(&self) -> RawReadGuard<'_> {
        self.raw_reads.begin()
    }

    /// The index has ceased to lead to a place of raw data. Call it before the bytes there are discarded.
    pub(crate) fn note_raw_move(&self) {
        self.raw_reads.note_chunk_freed();
    }

    /// Bytes of raw data that waited to be written have gone.
    pub(crate) fn note_raw_discard(&self) {
        self.raw_reads.note_unwritten_bytes_dropped();
    }

    /// The object is deleted: space to which only its structures lead is unreachable after a flush of everything.
    pub fn require_full_flush_for_owner(&self, owner: Owner) {
        self.state.lock().quarantine.require_full_flush_for_owner(owner);
    }

    /// Gives back the `len` bytes at `at` of a structure to which nothing in the file has ever led.
    pub(crate) fn free_unwritten(&self, at: Addr, len: u64) {
        let mut state = self.state.lock();
        if let Some(at) = at.get().filter(|at| state.quarantine.assumes_no_readers() && state.contains_range(*at, len))
        {
            state.free.free_range(at, len, SpaceKind::Metadata);
        }
    }

    fn defer_free(&self, at: Addr, len: u64, kind: SpaceKind, owner: Option<Owner>) {
        if let Some(at) = at.get() {
            let state = &mut *self.state.lock();
            state.end_of_freed = state.end_of_freed.max(at.saturating_add(len));
            state.quarantine.add_section((at, len, kind), owner);
        }
    }

    /// The largest end of any space that was ever freed.
    pub fn max_freed_end(&self) -> u64 {
        self.state.lock().end_of_freed
    }

    /// Bytes that were freed and wait for a flush.
    pub fn freed_bytes_awaiting_flush(&self) -> u64 {
        self.state.lock().quarantine.freed_bytes_awaiting_flush()
    }

    /// The sections that were freed and wait for a flush of everything, in the order in which they were freed: first
    /// byte and length (bytes).
    pub fn freed_sections_awaiting_full_flush(&self) -> Vec<(u64, u64)> {
        self.state.lock().quarantine.freed_sections_awaiting_full_flush().map(|(at, len, _)| (at, len)).collect()
    }

    /// From now on the file has pages of `page` bytes. Structures and raw data are in different pages, and nothing
    /// smaller than a page crosses the border of one.
    ///
    /// # Errors
    /// [`Error::AddressSpaceFull`] if addresses do not reach to the end of the last page.
    pub fn set_page_size_and_align_end(&self, page: u64) -> Result<()> {
        let state = &mut *self.state.lock();
        let end = state.free.set_page_size_and_align_end(page, state.end).filter(|end| *end < state.max_addr);
        state.end = end.ok_or(Error::AddressSpaceFull { wanted: page, end: state.end, limit: state.max_addr })?;
        state.quarantine.set_page_size(page);
        Ok(())
    }

    /// Takes over space to which nothing in the file leads, and that an earlier session left: `len` bytes at `at`, which
    /// held something of `kind`. In a session with readers it rests, because they may have followed that session, too.
    pub fn adopt_unreachable_range(&self, at: u64, len: u64, kind: SpaceKind) {
        let state = &mut *self.state.lock();
        if state.contains_range(at, len) {
            let free = state.quarantine.adopt_section((at, len, kind), self.clock.now());
            free.into_iter().for_each(|section| state.free_section(section));
        }
    }

    /// As [`FileSpaceAllocator::adopt_unreachable_range`], when nobody has had the file open for a moment since: it rests for a moment only,
    /// for readers that have the file open only while they read a part of it.
    pub fn adopt_range_with_min_grace(&self, at: u64, len: u64, kind: SpaceKind) {
        let state = &mut *self.state.lock();
        if state.contains_range(at, len) {
            state.quarantine.begin_min_grace(vec![(at, len, kind)], self.clock.now());
        }
    }

    /// The free sections: first byte, length (bytes), and the only kind for which it can be used, if it cannot be used
    /// for both.
    pub fn free_sections(&self) -> Vec<(u64, u64, Option<SpaceKind>)> {
        self.state.lock().free.sections().collect()
    }

    /// Allocates `len` bytes behind all allocated space. Ignores free space.
    ///
    /// # Errors
    /// [`Error::AddressSpaceFull`] if addresses do not reach that far.
    pub fn alloc_at_end(&self, len: u64) -> Result<Addr> {
        let state = &mut *self.state.lock();
        let unit = state.free.page_size().unwrap_or(METADATA_ALIGNMENT);
        let full = Error::AddressSpaceFull { wanted: len, end: state.end, limit: state.max_addr };
        let at = state.end.checked_next_multiple_of(unit).ok_or(full)?;
        let full = Error::AddressSpaceFull { wanted: len, end: state.end, limit: state.max_addr };
        let end = at.checked_add(len).and_then(|end| end.checked_next_multiple_of(state.free.page_size().unwrap_or(1)));
        state.end = end.filter(|end| *end < state.max_addr).ok_or(full)?;
        state.raise_used_end(state.end);
        Ok(Addr::new(at))
    }

    /// The file ends where the last allocated space does.
    pub fn shrink_allocated_end(&self) {
        let state = &mut *self.state.lock();
        state.reclaim_expired(&self.clock, &self.raw_reads);
        state.end = state.free.remove_free_tail(state.end);
    }

    /// Now.
    pub fn current_epoch(&self) -> FreeEpoch {
        FreeEpoch(self.state.lock().quarantine.begun_full_flush_count())
    }

    /// Under [`ReusePolicy::WhenExclusive`]: the space that rests becomes free in a moment, if `not_open_elsewhere` says that nobody
    /// else has the file open now. Then no reader can have a pointer there, and a process that opens the file later finds
    /// none. Nothing comes to rest meanwhile. The answer is not asked for while little rests, nor each time after "no",
    /// unless `space_needed_now`.
    pub fn begin_min_grace_if_exclusive(&self, space_needed_now: bool, not_open_elsewhere: impl FnOnce() -> bool) {
        let state = &mut *self.state.lock();
        let min_bytes = if space_needed_now { 1 } else { MIN_RECLAIM_QUERY_BYTES };
        if !state.quarantine.has_awaiting_no_readers(min_bytes, state.wants_epochs) {
            return;
        }
        match state.queries_to_skip.checked_sub(1) {
            Some(left) if !space_needed_now => state.queries_to_skip = left,
            _ if not_open_elsewhere() => {
                state.rest_unread(&self.clock);
                (state.queries_to_skip, state.wants_epochs) = (0, false);
            }
            _ => state.queries_to_skip = SKIPPED_RECLAIM_QUERIES,
        }
    }

    /// The session ends, and nobody else has the file open: what rests is free.
    pub fn release_all_unreachable(&self) {
        let state = &mut *self.state.lock();
        state.rest_unread(&self.clock);
        let free = state.quarantine.release_all_in_grace();
        state.free_sections(free, &self.raw_reads);
    }

    /// Bytes that rest until it is known that nobody has the file open.
    pub fn bytes_awaiting_no_readers(&self) -> u64 {
        self.state.lock().quarantine.bytes_awaiting_no_readers()
    }

    /// What rests now.
    pub fn quarantine_stats(&self) -> QuarantineStats {
        let state = &mut *self.state.lock();
        state.reclaim_expired(&self.clock, &self.raw_reads);
        QuarantineStats {
            unreachable_bytes: state.quarantine.unreachable_bytes(),
            abandoned_bytes: state.quarantine.abandoned_bytes(),
            policy: state.quarantine.policy(),
        }
    }

    /// Whether space inside a structure that was given up at `freed_at` may be overwritten: a whole flush has since
    /// written the structures that no longer lead there, and no reader follows old pointers any more.
    pub fn is_reclaimable(&self, freed_at: FreeEpoch) -> bool {
        let state = &mut *self.state.lock();
        state.reclaim_expired(&self.clock, &self.raw_reads);
        let is_settled = state.quarantine.policy() != ReusePolicy::Never
            && state.quarantine.reclaimable_before_full_flush() > freed_at.0;
        state.wants_epochs |= !is_settled;
        is_settled
    }

    /// Whether the `len` bytes at `at`, to which the file leads, may be overwritten with something as valid: the system
    /// writes them at once, and nobody reads them meanwhile.
    pub fn may_change_in_place(&self, at: Addr, len: u64) -> bool {
        let is_one_write = at.get().is_some_and(|at| (at % OS_PAGE_BYTES).saturating_add(len) <= OS_PAGE_BYTES);
        is_one_write && self.state.lock().quarantine.assumes_no_readers()
    }

    /// Decides what becomes of freed space from now on. Under [`ReusePolicy::Never`] space that was freed before, but
    /// has not been flushed since, is lost too.
    pub fn set_reuse_policy(&self, reuse: ReusePolicy) {
        self.state.lock().quarantine.set_policy(reuse);
    }

    /// The end of the allocated space, in bytes from the base address.
    pub fn allocated_end(&self) -> u64 {
        self.state.lock().end
    }

    /// The end of file that the superblock states, in bytes from the base address.
    pub fn superblock_eof(&self) -> u64 {
        self.state.lock().superblock_eof
    }

    /// Least bytes of the storage (from the base address), unless another program has truncated it.
    pub fn min_storage_len(&self) -> u64 {
        let length = *self.length.lock();
        length.unwrap_or_else(|| self.superblock_eof())
    }

    /// Bytes that were freed and can be allocated again.
    pub fn free_bytes(&self) -> u64 {
        self.state.lock().free.total_bytes()
    }

    /// The end of file to announce before space that is allocated now becomes reachable; `None` if the announced end is
    /// enough.
    pub(crate) fn next_superblock_eof(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.end > state.superblock_eof)
            .then(|| state.end.saturating_add(eof_slack(state.end)).min(state.max_addr - 1))
    }

    /// Whether [`FileSpaceAllocator::next_superblock_eof`] has an end to announce.
    pub(crate) fn needs_superblock_eof(&self) -> bool {
        self.next_superblock_eof().is_some()
    }

    /// Notes that a redo record was written behind the announced end, up to `end`.
    pub(crate) fn raise_used_end_for_redo(&self, end: u64) {
        self.state.lock().raise_used_end(end);
    }

    pub(crate) fn set_superblock_eof(&self, end: u64) {
        self.state.lock().superblock_eof = end;
    }

    /// A flush takes its snapshot. When it is done, space that was freed so far is unreachable.
    pub(crate) fn begin_flush(&self, scope: FlushScope) {
        self.state.lock().quarantine.begin_flush(scope);
    }

    /// The flush has ended. If it `succeeded`, space that was freed before it is unreachable.
    pub(crate) fn end_flush(&self, succeeded: bool) {
        let state = &mut *self.state.lock();
        let free = state.quarantine.end_flush(succeeded, self.clock.now());
        state.free_sections(free, &self.raw_reads);
    }

    /// From now on freed space waits until the flush that makes it unreachable is durable.
    pub(crate) fn require_durable_flushes(&self) {
        self.state.lock().quarantine.require_durable_flushes();
    }

    /// The present state of flushing, for [`FileSpaceAllocator::end_sync`]: a sync that begins now makes everything so far durable.
    pub(crate) fn flush_mark(&self) -> FlushMark {
        self.state.lock().quarantine.flush_mark()
    }

    /// The sync has ended: everything that had been `flushed` is durable.
    pub(crate) fn end_sync(&self, flushed: FlushMark) {
        let state = &mut *self.state.lock();
        let free = state.quarantine.end_sync(flushed, self.clock.now());
        state.free_sections(free, &self.raw_reads);
    }

    /// Makes the storage at least `len` bytes long. Call this, or [`FileSpaceAllocator::ensure_len_ahead`], before a write. Nothing
    /// is ever written beyond the known length, so setting a greater length cuts nothing off.
    pub(crate) fn ensure_len(&self, len: u64, storage: &dyn Storage) -> Result<()> {
        self.grow_storage(len, len, storage)
    }

    /// As [`FileSpaceAllocator::ensure_len`], but if the storage must grow, it grows by so much that it seldom must.
    pub(crate) fn ensure_len_ahead(&self, len: u64, storage: &dyn Storage) -> Result<()> {
        self.grow_storage(len, len.saturating_add(eof_slack(len)), storage)
    }

    /// Prefills: writes zeros behind the allocated space, as far as the storage wants it and an end is announced,
    /// unless this was done for a small write that ends at `end`. Nobody gets that space meanwhile. Returns the number
    /// of bytes written. An error of the storage shows up when data is written there.
    pub(crate) fn prefill(&self, end: u64, storage: &dyn Storage) -> u64 {
        let wanted = storage.preferred_prefill_len().min(ZEROS.len());
        if wanted == 0 || end <= self.state.lock().zero_filled_end {
            return 0;
        }
        let Some(length) = *self.length.lock() else { return 0 };
        let mut state = self.state.lock();
        let from = state.end.max(state.zero_filled_end);
        let to = from.saturating_add(wanted as u64).min(state.superblock_eof).min(length);
        let zeros = to.checked_sub(from).and_then(|len| ZEROS.get(..len as usize)).unwrap_or_default();
        if zeros.is_empty() || storage.write_at(zeros, from).is_err() {
            return 0;
        }
        state.zero_filled_end = to;
        zeros.len() as u64
    }

    /// Asks the storage to reserve space for new raw data from `start` to `end`, and for bytes behind it, unless this
    /// was done. Only for data at the end of a large file, because much behind other data may never be written.
    pub(crate) fn reserve_ahead(&self, start: u64, end: u64, storage: &dyn Storage) {
        let is_wanted = |state: &SpaceState| {
            let is_near = state.end.saturating_sub(end) <= MIN_RESERVE_BYTES;
            end > state.reserved_end && is_near && eof_slack(state.end) >= MIN_RESERVE_BYTES
        };
        if !is_wanted(&self.state.lock()) {
            return;
        }
        let Some(length) = *self.length.lock() else { return };
        let (from, to) = {
            let state = &mut *self.state.lock();
            let to = state.end.saturating_add(eof_slack(state.end).min(MAX_RESERVE_BYTES)).min(length);
            if !is_wanted(state) || to < end {
                return;
            }
            (start.max(std::mem::replace(&mut state.reserved_end, to)), to)
        };
        if storage.reserve(from, to - from).is_err_and(|error| error.kind() == io::ErrorKind::Unsupported) {
            self.state.lock().reserved_end = u64::MAX;
        }
    }

    fn grow_storage(&self, needed: u64, wanted: u64, storage: &dyn Storage) -> Result<()> {
        let mut length = self.length.lock();
        let now = match *length {
            Some(now) => now,
            None => self.storage_len(storage)?,
        };
        *length = Some(now);
        if now < needed {
            check_not_truncated(storage, now)?;
            storage.set_len(wanted).map_err(Error::io(StorageAction::Extend, now, wanted))?;
            *length = Some(wanted);
        }
        Ok(())
    }

    fn storage_len(&self, storage: &dyn Storage) -> Result<u64> {
        let len = storage.len().map_err(Error::io(StorageAction::QueryLength, 0, 0))?;
        let mut state = self.state.lock();
        state.raise_used_end(len);
        state.is_length_known = true;
        Ok(len)
    }

    /// Cuts the storage behind the allocated space.
    pub(crate) fn truncate_storage(&self, len: u64, storage: &dyn Storage) -> Result<()> {
        let mut length = self.length.lock();
        check_not_truncated(storage, length.unwrap_or(len))?;
        storage.set_len(len).map_err(Error::io(StorageAction::Truncate, len, len))?;
        *length = Some(len);
        let state = &mut *self.state.lock();
        state.reserved_end = state.reserved_end.min(len);
        Ok(())
    }
}

/// Refuses to change the length of a storage that another program has truncated. Otherwise zeros would replace the lost
/// bytes.
fn check_not_truncated(storage: &dyn Storage, known: u64) -> Result<()> {
    let len = storage.len().map_err(Error::io(StorageAction::QueryLength, 0, 0))?;
    if len < known { Err(Error::FileTruncated { len, known }) } else { Ok(()) }
}

#[cfg(all(test, not(loom)))]
mod tests;
