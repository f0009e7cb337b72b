//! Following a file whose structures have no checksums. A read counts only if the file showed the same [`GenerationWord`](h5live_format::GenerationWord)
//! when the read began and when it ended.
//!
//! Everything that is read between is of that generation, because a writer changes nothing in place before it shows the
//! next one. The writer keeps the lock of the file, and a record lock that says that it follows this rule. If the
//! record lock is gone, a read takes the shared lock, which keeps every other writer out.

use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use h5live_cache::{Cache, RedoOverlay, Storage};
use h5live_format::{Addr, GenerationWord, StatusFlags, Superblock};
use parking_lot::Mutex;

use crate::generation_word::read_generation_and_eof;
use crate::locking::{LockAttempt, LockHandle, LockKind};
use crate::redo;
use crate::superblock::read_superblock;
use crate::{Error, Result};

/// The state that the file shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ShownState {
    /// A generation, in a file that announces this end.
    Live(GenerationWord, Addr),
    /// Nobody writes it, as the superblock says.
    Closed(Box<Superblock>),
}

impl ShownState {
    /// Whether both show the same contents.
    fn has_same_contents(&self, other: &ShownState) -> bool {
        match (self, other) {
            (ShownState::Live(one, _), ShownState::Live(other, _)) => {
                one.generation_number() == other.generation_number()
            }
            _ => self == other,
        }
    }
}

/// The state to which everything in memory belongs.
#[derive(Debug, Default)]
struct AdoptedState {
    shown: Option<ShownState>,
    /// Whether the redo record is overlaid, so that its bytes are read as if they were in place.
    has_overlay: bool,
}

/// What a reader remembers of a file beside the metadata cache.
pub trait ReaderSideCache: fmt::Debug + Send + Sync {
    /// Forgets all of it, because the file shows another state.
    fn forget_all(&self);

    /// Hashes it. For the model checker.
    fn hash_state(&self, state: &mut dyn Hasher);
}

/// The reads that hold the lock that keeps writers out.
#[derive(Debug, Default)]
struct WriterLockHolders {
    read_count: u64,
    is_kept_after_reads: bool,
}

/// The reader's half of the protocol.
#[derive(Debug)]
pub struct GenerationReader {
    storage: Arc<RedoOverlay<Arc<dyn Storage>>>,
    cache: Arc<Cache>,
    lock: Arc<LockHandle>,
    writer_lock_holders: Mutex<WriterLockHolders>,
    adopted: Mutex<AdoptedState>,
    memory: Arc<dyn ReaderSideCache>,
}

/// A look that is being taken.
#[derive(Debug)]
pub(crate) struct GenerationRead<'a> {
    generations: &'a GenerationReader,
    shown: ShownState,
    /// The lock, where no writer says that it lives.
    held: Option<WriterLockGuard<'a>>,
}

/// The lock that keeps writers out, for as long as a look is taken.
#[derive(Debug)]
struct WriterLockGuard<'a> {
    generations: &'a GenerationReader,
    /// Whether the lock is kept afterwards: the file was closed.
    keeps: bool,
}

impl Drop for WriterLockGuard<'_> {
    fn drop(&mut self) {
        let mut holders = self.generations.writer_lock_holders.lock();
        holders.read_count = holders.read_count.saturating_sub(1);
        holders.is_kept_after_reads |= self.keeps;
        if holders.read_count == 0 && !holders.is_kept_after_reads {
            // It is taken again with the next look.
            let _ = self.generations.lock.release_flock();
        }
    }
}

thread_local! {
    /// The files, by what tells their generations, at which this thread is taking a look.
    static ACTIVE_READS: RefCell<Vec<*const GenerationReader>> = const { RefCell::new(Vec::new()) };
}

impl Drop for GenerationRead<'_> {
    fn drop(&mut self) {
        ACTIVE_READS.with_borrow_mut(|files| {
            if let Some(at) = files.iter().rposition(|file| std::ptr::eq(*file, self.generations)) {
                files.remove(at);
            }
        });
    }
}

impl GenerationReader {
    /// A reader of the file behind `storage` and `lock`. `cache` and `side_cache` hold what was read of it.
    pub fn new(
        storage: Arc<RedoOverlay<Arc<dyn Storage>>>,
        cache: Arc<Cache>,
        lock: Arc<LockHandle>,
        side_cache: Arc<dyn ReaderSideCache>,
    ) -> Self {
        let (holders, known) = Default::default();
        GenerationReader { storage, cache, lock, writer_lock_holders: holders, adopted: known, memory: side_cache }
    }

    /// The state that the file shows now.
    fn read_shown(&self) -> Result<ShownState> {
        let storage = &**self.storage.inner();
        let superblock = read_superblock(storage, 0)?;
        if !superblock.status.contains(StatusFlags::SWMR) {
            return Ok(ShownState::Closed(Box::new(superblock)));
        }
        let word = read_generation_and_eof(storage, &superblock)?;
        // Where the word was, there may be raw data once another end is announced.
        match word.filter(|_| read_superblock(storage, 0).is_ok_and(|again| again == superblock)) {
            Some((generation, end)) => Ok(ShownState::Live(generation, end)),
            None => Err(Error::ChangedDuringRead),
        }
    }

