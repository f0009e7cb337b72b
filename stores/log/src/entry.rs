//! Entries of the log, byte by byte (`docs/log-format.md`).
//!
//! An entry is a frame of ours around the entry of the design ("Format for log entries"): dataset, selection, byte order,
//! filter, data. The frame says how long the entry is, to which batch it belongs, and has checksums.

use smallvec::SmallVec;

/// A position, or the sides of a box (`[rank]`, elements).
pub type DimVec = SmallVec<[u64; 4]>;

/// The bytes of the frame before the entry of the design.
pub const FRAME_BYTES: usize = 48;
/// Entries begin at multiples of this many bytes.
pub const ALIGNMENT: u64 = 8;
/// The most bytes before the data of an entry. Points are cut into entries that keep to it.
pub const MAX_HEAD_BYTES: usize = 1 << 20;

const MAGIC: [u8; 4] = *b"LENT";
/// The most dimensions of a dataset (HDF5's limit).
const MAX_RANK: usize = 32;

/// The kinds of selection. The design has the first two; it names the constants 2 and 3 and does not use them.
const SUBARRAY: i32 = 0;
const POINTS: i32 = 1;
const GROW: i32 = 2;
const SHRINK: i32 = 3;
/// Ours: the end of a batch.
const END_OF_BATCH: i32 = 4;

/// Rows of a dataset that a batch has under other numbers than those that its entries say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowShift {
    /// The number of the dataset.
    pub dataset: u64,
    /// The first of the rows, as entries say it.
    pub start: u64,
    /// One past the last one.
    pub end: u64,
    /// The number that the first one has.
    pub new_start: u64,
}

/// What an entry changes of its dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryChange {
    /// A box of elements gets the values in the data, row-major.
    Block {
        /// The first element.
        start: DimVec,
        /// The sides.
        count: DimVec,
    },
    /// Single elements get the values in the data, in this order.
    PointCoords(Vec<u64>),
    /// The extent grows to at least this.
    GrowToAtLeast(DimVec),
    /// The extent becomes this. Elements outside are gone; where it grows again, they are fill values.
    ShrinkTo(DimVec),
    /// Of no dataset: the batch ends here.
    EndOfBatch {
        /// Where the batch stands among those of all writers of the file: of two values of an element, that of the batch
        /// with the higher number counts.
        order: u64,
        /// Rows of the batch that have other numbers than its entries say.
        shifts: Vec<RowShift>,
    },
}

/// Everything of an entry but its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryHead {
    /// The number of the batch among those of its log.
    pub batch_number: u64,
    /// The number of the file that has the log: 0 for the main file.
    pub file: u32,
    /// The number of the dataset in the main file.
    pub dataset: u64,
    /// What is changed.
    pub change: EntryChange,
    /// The filter through which the data went: its registered number, or 0.
    pub filter_id: i32,
    /// Bytes of the data, as stored.
    pub data_len: u64,
    /// The CRC-32C of the data, as stored.
    pub data_crc: u32,
}

/// Where an entry ends, and where its data begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryLengths {
    /// Bytes before the data.
    pub head_len: usize,
    /// Bytes of the whole entry, a multiple of [`ALIGNMENT`].
    pub len: u64,
}

/// Why bytes are no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// They do not begin as entries do.
    #[error("no entry begins here")]
    Magic,
    /// They end too early.
    #[error("the entry is cut off")]
    Truncated,
    /// The checksum of the head does not fit.
    #[error("the checksum of the entry's head does not fit")]
    HeadChecksum,
    /// The checksum of the data does not fit.
    #[error("the checksum of the entry's data does not fit")]
    DataChecksum,
    /// The log ends, and its last batch does not.
    #[error("the log ends within a batch")]
    NoEndOfBatch,
    /// A field has a value that no entry has.
    #[error("the entry is damaged: {0}")]
    InvalidField(&'static str),
}

impl EntryChange {
    fn kind(&self) -> i32 {
        match self {
            EntryChange::Block { .. } => SUBARRAY,
            EntryChange::PointCoords(_) => POINTS,
            EntryChange::GrowToAtLeast(_) => GROW,
            EntryChange::ShrinkTo(_) => SHRINK,
            EntryChange::EndOfBatch { .. } => END_OF_BATCH,
        }
    }

    /// Bytes of the selection behind its kind.
    fn selection_bytes(&self) -> usize {
        8 * match self {
            EntryChange::Block { start, count } => start.len() + count.len(),
            EntryChange::PointCoords(coords) => 1 + coords.len(),
            EntryChange::GrowToAtLeast(dims) | EntryChange::ShrinkTo(dims) => dims.len(),
            EntryChange::EndOfBatch { shifts, .. } => 1 + 4 * shifts.len(),
        }
    }
}

/// Bytes of an entry with so many points before its data; saturates.
pub fn points_head_bytes(point_count: u64, rank: usize) -> u64 {
    point_count.saturating_mul(8 * rank as u64).saturating_add((FRAME_BYTES + 8 + 4 + 8 + 4 + 4) as u64)
}

