//! Counts, positions and identities: little-endian.

use h5live_model::ObjectId;

use crate::layout::{RecordFormatError, Result, oid};

/// The bytes of a count or a position.
pub const fn encode_u64(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

/// The count or position of a value. `record` names it in errors.
///
/// # Errors
/// [`RecordFormatError::InvalidValue`] if the value has not 8 bytes.
pub fn decode_u64(record: &'static str, value: &[u8]) -> Result<u64> {
    let bytes =
        value.try_into().map_err(|_| RecordFormatError::InvalidValue { record, rule: "a number has 8 bytes" })?;
    Ok(u64::from_le_bytes(bytes))
}

/// The identity of a value, whose bytes are [`oid::token`]. `record` names it in errors.
///
/// # Errors
/// [`RecordFormatError::InvalidValue`] if the value has not 16 bytes.
pub fn decode_oid(record: &'static str, value: &[u8]) -> Result<ObjectId> {
    let bytes = value.try_into().map_err(|_| RecordFormatError::InvalidValue { record, rule: "it has 16 bytes" })?;
    Ok(oid::from_token(bytes))
}
