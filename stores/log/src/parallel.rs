//! Large boxes are brought together by several threads.

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

/// A box, and where its elements go.
struct Piece<'a> {
    start: Dims,
    end: Dims,
    into: &'a mut [u8],
}

impl<'a> Piece<'a> {
    /// Cuts the box along its first dimension with more than one element, into pieces of about so many bytes.
    fn split(self, piece_bytes: u64, pieces: &mut Vec<Piece<'a>>) {
        let Piece { start, end, into } = self;
        let cut = (0..start.len()).find(|dim| end[*dim] - start[*dim] > 1);
        let Some(dim) = cut.filter(|_| into.len() as u64 > piece_bytes) else {
            return pieces.push(Piece { start, end, into });
        };
        let row_bytes = into.len() as u64 / (end[dim] - start[dim]);
        let step = (piece_bytes / row_bytes.max(1)).max(1);
        let mut rest = into;
        for from in (start[dim]..end[dim]).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let (mut low, mut high) = (start.clone(), end.clone());
            (low[dim], high[dim]) = (from, from.saturating_add(step).min(end[dim]));
            let (part, behind) = rest.split_at_mut(((high[dim] - from) * row_bytes) as usize);
            rest = behind;
            pieces.push(Piece { start: low, end: high, into: part });
        }
    }
}

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
        let elements = BoxRange { start: &start, end: &end }.elements().unwrap_or(0);
        let (into, behind) = rest.split_at_mut((elements * gatherer.size()) as usize);
        rest = behind;
        Piece { start, end, into }.split(piece_bytes, &mut pieces);
    }
    let gather = |Piece { start, end, into }| gatherer.gather(index, &BoxRange { start: &start, end: &end }, into);
    let threads = threads.min(pieces.len());
    if threads < 2 {
        return pieces.into_iter().try_for_each(gather);
    }
    let (pieces, result) = (Mutex::new(pieces.into_iter()), Mutex::new(Ok(())));
    let work = || loop {
        let Some(piece) = pieces.lock().next() else { return };
        if let Err(error) = gather(piece) {
            *result.lock() = Err(error);
            // The others find no more.
            return pieces.lock().by_ref().for_each(drop);
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    result.into_inner()
}

fn available_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
