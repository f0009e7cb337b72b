//! The LZF codec. A run of new bytes is its length less one (below 32), then the bytes. A match is three
//! bits of length less two, thirteen bits of distance less one; if the three bits are all ones, a byte with
//! the rest of the length stands between the two bytes.

use crate::FilterFault;
use crate::codec::match_finder::{MatchLimits, MinMatch, copy_literals, copy_match, for_each_match};

const MAX_LITERALS: usize = 32;
const BOUNDS: MatchLimits = MatchLimits { shortest: MinMatch::Three, distance: 1 << 13, length: 264, tail: 0 };

/// Decompresses; returns the bytes written.
pub(crate) fn decompress(mut input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
    let limit = output.len();
    let mut at = 0;
    while let Some((control, rest)) = input.split_first() {
        let control = usize::from(*control);
        if control < MAX_LITERALS {
            input = rest;
            at = copy_literals(&mut input, output, at, control + 1)?;
            continue;
        }
        let mut length = control >> 5;
        let mut rest = rest.iter();
        let mut next = || rest.next().copied().map(usize::from).ok_or(FilterFault::Truncated);
        if length == 7 {
            length += next()?;
        }
        let distance = ((control & 31) << 8 | next()?) + 1;
        input = rest.as_slice();
        if distance > at {
            return Err(FilterFault::Corrupt("distance of a match"));
        }
        at = copy_match(output, at, distance, length + 2).ok_or(FilterFault::TooLarge { limit })?;
    }
    Ok(at)
}

/// Appends the compressed form if that is smaller than the data; says whether it is.
pub(crate) fn compress(input: &[u8], output: &mut Vec<u8>) -> bool {
    let end = output.len() + input.len();
    for_each_match(input, &BOUNDS, |new, distance, length| {
        for run in new.chunks(MAX_LITERALS) {
            output.push((run.len() - 1) as u8);
            output.extend_from_slice(run);
        }
        if length > 0 {
            let (length, distance) = (length - 2, distance - 1);
            output.push((length.min(7) << 5 | distance >> 8) as u8);
            if length >= 7 {
                output.push((length - 7) as u8);
            }
            output.push(distance as u8);
        }
        output.len() < end
    });
    output.len() < end
}
