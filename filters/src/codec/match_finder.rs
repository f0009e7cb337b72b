//! Repeated bytes, found by a table of hashes.

use std::cell::RefCell;

use crate::{FilterFault, bit_io};

/// The matches that a format allows (bytes).
pub(crate) struct MatchLimits {
    /// The fewest bytes of a match.
    pub shortest: MinMatch,
    /// The farthest back that a match may begin.
    pub distance: usize,
    /// The most bytes that it may have.
    pub length: usize,
    /// Bytes at the end of the data that no match may reach.
    pub tail: usize,
}

/// The fewest bytes of a match. So many are hashed.
#[derive(Clone, Copy)]
pub(crate) enum MinMatch {
    Three,
    Four,
}

const HASH_BITS: u32 = 13;

thread_local! {
    static POSITIONS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Splits data into bytes that are new and matches with what came before. Calls `step` with the new bytes,
/// then the distance and the length of the match that follows them; the last call has length zero.
/// Stops when `step` returns false.
pub(crate) fn for_each_match(data: &[u8], bounds: &MatchLimits, mut step: impl FnMut(&[u8], usize, usize) -> bool) {
    POSITIONS.with_borrow_mut(|positions| {
        positions.clear();
        positions.resize(1 << HASH_BITS, u32::MAX);
        let (shortest, mask) = match bounds.shortest {
            MinMatch::Three => (3, 0x00ff_ffff),
            MinMatch::Four => (4, u32::MAX),
        };
        let end = data.len().saturating_sub(bounds.tail).min(u32::MAX as usize);
        let (mut at, mut new) = (0, 0);
        while let Some(word) = data.get(at..end).and_then(<[u8]>::first_chunk::<4>) {
            let hash = (u32::from_le_bytes(*word) & mask).wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS);
            let Some(slot) = positions.get_mut(hash as usize) else { break };
            let before = std::mem::replace(slot, at as u32) as usize;
            let length = if before < at && at - before <= bounds.distance {
                common_prefix_len(data.get(before..).unwrap_or_default(), data.get(at..end).unwrap_or_default())
            } else {
                0
            };
            if length < shortest {
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
pub(crate) fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    let words = a.chunks_exact(8).zip(b.chunks_exact(8)).take_while(|(a, b)| a == b).count() * 8;
    let rest = a.iter().skip(words).zip(b.iter().skip(words)).take_while(|(a, b)| a == b).count();
    words + rest
}

/// Moves `count` bytes from the input to the output at `at`; returns the position after them.
#[inline]
pub(crate) fn copy_literals(
    input: &mut &[u8],
    output: &mut [u8],
    at: usize,
    count: usize,
) -> Result<usize, FilterFault> {
    let limit = output.len();
    let room = output.get_mut(at..).unwrap_or_default();
    // A copy of fixed size is much cheaper than one of exact size, and what is too much is written over.
    if let (..=LITERAL_COPY_BYTES, Some(from), Some(to)) =
        (count, input.first_chunk::<LITERAL_COPY_BYTES>(), room.first_chunk_mut::<LITERAL_COPY_BYTES>())
    {
        *to = *from;
        *input = input.get(count..).unwrap_or_default();
    } else {
        let (from, rest) = input.split_at_checked(count).ok_or(FilterFault::Truncated)?;
        room.get_mut(..count).ok_or(FilterFault::TooLarge { limit })?.copy_from_slice(from);
        *input = rest;
    }
    Ok(at + count)
}

/// New bytes that are copied without regard for their exact number.
const LITERAL_COPY_BYTES: usize = 32;

/// Bytes of a match that is copied without regard for its exact length, also of one that begins farther back than it is
/// long; and bytes that this may write.
const MAX_SHORT_MATCH: usize = 18;
const MAX_SHORT_FAR_MATCH: usize = COPY_SLACK_BYTES;
const COPY_SLACK_BYTES: usize = 32;

/// Appends `length` bytes that begin `distance` bytes before `at`; they may overlap with the copy. Returns the position
/// after them, or `None` if they begin before the data or do not fit.
#[inline]
pub(crate) fn copy_match(output: &mut [u8], at: usize, distance: usize, length: usize) -> Option<usize> {
    if length <= MAX_SHORT_MATCH || (length <= MAX_SHORT_FAR_MATCH && distance >= COPY_SLACK_BYTES) {
        let copied = copy_short_match(output, at, distance, length);
        if copied.is_some() {
            return copied;
        }
    }
    let start = at.checked_sub(distance).filter(|_| distance > 0)?;
    copy_long_match(output, start, at, length)
}

/// As [`copy_match`], of no more than [`MAX_SHORT_MATCH`] bytes, or [`MAX_SHORT_FAR_MATCH`] from as far back. `None`
/// also if there is less room behind them than the copy takes.
#[inline(always)]
pub(crate) fn copy_short_match(output: &mut [u8], at: usize, distance: usize, length: usize) -> Option<usize> {
    let window = output.get_mut(at.checked_sub(distance)?..at + COPY_SLACK_BYTES)?;
    match distance {
        COPY_SLACK_BYTES.. => {
            let (from, to) = window.split_at_mut_checked(distance)?;
            *to.first_chunk_mut::<COPY_SLACK_BYTES>()? = *from.first_chunk()?;
        }
        ..8 => {
            // A few bytes that repeat: as many periods as fit a word, written often enough.
            let (ones, stride) = *PERIODS.get(distance).filter(|_| distance > 0)?;
            let word = u64::from_le_bytes(*window.first_chunk()?) & bit_io::ones(8 * distance as u32);
            let word = word.wrapping_mul(ones).to_le_bytes();
            for i in 0..4 {
                *window.get_mut(distance + i * stride..)?.first_chunk_mut()? = word;
            }
        }
        8..16 => {
            window.copy_within(0..8, distance);
            window.copy_within(8..16, distance + 8);
            window.copy_within(16..20, distance + 16);
        }
        _ => {
            window.copy_within(0..16, distance);
            window.copy_within(16..20, distance + 16);
        }
    }
    Some(at + length)
}

/// For periods of up to seven bytes: what to multiply one by to repeat it over a word, and the bytes of the
/// whole periods in a word.
const PERIODS: [(u64, usize); 8] = [
    (0, 0),
    (0x0101_0101_0101_0101, 8),
    (0x0001_0001_0001_0001, 8),
    (0x0001_0000_0100_0001, 6),
    (0x0000_0001_0000_0001, 8),
    (0x0000_0100_0000_0001, 5),
    (0x0001_0000_0000_0001, 6),
    (0x0100_0000_0000_0001, 7),
];

fn copy_long_match(output: &mut [u8], start: usize, at: usize, length: usize) -> Option<usize> {
    let end = at.checked_add(length).filter(|end| *end <= output.len())?;
    let mut copied = 0;
    while copied < length {
        // What has been copied so far repeats, so that each round may copy twice as much.
        let step = (at - start + copied).min(length - copied);
        output.copy_within(start..start + step, at + copied);
        copied += step;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_repeats_what_lies_before_it() {
        for distance in 1..70 {
            for length in 0..80 {
                for room in [0, 1, 31, 32, 100] {
                    let at = 70;
                    let mut output: Vec<u8> = (0..at + length + room).map(|i| i as u8).collect();
                    let mut expected = output.clone();
                    for i in at..at + length {
                        expected[i] = expected[i - distance];
                    }
                    assert_eq!(copy_match(&mut output, at, distance, length), Some(at + length));
                    assert_eq!(output[..at + length], expected[..at + length], "{distance} {length} {room}");
                }
            }
        }
    }

    #[test]
    fn refuses_a_match_beyond_the_data() {
        let mut output = [0; 50];
        assert_eq!(copy_match(&mut output, 10, 0, 1), None);
        assert_eq!(copy_match(&mut output, 10, 11, 1), None);
        assert_eq!(copy_match(&mut output, 10, 10, 41), None);
        assert_eq!(copy_match(&mut output, 48, 1, 3), None);
        assert_eq!(copy_match(&mut output, 48, 1, usize::MAX), None);
    }

    #[test]
    fn short_repetitions_are_found_when_three_bytes_suffice() {
        let data = b"abcXabcYabcZabcW";
        let bounds = |shortest| MatchLimits { shortest, distance: 100, length: 100, tail: 0 };
        let mut lengths = Vec::new();
        for_each_match(data, &bounds(MinMatch::Three), |_, _, length| {
            lengths.push(length);
            true
        });
        assert_eq!(lengths, [3, 3, 3, 0]);
        for_each_match(data, &bounds(MinMatch::Four), |new, distance, length| {
            assert_eq!((new, distance, length), (&data[..], 0, 0));
            true
        });
    }
}
