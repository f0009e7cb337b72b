//! Maps of sparse files: which bytes of a file an archive has. The rest are zeros.

use crate::error::TarFault;
use crate::header::{TarBlock, decimal, number};

/// Bytes of a file that the archive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseSegment {
    /// The first byte in the file.
    pub offset: u64,
    /// How many.
    pub length: u64,
}

/// Where the numbers of an old GNU header are (bytes), and how many pairs.
const OLD_MAP: usize = 386;
const OLD_PAIRS: usize = 4;
const OLD_IS_EXTENDED: usize = 482;
const OLD_REAL_SIZE: usize = 483;
/// The same in a block that continues the map.
const MORE_PAIRS: usize = 21;
const MORE_IS_EXTENDED: usize = 504;

/// Bytes of a number in a map of GNU tar.
const NUMBER_BYTES: usize = 12;

fn pairs(bytes: &[u8], count: usize, into: &mut Vec<SparseSegment>) -> Result<(), TarFault> {
    for pair in bytes.chunks_exact(2 * NUMBER_BYTES).take(count) {
        let (offset, length) = pair.split_at(NUMBER_BYTES);
        if offset[0] == 0 && length[0] == 0 {
            break;
        }
        let value = |field| number(field).and_then(|value| u64::try_from(value).ok());
        let (Some(offset), Some(length)) = (value(offset), value(length)) else {
            return Err(TarFault::InvalidSparseMap("a field is no number"));
        };
        into.push(SparseSegment { offset, length });
    }
    Ok(())
}

/// The part of a map in an old GNU header: whether more blocks follow, and the size of the file.
///
/// # Errors
/// [`TarFault`].
pub fn parse_old_gnu_map(block: &TarBlock, into: &mut Vec<SparseSegment>) -> Result<(bool, u64), TarFault> {
    pairs(&block[OLD_MAP..], OLD_PAIRS, into)?;
    let size = crate::header::unsigned(&block[OLD_REAL_SIZE..OLD_REAL_SIZE + NUMBER_BYTES], "realsize")?;
    Ok((block[OLD_IS_EXTENDED] != 0, size))
}

/// The part of a map in a block that continues it: whether more blocks follow.
///
/// # Errors
/// [`TarFault`].
pub fn parse_old_gnu_extension(block: &TarBlock, into: &mut Vec<SparseSegment>) -> Result<bool, TarFault> {
    pairs(&block[..], MORE_PAIRS, into)?;
    Ok(block[MORE_IS_EXTENDED] != 0)
}

/// The records `GNU.sparse.*` of an extended header.
#[derive(Debug, Clone, Default)]
pub struct PaxSparseRecords {
    /// The size of the file.
    pub real_size: Option<u64>,
    /// The path; that of the header is a made-up one.
    pub name: Option<Vec<u8>>,
    /// The map (versions 0.0 and 0.1).
    pub map: Option<Vec<SparseSegment>>,
    /// The first number of a pair whose second one did not come yet (version 0.0).
    offset: Option<u64>,
    major: u64,
}

impl PaxSparseRecords {
    /// Takes up a record.
    ///
    /// # Errors
    /// [`TarFault::InvalidSparseMap`].
    pub fn add_record(&mut self, keyword: &[u8], value: &[u8]) -> Result<(), TarFault> {
        let wrong = TarFault::InvalidSparseMap("a record is no number");
        let number = |value: &[u8]| decimal::<u64>(value).ok_or(TarFault::InvalidSparseMap("a record is no number"));
        match keyword {
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.real_size = Some(number(value)?),
            b"GNU.sparse.name" => self.name = Some(value.to_vec()),
            b"GNU.sparse.major" => self.major = number(value)?,
            b"GNU.sparse.offset" => self.offset = Some(number(value)?),
            b"GNU.sparse.numbytes" => {
                let offset = self.offset.take().ok_or(wrong)?;
                self.map.get_or_insert_default().push(SparseSegment { offset, length: number(value)? });
            }
            b"GNU.sparse.numblocks" => drop(self.map.get_or_insert_default()),
            b"GNU.sparse.map" => {
                let numbers: Vec<u64> = match value {
                    b"" => Vec::new(),
                    _ => value.split(|byte| *byte == b',').map(number).collect::<Result<_, _>>()?,
                };
                let (pairs, []) = numbers.as_chunks::<2>() else { return Err(wrong) };
                self.map = Some(
                    pairs.iter().map(|[offset, length]| SparseSegment { offset: *offset, length: *length }).collect(),
                );
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the map stands before the contents (version 1.0).
    pub fn is_map_in_contents(&self) -> bool {
        self.major == 1
    }
}

/// Numbers of a map that stands before the contents, each with a newline behind it, in whole blocks.
#[derive(Debug, Default)]
pub struct SparseMapInContentsParser {
    numbers: Vec<u64>,
    current: Option<u64>,
}

impl SparseMapInContentsParser {
    /// Takes up a block. Returns whether the map is complete.
    ///
    /// # Errors
    /// [`TarFault::InvalidSparseMap`].
    pub fn push(&mut self, block: &TarBlock) -> Result<bool, TarFault> {
        for byte in block {
            match byte {
                b'0'..=b'9' => {
                    let value = self.current.unwrap_or(0).checked_mul(10);
                    let value = value.and_then(|value| value.checked_add(u64::from(byte - b'0')));
                    self.current = Some(value.ok_or(TarFault::InvalidSparseMap("a number is too large"))?);
                }
                b'\n' => {
                    let value = self.current.take().ok_or(TarFault::InvalidSparseMap("a number is missing"))?;
                    self.numbers.push(value);
                    if self.is_complete() {
                        return Ok(true);
                    }
                }
                _ => return Err(TarFault::InvalidSparseMap("it has other bytes than digits")),
            }
        }
        Ok(false)
    }

    fn is_complete(&self) -> bool {
        let Some(pairs) = self.numbers.first() else { return false };
        pairs.checked_mul(2).is_some_and(|numbers| (self.numbers.len() - 1) as u64 == numbers)
    }

    /// The segments.
    pub fn into_segments(self) -> Vec<SparseSegment> {
        let (pairs, _) = self.numbers.get(1..).unwrap_or_default().as_chunks::<2>();
        pairs.iter().map(|[offset, length]| SparseSegment { offset: *offset, length: *length }).collect()
    }
}

/// Drops empty segments, and checks the others: in order, within the file, and of as many bytes as the archive has.
///
/// # Errors
/// [`TarFault::InvalidSparseMap`].
pub fn drop_empty_and_validate_segments(
    mut segments: Vec<SparseSegment>,
    size: u64,
    stored_size: u64,
) -> Result<Vec<SparseSegment>, TarFault> {
    segments.retain(|segment| segment.length > 0);
    let (mut end, mut sum) = (0u64, 0u64);
    for segment in &segments {
        if segment.offset < end {
            return Err(TarFault::InvalidSparseMap("its segments are not in order"));
        }
        end = segment
            .offset
            .checked_add(segment.length)
            .filter(|end| *end <= size)
            .ok_or(TarFault::InvalidSparseMap("a segment lies beyond the end of the file"))?;
        sum += segment.length;
    }
    match sum == stored_size {
        true => Ok(segments),
        false => Err(TarFault::InvalidSparseMap("its segments have another length than the contents")),
    }
}
