//! Entries of Log VOL 1.4.0 (`_md_N`), byte by byte.
//!
//! An entry is `{i32 size, i32 dataset, i32 flags, i64 offset in the file, i64 bytes of data}`, and then a selection. Its
//! form follows from the flags. Source: "Log" in the shared reference facts, and the samples.

use std::ops::Range;

use crate::entry::{DimVec, EntryError};

/// Bytes of an entry before its selection.
const HEADER_BYTES: usize = 28;
/// Several blocks instead of one.
const SEVERAL: i32 = 0x01;
/// Positions of blocks are one number each.
const ENCODED: i32 = 0x04;
/// The selection is deflated.
const DEFLATED: i32 = 0x08;
/// The selection is that of an earlier entry.
const REFERENCE: i32 = 0x10;
/// One record: a position along the first dimension, and a selection of the others.
const RECORD: i32 = 0x20;

/// A box of elements: the first one, and the sides (`[rank]`, elements).
pub type LogVolBlock = (DimVec, DimVec);

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogVolEntry {
    /// The number of the dataset.
    pub dataset: u64,
    /// The boxes, whose elements follow each other in the data.
    pub blocks: Vec<LogVolBlock>,
    /// Where the data begins in the file (bytes).
    pub file_offset: u64,
    /// Bytes of data, as stored.
    pub data_len: u64,
}

/// Numbers of eight bytes, read one after the other.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn long(&mut self) -> Result<u64, EntryError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(EntryError::Truncated)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn int(&mut self) -> Result<i32, EntryError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(EntryError::Truncated)?;
        self.0 = rest;
        Ok(i32::from_le_bytes(*number))
    }

    fn dims(&mut self, rank: usize) -> Result<DimVec, EntryError> {
        (0..rank).map(|_| self.long()).collect()
    }
}

/// Adds the entry of one block to `out`.
///
/// That is the form that Log VOL gives a write of one box. Its readers take it whatever the configuration of the file is.
pub fn encode_entry(dataset: i32, (start, count): (&[u64], &[u64]), file_range: Range<u64>, out: &mut Vec<u8>) {
    let size = HEADER_BYTES + 8 * (start.len() + count.len());
    out.reserve(size);
    out.extend((size as i32).to_le_bytes());
    out.extend(dataset.to_le_bytes());
    out.extend(0i32.to_le_bytes());
    out.extend(file_range.start.to_le_bytes());
    out.extend((file_range.end - file_range.start).to_le_bytes());
    start.iter().chain(count).for_each(|number| out.extend(number.to_le_bytes()));
}

/// The bytes of a metadata log of one process that has these entries.
pub fn encode_metadata_log(entries: &[u8]) -> Vec<u8> {
    const PREFIX_BYTES: u64 = 16;
    let end = PREFIX_BYTES + entries.len() as u64;
    [&1u64.to_le_bytes(), &end.to_le_bytes(), entries].concat()
}

/// The entries of a metadata log. `rank` is the number of dimensions of a dataset; `None` if there is no such dataset.
/// Its entries are passed over, as it was deleted.
///
/// # Errors
/// [`EntryError`], and the number of the byte where the entry begins.
pub fn decode_entries(log: &[u8], rank: impl Fn(u64) -> Option<usize>) -> Result<Vec<LogVolEntry>, (u64, EntryError)> {
    let mut numbers = Numbers(log);
    let prefix = |numbers: &mut Numbers<'_>| {
        let processes = numbers.long()?;
        // The section of each process ends where the next one begins.
        let ends: Result<Vec<_>, _> = (0..processes.min(log.len() as u64 / 8)).map(|_| numbers.long()).collect();
        let end = ends?.last().copied().unwrap_or(0);
        usize::try_from(end).ok().filter(|end| *end <= log.len()).ok_or(EntryError::InvalidField("its end"))
    };
    let end = prefix(&mut numbers).map_err(|error| (0, error))?;
    let mut at = log.len() - numbers.0.len();
    let mut entries: Vec<LogVolEntry> = Vec::new();
    // Where each entry begins, and the form of its selection.
    let mut known: Vec<(usize, usize)> = Vec::new();
    while at < end {
        let (entry, size) = decode_entry(&log[..end], at, &rank, |begin| {
            let number = known.binary_search_by_key(&begin, |(begin, _)| *begin).ok()?;
            Some(&entries[known[number].1].blocks)
        })
        .map_err(|error| (at as u64, error))?;
        if let Some(entry) = entry {
            known.push((at, entries.len()));
            entries.push(entry);
        }
        at += size;
    }
    Ok(entries)
}

