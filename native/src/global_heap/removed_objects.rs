//! Objects of global heaps to which no element leads any more.
//!
//! The elements that led to them lie in the file until a flush has written others over them. Until then, a process that
//! opens the file after the death of this one needs the objects. The space of a collection has no checksum, so a reader of
//! a live file could not tell that objects move in it: while others follow, nothing is removed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use h5live_cache::FreeEpoch;
use h5live_format::{Addr, GlobalHeapId};

/// The objects that wait to be removed.
#[derive(Debug)]
pub(super) enum GlobalHeapRemovals {
    /// In the order in which they were given up, each with when that was.
    Waiting(VecDeque<(FreeEpoch, GlobalHeapId)>),
    /// Objects stay, whatever leads to them.
    Kept,
}

impl Default for GlobalHeapRemovals {
    fn default() -> Self {
        GlobalHeapRemovals::Waiting(VecDeque::new())
    }
}

impl GlobalHeapRemovals {
    /// How many objects wait.
    pub fn count(&self) -> usize {
        match self {
            GlobalHeapRemovals::Waiting(objects) => objects.len(),
            GlobalHeapRemovals::Kept => 0,
        }
    }

    /// Adds objects that are given up now.
    pub fn add(&mut self, now: FreeEpoch, objects: impl IntoIterator<Item = GlobalHeapId>) {
        if let GlobalHeapRemovals::Waiting(waiting) = self {
            waiting.extend(objects.into_iter().map(|object| (now, object)));
        }
    }

    /// Takes the objects that were given up at a moment which is settled: their numbers, by collection.
    pub fn take_removable_objects(&mut self, is_settled: impl Fn(FreeEpoch) -> bool) -> BTreeMap<Addr, BTreeSet<u32>> {
        let mut settled: BTreeMap<Addr, BTreeSet<u32>> = BTreeMap::new();
        let GlobalHeapRemovals::Waiting(waiting) = self else { return settled };
        let mut last = None;
        while let Some((epoch, object)) = waiting.front() {
            if last != Some(*epoch) && !is_settled(*epoch) {
                break;
            }
            last = Some(*epoch);
            settled.entry(object.collection).or_default().insert(object.index);
            waiting.pop_front();
        }
        settled
    }
}
