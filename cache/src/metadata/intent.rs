//! Intents: what a flush is about to change in place, written down first where the announced end of the file is.
//!
//! The system copies a page of memory at once, and a disk writes a sector at once; a write that covers more may be cut
//! off. While an intent is valid, what it says is in its place, or on its way there, and may be written again. At most
//! one is valid at any time: each takes the place of the one before, or that one is made invalid first.

use std::ops::Range;

use h5live_format::{Addr, IntendedWrite, Intent, Turn, encode};

use super::flush::Step;
use crate::{
    cache::{Cache, Settings},
    chunks::RawFlight,
    error::{Action, Error, Result},
    primitive::{Mutex, RwLock},
};

/// Bytes that a process which is killed has copied all or none of.
const PAGE: u64 = 4096;

/// Bytes that a disk whose power fails has written all or none of.
const SECTOR: u64 = 512;

/// What a cache knows of its intents.
#[derive(Debug, Default)]
pub(crate) struct Intents {
    /// Where the last one was written that has not been made invalid.
    last: Mutex<Option<Addr>>,
    /// The last one, if a flush failed between writing it and having done all that it says: what it names may be torn,
    /// and it alone tells how it is to be.
    unfinished: Mutex<Option<Intent>>,
    /// The turn that is shown where the last one was, and where that is.
    turn: Mutex<Option<(Addr, Turn)>>,
    /// Held alone by a flush with intents: what is allocated meanwhile may lie where they do. Shared by those who
    /// write behind the announced end.
    pub(crate) beyond: RwLock<()>,
}

/// Which changes in place need an intent, and which of them share one. `as_one` says that all do. `joined` says that
/// with barriers even a single one needs one: an earlier intent may name the same place, or a new end is to be announced
/// with it.
pub(super) fn groups(settings: &Settings, changes: &[Step], as_one: bool, joined: bool) -> Vec<Range<usize>> {
    if settings.without_intents || changes.is_empty() {
        return Vec::new();
    }
    let is_cut = |step: &Step, unit: u64| match step {
        Step::Entry { at, image, in_place: true, .. } => crosses(settings.base, *at, image.len() as u64, unit),
        Step::Raw(_) => true,
        _ => false,
    };
    if settings.barriers {
        // One intent for all makes the flush whole; a single sector is whole by itself.
        let alone = !joined && changes.len() == 1 && !is_cut(&changes[0], SECTOR);
        return (!alone).then_some(0..changes.len()).into_iter().collect();
    }
    if as_one {
        let in_place = |step: &Step| match step {
            Step::Entry { in_place, .. } => *in_place,
            Step::Raw(flights) => flights.iter().any(RawFlight::is_over),
            _ => false,
        };
        let alone = changes.len() == 1 && !is_cut(&changes[0], PAGE);
        return (!alone && changes.iter().any(in_place)).then_some(0..changes.len()).into_iter().collect();
    }
    // Each one just before it is written, when what it leads to is in the file: it may be written again at any time.
    let cut = |n: &usize| matches!(changes[*n], Step::Entry { .. }) && is_cut(&changes[*n], PAGE);
    (0..changes.len()).filter(cut).map(|n| n..n + 1).collect()
}

/// The intent to take these steps, at `place`; whether it changes raw data that readers may be reading is told to
/// [`Cache::write_intent`].
pub(super) fn intent(place: Addr, changes: &[Step]) -> Intent {
    let mut intent = Intent { place, ..Intent::default() };
    for change in changes {
        match change {
            Step::Entry { at, image, .. } => {
                intent.writes.push(IntendedWrite { at: *at, bytes: image.clone() });
            }
            Step::Raw(flights) => {
                let pieces = flights.iter().flat_map(|flight| flight.pieces());
                intent.writes.extend(pieces.map(|(at, bytes)| IntendedWrite { at, bytes: bytes.to_vec() }));
            }
            _ => {}
        }
    }
    intent
}

/// Whether a step changes raw data that readers may be reading.
pub(super) fn is_seen(change: &Step) -> bool {
    matches!(change, Step::Raw(flights) if flights.iter().any(RawFlight::is_seen))
}

/// Whether the `len` bytes at `at` do not lie in one `unit`.
fn crosses(base: u64, at: Addr, len: u64, unit: u64) -> bool {
    let first = at.get().unwrap_or(0).saturating_add(base);
    first / unit != first.saturating_add(len.saturating_sub(1)) / unit
}

/// Whether a process that is killed has written all or none of the `len` bytes at `at`.
pub(super) fn is_within_page(base: u64, at: Addr, len: u64) -> bool {
    !crosses(base, at, len, PAGE)
}

impl Cache {
    /// Whether an intent is still valid, or a flush failed before it had done all that one says.
    pub(super) fn has_intent(&self) -> bool {
        self.standing_intent().is_some() || self.intents.unfinished.lock().is_some()
    }

    /// The intent that is still valid where the end is announced.
    pub(super) fn standing_intent(&self) -> Option<Addr> {
        let place = Turn::place(Addr::new(self.space.announced()));
        self.intents.last.lock().filter(|at| Some(*at) == place)
    }

