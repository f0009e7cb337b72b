//! Redo records ([`RedoRecord`]) of a writer that changes structures in place, or that has died while it did.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use h5live_cache::{RedoOverlay, Storage};
use h5live_format::{Addr, GenerationWord, RedoRecord, RedoWrite, SeqlockCounter, Superblock, Widths, decode};

use parking_lot::Mutex;

use crate::generation_word::{announced_end, has_generations, read_generation_and_eof};
use crate::superblock::{parse_superblock, read_superblock};
use crate::{Error, Result};

/// Most bytes of a redo record.
const MAX_REDO_BYTES: u64 = 1 << 30;

/// The redo record at the end of file that `superblock` announces, if there is a valid one. Where the file shows a
/// generation, a record of an earlier one is none ([`GenerationWord::accepts_redo_record`]). `storage` begins at the base address.
///
/// # Errors
/// Errors of the storage.
pub fn find_redo_record(storage: &dyn Storage, superblock: &Superblock) -> Result<Option<RedoRecord>> {
    let Some((place, end)) = redo_addr_and_eof(superblock) else { return Ok(None) };
    let found = find_redo_record_at(storage, place, end, superblock.widths)?;
    if !has_generations(superblock) {
        return Ok(found);
    }
    let shown = read_generation_and_eof(storage, superblock)?;
    Ok(found.filter(|record| shown.is_none_or(|(shown, _)| shown.accepts_redo_record(record))))
}

/// The address of a redo record, and the announced end of file.
fn redo_addr_and_eof(superblock: &Superblock) -> Option<(Addr, Addr)> {
    let end = announced_end(superblock)?;
    // The word of generations comes first.
    let place = if has_generations(superblock) {
        GenerationWord::redo_record_addr(end)
    } else {
        SeqlockCounter::word_addr(end)
    };
    Some((place?, end))
}

/// The redo record at `place`, if there is a valid one, in a file that announces the end `end`.
///
/// # Errors
/// Errors of the storage.
pub(crate) fn find_redo_record_at(
    storage: &dyn Storage,
    place: Addr,
    end: Addr,
    widths: Widths,
) -> Result<Option<RedoRecord>> {
    let read = |at: u64, len: usize| {
        let mut bytes = vec![0; len];
        let found = storage.read_at(&mut bytes, at).map_err(Error::io("read behind the end of the file"))?;
        bytes.truncate(found);
        Ok::<_, Error>(bytes)
    };
    let Some(at) = place.get() else { return Ok(None) };
    let Some(size) = RedoRecord::stated_size(&read(at, RedoRecord::HEAD_BYTES)?).filter(|size| *size <= MAX_REDO_BYTES)
    else {
        return Ok(None);
    };
    let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
    if at.checked_add(size).is_none_or(|last| last > len) {
        return Ok(None);
    }
    let bytes = read(at, usize::try_from(size).unwrap_or(usize::MAX))?;
    let record: Option<RedoRecord> = decode(&bytes, widths).ok();
    let inside = |at: Addr, len: usize| at.checked_add(len as u64).is_some_and(|last| last <= end);
    Ok(record
        .filter(|record| record.addr == place && record.writes.iter().all(|write| inside(write.at, write.bytes.len()))))
}

/// The seqlock counter at `place`.
fn seqlock_at(storage: &dyn Storage, place: Addr) -> Result<Option<SeqlockCounter>> {
    let mut bytes = [0; SeqlockCounter::SIZE];
    let read = storage.read_zero_padded(&mut bytes, place.get().unwrap_or(u64::MAX));
    read.map_err(Error::io("read behind the end of the file"))?;
    // Zeros are none.
    Ok(SeqlockCounter::from_bytes(&bytes))
}

/// Does what a dead writer was about to do, for good. If that is interrupted, it can be done again.
///
/// # Errors
/// Those of the storage.
pub fn replay_redo_record(storage: &dyn Storage, record: &RedoRecord) -> Result<()> {
    let finish = || {
        for write in &record.writes {
            storage.write_at(&write.bytes, write.at.get().unwrap_or(0))?;
        }
        storage.sync()?;
        storage.write_at(&record.seqlock.round_up_to_even().to_idle_bytes(), record.addr.get().unwrap_or(0))
    };
    finish().map_err(Error::io("finish what a dead writer had begun"))
}