/// The entry at a byte, if its dataset is there, and its size. `earlier` has the blocks of the entry that begins at another byte.
fn decode_entry<'a>(
    log: &[u8],
    at: usize,
    rank: impl Fn(u64) -> Option<usize>,
    earlier: impl Fn(usize) -> Option<&'a Vec<LogVolBlock>>,
) -> Result<(Option<LogVolEntry>, usize), EntryError> {
    let mut numbers = Numbers(&log[at..]);
    let size = usize::try_from(numbers.int()?).ok().filter(|size| *size >= HEADER_BYTES);
    let size = size.ok_or(EntryError::InvalidField("its size"))?;
    let body = log[at..].get(HEADER_BYTES..size).ok_or(EntryError::Truncated)?;
    let dataset = u64::try_from(numbers.int()?).map_err(|_| EntryError::InvalidField("its dataset"))?;
    let Some(rank) = rank(dataset) else { return Ok((None, size)) };
    let flags = numbers.int()?;
    let (offset, data_len) = (numbers.long()?, numbers.long()?);
    if flags & !(SEVERAL | ENCODED | DEFLATED | REFERENCE | RECORD) != 0 {
        return Err(EntryError::InvalidField("unknown flags"));
    }
    if flags & DEFLATED != 0 {
        return Err(EntryError::InvalidField("its selection is deflated, in a form that is not known"));
    }
    let mut numbers = Numbers(body);
    let record = if flags & RECORD != 0 { Some(numbers.long()?) } else { None };
    let inner = rank.checked_sub(record.is_some().into()).ok_or(EntryError::InvalidField("its record"))?;
    let blocks = if flags & REFERENCE != 0 {
        let begin = at.checked_add_signed(numbers.long()?.cast_signed() as isize);
        let blocks = begin.and_then(earlier).ok_or(EntryError::InvalidField("its reference to an earlier entry"))?;
        // Of a record, the other dimensions count.
        blocks.iter().map(|(start, count)| (tail(start, inner), tail(count, inner))).collect()
    } else {
        decode_blocks(&mut numbers, flags, inner)?
    };
    let with_record = |first: u64, dims: DimVec| match record {
        Some(_) => std::iter::once(first).chain(dims).collect(),
        None => dims,
    };
    let blocks: Vec<LogVolBlock> = blocks
        .into_iter()
        .map(|(start, count)| (with_record(record.unwrap_or(0), start), with_record(1, count)))
        .collect();
    if blocks.iter().any(|(start, count)| start.len() != rank || count.len() != rank) {
        return Err(EntryError::InvalidField("the dimensions of its selection"));
    }
    Ok((Some(LogVolEntry { dataset, blocks, file_offset: offset, data_len }), size))
}

/// The last `rank` of dimensions.
fn tail(dims: &DimVec, rank: usize) -> DimVec {
    DimVec::from_slice(&dims[dims.len().saturating_sub(rank)..])
}

