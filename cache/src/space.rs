//! Space in the file: allocation at its end, what was freed, and how much of it the superblock announces.

mod free;

use h5live_format::{Addr, Width};

use self::free::FreeList;
use crate::{
    error::{Action, Error, Result},
    primitive::Mutex,
    storage::Storage,
};

/// The unit in which the operating system writes: a block within one page is not torn by the death of a process.
const PAGE: u64 = 4096;

/// Metadata begins at multiples of this, so that its fields of up to eight bytes are written at once.
const METADATA_ALIGNMENT: u64 = 8;

/// What space is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A structure. One that is smaller than a page does not cross the border of one.
    Metadata,
    /// Raw data. Aligned to pages if its size is a multiple of them.
    Raw,
}

/// What becomes of freed space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It is allocated again as soon as a whole flush has written the structures that no longer point to it.
    AfterFlush,
    /// It is never allocated again in this session: readers may follow old pointers to it.
    Never,
}

/// The space of one file.
#[derive(Debug)]
pub struct Space {
    state: Mutex<State>,
    /// The length of the storage, which is never written beyond it. Taken on its own, never with `state`.
    length: Mutex<Option<u64>>,
}

#[derive(Debug)]
struct State {
    end: u64,
    announced: u64,
    limit: u64,
    reuse: Reuse,
    free: FreeList,
    /// Freed since the last snapshot of a whole flush.
    freed: Vec<(u64, u64)>,
    /// Freed before the snapshot of the whole flush that is under way.
    releasing: Vec<(u64, u64)>,
    /// Whole flushes that have begun.
    snapshots: u64,
    /// The last of them that succeeded.
    settled: u64,
}

/// A moment between two snapshots of whole flushes, see [`Space::is_settled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// How far ahead of the allocated space a new end of file is announced, so that the superblock is seldom written.
fn ahead(end: u64) -> u64 {
    (end / 8).clamp(64 << 10, 16 << 20)
}

impl Space {
    /// The space of a file whose superblock announces `end` (bytes from the base address), with addresses of
    /// `offset` width.
    pub fn new(end: u64, offset: Width) -> Self {
        let state = State {
            end,
            announced: end,
            limit: offset.max(),
            reuse: Reuse::AfterFlush,
            free: FreeList::default(),
            freed: Vec::new(),
            releasing: Vec::new(),
            snapshots: 0,
            settled: 0,
        };
        Space { state: Mutex::new(state), length: Mutex::new(None) }
    }

    /// Space for `len` bytes.
    ///
    /// # Errors
    /// [`Error::Full`] if addresses do not reach that far.
    pub fn alloc(&self, len: u64, kind: Kind) -> Result<Addr> {
        let mut state = self.state.lock();
        let placed = |at: u64| match kind {
            Kind::Metadata => {
                let at = at.checked_next_multiple_of(METADATA_ALIGNMENT)?;
                let crosses = len <= PAGE && at % PAGE + len > PAGE;
                if crosses { at.checked_next_multiple_of(PAGE) } else { Some(at) }
            }
            Kind::Raw if len > 0 && len.is_multiple_of(PAGE) => at.checked_next_multiple_of(PAGE),
            Kind::Raw => Some(at),
        };
        if let Some(at) = state.free.take(len, placed) {
            return Ok(Addr::new(at));
        }
        let end = state.end;
        let full = Error::Full { wanted: len, end, limit: state.limit };
        let Some(at) = placed(end) else { return Err(full) };
        match at.checked_add(len).filter(|new| *new < state.limit) {
            None => Err(full),
            Some(new) => {
                state.free.give(end, at - end);
                state.end = new;
                Ok(Addr::new(at))
            }
        }
    }

    /// Gives `len` bytes at `at` back.
    pub fn free(&self, at: Addr, len: u64) {
        let mut state = self.state.lock();
        if let (Some(at), Reuse::AfterFlush) = (at.get(), state.reuse) {
            state.freed.push((at, len));
        }
    }

    /// Now.
    pub fn moment(&self) -> Moment {
        Moment(self.state.lock().snapshots)
    }

    /// Whether what was given up at `moment`, inside a structure, may be overwritten: a whole flush has since written
    /// what no longer points to it, and no reader follows old pointers.
    pub fn is_settled(&self, moment: Moment) -> bool {
        let state = self.state.lock();
        state.reuse == Reuse::AfterFlush && state.settled > moment.0
    }

    /// Decides what becomes of freed space from now on. Under [`Reuse::Never`] space that was freed before, but
    /// has not been flushed since, is lost too.
    pub fn set_reuse(&self, reuse: Reuse) {
        let mut state = self.state.lock();
        state.reuse = reuse;
        if reuse == Reuse::Never {
            state.freed.clear();
            state.releasing.clear();
            state.free.clear();
        }
    }

    /// The end of the allocated space, in bytes from the base address.
    pub fn end(&self) -> u64 {
        self.state.lock().end
    }

    /// The end of file that the superblock states, in bytes from the base address.
    pub fn announced(&self) -> u64 {
        self.state.lock().announced
    }

    /// Bytes that were freed and can be allocated again.
    pub fn reusable(&self) -> u64 {
        self.state.lock().free.total()
    }

    /// The end of file to announce before what is allocated now becomes reachable, if it must be a new one.
    pub(crate) fn to_announce(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.end > state.announced).then(|| state.end.saturating_add(ahead(state.end)).min(state.limit - 1))
    }

    pub(crate) fn set_announced(&self, end: u64) {
        self.state.lock().announced = end;
    }

    /// A whole flush takes its snapshot: what was freed so far is unreachable once it is done.
    pub(crate) fn begin_flush(&self) {
        let state = &mut *self.state.lock();
        state.releasing.append(&mut state.freed);
        state.snapshots += 1;
    }

    /// The whole flush has ended; if it `succeeded`, what was freed before it is free.
    pub(crate) fn end_flush(&self, succeeded: bool) {
        let state = &mut *self.state.lock();
        if succeeded {
            state.settled = state.snapshots;
            state.releasing.drain(..).for_each(|(at, len)| state.free.give(at, len));
        } else {
            state.freed.append(&mut state.releasing);
        }
    }

    /// Makes the storage at least `len` bytes long. Whoever writes calls this, or [`Space::reach_ahead`], first:
    /// because nothing is ever written beyond the known length, setting a greater one cuts nothing off.
    pub(crate) fn reach(&self, len: u64, storage: &dyn Storage) -> Result<()> {
        self.lengthen(len, len, storage)
    }

    /// As [`Space::reach`], but if the storage must grow, it grows so far that it seldom must.
    pub(crate) fn reach_ahead(&self, len: u64, storage: &dyn Storage) -> Result<()> {
        self.lengthen(len, len.saturating_add(ahead(len)), storage)
    }

    fn lengthen(&self, needed: u64, wanted: u64, storage: &dyn Storage) -> Result<()> {
        let mut length = self.length.lock();
        let now = match *length {
            Some(now) => now,
            None => storage.len().map_err(Error::io(Action::Length, 0, 0))?,
        };
        *length = Some(now);
        if now < needed {
            storage.set_len(wanted).map_err(Error::io(Action::Extend, now, wanted))?;
            *length = Some(wanted);
        }
        Ok(())
    }

    /// Cuts the storage behind the allocated space.
    pub(crate) fn cut(&self, len: u64, storage: &dyn Storage) -> Result<()> {
        let mut length = self.length.lock();
        storage.set_len(len).map_err(Error::io(Action::Truncate, len, len))?;
        *length = Some(len);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
