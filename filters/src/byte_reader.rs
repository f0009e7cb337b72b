//! Numbers at the start of stored bytes.

use crate::FilterFault;

/// Stored bytes that have not been read yet.
#[derive(Clone, Copy)]
pub(crate) struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    /// The next bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], FilterFault> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(FilterFault::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FilterFault> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(FilterFault::Truncated)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// A big-endian number of 4 bytes.
    pub fn be32(&mut self) -> Result<u32, FilterFault> {
        self.array().map(u32::from_be_bytes)
    }

    /// A big-endian number of 8 bytes.
    pub fn be64(&mut self) -> Result<u64, FilterFault> {
        self.array().map(u64::from_be_bytes)
    }

    /// A little-endian number of 4 bytes.
    pub fn le32(&mut self) -> Result<u32, FilterFault> {
        self.array().map(u32::from_le_bytes)
    }

    /// A byte.
    pub fn byte(&mut self) -> Result<u8, FilterFault> {
        self.array().map(|[byte]| byte)
    }
}
