//! Redo records: the new bytes of changes in place, which are first written at the announced end of the file.
//!
//! The system copies one page of memory at once, and a disk writes one sector at once. A write of more may be cut off.
//! While a redo record is valid, its bytes are in place or may be written there again. At most one record is valid at
//! any time: each takes the place of the one before, or that one is invalidated first.

use std::ops::Range;

use h5live_format::{Addr, RedoRecord, RedoWrite, SeqlockCounter, encode};

use super::entry_images::EntryImages;
use super::flush_step::FlushStep;
use crate::{
    cache::{Cache, CacheOptions},
    error::{Error, Result, StorageAction},
    raw_data::{ATOMIC_READ_WINDOW_BYTES, ChunkFlushWrite},
};

/// Bytes that a process which is killed has copied all or none of.
const OS_PAGE_BYTES: u64 = 4096;

/// Bytes that a disk writes completely or not at all when the power fails.
const SECTOR_BYTES: u64 = 512;

/// Groups the changes in place that share a redo record. `barriers`: the flush has some. `as_one`: all share one.
/// `joined`: with barriers, even a single change needs a record, because an earlier record may name the same place, or
/// a new end will be announced.
pub(super) fn group_redo_changes(
    options: &CacheOptions,
    changes: &[FlushStep],
    barriers: bool,
    as_one: bool,
    joined: bool,
) -> Vec<Range<usize>> {
    if options.mutant.lacks_redo() || changes.is_empty() {
        return Vec::new();
    }
    let is_cut = |step: &FlushStep, unit: u64| match step {
        FlushStep::Entry { at, image, in_place: true, .. } => {
            crosses_unit(options.base_addr, *at, image.byte_count() as u64, unit)
        }
        FlushStep::Raw(_) => true,
        _ => false,
    };
    if barriers {
        // One redo record for all makes the flush atomic; a single sector is atomic by itself.
        let alone = !joined && changes.len() == 1 && !is_cut(&changes[0], SECTOR_BYTES);
        return (!alone).then_some(0..changes.len()).into_iter().collect();
    }
    if as_one {
        let in_place = |step: &FlushStep| match step {
            FlushStep::Entry { in_place, .. } => *in_place,
            FlushStep::Raw(writes) => writes.iter().any(ChunkFlushWrite::is_overwrite),
            _ => false,
        };
        let alone = changes.len() == 1 && !is_cut(&changes[0], OS_PAGE_BYTES);
        return (!alone && changes.iter().any(in_place)).then_some(0..changes.len()).into_iter().collect();
    }
    // Each one just before it is written, when everything to which it leads is in the file. So it can be replayed at
    // any time.
    let cut = |n: &usize| matches!(changes[*n], FlushStep::Entry { .. }) && is_cut(&changes[*n], OS_PAGE_BYTES);
    (0..changes.len()).filter(cut).map(|n| n..n + 1).collect()
}

/// The redo record of these steps, whose entries have these `images`, for the address `place`. [`Cache::write_redo`] is
/// told whether it has raw data that readers may be reading.
pub(super) fn redo_record(place: Addr, changes: &[FlushStep], images: &EntryImages) -> RedoRecord {
    let mut record = RedoRecord { addr: place, ..RedoRecord::default() };
    for change in changes {
        match change {
            FlushStep::Entry { at, image, .. } => {
                record.writes.push(RedoWrite { at: *at, bytes: images.image(image).to_vec() });
            }
            FlushStep::Raw(writes) => {
                let pieces = writes.iter().flat_map(|write| write.pieces());
                record.writes.extend(pieces.map(|(at, bytes)| RedoWrite { at, bytes: bytes.to_vec() }));
            }
            _ => {}
        }
    }
    record
}

/// Whether a step changes raw data that readers may be reading.
pub(super) fn overwrites_visible(change: &FlushStep) -> bool {
    matches!(change, FlushStep::Raw(writes) if writes.iter().any(ChunkFlushWrite::is_visible))
}

/// Whether the `len` bytes at `at` do not lie in one `unit`.
fn crosses_unit(base: u64, at: Addr, len: u64, unit: u64) -> bool {
    let first = at.get().unwrap_or(0).saturating_add(base);
    first / unit != first.saturating_add(len.saturating_sub(1)) / unit
}

/// Whether a process that is killed has written all or none of the `len` bytes at `at`.
pub(super) fn is_within_page(base: u64, at: Addr, len: u64) -> bool {
    !crosses_unit(base, at, len, OS_PAGE_BYTES)
}

impl Cache {
    /// Whether a redo record is still valid, or a flush failed before it had made all changes of one.
    pub(super) fn has_active_redo(&self) -> bool {
        self.active_redo().is_some() || self.redo_state.unfinished_record.lock().is_some()
    }

    /// The address of a redo record that is still valid, at the announced end.
    pub(super) fn active_redo(&self) -> Option<Addr> {
        let place = SeqlockCounter::word_addr(Addr::new(self.space.superblock_eof()));
        self.redo_state.last_record_addr.lock().filter(|at| Some(*at) == place)
    }