/// Reads structures that stay torn from redo records.
#[derive(Debug)]
pub struct RedoReader {
    overlay: Arc<RedoOverlay<Arc<dyn Storage>>>,
    /// Operations under way, those within others included.
    operations_in_progress: AtomicUsize,
    /// The redo record that is overlaid.
    overlaid_record: Mutex<Option<RedoFingerprint>>,
    announced_eof: Mutex<Option<SuperblockEof>>,
}

/// The end of file of a superblock.
#[derive(Debug, Clone, Copy)]
struct SuperblockEof {
    /// The bytes that it was made of, and some behind them.
    image: [u8; Superblock::MAX_SIZE],
    end: Addr,
    widths: Widths,
}

/// Identifies a redo record without reading all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RedoFingerprint {
    place: Addr,
    head: [u8; RedoRecord::HEAD_BYTES],
    checksum: [u8; 4],
}

impl RedoFingerprint {
    /// The fingerprint of the redo record that is at `place` now, if there is one.
    fn read(storage: &dyn Storage, place: Addr) -> Option<Self> {
        let start = place.get()?;
        let (mut head, mut checksum) = ([0; RedoRecord::HEAD_BYTES], [0; 4]);
        let is_read = |into: &mut [u8], at| matches!(storage.read_at(into, at), Ok(found) if found == into.len());
        if !is_read(&mut head, start) {
            return None;
        }
        let end = start.checked_add(RedoRecord::stated_size(&head)?)?;
        is_read(&mut checksum, end.checked_sub(4)?).then_some(RedoFingerprint { place, head, checksum })
    }
}

/// An operation that is under way.
pub struct ReadOperationGuard<'a>(&'a RedoReader);

impl Drop for ReadOperationGuard<'_> {
    fn drop(&mut self) {
        self.0.operations_in_progress.fetch_sub(1, SeqCst);
    }
}

