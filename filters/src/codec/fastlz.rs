//! The BloscLZ codec, FastLZ of level 2. A run of new bytes is its length less one (below 32), then the bytes.
//! A match is three bits of length less two, thirteen bits of distance less one. Three ones are followed, before
//! the second byte, by bytes to add to the length, of which the last is not 255; thirteen ones are followed
//! by two bytes of distance beyond them, high byte first. Data begins and ends with new bytes.

use crate::FilterFault;
use crate::codec::match_finder::{MatchLimits, MinMatch, copy_literals, copy_match, for_each_match};

const MAX_LITERALS: usize = 32;
/// Distances less one from here on take two bytes more.
const FAR_DISTANCE: usize = (1 << 13) - 1;
const BOUNDS: MatchLimits =
    MatchLimits { shortest: MinMatch::Four, distance: FAR_DISTANCE + (1 << 16) - 1, length: usize::MAX, tail: 4 };

/// Decompresses; returns the bytes written.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
    let limit = output.len();
    let mut input = input;
    let mut at = 0;
    // The top bits of the first byte hold a version.
    let mut mask = 31;
    while let Some((control, rest)) = input.split_first() {
        let control = usize::from(*control) & mask;
        mask = 255;
        if control < MAX_LITERALS {
            input = rest;
            at = copy_literals(&mut input, output, at, control + 1)?;
            continue;
        }
        let mut length = (control >> 5) + 2;
        let mut rest = rest.iter();
        let mut next = || rest.next().copied().map(usize::from).ok_or(FilterFault::Truncated);
        if length == 9 {
            loop {
                let more = next()?;
                length += more;
                if more != 255 {
                    break;
                }
            }
        }
        let mut distance = (control & 31) << 8 | next()?;
        if distance == FAR_DISTANCE {
            distance += next()? << 8 | next()?;
        }
        input = rest.as_slice();
        if distance >= at {
            return Err(FilterFault::Corrupt("distance of a match"));
        }
        at = copy_match(output, at, distance + 1, length).ok_or(FilterFault::TooLarge { limit })?;
    }
    Ok(at)
}

/// Appends the compressed form if that is smaller than the data; says whether it is.
pub(crate) fn compress(input: &[u8], output: &mut Vec<u8>) -> bool {
    let start = output.len();
    let end = start + input.len();
    for_each_match(input, &BOUNDS, |new, distance, length| {
        for run in new.chunks(MAX_LITERALS) {
            output.push((run.len() - 1) as u8);
            output.extend_from_slice(run);
        }
        if length > 0 {
            let (length, distance) = (length - 2, distance - 1);
            output.push((length.min(7) << 5 | distance.min(FAR_DISTANCE) >> 8) as u8);
            if length >= 7 {
                let more = length - 7;
                output.extend(std::iter::repeat_n(255, more / 255));
                output.push((more % 255) as u8);
            }
            output.push(distance.min(FAR_DISTANCE) as u8);
            if distance >= FAR_DISTANCE {
                output.extend_from_slice(&((distance - FAR_DISTANCE) as u16).to_be_bytes());
            }
        }
        output.len() < end
    });
    output.len() < end
}
