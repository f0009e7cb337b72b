//! The one description of a structure: [`Record::wire`], driven by a decoder, an encoder or a describer.

mod decoder;
mod describer;
mod encoder;
mod record;

pub use decoder::Decoder;
pub use describer::{Describer, Field};
pub use encoder::Encoder;
pub use record::{Record, Result, Wire};

use std::cell::Cell;

use crate::{DecodeError, EncodeError, Fault, Widths};

/// Decodes a structure from exactly `bytes`.
///
/// # Errors
/// [`DecodeError`] if the bytes are not such a structure, or more than one.
pub fn decode<R: Record + Default>(bytes: &[u8], widths: Widths) -> Result<R> {
    decode_with(R::default(), bytes, widths)
}

/// Decodes a structure from exactly `bytes` into `record`, which holds the context that the bytes do not carry.
///
/// # Errors
/// As [`decode`].
pub fn decode_with<R: Record>(record: R, bytes: &[u8], widths: Widths) -> Result<R> {
    let (record, used) = decode_prefix_with(record, bytes, widths)?;
    match bytes.len().saturating_sub(used) {
        0 => Ok(record),
        left => Err(DecodeError {
            record: R::NAME,
            field: "end",
            offset_in_structure: used,
            fault: Fault::TrailingBytes(left),
        }),
    }
}

/// Decodes a structure from the beginning of `bytes`, and says how many bytes it took.
///
/// # Errors
/// [`DecodeError`] if the bytes do not begin with such a structure.
pub fn decode_prefix<R: Record + Default>(bytes: &[u8], widths: Widths) -> Result<(R, usize)> {
    decode_prefix_with(R::default(), bytes, widths)
}

/// As [`decode_prefix`], into `record`, which holds the context that the bytes do not carry.
///
/// # Errors
/// As [`decode_prefix`].
pub fn decode_prefix_with<R: Record>(mut record: R, bytes: &[u8], widths: Widths) -> Result<(R, usize)> {
    let mut decoder = Decoder::new(R::NAME, bytes, widths);
    record.wire(&mut decoder)?;
    Ok((record, decoder.position()))
}

/// Encodes a structure.
///
/// # Errors
/// [`EncodeError`] if a value does not fit its field.
pub fn encode<R: Record + Clone>(record: &R, widths: Widths) -> std::result::Result<Vec<u8>, EncodeError> {
    encode_mut(&mut record.clone(), widths)
}

/// As [`encode`], without a copy of the structure. The structure is unchanged afterwards.
///
/// # Errors
/// As [`encode`].
pub fn encode_mut<R: Record>(record: &mut R, widths: Widths) -> std::result::Result<Vec<u8>, EncodeError> {
    encode_with(record, Encoder::new(R::NAME, widths).with_capacity(SMALL_RECORD_BYTES))
}

/// Encodes a structure, and calls `look` with the bytes. The structure is unchanged afterwards.
///
/// # Errors
/// As [`encode`].
pub fn with_encoded<R: Record, T>(
    record: &mut R,
    widths: Widths,
    look: impl FnOnce(&[u8]) -> T,
) -> std::result::Result<T, EncodeError> {
    // A thread that ends may have none any more.
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    let bytes = encode_with(record, Encoder::after(R::NAME, scratch, widths))?;
    let done = look(&bytes);
    if bytes.capacity() <= MAX_SCRATCH_BYTES {
        let _ends = SCRATCH.try_with(|scratch| scratch.set(bytes));
    }
    Ok(done)
}

thread_local! {
    /// Memory of [`with_encoded`], which is kept.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Most bytes of memory that a thread keeps.
const MAX_SCRATCH_BYTES: usize = 1 << 10;

/// As [`encode`], without a copy of the structure, for bytes that are soon dropped. The structure is unchanged
/// afterwards.
///
/// # Errors
/// As [`encode`].
pub fn encode_with_size_hint<R: Record>(record: &mut R, widths: Widths) -> std::result::Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    append_encoded(record, widths, &mut bytes)?;
    // Some are kept for each dataset.
    if bytes.len() < bytes.capacity() / 2 {
        bytes.shrink_to_fit();
    }
    Ok(bytes)
}

/// As [`encode`], without a copy of the structure, behind `bytes`. The structure is unchanged afterwards; so are `bytes`
/// if it fails.
///
/// # Errors
/// As [`encode`].
pub fn append_encoded<R: Record>(
    record: &mut R,
    widths: Widths,
    bytes: &mut Vec<u8>,
) -> std::result::Result<(), EncodeError> {
    let start = bytes.len();
    bytes.reserve(record.size_hint().min(MAX_INITIAL_ENCODE_BYTES));
    let mut encoder = Encoder::behind(R::NAME, std::mem::take(bytes), widths);
    let described = record.wire(&mut encoder);
    let failed = encoder.complete().or_else(|| described.err().map(described_error));
    *bytes = encoder.into_bytes();
    match failed {
        None => Ok(()),
        Some(error) => {
            bytes.truncate(start);
            Err(error)
        }
    }
}

/// Most bytes of room that an estimate makes.
const MAX_INITIAL_ENCODE_BYTES: usize = 1 << 16;

/// Bytes that most messages and records do not exceed.
const SMALL_RECORD_BYTES: usize = 48;

fn encode_with<R: Record>(record: &mut R, mut encoder: Encoder) -> std::result::Result<Vec<u8>, EncodeError> {
    let described = record.wire(&mut encoder);
    let bytes = encoder.finish()?;
    described.map_err(described_error)?;
    Ok(bytes)
}

/// What is wrong with a structure that cannot be described.
fn described_error(error: DecodeError) -> EncodeError {
    EncodeError { record: error.record, field: error.field, value: 0, limit: 0 }
}

/// The number of bytes that a structure takes when it is encoded.
///
/// # Errors
/// As [`encode`].
pub fn encoded_len<R: Record + Clone>(record: &R, widths: Widths) -> std::result::Result<usize, EncodeError> {
    encode(record, widths).map(|bytes| bytes.len())
}

/// Lists the fields of a structure that `bytes` begin with, as far as it can be decoded.
pub fn describe<R: Record>(mut record: R, bytes: &[u8], widths: Widths) -> (Vec<Field>, Result<()>) {
    let mut describer = Describer::new(R::NAME, bytes, widths);
    let result = record.wire(&mut describer);
    (describer.into_fields(), result)
}
