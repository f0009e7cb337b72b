//! Raw data that is not yet written: kept by chunk, written in few large calls, and seen by every read before it
//! is on the storage.
//!
//! A chunk here is any block of raw data that is allocated as one: a chunk of a dataset as the filters left it, or
//! the whole block of a contiguous dataset.

mod dirty_raw_data;
mod merged_writes;
mod write_buffer;

use std::{borrow::Cow, sync::atomic::Ordering::Relaxed};

use h5live_format::Addr;
use smallvec::SmallVec;

pub use self::dirty_raw_data::ChunkFlushWrite;
pub(crate) use self::dirty_raw_data::DirtyRawData;
use self::dirty_raw_data::WriteThroughGuard;
pub(crate) use self::merged_writes::MergedWrites;
pub use self::merged_writes::ReplacedBytesVisibility;
pub(crate) use self::write_buffer::WriteBuffer;
use crate::cache_counters::add_to_counter;
use crate::{
    cache::Cache,
    dependency_node::ChunkProxy,
    entry_id::Owner,
    error::{Error, Result, StorageAction, defined},
    primitive::atomic::Ordering::SeqCst,
};

/// While raw data is changed in place, a reader sees this many bytes either old or new, if it reads them at once and
/// they begin at a multiple of this number from the start of the data.
pub const ATOMIC_READ_WINDOW_BYTES: usize = 8 << 20;

/// Adjacent pieces are written in one call of at most this many bytes...
const MAX_MERGED_WRITE_BYTES: usize = 4 << 20;

/// ...if each is smaller than this; copying a larger one costs more than a call.
const MAX_MERGED_PIECE_BYTES: usize = 256 << 10;

/// Where nobody follows, at least four pieces of a chunk that are no longer than this, and no farther apart (bytes), are
/// written by one call: a call for each takes longer than reading and writing that much...
const MAX_GAP_BYTES: u64 = 4 << 10;

/// ...up to this many bytes.
const MAX_SPAN_BYTES: u64 = 1 << 20;

/// If a flush writes so few bytes of new raw data, more such flushes are likely to follow.
const MAX_SMALL_FLUSH_BYTES: usize = 16 << 10;

impl Cache {
    /// Takes `bytes` for the chunk at `chunk`, from `offset` (bytes from the chunk's beginning) on, for a later flush.
    /// Returns the chunk's proxy. The same operation must make everything that points to the chunk wait for the proxy,
    /// by [`Cache::add_dependency`].
    pub fn enqueue_raw_write(&self, owner: Owner, chunk: Addr, offset: u64, bytes: Vec<u8>) -> ChunkProxy {
        self.enqueue_raw_write_with_visibility(owner, chunk, (offset, bytes), ReplacedBytesVisibility::BeyondExtent)
    }

    /// As [`Cache::enqueue_raw_write`]. `replaced_bytes` says whether readers can see the bytes that are replaced.
    pub fn enqueue_raw_write_with_visibility(
        &self,
        owner: Owner,
        chunk: Addr,
        offset_and_bytes: (u64, Vec<u8>),
        replaced_bytes: ReplacedBytesVisibility,
    ) -> ChunkProxy {
        self.dirty_raw_data.with_chunk(chunk, |state| {
            let part = [(offset_and_bytes.0, Cow::Owned(offset_and_bytes.1))];
            self.dirty_raw_data.enqueue_writes(state, || self.new_proxy(owner, chunk), part, replaced_bytes)
        })
    }

    /// As [`Cache::enqueue_raw_write_with_visibility`], for a chunk to which the file leads, and any number of `parts` of it, a
    /// later one over the earlier ones. If the next flush must be atomic ([`Cache::make_next_flush_atomic`]), the write is
    /// part of it, unless the bytes are too many.
    pub fn enqueue_chunk_overwrite<'a>(
        &self,
        owner: Owner,
        chunk: Addr,
        parts: impl IntoIterator<Item = (u64, Cow<'a, [u8]>), IntoIter: ExactSizeIterator>,
        replaced_bytes: ReplacedBytesVisibility,
    ) -> ChunkProxy {
        self.dirty_raw_data.with_chunk(chunk, |state| {
            // Nothing leads to bytes that still wait.
            state.is_waiting_overwrite |= state.waiting_writes.is_none();
            self.dirty_raw_data.enqueue_writes(state, || self.new_proxy(owner, chunk), parts, replaced_bytes)
        })
    }

