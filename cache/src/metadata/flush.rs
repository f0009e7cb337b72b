//! Writing what is dirty, in two phases: a snapshot, then the writes.
//!
//! The snapshot is taken while no operation is under way: it orders what is dirty, encodes it, and takes the raw
//! data that waits. The writes go on beside new operations; what they make dirty is for the next flush.

use std::{fmt, mem};

use h5live_format::Addr;

use super::graph::{Picked, Scope, Take, What};
use crate::{
    cache::Cache,
    chunks::RawFlight,
    entry::EntryId,
    error::{Action, Error, Result},
    primitive::MutexGuard,
    stats::count,
};

/// One step of a flush.
#[non_exhaustive]
pub enum Step {
    /// The file is made at least this long, in bytes from the base address.
    Extend(u64),
    /// Raw data is written, in any order.
    Raw(Vec<RawFlight>),
    /// The superblock is written.
    Superblock {
        /// Where it is.
        at: Addr,
        /// Its bytes.
        bytes: Vec<u8>,
        /// The end of file that it announces, in bytes from the base address.
        end: u64,
    },
    /// An entry is written.
    Entry {
        /// Its identity.
        id: EntryId,
        /// Where it is.
        at: Addr,
        /// The name of its type.
        name: &'static str,
        /// Its bytes.
        image: Vec<u8>,
    },
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Extend(len) => write!(f, "extend to {len:#x}"),
            Step::Raw(flights) => f.debug_list().entries(flights.iter().map(|flight| flight.chunk())).finish(),
            Step::Superblock { end, .. } => write!(f, "announce {end:#x}"),
            Step::Entry { id, at, name, image } => write!(f, "{name} {id:?} at {at}, {} bytes", image.len()),
        }
    }
}

/// What a flush will write, in order. While it exists, no other flush runs. What is not written when it is dropped
/// is dirty again.
pub struct FlushPlan<'a> {
    cache: &'a Cache,
    steps: Vec<Step>,
    done: usize,
    whole: bool,
    _only: MutexGuard<'a, ()>,
}

impl fmt::Debug for FlushPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.steps).finish()
    }
}

impl Cache {
    /// Writes what is dirty in `scope`: first the file is made long enough, then raw data is written, then the
    /// superblock if it must announce a new end, then entries, children before parents. Returns when the
    /// operating system has it all; it is not durable before [`Cache::sync`]. Operations go on meanwhile.
    ///
    /// Must not be called inside an operation.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Encode`]; what was not written is still dirty.
    pub fn flush(&self, scope: Scope) -> Result<()> {
        self.plan(scope)?.write()
    }

    /// Takes the snapshot of a flush, without writing it.
    ///
    /// # Errors
    /// [`Error::Encode`] if an entry cannot be written.
    pub fn plan(&self, scope: Scope) -> Result<FlushPlan<'_>> {
        self.snapshot(Take::Scope(scope))
    }

    /// Writes part of what is dirty, if it takes more memory than it should. Call it between operations.
    ///
    /// # Errors
    /// As [`Cache::flush`].
    pub fn trim(&self) -> Result<()> {
        let too_dirty = self.ledger.graph.lock().dirty_weight() > self.settings.dirty_budget;
        if !too_dirty && self.chunks.waiting() <= self.settings.raw_budget {
            return Ok(());
        }
        let leave = if too_dirty { self.settings.dirty_budget / 2 } else { usize::MAX };
        self.snapshot(Take::Excess { leave })?.write()?;
        // Raw data that waits for metadata of other objects (global heaps) goes only with a whole flush.
        if self.chunks.waiting() > self.settings.raw_budget {
            self.flush(Scope::All)?;
        }
        Ok(())
    }

    fn snapshot(&self, take: Take) -> Result<FlushPlan<'_>> {
        let only = self.flushing.lock();
        let _gate = self.gate.write();
        let whole = take == Take::Scope(Scope::All);
        let picked = self.ledger.graph.lock().take(take);
        if whole {
            self.space.begin_flush();
        }
        let mut plan = FlushPlan { cache: self, steps: Vec::new(), done: 0, whole, _only: only };
        if !picked.is_empty() || whole {
            plan.fill(picked)?;
        }
        Ok(plan)
    }

    /// The one place where a flush writes.
    fn write_step(&self, step: &Step) -> Result<()> {
        match step {
            Step::Extend(len) => self.space.reach(*len, &*self.storage),
            Step::Raw(flights) => self.write_flights(flights),
            Step::Superblock { at, bytes, end } => {
                self.write_at(Action::WriteSuperblock, *at, bytes)?;
                self.space.set_announced(*end);
                Ok(())
            }
            Step::Entry { at, name, image, .. } => self.write_at(Action::WriteEntry(name), *at, image),
        }
    }

    pub(crate) fn write_at(&self, action: Action, at: Addr, bytes: &[u8]) -> Result<()> {
        let at = at.get().ok_or(Error::Undefined)?;
        let len = bytes.len() as u64;
        self.storage.write_at(bytes, at).map_err(Error::io(action, at, len))?;
        count(&self.stats.writes, 1);
        count(&self.stats.bytes_written, len);
        Ok(())
    }
}