impl RedoReader {
    /// A reader of the file behind `storage`, which begins at the base address.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        RedoReader {
            overlay: Arc::new(RedoOverlay::new(storage)),
            operations_in_progress: AtomicUsize::new(0),
            overlaid_record: Mutex::default(),
            announced_eof: Mutex::default(),
        }
    }

    /// The storage as the reader sees it.
    pub fn overlaid_storage(&self) -> Arc<dyn Storage> {
        self.overlay.clone()
    }

    /// Begins an operation. If it is the only one, it sees the file as it is, apart from an overlay that is still in
    /// force: structures that a dead writer has left torn stay torn, and are not searched again each time.
    pub fn begin_operation(&self) -> ReadOperationGuard<'_> {
        if self.operations_in_progress.fetch_add(1, SeqCst) == 0 {
            let mut by = self.overlaid_record.lock();
            if by.is_some_and(|mark| RedoFingerprint::read(&**self.overlay.inner(), mark.place) != Some(mark)) {
                *by = None;
                self.overlay.clear();
            }
        }
        ReadOperationGuard(self)
    }

    /// Overlays the whole redo record of a dead writer.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn overlay_record_at_eof(&self, superblock: &Superblock) -> Result<()> {
        let record = find_redo_record(&**self.overlay.inner(), superblock)?;
        for write in record.into_iter().flat_map(|record| record.writes) {
            self.overlay_torn_bytes(write.at, write.bytes)?;
        }
        Ok(())
    }

    /// Overlays the structure at `at`, if a redo record names it. Only this structure is overlaid: everything to which
    /// a torn structure leads is in the file.
    pub fn overlay_structure_at(&self, at: Addr) {
        let names = |write: &RedoWrite| {
            write.at <= at && write.at.checked_add(write.bytes.len() as u64).is_some_and(|end| at < end)
        };
        let overlay_torn = || {
            let storage = &**self.overlay.inner();
            let superblock = read_superblock(storage, 0)?;
            let Some((place, end)) = redo_addr_and_eof(&superblock) else { return Ok(()) };
            let mut by = self.overlaid_record.lock();
            let mark = RedoFingerprint::read(storage, place);
            if *by != mark {
                self.overlay.clear();
            }
            *by = mark;
            let record = find_redo_record_at(storage, place, end, superblock.widths)?;
            let torn = record.into_iter().flat_map(|record| record.writes).filter(names);
            torn.into_iter().try_for_each(|write| self.overlay_torn_bytes(write.at, write.bytes))?;
            if mark.is_none() || RedoFingerprint::read(storage, place) != mark {
                *by = None;
                self.overlay.clear();
            }
            Ok(())
        };
        // If this fails, the structure stays torn, and that is the error.
        let _: Result<()> = overlay_torn();
    }

    /// The announced end of file now, and the widths. The superblock is decoded only if it has changed.
    fn superblock_eof(&self) -> Result<(Addr, Widths)> {
        let mut image = [0; Superblock::MAX_SIZE];
        let storage = self.overlay.inner();
        storage.read_zero_padded(&mut image, 0).map_err(Error::io("read the superblock"))?;
        let mut known = self.announced_eof.lock();
        if let Some(known) = known.as_ref().filter(|known| known.image == image) {
            return Ok((known.end, known.widths));
        }
        let superblock = parse_superblock(&image)?;
        let end = superblock.end_of_file.get().zip(superblock.base.get()).and_then(|(end, base)| end.checked_sub(base));
        let (end, widths) = (end.map(Addr::new).unwrap_or_default(), superblock.widths);
        *known = Some(SuperblockEof { image, end, widths });
        Ok((end, widths))
    }

    /// Calls `read` to fill `into` with the raw data at `at`, which a writer may be changing in place. The result is
    /// either old or new.
    ///
    /// # Errors
    /// [`Error::ChangedDuringRead`] if the read must be repeated; errors of `read` and of the storage.
    pub fn read_consistent<E: From<Error>>(
        &self,
        at: Addr,
        into: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let storage = &**self.overlay.inner();
        let (end, widths) = self.superblock_eof()?;
        let Some(place) = SeqlockCounter::word_addr(end) else { return read(into) };
        let before = seqlock_at(storage, place)?;
        read(into)?;
        let after = seqlock_at(storage, place)?;
        let under_way = after.filter(|counter| counter.is_odd());
        // From an even counter to the next one, only the change in the redo record was begun.
        let at_rest = before.filter(|counter| !counter.is_odd());
        let is_same = before == after || at_rest.is_some_and(|counter| Some(counter.next_odd()) == under_way);
        let record = match under_way {
            Some(_) if is_same => {
                let record = find_redo_record_at(storage, place, end, widths)?;
                if seqlock_at(storage, place)? != after {
                    return Err(Error::ChangedDuringRead.into());
                }
                // An incomplete redo record says that nothing was changed while this was read.
                record
            }
            _ => None,
        };
        // The end comes last: only behind another one does the old place come to hold anything else.
        if !is_same || self.superblock_eof()? != (end, widths) {
            return Err(Error::ChangedDuringRead.into());
        }
        let start = at.get().unwrap_or(0);
        let last = start.saturating_add(into.len() as u64);
        for RedoWrite { at, bytes } in record.into_iter().flat_map(|record| record.writes) {
            let at = at.get().unwrap_or(u64::MAX);
            let (from, to) = (at.max(start), at.saturating_add(bytes.len() as u64).min(last));
            let part = |range: Range<u64>, from: u64| (range.start - from) as usize..(range.end - from) as usize;
            if from < to
                && let (Some(place), Some(bytes)) = (into.get_mut(part(from..to, start)), bytes.get(part(from..to, at)))
            {
                place.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn overlay_torn_bytes(&self, at: Addr, bytes: Vec<u8>) -> Result<()> {
        self.overlay.overlay_until_changed(at.get().unwrap_or(0), bytes).map_err(Error::io("read what is torn"))
    }
}