    /// The turn that is shown at `place`.
    fn load_seqlock(&self, place: Addr) -> Result<SeqlockCounter> {
        let mut known = self.redo_state.seqlock.lock();
        match *known {
            Some((at, counter)) if at == place => Ok(counter),
            _ => {
                // A reader may have begun when an earlier writer was there. Where nothing tells of one, it may all the
                // same; so each begins with another number.
                let any = || SeqlockCounter::new(self.options.clock.now().subsec_nanos()).round_up_to_even();
                let mut bytes = [0; SeqlockCounter::SIZE];
                let start = place.get().ok_or(Error::UndefinedAddr)?;
                let found = self.storage.read_at(&mut bytes, start);
                let found = found.map_err(Error::io(StorageAction::Read, start, SeqlockCounter::SIZE as u64))?;
                let counter = bytes.get(..found).and_then(SeqlockCounter::from_bytes).unwrap_or_else(any);
                *known = Some((place, counter));
                Ok(counter)
            }
        }
    }

    /// The serial number of the next redo record, which is written at `place`. A session goes on from the record that
    /// it finds there, or begins anywhere.
    fn next_redo_serial(&self, place: Addr) -> Result<u32> {
        if self.options.mutant.lacks_redo_serials() {
            return Ok(0);
        }
        let mut serial = self.redo_state.last_serial.lock();
        let last = match *serial {
            Some(last) => last,
            None => {
                let (start, mut head) = (place.get().ok_or(Error::UndefinedAddr)?, [0; RedoRecord::HEAD_BYTES]);
                let found = self.storage.read_at(&mut head, start);
                let found = found.map_err(Error::io(StorageAction::Read, start, head.len() as u64))?;
                match RedoRecord::stated_serial_even_if_idle(head.get(..found).unwrap_or_default()) {
                    0 => self.options.clock.now().subsec_nanos(),
                    known => known,
                }
            }
        };
        // Zero says that there is none.
        Ok(*serial.insert(last.checked_add(1).unwrap_or(1)))
    }

    /// Writes a redo record. If it has raw data that readers may be reading, its seqlock counter is odd from here on.
    pub(super) fn write_redo(&self, record: &RedoRecord, is_visible: bool) -> Result<()> {
        let at = record.addr;
        let serial = self.next_redo_serial(at)?;
        let counter = match self.generation() {
            Some(_) if serial == 0 => SeqlockCounter::default(),
            Some(shown) => shown.change_completed().next_changing().redo_record_seqlock(),
            None if is_visible => self.load_seqlock(at)?.next_odd(),
            None => self.load_seqlock(at)?.round_up_to_even(),
        };
        let image = encode(&RedoRecord { seqlock: counter, serial, ..record.clone() }, self.options.widths);
        let image = image.map_err(|source| Error::Encode { at, source })?;
        *self.redo_state.seqlock.lock() = Some((at, counter));
        let start = at.get().ok_or(Error::UndefinedAddr)?;
        let end = start.saturating_add(image.len() as u64);
        self.space.raise_used_end_for_redo(end);
        self.space.ensure_len(end, &*self.storage)?;
        // Also if that fails, it may have been written.
        *self.redo_state.last_record_addr.lock() = Some(at);
        self.write_counted(StorageAction::WriteRedo, at, &image)?;
        self.set_pending_redo(record);
        Ok(())
    }

    /// Notes that a flush failed after `done` of its steps. `one` says that one redo record has all changes that follow
    /// it.
    pub(super) fn keep_unfinished_redo(&self, steps: &[FlushStep], done: usize, one: bool) {
        let written = steps.get(..done).unwrap_or_default();
        let last = written.iter().enumerate().rev().find_map(|(n, step)| match step {
            FlushStep::WriteRedo { record, .. } => Some((n, record)),
            _ => None,
        });
        // If not, each has one change, the next step.
        if let Some((_, record)) = last.filter(|(n, _)| one || n + 1 == done) {
            *self.redo_state.unfinished_record.lock() = Some(record.clone());
        }
    }

    /// Finishes the changes of an earlier flush that failed, before its redo record is invalidated.
    pub(super) fn replay_unfinished_redo(&self, barriers: bool) -> Result<()> {
        let mut unfinished = self.redo_state.unfinished_record.lock();
        let Some(record) = &*unfinished else { return Ok(()) };
        let barrier = || if barriers { self.sync_flushed() } else { Ok(()) };
        barrier()?;
        for write in &record.writes {
            self.write_counted(StorageAction::WriteRedo, write.at, &write.bytes)?;
        }
        barrier()?;
        *unfinished = None;
        Ok(())
    }

