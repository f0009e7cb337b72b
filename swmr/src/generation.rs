//! How a file is followed whose structures have no checksums: a look at it counts only if the file showed the same
//! [`Generation`] when it began and when it ended.
//!
//! What is read in between is of that generation, for a writer changes nothing in place before it shows the next one. The
//! writer keeps the lock of the file, and a record lock that says that it keeps to this. Where that is gone, a look is
//! taken under the lock that keeps every other writer out.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use h5live_cache::{Cache, Mended, Storage};
use h5live_format::{Addr, Generation, StatusFlags, Superblock};
use parking_lot::Mutex;

use crate::begin::read_superblock;
use crate::heap::HeapReader;
use crate::intent;
use crate::locking::{Lock, LockHandle, Taken};
use crate::{Error, Result};

/// What the file shows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    /// A generation, in a file that announces this end.
    Live(Generation, Addr),
    /// Nobody writes it, as the superblock says.
    Closed(Box<Superblock>),
}

impl Shown {
    /// Whether both show the same contents.
    fn is(&self, other: &Shown) -> bool {
        match (self, other) {
            (Shown::Live(one, _), Shown::Live(other, _)) => one.number() == other.number(),
            _ => self == other,
        }
    }
}

/// What is known to be kept in memory.
#[derive(Debug, Default)]
struct Known {
    shown: Option<Shown>,
    /// Whether what is on its way to its place is read as if it were there.
    laid: bool,
}

/// Who holds the lock that keeps writers out.
#[derive(Debug, Default)]
struct Holders {
    looks: u64,
    keeps: bool,
}

/// The reader's half of the protocol.
#[derive(Debug)]
pub(crate) struct Generations {
    storage: Arc<Mended<Arc<dyn Storage>>>,
    cache: Arc<Cache>,
    lock: Arc<LockHandle>,
    holders: Mutex<Holders>,
    known: Mutex<Known>,
    pub heap: Arc<HeapReader>,
}

/// A look that is being taken.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    generations: &'a Generations,
    shown: Shown,
    /// The lock, where no writer says that it lives.
    held: Option<Held<'a>>,
}

/// The lock that keeps writers out, for as long as a look is taken.
#[derive(Debug)]
struct Held<'a> {
    generations: &'a Generations,
    /// Whether the lock is kept afterwards: the file was closed.
    keeps: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut holders = self.generations.holders.lock();
        holders.looks = holders.looks.saturating_sub(1);
        holders.keeps |= self.keeps;
        if holders.looks == 0 && !holders.keeps {
            // It is taken again with the next look.
            let _ = self.generations.lock.release();
        }
    }
}

thread_local! {
    /// The files, by what tells their generations, at which this thread is taking a look.
    static LOOKED_AT: RefCell<Vec<*const Generations>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        LOOKED_AT.with_borrow_mut(|files| {
            if let Some(at) = files.iter().rposition(|file| std::ptr::eq(*file, self.generations)) {
                files.remove(at);
            }
        });
    }
}

/// The generation that a file shows, if it shows one. `storage` begins at the base address.
///
/// # Errors
/// Those of the storage.
pub(crate) fn shown_at(storage: &dyn Storage, superblock: &Superblock) -> Result<Option<(Generation, Addr)>> {
    let end = superblock.end_of_file.get().zip(superblock.base.get()).and_then(|(end, base)| end.checked_sub(base));
    let Some((place, end)) = end.map(Addr::new).and_then(|end| Generation::place(end).zip(Some(end))) else {
        return Ok(None);
    };
    let mut bytes = [0; Generation::SIZE];
    let found = storage.read_at(&mut bytes, place.get().unwrap_or(u64::MAX));
    let found = found.map_err(Error::io("read behind the end of the file"))?;
    Ok(bytes.get(..found).and_then(Generation::from_bytes).map(|generation| (generation, end)))
}

impl Generations {
    pub fn new(storage: Arc<Mended<Arc<dyn Storage>>>, cache: Arc<Cache>, lock: Arc<LockHandle>) -> Self {
        let (holders, known) = Default::default();
        Generations { storage, cache, lock, holders, known, heap: Arc::default() }
    }

    /// What the file shows now.
    fn shown(&self) -> Result<Shown> {
        let storage = &**self.storage.inner();
        let superblock = read_superblock(storage, 0)?;
        if !superblock.status.contains(StatusFlags::SWMR) {
            return Ok(Shown::Closed(Box::new(superblock)));
        }
        let word = shown_at(storage, &superblock)?;
        // Where the word was, there may be raw data once another end is announced.
        match word.filter(|_| read_superblock(storage, 0).is_ok_and(|again| again == superblock)) {
            Some((generation, end)) => Ok(Shown::Live(generation, end)),
            None => Err(Error::Overtaken),
        }
    }

