//! Frames of Blosc 1: the form of compressed chunks.
//!
//! The codecs are filters of HDF5, which the session is given; here are the header, and frames without compression.

/// Bytes of the header.
const HEADER_BYTES: usize = 16;
/// The version of the format, and that of the codecs.
const VERSIONS: [u8; 2] = [2, 1];
/// The flag of data that is not compressed.
const COPIED: u8 = 0x02;

/// A frame in which data is not compressed; `None` if it is too long for a frame.
pub fn blosc_frame_without_compression(data: &[u8]) -> Option<Vec<u8>> {
    let bytes = u32::try_from(data.len()).ok().filter(|bytes| *bytes < i32::MAX as u32 - HEADER_BYTES as u32)?;
    let mut frame = Vec::with_capacity(HEADER_BYTES + data.len());
    frame.extend_from_slice(&VERSIONS);
    frame.extend_from_slice(&[COPIED, 1]);
    for number in [bytes, bytes, bytes + HEADER_BYTES as u32] {
        frame.extend_from_slice(&number.to_le_bytes());
    }
    frame.extend_from_slice(data);
    Some(frame)
}

/// The bytes of the data in a frame; `None` if it is no frame.
pub fn blosc_frame_data_len(frame: &[u8]) -> Option<u64> {
    let (head, _) = frame.split_at_checked(HEADER_BYTES)?;
    let number = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let (data, stored) = (number(4)?, number(12)?);
    let is_frame = head.first() == VERSIONS.first() && head.get(3).is_some_and(|size| *size > 0);
    (is_frame && stored as usize == frame.len()).then_some(data.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_how_long_its_data_is() {
        let frame = blosc_frame_without_compression(&[7; 100]).unwrap();
        assert_eq!((frame.len(), blosc_frame_data_len(&frame)), (116, Some(100)));
        assert_eq!(blosc_frame_data_len(&frame[..115]), None);
        assert_eq!(blosc_frame_data_len(b"x\x9c"), None);
    }
}
