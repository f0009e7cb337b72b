//! When an object was touched.

use h5live_model::ObjectTimes;

use crate::layout::{RecordFormatError, Result};

/// The bytes of the times: access, modification, change, birth; 8 bytes each.
pub fn encode_times(times: &ObjectTimes) -> [u8; 32] {
    let mut value = [0; 32];
    let times = [times.access, times.modification, times.change, times.birth];
    value.as_chunks_mut::<8>().0.iter_mut().zip(times).for_each(|(bytes, time)| *bytes = time.to_le_bytes());
    value
}

/// The times of a value.
///
/// # Errors
/// [`RecordFormatError::InvalidValue`] if the value has not 32 bytes.
pub fn decode_times(value: &[u8]) -> Result<ObjectTimes> {
    let ([access, modification, change, birth], []) = value.as_chunks::<8>() else {
        return Err(RecordFormatError::InvalidValue { record: "Times", rule: "they have 32 bytes" });
    };
    Ok(ObjectTimes {
        access: i64::from_le_bytes(*access),
        modification: i64::from_le_bytes(*modification),
        change: i64::from_le_bytes(*change),
        birth: i64::from_le_bytes(*birth),
    })
}