    /// Writes `bytes` to the chunk before any metadata that is flushed later, if nothing of the chunk waits to be
    /// written: then nothing has to wait for it, and `None` is returned. Otherwise as [`Cache::enqueue_raw_write`].
    ///
    /// For new space only, before the operation that makes it reachable; best for whole chunks.
    ///
    /// # Errors
    /// [`Error::Io`]; any part of the bytes may have been written then.
    pub fn write_or_enqueue_new_raw(
        &self,
        owner: Owner,
        chunk: Addr,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Option<ChunkProxy>> {
        let start = defined(chunk.get().and_then(|at| at.checked_add(offset)))?;
        let end = start.saturating_add(bytes.len() as u64);
        let no_redo_past_eof = (end > self.space.superblock_eof()).then(|| self.redo_state.past_eof_lock.read());
        if no_redo_past_eof.is_some() && self.generation().is_some() {
            // Readers look there until a flush has announced a new end.
            return Ok(Some(self.enqueue_raw_write_with_visibility(
                owner,
                chunk,
                (offset, bytes.to_vec()),
                ReplacedBytesVisibility::NotYetReachable,
            )));
        }
        let (is_small, mut is_much) = (bytes.len() <= self.options.max_buffered_piece_bytes, false);
        let mut begin = |through: &mut bool| match is_small {
            true => is_much = self.write_buffer.buffer_bytes(start, bytes),
            false => *through = true,
        };
        let waits = if is_small && self.dirty_raw_data.is_chunk_clean(chunk) {
            // Nobody else knows of the space: nothing comes to wait there meanwhile.
            begin(&mut false);
            None
        } else {
            self.dirty_raw_data.with_chunk(chunk, |state| {
                if state.is_clean() {
                    begin(&mut state.is_written_through);
                    return None;
                }
                Some(self.dirty_raw_data.enqueue_writes(
                    state,
                    || self.new_proxy(owner, chunk),
                    [(offset, Cow::Borrowed(bytes))],
                    ReplacedBytesVisibility::NotYetReachable,
                ))
            })
        };
        if is_much {
            // It takes that lock itself. A thread that takes it twice would wait for a flush that waits in between.
            drop(no_redo_past_eof);
            self.drain_write_buffer()?;
            return Ok(None);
        }
        if waits.is_none() && !is_small {
            let _ends = WriteThroughGuard { raw_data: &self.dirty_raw_data, chunk };
            self.grow_for_raw(start, end)?;
            self.write_counted(StorageAction::WriteRaw, Addr::new(start), bytes)?;
        }
        Ok(waits)
    }

    /// Writes the pieces of the write buffer, between flushes.
    fn drain_write_buffer(&self) -> Result<()> {
        let _no_redo_past_eof = self.redo_state.past_eof_lock.read();
        let _alone = self.write_buffer.lock_out_flushes();
        let Some(pieces) = self.write_buffer.begin_write() else { return Ok(()) };
        if self.generation().is_some() && pieces.end_offset() > self.space.superblock_eof() {
            // Readers look there until a flush has announced a new end.
            self.write_buffer.end_write(pieces, false);
            return Ok(());
        }
        let written = self.write_buffered(&pieces);
        self.write_buffer.end_write(pieces, written.is_ok());
        written
    }

    /// Makes the storage long enough for raw data from `start` to `end`, and has it find a place for them.
    fn grow_for_raw(&self, start: u64, end: u64) -> Result<()> {
        self.space.ensure_len_ahead(end, &*self.storage)?;
        self.space.reserve_ahead(start, end, &*self.storage);
        Ok(())
    }

    pub(crate) fn write_buffered(&self, pieces: &MergedWrites) -> Result<()> {
        for (at, bytes) in pieces.iter() {
            let end = at.saturating_add(bytes.len() as u64);
            self.grow_for_raw(at, end)?;
            self.write_counted(StorageAction::WriteRaw, Addr::new(at), bytes)?;
            if bytes.len() <= MAX_SMALL_FLUSH_BYTES {
                let filled = self.space.prefill(end, &*self.storage);
                add_to_counter(&self.counters.bytes_written, filled);
                add_to_counter(&self.counters.writes, u64::from(filled > 0));
            }
        }
        Ok(())
    }

    /// Fills `into` with bytes of the chunk at `chunk`, from `offset` (bytes from the chunk's beginning) on, with all
    /// writes so far.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::PastEnd`] if the file ends within the bytes.
    pub fn read_raw(&self, chunk: Addr, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read_raw_with(chunk, offset, into, |at, gap| self.read_exact(at, gap))
    }

    /// As [`Cache::read_raw`], but what this cache has allocated and not yet made the file long enough for is zero.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::PastEnd`] if the file ends earlier than this cache has made it.
    pub fn read_raw_zero_padded(&self, chunk: Addr, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read_raw_with(chunk, offset, into, |at, gap| {
            let start = defined(at.get())?;
            let len = gap.len() as u64;
            let found = self.storage.read_at(gap, start).map_err(Error::io(StorageAction::Read, start, len))?;
            add_to_counter(&self.counters.bytes_read, found as u64);
            let rest = gap.get_mut(found..).unwrap_or_default();
            if !rest.is_empty() && start.saturating_add(found as u64) < self.space.min_storage_len() {
                return Err(Error::PastEnd { at, wanted: len, found: found as u64 });
            }
            rest.fill(0);
            Ok(())
        })
    }

    /// Reads with `read` all bytes that do not wait to be written.
    fn read_raw_with(
        &self,
        chunk: Addr,
        offset: u64,
        into: &mut [u8],
        read: impl Fn(Addr, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let read = |at: Addr, into: &mut [u8]| {
            let Some(start) = at.get() else { return Err(Error::UndefinedAddr) };
            let Some(gaps) = self.write_buffer.read_overlay(start, into) else { return read(at, into) };
            gaps.into_iter().try_for_each(|gap| read(Addr::new(start + gap.start as u64), &mut into[gap]))
        };
        let gaps = match self.dirty_raw_data.chunk_count.load(SeqCst) {
            0 => None,
            _ => self.dirty_raw_data.shard_of(chunk).chunks.lock().get(&chunk).map(|state| {
                let waiting = state.waiting_writes.iter().map(|(pieces, _)| pieces);
                merged_writes::overlay_layers(
                    waiting.chain(state.writes_in_flight.iter().map(|(pieces, _)| &**pieces)),
                    offset,
                    into,
                )
            }),
        };
        let Some(start) = chunk.get().and_then(|at| at.checked_add(offset)) else { return Err(Error::UndefinedAddr) };
        let Some(gaps) = gaps else { return read(Addr::new(start), into) };
        gaps.into_iter().try_for_each(|gap| read(Addr::new(start + gap.start as u64), &mut into[gap]))
    }

    /// The proxies of a chunk: for raw data that waits, and for raw data that a flush is writing. Whatever comes to
    /// point to the chunk must be made to wait for them.
    pub fn chunk_proxies(&self, chunk: Addr) -> SmallVec<[ChunkProxy; 2]> {
        if self.dirty_raw_data.chunk_count.load(SeqCst) == 0 {
            return SmallVec::new();
        }
        let chunks = self.dirty_raw_data.shard_of(chunk).chunks.lock();
        let Some(state) = chunks.get(&chunk) else { return SmallVec::new() };
        let waiting = state.waiting_writes.iter().map(|(_, proxy)| *proxy);
        waiting.chain(state.writes_in_flight.iter().map(|(_, proxy)| *proxy)).collect()
    }

    /// Gives back the `len` bytes of a chunk to which the index no longer leads, and drops those of its bytes that wait
    /// to be written. With an `sole_owner`, only structures of that object lead there.
    pub fn free_raw(&self, sole_owner: Option<Owner>, chunk: Addr, len: u64) {
        self.space.note_raw_move();
        self.discard_raw(chunk);
        match sole_owner {
            Some(sole_owner) => self.space.free_raw_after_owner_flush(sole_owner, chunk, len),
            None => self.space.free_raw_after_full_flush(chunk, len),
        }
    }

    pub(crate) fn discard_raw(&self, chunk: Addr) {
        self.dirty_raw_data.with_chunk(chunk, |state| {
            state.is_waiting_overwrite = false;
            if let Some((pieces, proxy)) = state.waiting_writes.take() {
                self.space.note_raw_discard();
                self.dirty_raw_data.waiting_byte_count.fetch_sub(pieces.memory_bytes(), Relaxed);
                self.shared_graph.graph.lock().remove_node(proxy.id);
            }
        });
    }

    fn new_proxy(&self, owner: Owner, chunk: Addr) -> ChunkProxy {
        let proxy = ChunkProxy { id: self.shared_graph.next_id(), owner, chunk };
        self.shared_graph.graph.lock().add_proxy(proxy);
        proxy
    }

    /// Writes taken raw data, in order of addresses, adjacent pieces together, and pieces that lie near to each other, too.
    pub(crate) fn write_taken_raw_data(&self, writes: &[ChunkFlushWrite]) -> Result<()> {
        let mut pieces: Vec<(u64, &[u8])> = Vec::with_capacity(writes.len());
        let mut joined: Vec<u8> = Vec::new();
        for write in writes {
            self.dirty_raw_data.wait_for_write_through(write.chunk());
            let chunk = defined(write.chunk().get())?;
            let first = pieces.len();
            pieces.extend(write.pieces.iter().map(|(offset, bytes)| (chunk.saturating_add(offset), bytes)));
            if write.may_write_gaps() {
                self.write_over_gaps(&mut pieces, first, &mut joined)?;
            }
        }
        pieces.sort_unstable_by_key(|(at, _)| *at);
        if let Some((at, last)) = pieces.last() {
            self.grow_for_raw(*at, at.saturating_add(last.len() as u64))?;
        }
        let mut rest = pieces.as_slice();
        while let [(at, first), ..] = rest {
            let n = 1 + adjacent_piece_count(first.len(), *at, &rest[1..]);
            let (now, later) = rest.split_at(n);
            rest = later;
            if n == 1 {
                self.write_counted(StorageAction::WriteRaw, Addr::new(*at), first)?;
            } else {
                joined.clear();
                now.iter().for_each(|(_, bytes)| joined.extend_from_slice(bytes));
                self.write_counted(StorageAction::WriteRaw, Addr::new(*at), &joined)?;
            }
        }
        Ok(())
    }

    /// Writes the pieces of one chunk, from the one with the index `first` on, that are short and near to each other, and
    /// leaves out the others. What lies between is read, and written as it is: nobody else writes to the chunk
    /// meanwhile.
    fn write_over_gaps(&self, pieces: &mut Vec<(u64, &[u8])>, first: usize, memory: &mut Vec<u8>) -> Result<()> {
        let (mut from, mut kept) = (first, first);
        while from < pieces.len() {
            let near = &pieces[from..from + near_piece_count(&pieces[from..])];
            if let [(start, _), _, _, .., (last, bytes)] = near {
                let end = last.saturating_add(bytes.len() as u64);
                self.grow_for_raw(*start, end)?;
                memory.resize((end - start) as usize, 0);
                self.read_exact(Addr::new(*start), memory)?;
                for (at, bytes) in near {
                    let at = (at - start) as usize;
                    memory[at..at + bytes.len()].copy_from_slice(bytes);
                }
                self.write_counted(StorageAction::WriteRaw, Addr::new(*start), memory)?;
                from += near.len();
            } else {
                let few = near.len();
                pieces.copy_within(from..from + few, kept);
                (from, kept) = (from + few, kept + few);
            }
        }
        pieces.truncate(kept);
        Ok(())
    }
}

/// The number of the next pieces that are written by one call with what lies between them.
fn near_piece_count(pieces: &[(u64, &[u8])]) -> usize {
    let Some((start, first)) = pieces.first() else { return 0 };
    let mut end = start.saturating_add(first.len() as u64);
    let near = pieces.iter().skip(1).take_while(|(at, bytes)| {
        let gap = at.saturating_sub(std::mem::replace(&mut end, at.saturating_add(bytes.len() as u64)));
        first.len().max(bytes.len()) as u64 <= MAX_GAP_BYTES && gap <= MAX_GAP_BYTES && end - start <= MAX_SPAN_BYTES
    });
    1 + near.count()
}

/// The number of pieces of `next` that go into one call with the `first` bytes at `at` before them.
fn adjacent_piece_count(first: usize, at: u64, next: &[(u64, &[u8])]) -> usize {
    let mut len = first;
    let mut n = 0;
    for (start, bytes) in next {
        let joins = at.checked_add(len as u64) == Some(*start) && len + bytes.len() <= MAX_MERGED_WRITE_BYTES;
        if !joins || first > MAX_MERGED_PIECE_BYTES || bytes.len() > MAX_MERGED_PIECE_BYTES {
            break;
        }
        len += bytes.len();
        n += 1;
    }
    n
}

#[cfg(all(test, not(loom)))]
mod tests;