    /// Writes raw data over bytes that readers may be reading. The new bytes are first written to redo records of at
    /// most [`ATOMIC_READ_WINDOW_BYTES`] bytes each.
    pub(super) fn overwrite_with_redo(&self, writes: &[ChunkFlushWrite]) -> Result<()> {
        writes.iter().for_each(|write| self.dirty_raw_data.wait_for_write_through(write.chunk()));
        let mut redo_writes = Vec::new();
        let mut bytes = 0;
        for write in writes {
            if bytes + write.byte_count() > ATOMIC_READ_WINDOW_BYTES {
                self.write_with_redo(std::mem::take(&mut redo_writes))?;
                bytes = 0;
            }
            if write.byte_count() <= ATOMIC_READ_WINDOW_BYTES {
                redo_writes.extend(write.pieces().map(|(at, bytes)| RedoWrite { at, bytes: bytes.to_vec() }));
                bytes += write.byte_count();
                continue;
            }
            let mut window = 0;
            for (offset, piece) in write.pieces.split_at_multiples(ATOMIC_READ_WINDOW_BYTES) {
                if offset / ATOMIC_READ_WINDOW_BYTES as u64 != window {
                    self.write_with_redo(std::mem::take(&mut redo_writes))?;
                    window = offset / ATOMIC_READ_WINDOW_BYTES as u64;
                }
                let at = write.chunk().checked_add(offset).unwrap_or_default();
                redo_writes.push(RedoWrite { at, bytes: piece.to_vec() });
            }
            self.write_with_redo(std::mem::take(&mut redo_writes))?;
        }
        self.write_with_redo(redo_writes)
    }

    /// Changes raw data that readers may be reading, after a redo record of the change.
    fn write_with_redo(&self, writes: Vec<RedoWrite>) -> Result<()> {
        if writes.is_empty() {
            return Ok(());
        }
        let place = SeqlockCounter::word_addr(Addr::new(self.space.superblock_eof())).ok_or(Error::UndefinedAddr)?;
        let record = RedoRecord { addr: place, writes, ..RedoRecord::default() };
        self.write_redo(&record, true)?;
        let written = record
            .writes
            .iter()
            .try_for_each(|write| self.write_counted(StorageAction::WriteRaw, write.at, &write.bytes));
        if written.is_err() {
            *self.redo_state.unfinished_record.lock() = Some(record);
            return written;
        }
        self.invalidate_redo(place)
    }

    /// Invalidates the redo record: its bytes are in place, and readers no longer need it.
    pub(super) fn invalidate_redo(&self, at: Addr) -> Result<()> {
        self.retire_redo(at)?;
        *self.redo_state.last_record_addr.lock() = None;
        Ok(())
    }

    /// As [`Cache::invalidate_redo`], but the record may come back after a power failure.
    pub(super) fn retire_redo(&self, at: Addr) -> Result<()> {
        let counter = self.load_seqlock(at)?.round_up_to_even();
        self.write_counted(StorageAction::WriteRedo, at, &counter.to_idle_bytes())?;
        *self.redo_state.seqlock.lock() = Some((at, counter));
        Ok(())
    }

    /// Before `end` is announced: makes sure that the bytes there are no redo record. Returns whether something had to
    /// be written.
    pub(crate) fn erase_redo_at_eof(&self, end: u64) -> Result<bool> {
        let place = SeqlockCounter::word_addr(Addr::new(end)).and_then(Addr::get).ok_or(Error::UndefinedAddr)?;
        let len = self.storage.len().map_err(Error::io(StorageAction::QueryLength, 0, 0))?;
        let beyond = len.saturating_sub(place).min(RedoRecord::SIGNATURE.len() as u64) as usize;
        let had_some = self.redo_state.last_record_addr.lock().take().is_some() && beyond > 0;
        if had_some {
            self.write_counted(
                StorageAction::WriteRedo,
                Addr::new(place),
                &[0; RedoRecord::SIGNATURE.len()][..beyond],
            )?;
        }
        Ok(had_some)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use h5live_format::{Widths, decode};

    use super::*;
    use crate::MemoryStorage;
    use crate::test_superblock::EofOnlySuperblock;

    /// The bytes of a redo record of one write of `bytes`, as a cache writes it at an end of file that is aligned.
    fn written(cache: &Cache, storage: &MemoryStorage, bytes: Vec<u8>) -> Vec<u8> {
        let place = SeqlockCounter::word_addr(Addr::new(cache.space.superblock_eof())).unwrap();
        let writes = vec![RedoWrite { at: Addr::new(8), bytes }];
        cache.write_redo(&RedoRecord { addr: place, writes, ..RedoRecord::default() }, false).unwrap();
        storage.to_vec()[place.get().unwrap() as usize..].to_vec()
    }

    #[test]
    fn a_record_that_is_cut_off_brings_no_earlier_one_back() {
        let storage = MemoryStorage::new();
        let cache =
            Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 8, Arc::new(EofOnlySuperblock));
        let is_valid = |bytes: &[u8]| decode::<RedoRecord>(bytes, Widths::default()).is_ok();
        let page = OS_PAGE_BYTES as usize;
        // The heap of names comes first in it, and what changes lies behind its first page.
        let first = written(&cache, &storage, [vec![7; page], vec![1; 100]].concat());
        assert!(is_valid(&first));
        let residue = written(&cache, &storage, vec![2; 100]);
        let third = written(&cache, &storage, [vec![7; page], vec![3; 100]].concat());
        assert!(is_valid(&third));
        let cut_off = [&third[..page], &residue[page..]].concat();
        assert!(!is_valid(&cut_off), "it is the first record again, and what was changed since would be undone");
    }
}