impl EntryHead {
    /// Where an entry with this head has its parts. `rank` is that of the dataset.
    pub fn lengths(&self) -> EntryLengths {
        let head_len = FRAME_BYTES + 8 + 4 + self.change.selection_bytes() + 4 + 4;
        EntryLengths { head_len, len: (head_len as u64 + self.data_len).next_multiple_of(ALIGNMENT) }
    }

    /// Adds the head to `out`; the data follows it, and then zeros up to the end of the entry. `rank` is that of the
    /// dataset.
    pub fn encode(&self, rank: usize, out: &mut Vec<u8>) {
        let (begin, EntryLengths { head_len, len }) = (out.len(), self.lengths());
        out.reserve(head_len);
        out.extend(MAGIC);
        out.extend([0; 4]);
        out.extend(len.to_le_bytes());
        out.extend(self.data_len.to_le_bytes());
        out.extend(self.batch_number.to_le_bytes());
        out.extend(self.file.to_le_bytes());
        out.extend((rank as u32).to_le_bytes());
        out.extend(self.data_crc.to_le_bytes());
        out.extend((head_len as u32).to_le_bytes());
        out.extend(self.dataset.to_le_bytes());
        out.extend(self.change.kind().to_le_bytes());
        let mut put = |numbers: &[u64]| numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        match &self.change {
            EntryChange::Block { start, count } => {
                put(start);
                put(count);
            }
            EntryChange::PointCoords(coords) => {
                put(&[(coords.len() / rank.max(1)) as u64]);
                put(coords);
            }
            EntryChange::GrowToAtLeast(dims) | EntryChange::ShrinkTo(dims) => put(dims),
            EntryChange::EndOfBatch { order, shifts } => {
                put(&[*order]);
                shifts.iter().for_each(|shift| put(&[shift.dataset, shift.start, shift.end, shift.new_start]));
            }
        }
        // Elements are stored in the byte order of their datatype, and so never as "big endian" of another one.
        out.extend(0i32.to_le_bytes());
        out.extend(self.filter_id.to_le_bytes());
        let crc = crc32c::crc32c(&out[begin + 8..]);
        out[begin + 4..begin + 8].copy_from_slice(&crc.to_le_bytes());
    }
}

/// How many bytes the head of the entry has that begins with this frame, and where the entry ends.
///
/// # Errors
/// [`EntryError`] if no entry begins so.
pub fn decode_frame(frame: &[u8]) -> Result<EntryLengths, EntryError> {
    let field = |at: usize| u64_at(frame, at).ok_or(EntryError::Truncated);
    if frame.get(..4).ok_or(EntryError::Truncated)? != MAGIC {
        return Err(EntryError::Magic);
    }
    let (len, data_len, head_len) = (field(8)?, field(16)?, field(40)? >> 32);
    let is_head = (FRAME_BYTES as u64 + 20..=MAX_HEAD_BYTES as u64).contains(&head_len);
    let fits = data_len.checked_add(head_len).and_then(|end| end.checked_next_multiple_of(ALIGNMENT)) == Some(len);
    if !is_head || !fits {
        return Err(EntryError::InvalidField("its length"));
    }
    Ok(EntryLengths { head_len: head_len as usize, len })
}