    /// The number of the generation, as bytes to be compared; none if there is none at the moment.
    pub fn image(&self) -> Vec<u8> {
        match self.shown() {
            Ok(Shown::Live(generation, _)) => generation.number().to_le_bytes().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Begins a look. While a writer is putting what it changes in its place that is waited for, unless `now`.
    ///
    /// # Errors
    /// [`Error::Overtaken`] if the file has to be looked at again; errors of the storage.
    pub fn look(&self, now: bool) -> Result<Look<'_>> {
        let mut held = if self.lock.is_live() { None } else { Some(self.hold()?) };
        // Taken before the file is looked at: no look settles on what was shown before another one did.
        let mut known = self.known.lock();
        let shown = self.shown()?;
        self.settle(&mut known, &shown, now || held.is_some())?;
        drop(known);
        if let (Some(held), Shown::Closed(_)) = (&mut held, &shown) {
            held.keeps = true;
        }
        LOOKED_AT.with_borrow_mut(|files| files.push(self));
        Ok(Look { generations: self, shown, held })
    }

    /// Whether this thread is taking a look at the file, of which everything that it reads is part.
    pub fn are_looked_at(&self) -> bool {
        LOOKED_AT.with_borrow(|files| files.iter().any(|file| std::ptr::eq(*file, self)))
    }

    fn hold(&self) -> Result<Held<'_>> {
        let mut holders = self.holders.lock();
        let is_held = holders.looks > 0 || holders.keeps;
        if !holders.keeps && self.lock.is_awaited() {
            return Err(Error::Overtaken);
        }
        if !is_held && self.lock.take(Lock::Shared).map_err(Error::io("lock the file"))? == Taken::Conflict {
            return Err(Error::Overtaken);
        }
        holders.looks += 1;
        Ok(Held { generations: self, keeps: false })
    }

    /// Has what is in memory, and what is read from now on, be of what is shown.
    fn settle(&self, known: &mut Known, shown: &Shown, now: bool) -> Result<()> {
        let is_known = known.shown.as_ref().is_some_and(|known| known.is(shown));
        match shown {
            Shown::Live(generation, end) if generation.is_under_way() => {
                if is_known && known.laid {
                    return Ok(());
                }
                if !now {
                    return Err(Error::Overtaken);
                }
                let storage = &**self.storage.inner();
                let intent =
                    Generation::place_of_intent(*end).map(|at| intent::find_at(storage, at, *end, self.cache.widths()));
                let intent = intent.transpose()?.flatten().ok_or(Error::Overtaken)?;
                // The intent of the next generation comes in its place only once this one is at rest.
                if !matches!(self.shown()?, Shown::Live(again, _) if again == *generation) {
                    return Err(Error::Overtaken);
                }
                self.storage.lay(intent.writes.into_iter().map(|write| (write.at.get().unwrap_or(0), write.bytes)));
                known.laid = true;
            }
            _ if known.laid => {
                self.storage.forget();
                known.laid = false;
            }
            _ => {}
        }
        if !is_known {
            self.drop_kept();
            known.shown = Some(shown.clone());
        }
        Ok(())
    }

    fn drop_kept(&self) {
        self.cache.evict_all();
        self.heap.forget();
    }

    /// Tells `state` all that the next look goes by, for those who put a reader to the proof.
    pub fn tell(&self, state: &mut impl Hasher) {
        let known = self.known.lock();
        match &known.shown {
            Some(Shown::Live(generation, _)) => (generation.number(), known.laid).hash(state),
            other => format!("{other:?} {}", known.laid).hash(state),
        }
        self.storage.tell(state);
        self.cache.tell(state);
        self.heap.tell(state);
    }
}

impl Look<'_> {
    /// The number of the generation, if the file is not closed.
    pub fn number(&self) -> Option<u64> {
        match &self.shown {
            Shown::Live(generation, _) => Some(generation.number()),
            Shown::Closed(_) => None,
        }
    }

    /// Whether all that was read since it began is of what was shown then.
    pub fn holds(&self) -> bool {
        let Look { generations, shown, held } = self;
        // In this order: a writer shows the next generation before it says that it lives.
        (held.is_some() || generations.lock.is_live()) && generations.shown().is_ok_and(|now| now.is(shown))
    }

    /// Has nothing kept of a look that does not count.
    pub fn forget(self) {
        let mut known = self.generations.known.lock();
        // Another look may have settled on something newer since.
        if known.shown.as_ref().is_some_and(|known| known.is(&self.shown)) {
            self.generations.drop_kept();
            known.shown = None;
        }
    }
}