    /// The turn that is shown at `place`.
    fn turn_at(&self, place: Addr) -> Result<Turn> {
        let mut known = self.intents.turn.lock();
        match *known {
            Some((at, turn)) if at == place => Ok(turn),
            _ => {
                // A reader may have begun when an earlier writer was there. Where nothing tells of one, it may all the
                // same; so each begins with another number.
                let any = || Turn::new(self.settings.clock.now().subsec_nanos()).at_rest();
                let mut bytes = [0; Turn::SIZE];
                let start = place.get().ok_or(Error::Undefined)?;
                let found = self.storage.read_at(&mut bytes, start);
                let found = found.map_err(Error::io(Action::Read, start, Turn::SIZE as u64))?;
                let turn = bytes.get(..found).and_then(Turn::from_bytes).unwrap_or_else(any);
                *known = Some((place, turn));
                Ok(turn)
            }
        }
    }

    /// Writes an intent, which is under way from here on if it changes raw data that readers may be reading.
    pub(super) fn write_intent(&self, intent: &Intent, is_seen: bool) -> Result<()> {
        let at = intent.place;
        let turn = match self.has_generations() {
            true => Turn::default(),
            false if is_seen => self.turn_at(at)?.next(),
            false => self.turn_at(at)?.at_rest(),
        };
        let image = encode(&Intent { turn, ..intent.clone() }, self.settings.widths);
        let image = image.map_err(|source| Error::Encode { at, source })?;
        *self.intents.turn.lock() = Some((at, turn));
        let start = at.get().ok_or(Error::Undefined)?;
        let end = start.saturating_add(image.len() as u64);
        self.space.note_intent(end);
        self.space.reach(end, &*self.storage)?;
        // Also if that fails, it may have been written.
        *self.intents.last.lock() = Some(at);
        self.write_at(Action::WriteIntent, at, &image)?;
        self.keep_intent(intent);
        Ok(())
    }

    /// Notes that a flush failed after `done` of its steps. `one` says that one intent has all changes that follow it.
    pub(super) fn note_unfinished(&self, steps: &[Step], done: usize, one: bool) {
        let written = steps.get(..done).unwrap_or_default();
        let last = written.iter().enumerate().rev().find_map(|(n, step)| match step {
            Step::Intent { intent, .. } => Some((n, intent)),
            _ => None,
        });
        // If not, each has one change, the next step.
        if let Some((_, intent)) = last.filter(|(n, _)| one || n + 1 == done) {
            *self.intents.unfinished.lock() = Some(intent.clone());
        }
    }

    /// Does what an earlier flush could not finish, before its intent is made invalid.
    pub(super) fn finish_intent(&self, barriers: bool) -> Result<()> {
        let mut unfinished = self.intents.unfinished.lock();
        let Some(intent) = &*unfinished else { return Ok(()) };
        let barrier = || if barriers { self.sync() } else { Ok(()) };
        barrier()?;
        for write in &intent.writes {
            self.write_at(Action::WriteIntent, write.at, &write.bytes)?;
        }
        barrier()?;
        *unfinished = None;
        Ok(())
    }

    /// Changes raw data that readers may be reading, after an intent has said how it will be.
    pub(crate) fn write_intended(&self, writes: Vec<IntendedWrite>) -> Result<()> {
        if writes.is_empty() {
            return Ok(());
        }
        let place = Turn::place(Addr::new(self.space.announced())).ok_or(Error::Undefined)?;
        let intent = Intent { place, writes, ..Intent::default() };
        self.write_intent(&intent, true)?;
        let written =
            intent.writes.iter().try_for_each(|write| self.write_at(Action::WriteRaw, write.at, &write.bytes));
        if written.is_err() {
            *self.intents.unfinished.lock() = Some(intent);
            return written;
        }
        self.forget_intent(place)
    }

    /// What the intent says is in its place, and readers need it no more.
    pub(super) fn forget_intent(&self, at: Addr) -> Result<()> {
        self.settle_intent(at)?;
        *self.intents.last.lock() = None;
        Ok(())
    }

    /// As [`Cache::forget_intent`], but after a power failure the intent may be there all the same.
    pub(super) fn settle_intent(&self, at: Addr) -> Result<()> {
        let turn = self.turn_at(at)?.at_rest();
        self.write_at(Action::WriteIntent, at, &turn.to_bytes())?;
        *self.intents.turn.lock() = Some((at, turn));
        Ok(())
    }

    /// Before `end` is announced: what lies there is no intent, whatever was there in the course of time. Returns whether
    /// something had to be written.
    pub(crate) fn bury_intents(&self, end: u64) -> Result<bool> {
        let place = Turn::place(Addr::new(end)).and_then(Addr::get).ok_or(Error::Undefined)?;
        let len = self.storage.len().map_err(Error::io(Action::Length, 0, 0))?;
        let beyond = len.saturating_sub(place).min(Intent::SIGNATURE.len() as u64) as usize;
        let had_some = self.intents.last.lock().take().is_some() && beyond > 0;
        if had_some {
            self.write_at(Action::WriteIntent, Addr::new(place), &[0; Intent::SIGNATURE.len()][..beyond])?;
        }
        Ok(had_some)
    }
}
