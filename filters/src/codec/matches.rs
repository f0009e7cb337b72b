//! Repeated bytes, found by a table of hashes.

use std::cell::RefCell;

/// What a format allows a match to be (bytes).
pub(crate) struct Bounds {
    /// The farthest back that a match may begin.
    pub distance: usize,
    /// The most bytes that it may have.
    pub length: usize,
    /// Bytes at the end of the data that no match may reach.
    pub tail: usize,
}

/// Bytes that are hashed, and so the shortest match.
const SHORTEST: usize = 4;
const HASH_BITS: u32 = 13;

thread_local! {
    static POSITIONS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Splits data into bytes that are new and matches with what came before. Calls `step` with the new bytes,
/// then the distance and the length of the match that follows them; the last call has length zero.
/// Stops when `step` returns false.
pub(crate) fn matches(data: &[u8], bounds: &Bounds, mut step: impl FnMut(&[u8], usize, usize) -> bool) {
    POSITIONS.with_borrow_mut(|positions| {
        positions.clear();
        positions.resize(1 << HASH_BITS, u32::MAX);
        let end = data.len().saturating_sub(bounds.tail).min(u32::MAX as usize);
        let (mut at, mut new) = (0, 0);
        while let Some(word) = data.get(at..end).and_then(<[u8]>::first_chunk::<SHORTEST>) {
            let hash = u32::from_le_bytes(*word).wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS);
            let Some(slot) = positions.get_mut(hash as usize) else { break };
            let before = std::mem::replace(slot, at as u32) as usize;
            let length = if before < at && at - before <= bounds.distance {
                common(data.get(before..).unwrap_or_default(), data.get(at..end).unwrap_or_default())
            } else {
                0
            };
            if length < SHORTEST {
                // The longer nothing is found, the fewer positions are tried.
                at += 1 + ((at - new) >> 6);
                continue;
            }
            let length = length.min(bounds.length);
            if !step(data.get(new..at).unwrap_or_default(), at - before, length) {
                return;
            }
            at += length;
            new = at;
        }
        step(data.get(new..).unwrap_or_default(), 0, 0);
    });
}

/// How many bytes are the same at the start of both.
fn common(a: &[u8], b: &[u8]) -> usize {
    let words = a.chunks_exact(8).zip(b.chunks_exact(8)).take_while(|(a, b)| a == b).count() * 8;
    let rest = a.iter().skip(words).zip(b.iter().skip(words)).take_while(|(a, b)| a == b).count();
    words + rest
}

/// Appends `length` bytes that begin `distance` bytes before `at`, which may overlap what they make.
/// Returns the position after them, or `None` if they begin before the data or do not fit.
pub(crate) fn copy_match(output: &mut [u8], at: usize, distance: usize, length: usize) -> Option<usize> {
    let start = at.checked_sub(distance).filter(|_| distance > 0)?;
    let end = at.checked_add(length).filter(|end| *end <= output.len())?;
    let mut copied = 0;
    while copied < length {
        // What has been copied so far repeats, so that each round may copy twice as much.
        let step = (distance + copied).min(length - copied);
        output.copy_within(start..start + step, at + copied);
        copied += step;
    }
    Some(end)
}
