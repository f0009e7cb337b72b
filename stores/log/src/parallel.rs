//! Work on large boxes is done by several threads.

use std::num::NonZero;
use std::thread;

use parking_lot::Mutex;

use crate::boxes::BoxRange;
use crate::entry::Dims;
use crate::entry_index::EntryIndex;
use crate::error::Result;
use crate::gather::Gatherer;

/// A piece for a thread has about so many bytes at least...
const MIN_PIECE_BYTES: u64 = 1 << 20;
/// ...and at most.
const MAX_PIECE_BYTES: u64 = 16 << 20;
/// Pieces for each thread, so that none waits long for the last one.
const PIECES_PER_THREAD: u64 = 4;

/// Brings boxes together, which follow each other in `into`.
///
/// # Errors
/// As [`Gatherer::gather`].
pub fn gather_boxes(
    gatherer: &Gatherer<'_>,
    index: &EntryIndex,
    boxes: impl Iterator<Item = (Dims, Dims)>,
    into: &mut [u8],
) -> Result<()> {
    let threads = if into.len() as u64 > MIN_PIECE_BYTES { available_threads() } else { 1 };
    let piece_bytes = into.len() as u64 / (threads as u64 * PIECES_PER_THREAD);
    let piece_bytes = if threads > 1 { piece_bytes.clamp(MIN_PIECE_BYTES, MAX_PIECE_BYTES) } else { u64::MAX };
    let (mut rest, mut pieces) = (into, Vec::new());
    for (start, end) in boxes {
        let whole = BoxRange { start: &start, end: &end };
        let bytes = whole.elements().unwrap_or(0) * gatherer.size();
        for (start, end, len) in whole.slabs(bytes, piece_bytes) {
            let (into, behind) = rest.split_at_mut(len as usize);
            rest = behind;
            pieces.push((start, end, into));
        }
    }
    for_each_in_parallel(pieces, threads, |(start, end, into)| {
        gatherer.gather(index, &BoxRange { start: &start, end: &end }, into)
    })
}

/// Calls `each` with every item, on at most so many threads. After an error, items that no thread has begun are left out.
///
/// # Errors
/// One of those of `each`.
pub fn for_each_in_parallel<T: Send>(
    items: Vec<T>,
    threads: usize,
    each: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.into_iter().try_for_each(each);
    }
    let (items, result) = (Mutex::new(items.into_iter()), Mutex::new(Ok(())));
    let work = || loop {
        let Some(item) = items.lock().next() else { return };
        if let Err(error) = each(item) {
            *result.lock() = Err(error);
            // The others find no more.
            return items.lock().by_ref().for_each(drop);
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    result.into_inner()
}

/// How many threads run at once.
pub fn available_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
