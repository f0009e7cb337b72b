//! Traces in files.
//!
//! A file begins with [`MAGIC`] and a version (4 bytes, as all numbers little-endian). Then come records: kind (1
//! byte), offset or length (8 bytes), number of bytes that follow (4 bytes), these bytes, and the CRC-32C of all of it
//! (4 bytes). The first record is the file before the first operation, the last one counts the others.

use std::io::{self, Read, Write};

use h5live_cache::StorageOp;

use super::Trace;

/// The first bytes of a file.
const MAGIC: [u8; 8] = *b"h5trace\n";

/// The version that is written, and the newest that is read.
const VERSION: u32 = 1;

const KIND_BASE: u8 = 0;
const KIND_WRITE: u8 = 1;
const KIND_SET_LEN: u8 = 2;
const KIND_BARRIER: u8 = 3;
const KIND_MARK: u8 = 4;
const KIND_END: u8 = 5;

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFileError {
    /// The medium failed, or the file ended too early.
    #[error("the trace cannot be read or written")]
    Io(#[from] io::Error),
    /// It is another kind of file.
    #[error("this is not a trace")]
    NotATrace,
    /// It is of a version that is not known.
    #[error("the trace is of version {0}, which is not known")]
    UnsupportedVersion(u32),
    /// The checksum of a record is wrong.
    #[error("record {record} of the trace is damaged: its checksum is {computed:#010x}, not {stated:#010x}")]
    Checksum {
        /// Which record, from 0.
        record: u64,
        /// The stated checksum.
        stated: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A record is not where it may be, or of no known kind.
    #[error("record {record} of the trace is of kind {kind}, which cannot be there")]
    UnexpectedRecordKind {
        /// Which record, from 0.
        record: u64,
        /// Its kind.
        kind: u8,
    },
    /// The number of records is not the one that the last one states.
    #[error("the trace has {found} records, not {stated}")]
    RecordCountMismatch {
        /// The number in the last record.
        stated: u64,
        /// How many there are before it.
        found: u64,
    },
    /// There is more than 4 GiB in one operation.
    #[error("an operation of {0} bytes is too large for a trace")]
    OperationTooLarge(usize),
}

pub(crate) struct TraceRecord {
    pub kind: u8,
    pub number: u64,
    pub bytes: Vec<u8>,
}

impl Trace {
    /// Writes the trace.
    ///
    /// # Errors
    /// Those of `to`; [`TraceFileError::OperationTooLarge`].
    pub fn save(&self, mut to: impl Write) -> Result<(), TraceFileError> {
        to.write_all(&MAGIC)?;
        to.write_all(&VERSION.to_le_bytes())?;
        write_record(&mut to, KIND_BASE, 0, &self.base)?;
        for operation in &self.operations {
            match operation {
                StorageOp::Write { at, bytes } => write_record(&mut to, KIND_WRITE, *at, bytes)?,
                StorageOp::SetLen(len) => write_record(&mut to, KIND_SET_LEN, *len, &[])?,
                StorageOp::Sync => write_record(&mut to, KIND_BARRIER, 0, &[])?,
                StorageOp::Mark(text) => write_record(&mut to, KIND_MARK, 0, text.as_bytes())?,
            }
        }
        write_record(&mut to, KIND_END, self.operations.len() as u64 + 1, &[])?;
        Ok(to.flush()?)
    }

    /// Reads a trace, to its last record.
    ///
    /// # Errors
    /// If it is no trace, or a damaged one.
    pub fn load(mut from: impl Read) -> Result<Self, TraceFileError> {
        let mut start = [0; MAGIC.len()];
        from.read_exact(&mut start).map_err(|_| TraceFileError::NotATrace)?;
        if start != MAGIC {
            return Err(TraceFileError::NotATrace);
        }
        match u32::from_le_bytes(read_array(&mut from)?) {
            VERSION => {}
            other => return Err(TraceFileError::UnsupportedVersion(other)),
        }
        let first = read_record(&mut from, 0)?;
        if first.kind != KIND_BASE {
            return Err(TraceFileError::UnexpectedRecordKind { record: 0, kind: first.kind });
        }
        let mut operations = Vec::new();
        for record in 1.. {
            let TraceRecord { kind, number, bytes } = read_record(&mut from, record)?;
            operations.push(match kind {
                KIND_WRITE => StorageOp::Write { at: number, bytes },
                KIND_SET_LEN => StorageOp::SetLen(number),
                KIND_BARRIER => StorageOp::Sync,
                KIND_MARK => StorageOp::Mark(String::from_utf8_lossy(&bytes).into_owned()),
                KIND_END if number == record => break,
                KIND_END => return Err(TraceFileError::RecordCountMismatch { stated: number, found: record }),
                kind => return Err(TraceFileError::UnexpectedRecordKind { record, kind }),
            });
        }
        Ok(Trace { base: first.bytes, operations })
    }
}

pub(crate) fn write_record(to: &mut impl Write, kind: u8, number: u64, bytes: &[u8]) -> Result<(), TraceFileError> {
    let len = u32::try_from(bytes.len()).map_err(|_| TraceFileError::OperationTooLarge(bytes.len()))?;
    let mut head = [0; 13];
    head[0] = kind;
    head[1..9].copy_from_slice(&number.to_le_bytes());
    head[9..].copy_from_slice(&len.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&head), bytes);
    to.write_all(&head)?;
    to.write_all(bytes)?;
    Ok(to.write_all(&sum.to_le_bytes())?)
}

pub(crate) fn read_record(from: &mut impl Read, record: u64) -> Result<TraceRecord, TraceFileError> {
    let head: [u8; 13] = read_array(from)?;
    let [kind, rest @ ..] = head;
    let number = rest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let len = rest.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    // Grows with the bytes that are there, not with the stated length.
    let mut bytes = Vec::new();
    from.by_ref().take(len.into()).read_to_end(&mut bytes)?;
    let computed = crc32c::crc32c_append(crc32c::crc32c(&head), &bytes);
    let stated = u32::from_le_bytes(read_array(from)?);
    if stated != computed {
        return Err(TraceFileError::Checksum { record, stated, computed });
    }
    Ok(TraceRecord { kind, number, bytes })
}

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
