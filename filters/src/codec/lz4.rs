//! The LZ4 block codec. A step begins with a byte of two lengths of four bits: the number of new bytes, and the length
//! of a match less four. A length continues in further bytes if all its bits are set. Then follow the new bytes, and a
//! distance of two bytes, little-endian. The last step has no match.

use std::cell::RefCell;

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use crate::FilterFault;
use crate::codec::match_finder::{copy_literals, copy_match, copy_short_match};

/// A length of four bits that goes on.
const LENGTH_CONTINUES: usize = 15;
const MIN_MATCH: usize = 4;

/// Decompresses a block; returns the bytes written.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize, FilterFault> {
    let limit = output.len();
    let mut at = 0;
    let mut rest = input;
    loop {
        at = copy_short_sequences(&mut rest, output, at);
        let (token, after) = rest.split_first().ok_or(FilterFault::Truncated)?;
        let (new, matched) = (usize::from(token >> 4), usize::from(token & 15));
        rest = after;
        let new = read_length(new, &mut rest)?;
        at = copy_literals(&mut rest, output, at, new)?;
        if rest.is_empty() {
            return Ok(at);
        }
        let (distance, after) = rest.split_first_chunk().ok_or(FilterFault::Truncated)?;
        let distance = usize::from(u16::from_le_bytes(*distance));
        rest = after;
        let matched = read_length(matched, &mut rest)? + MIN_MATCH;
        if distance == 0 || distance > at {
            return Err(FilterFault::Corrupt("distance of a match"));
        }
        at = copy_match(output, at, distance, matched).ok_or(FilterFault::TooLarge { limit })?;
    }
}

/// Takes steps as long as their lengths have no more than four bits, nothing is wrong with them, and both sides have
/// room for copies that are longer than need be; returns the position after them.
#[inline]
fn copy_short_sequences(rest: &mut &[u8], output: &mut [u8], mut at: usize) -> usize {
    while let Some((token, after)) = rest.split_first() {
        let (new, matched) = (usize::from(token >> 4), usize::from(token & 15));
        if new == LENGTH_CONTINUES || matched == LENGTH_CONTINUES {
            break;
        }
        let (Some(from), Some(to)) = (after.first_chunk::<16>(), output.get_mut(at..)) else { break };
        let (Some(to), Some((distance, next))) =
            (to.first_chunk_mut(), after.get(new..).and_then(<[u8]>::split_first_chunk))
        else {
            break;
        };
        *to = *from;
        let distance = usize::from(u16::from_le_bytes(*distance));
        let Some(end) = copy_short_match(output, at + new, distance, matched + MIN_MATCH) else { break };
        at = end;
        *rest = next;
    }
    at
}

/// A length. Its first four bits are known.
#[inline]
fn read_length(first: usize, rest: &mut &[u8]) -> Result<usize, FilterFault> {
    let mut length = first;
    if first == LENGTH_CONTINUES {
        loop {
            let (byte, after) = rest.split_first().ok_or(FilterFault::Truncated)?;
            length += usize::from(*byte);
            *rest = after;
            if *byte != 255 {
                break;
            }
        }
    }
    Ok(length)
}

thread_local! {
    /// One for data whose positions fit 16 bits, and one for any data. Each is made when it is first needed.
    static TABLES: RefCell<[Option<CompressTable>; 2]> = const { RefCell::new([None, None]) };
}

/// Appends the block for the data.
pub(crate) fn compress(input: &[u8], output: &mut Vec<u8>) -> Result<(), FilterFault> {
    TABLES.with_borrow_mut(|[small, large]| {
        let table = match input.len() < usize::from(u16::MAX) {
            true => small.get_or_insert_with(CompressTable::small),
            false => large.get_or_insert_with(CompressTable::large),
        };
        let start = output.len();
        output.resize(start + get_maximum_output_size(input.len()), 0);
        let room = output.get_mut(start..).unwrap_or_default();
        let written = compress_into_with_table(input, room, table).map_err(FilterFault::external)?;
        output.truncate(start + written);
        Ok(())
    })
}