    /// The number of the generation, as bytes to be compared; none if there is none at the moment.
    pub fn read_generation_number_bytes(&self) -> Vec<u8> {
        match self.read_shown() {
            Ok(ShownState::Live(generation, _)) => generation.generation_number().to_le_bytes().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Begins a read. If a writer is changing the file in place, the read must wait, unless it is to begin
    /// `without_waiting`.
    ///
    /// # Errors
    /// [`Error::ChangedDuringRead`] if the read must be repeated; errors of the storage.
    pub(crate) fn begin_read(&self, without_waiting: bool) -> Result<GenerationRead<'_>> {
        let mut held = if self.lock.may_have_generation_writer() { None } else { Some(self.lock_out_writers()?) };
        // Taken before the file is read, so that no thread adopts an older state after another thread adopted a newer
        // one.
        let mut known = self.adopted.lock();
        let shown = self.read_shown()?;
        self.adopt_state(&mut known, &shown, without_waiting || held.is_some())?;
        drop(known);
        if let (Some(held), ShownState::Closed(_)) = (&mut held, &shown) {
            held.keeps = true;
        }
        ACTIVE_READS.with_borrow_mut(|files| files.push(self));
        Ok(GenerationRead { generations: self, shown, held })
    }

    /// Whether this thread is in the middle of a read of the file. Then everything that it reads is part of that.
    pub(crate) fn is_reading(&self) -> bool {
        ACTIVE_READS.with_borrow(|files| files.iter().any(|file| std::ptr::eq(*file, self)))
    }

    fn lock_out_writers(&self) -> Result<WriterLockGuard<'_>> {
        let mut holders = self.writer_lock_holders.lock();
        let is_held = holders.read_count > 0 || holders.is_kept_after_reads;
        if !holders.is_kept_after_reads && self.lock.is_writer_waiting() {
            return Err(Error::ChangedDuringRead);
        }
        if !is_held
            && self.lock.try_flock(LockKind::Shared).map_err(Error::io("lock the file"))? == LockAttempt::Conflict
        {
            return Err(Error::ChangedDuringRead);
        }
        holders.read_count += 1;
        Ok(WriterLockGuard { generations: self, keeps: false })
    }

    /// Makes the memory belong to the shown state: drops older structures, and overlays the redo record if necessary.
    fn adopt_state(&self, known: &mut AdoptedState, shown: &ShownState, without_waiting: bool) -> Result<()> {
        let is_known = known.shown.as_ref().is_some_and(|known| known.has_same_contents(shown));
        match shown {
            ShownState::Live(generation, end) if generation.is_changing() => {
                if is_known && known.has_overlay {
                    return Ok(());
                }
                if !without_waiting {
                    return Err(Error::ChangedDuringRead);
                }
                let storage = &**self.storage.inner();
                let record = GenerationWord::redo_record_addr(*end)
                    .map(|at| redo::find_redo_record_at(storage, at, *end, self.cache.widths()));
                let record = record.transpose()?.flatten().ok_or(Error::ChangedDuringRead)?;
                // The redo record of the next generation replaces this one only once this one is at rest.
                if !matches!(self.read_shown()?, ShownState::Live(again, _) if again == *generation) {
                    return Err(Error::ChangedDuringRead);
                }
                self.storage.set_overlays_until_cleared(
                    record.writes.into_iter().map(|write| (write.at.get().unwrap_or(0), write.bytes)),
                );
                known.has_overlay = true;
            }
            _ if known.has_overlay => {
                self.storage.clear();
                known.has_overlay = false;
            }
            _ => {}
        }
        if !is_known {
            self.forget_cached_structures();
            known.shown = Some(shown.clone());
        }
        Ok(())
    }

    fn forget_cached_structures(&self) {
        self.cache.evict_all();
        self.memory.forget_all();
    }

    /// Hashes everything on which the next read depends. For the model checker.
    pub fn hash_state(&self, mut state: &mut dyn Hasher) {
        let known = self.adopted.lock();
        match &known.shown {
            Some(ShownState::Live(generation, _)) => {
                (generation.generation_number(), known.has_overlay).hash(&mut state)
            }
            other => format!("{other:?} {}", known.has_overlay).hash(&mut state),
        }
        self.storage.hash_state(&mut state);
        self.cache.hash_state(&mut state);
        self.memory.hash_state(state);
    }
}

impl GenerationRead<'_> {
    /// The number of the generation, if the file is not closed.
    pub fn generation_number(&self) -> Option<u64> {
        match &self.shown {
            ShownState::Live(generation, _) => Some(generation.generation_number()),
            ShownState::Closed(_) => None,
        }
    }

    /// Whether everything that was read since the read began belongs to the state that was shown then.
    pub fn is_valid(&self) -> bool {
        let GenerationRead { generations, shown, held } = self;
        // In this order: a writer shows the next generation before it says that it lives.
        (held.is_some() || generations.lock.may_have_generation_writer())
            && generations.read_shown().is_ok_and(|now| now.has_same_contents(shown))
    }

    /// Drops everything from a read that does not count.
    pub fn invalidate_caches(self) {
        let mut known = self.generations.adopted.lock();
        // Another look may have settled on something newer since.
        if known.shown.as_ref().is_some_and(|known| known.has_same_contents(&self.shown)) {
            self.generations.forget_cached_structures();
            known.shown = None;
        }
    }
}