/// The head of an entry, and the rank of its dataset. `bytes` are all of the head.
///
/// # Errors
/// [`EntryError`].
pub fn decode_head_and_rank(bytes: &[u8]) -> Result<(EntryHead, usize), EntryError> {
    let EntryLengths { head_len, .. } = decode_frame(bytes)?;
    let head = bytes.get(..head_len).ok_or(EntryError::Truncated)?;
    let field = |at: usize| u64_at(head, at).ok_or(EntryError::Truncated);
    if crc32c::crc32c(&head[8..]) != (field(0)? >> 32) as u32 && !cfg!(fuzzing) {
        return Err(EntryError::HeadChecksum);
    }
    let (file_and_rank, dataset) = (field(32)?, field(48)?);
    let rank = (file_and_rank >> 32) as usize;
    if rank > MAX_RANK {
        return Err(EntryError::InvalidField("its number of dimensions"));
    }
    let kind = field(56)? as u32 as i32;
    let numbers: Vec<u64> =
        head[60..head_len - 8].as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let change = match (kind, &numbers[..]) {
        (SUBARRAY, both) if both.len() == 2 * rank => {
            EntryChange::Block { start: DimVec::from_slice(&both[..rank]), count: DimVec::from_slice(&both[rank..]) }
        }
        // Without dimensions there is one element, which is a block: a number of points would be lost.
        (POINTS, [count, coords @ ..]) if rank > 0 && count.checked_mul(rank as u64) == Some(coords.len() as u64) => {
            EntryChange::PointCoords(coords.to_vec())
        }
        (GROW, dims) if dims.len() == rank => EntryChange::GrowToAtLeast(DimVec::from_slice(dims)),
        (SHRINK, dims) if dims.len() == rank => EntryChange::ShrinkTo(DimVec::from_slice(dims)),
        (END_OF_BATCH, [order, shifts @ ..]) if rank == 0 && shifts.len().is_multiple_of(4) => {
            let shift =
                |&[dataset, from, to, first]: &[u64; 4]| RowShift { dataset, start: from, end: to, new_start: first };
            EntryChange::EndOfBatch { order: *order, shifts: shifts.as_chunks().0.iter().map(shift).collect() }
        }
        _ => return Err(EntryError::InvalidField("its selection")),
    };
    let tail = u64_at(head, head_len - 8).ok_or(EntryError::Truncated)?;
    let head = EntryHead {
        batch_number: field(24)?,
        file: file_and_rank as u32,
        dataset,
        change,
        filter_id: (tail >> 32) as i32,
        data_len: field(16)?,
        data_crc: field(40)? as u32,
    };
    if tail as u32 != 0 {
        return Err(EntryError::InvalidField("its byte order"));
    }
    if head.lengths().head_len != head_len {
        return Err(EntryError::InvalidField("the length of its head"));
    }
    Ok((head, rank))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(change: EntryChange) -> EntryHead {
        EntryHead { batch_number: 7, file: 3, dataset: 5, change, filter_id: 0, data_len: 13, data_crc: 0xABCD }
    }

    #[test]
    fn the_bytes_are_those_of_the_document() {
        let change = EntryChange::Block { start: DimVec::from_slice(&[1, 2]), count: DimVec::from_slice(&[3, 4]) };
        let mut bytes = Vec::new();
        head(change).encode(2, &mut bytes);
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        // length, data, batch
        assert_eq!(bytes[8..32], words(&[120, 13, 7]));
        // file, rank, checksum of the data, length of the head
        assert_eq!(bytes[32..48], [3, 0, 0, 0, 2, 0, 0, 0, 0xCD, 0xAB, 0, 0, 100, 0, 0, 0]);
        // The entry of the design: dataset, kind of selection, start, count, byte order, filter.
        assert_eq!(bytes[48..60], [5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[60..92], words(&[1, 2, 3, 4]));
        assert_eq!(bytes[92..], [0; 8]);
    }

    /// Found by the fuzz target `log_entry`: the number of points was not kept.
    #[test]
    fn points_without_dimensions_are_no_entry() {
        let mut bytes = Vec::new();
        head(EntryChange::PointCoords(Vec::new())).encode(0, &mut bytes);
        bytes[60..68].copy_from_slice(&25_534u64.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(decode_head_and_rank(&bytes), Err(EntryError::InvalidField("its selection")));
    }

    fn change() -> impl Strategy<Value = (EntryChange, usize)> {
        let dims = |rank| prop::collection::vec(any::<u64>(), rank).prop_map(|dims| DimVec::from_slice(&dims));
        (0usize..5).prop_flat_map(move |rank| {
            let points = prop::collection::vec(any::<u64>(), 4 * rank);
            prop_oneof![
                (dims(rank), dims(rank)).prop_map(|(start, count)| EntryChange::Block { start, count }),
                points.prop_map(EntryChange::PointCoords),
                dims(rank).prop_map(EntryChange::GrowToAtLeast),
                dims(rank).prop_map(EntryChange::ShrinkTo),
            ]
            .prop_map(move |change| (change, rank))
        })
    }

    proptest! {
        #[test]
        fn heads_are_read_as_they_were_written((change, rank) in change()) {
            // Without dimensions there are no points.
            prop_assume!(rank > 0 || !matches!(change, EntryChange::PointCoords(_)));
            let head = head(change);
            let mut bytes = Vec::new();
            head.encode(rank, &mut bytes);
            prop_assert_eq!(bytes.len(), head.lengths().head_len);
            if let EntryChange::PointCoords(coords) = &head.change {
                prop_assert_eq!(bytes.len() as u64, points_head_bytes((coords.len() / rank) as u64, rank));
            }
            prop_assert_eq!(decode_frame(&bytes), Ok(head.lengths()));
            prop_assert_eq!(decode_head_and_rank(&bytes), Ok((head, rank)));
        }

        #[test]
        fn a_changed_byte_is_found((change, rank) in change(), at in any::<usize>(), bits in 1u8..) {
            prop_assume!(rank > 0 || !matches!(change, EntryChange::PointCoords(_)));
            let mut bytes = Vec::new();
            head(change).encode(rank, &mut bytes);
            let at = at % bytes.len();
            bytes[at] ^= bits;
            prop_assert!(decode_head_and_rank(&bytes).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_head_and_rank(&bytes);
            let mut begun = MAGIC.to_vec();
            begun.extend(bytes);
            let _ = decode_head_and_rank(&begun);
        }
    }
}