fn decode_blocks(numbers: &mut Numbers<'_>, flags: i32, rank: usize) -> Result<Vec<LogVolBlock>, EntryError> {
    if flags & SEVERAL == 0 {
        if flags & ENCODED == 0 {
            return Ok(vec![(numbers.dims(rank)?, numbers.dims(rank)?)]);
        }
        let steps = numbers.dims(rank.saturating_sub(1))?;
        return Ok(vec![(decode_position(numbers.long()?, &steps, 0)?, decode_position(numbers.long()?, &steps, 1)?)]);
    }
    let count = usize::try_from(numbers.int()?).map_err(|_| EntryError::InvalidField("its number of blocks"))?;
    // Each has bytes of its own.
    if count > numbers.0.len() {
        return Err(EntryError::Truncated);
    }
    let steps = if flags & ENCODED != 0 { Some(numbers.dims(rank.saturating_sub(1))?) } else { None };
    let mut read = |smallest: u64| -> Result<Vec<DimVec>, EntryError> {
        (0..count)
            .map(|_| match &steps {
                Some(steps) => decode_position(numbers.long()?, steps, smallest),
                None => numbers.dims(rank),
            })
            .collect()
    };
    Ok(read(0)?.into_iter().zip(read(1)?).collect())
}

/// A position that is one number. `steps` are how far apart neighbours along each dimension but the last are. Along each
/// dimension the position is at least `smallest`: 1 for the sides of a box.
fn decode_position(number: u64, steps: &[u64], smallest: u64) -> Result<DimVec, EntryError> {
    let mut position = DimVec::new();
    let mut rest = number;
    for (i, step) in steps.iter().enumerate() {
        // What the later dimensions have at least.
        let least =
            steps[i + 1..].iter().fold(smallest, |sum, later| sum.saturating_add(later.saturating_mul(smallest)));
        let above = rest.checked_sub(least).ok_or(EntryError::InvalidField("an encoded position"))?;
        let at = above.checked_div(*step).ok_or(EntryError::InvalidField("a step of 0"))?;
        position.push(at);
        rest -= at.saturating_mul(*step);
    }
    position.push(rest);
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_positions_are_taken_apart() {
        assert_eq!(decode_position(13, &[6], 0).unwrap()[..], [2, 1]);
        assert_eq!(decode_position(7, &[6], 1).unwrap()[..], [1, 1]);
        assert_eq!(decode_position(12, &[6], 1).unwrap()[..], [1, 6], "sides of a box that is as wide as the dataset");
        assert_eq!(decode_position(2 * 12 + 3 * 4 + 4, &[12, 4], 1).unwrap()[..], [2, 3, 4]);
        assert!(decode_position(5, &[0], 0).is_err());
    }

    #[test]
    fn entries_are_read_as_they_were_written_and_those_of_deleted_datasets_are_passed_over() {
        let mut entries = Vec::new();
        encode_entry(7, (&[1, 2], &[3, 4]), 100..196, &mut entries);
        encode_entry(8, (&[5], &[6]), 196..220, &mut entries);
        encode_entry(9, (&[], &[]), 220..228, &mut entries);
        let log = encode_metadata_log(&entries);
        assert_eq!((entries.len(), log.len()), (3 * 28 + 8 * 6, 16 + entries.len()));
        let rank = |dataset| [(7, 2), (9, 0)].into_iter().find(|(known, _)| *known == dataset).map(|(_, rank)| rank);
        let dims = DimVec::from_slice;
        let want = [
            LogVolEntry { dataset: 7, blocks: vec![(dims(&[1, 2]), dims(&[3, 4]))], file_offset: 100, data_len: 96 },
            LogVolEntry { dataset: 9, blocks: vec![(dims(&[]), dims(&[]))], file_offset: 220, data_len: 8 },
        ];
        assert_eq!(decode_entries(&log, rank), Ok(want.into()));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut log: Vec<u8> = [1u64, 200].iter().flat_map(|number| number.to_le_bytes()).collect();
        log.resize(200, 0);
        for byte in 0..200 {
            for value in [1, 28, 31, 127, 255] {
                let mut log = log.clone();
                log[16] = 60;
                log[byte] = value;
                let _ = decode_entries(&log, |_| Some(2));
                let _ = decode_entries(&log[..byte], |_| Some(2));
            }
        }
    }
}