impl FlushPlan<'_> {
    /// The steps, in the order in which they will be taken.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes all steps.
    ///
    /// # Errors
    /// [`Error::Io`] at the first step that fails; from it on everything is dirty again.
    pub fn write(mut self) -> Result<()> {
        if !self.steps.is_empty() {
            count(&self.cache.stats.flushes, 1);
        }
        while let Some(step) = self.steps.get(self.done) {
            self.cache.write_step(step)?;
            self.done += 1;
        }
        Ok(())
    }

    fn fill(&mut self, picked: Vec<Picked>) -> Result<()> {
        let cache = self.cache;
        let fly = |chunk: &Addr| cache.chunks.take(*chunk);
        let early = picked.iter().filter(|pick| !pick.waits).filter_map(|pick| match &pick.what {
            What::Raw { chunk } => fly(chunk),
            What::Entry(_) => None,
        });
        let early: Vec<RawFlight> = early.collect();
        let announcement = cache.announcement();
        if let Ok(Some((_, _, end))) = &announcement {
            self.steps.push(Step::Extend(*end));
        }
        if !early.is_empty() {
            self.steps.push(Step::Raw(early));
        }
        let mut failure = match announcement {
            Ok(None) => None,
            Ok(Some((at, bytes, end))) => {
                self.steps.push(Step::Superblock { at, bytes, end });
                None
            }
            Err(error) => Some(error),
        };
        // Each picked entry becomes a step even after a failure: dropping the plan makes them dirty again.
        for Picked { id, what, waits } in picked {
            match what {
                What::Raw { .. } if !waits => {}
                What::Raw { chunk } => match (fly(&chunk), self.steps.last_mut()) {
                    (None, _) => {}
                    (Some(flight), Some(Step::Raw(flights))) => flights.push(flight),
                    (Some(flight), _) => self.steps.push(Step::Raw(vec![flight])),
                },
                What::Entry(slot) => {
                    let at = slot.head().addr;
                    let image = match failure {
                        Some(_) => Vec::new(),
                        None => slot.take_image(cache.settings.widths).unwrap_or_else(|source| {
                            failure = Some(Error::Encode { at, source });
                            Vec::new()
                        }),
                    };
                    self.steps.push(Step::Entry { id, at, name: slot.type_name(), image });
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Drop for FlushPlan<'_> {
    fn drop(&mut self) {
        let Cache { ledger, chunks, space, .. } = self.cache;
        let succeeded = self.done == self.steps.len();
        for (n, step) in mem::take(&mut self.steps).into_iter().enumerate() {
            let written = n < self.done;
            match step {
                Step::Raw(flights) => flights.into_iter().for_each(|flight| chunks.land(flight, written, ledger)),
                Step::Entry { id, .. } if written => ledger.graph.lock().written(id),
                Step::Entry { id, .. } => ledger.graph.lock().failed(id),
                Step::Extend(_) | Step::Superblock { .. } => {}
            }
        }
        if self.whole {
            space.end_flush(succeeded);
        }
    }
}
