//! Counterexamples in files: the trace, and after it the reader's queries.

use std::io::{Read, Write};

use super::explore::Counterexample;
use super::position::{Tear, WriterPosition};
use super::query::ReaderQuery;
use super::view::QueryAtPosition;
use crate::trace::{Trace, TraceFileError, TraceRecord, read_record, write_record};

const KIND_FAULT: u8 = 16;
const KIND_LENGTH: u8 = 17;
const KIND_BYTES: u8 = 18;
const KIND_END: u8 = 19;

impl Counterexample {
    /// Writes the counterexample with its trace.
    ///
    /// # Errors
    /// As [`Trace::save`].
    pub fn save(&self, trace: &Trace, mut to: impl Write) -> Result<(), TraceFileError> {
        let last = self.queries.iter().map(|seen| seen.position.prefix as usize + 1).max().unwrap_or(0);
        trace.truncated(last).save(&mut to)?;
        write_record(&mut to, KIND_FAULT, 0, self.fault.as_bytes())?;
        for seen in &self.queries {
            let (kind, at, len) = match seen.query {
                ReaderQuery::Length => (KIND_LENGTH, 0, 0),
                ReaderQuery::Bytes { at, len } => (KIND_BYTES, at, len as u64),
            };
            let (tear, value) = match seen.position.tear {
                Tear::None => (0, 0),
                Tear::Cut(bytes) => (1, u64::from(bytes)),
                Tear::PageMask(pages) => (2, pages),
            };
            let mut body = Vec::with_capacity(21);
            body.extend(len.to_le_bytes());
            body.extend(seen.position.prefix.to_le_bytes());
            body.push(tear);
            body.extend(value.to_le_bytes());
            write_record(&mut to, kind, at, &body)?;
        }
        write_record(&mut to, KIND_END, self.queries.len() as u64, &[])?;
        Ok(to.flush()?)
    }

    /// Reads a counterexample and its trace.
    ///
    /// # Errors
    /// If it is none, or a damaged one.
    pub fn load(mut from: impl Read) -> Result<(Trace, Self), TraceFileError> {
        let trace = Trace::load(&mut from)?;
        let mut number = trace.len() as u64 + 2;
        let mut next = || {
            let record = read_record(&mut from, number)?;
            number += 1;
            Ok::<_, TraceFileError>((number - 1, record))
        };
        let (at, first) = next()?;
        if first.kind != KIND_FAULT {
            return Err(TraceFileError::UnexpectedRecordKind { record: at, kind: first.kind });
        }
        let fault = String::from_utf8_lossy(&first.bytes).into_owned();
        let mut seen = Vec::new();
        loop {
            let (at, record) = next()?;
            match record.kind {
                KIND_END if record.number == seen.len() as u64 => {
                    return Ok((trace, Counterexample { fault, queries: seen }));
                }
                KIND_END => {
                    return Err(TraceFileError::RecordCountMismatch {
                        stated: record.number,
                        found: seen.len() as u64,
                    });
                }
                kind => seen.push(
                    decode_observation(&record).ok_or(TraceFileError::UnexpectedRecordKind { record: at, kind })?,
                ),
            }
        }
    }
}

fn decode_observation(record: &TraceRecord) -> Option<QueryAtPosition> {
    let (len, rest) = record.bytes.split_first_chunk()?;
    let (prefix, rest) = rest.split_first_chunk()?;
    let (tear, rest) = rest.split_first()?;
    let value = u64::from_le_bytes(*rest.first_chunk()?);
    let tear = match tear {
        0 => Tear::None,
        1 => Tear::Cut(u32::try_from(value).ok()?),
        2 => Tear::PageMask(value),
        _ => return None,
    };
    let query = match record.kind {
        KIND_LENGTH => ReaderQuery::Length,
        KIND_BYTES => ReaderQuery::Bytes { at: record.number, len: usize::try_from(u64::from_le_bytes(*len)).ok()? },
        _ => return None,
    };
    Some(QueryAtPosition { query, position: WriterPosition { prefix: u32::from_le_bytes(*prefix), tear } })
}
