//! Fields to bytes.

use h5live_model::Name;

use super::{Result, Wire};
use crate::{Addr, DecodeError, EncodeError, Fault, Width, Widths, lookup3};

/// Writes the fields of a structure down as bytes.
#[derive(Debug)]
pub struct Encoder {
    record: &'static str,
    bytes: Vec<u8>,
    /// Where the structure begins in `bytes`.
    start: usize,
    widths: Widths,
    failed: Option<EncodeError>,
    /// Places of checksums that cover bytes after them, from the start of the structure, and how many bytes they cover.
    pending_checksums: Vec<(usize, usize)>,
}

impl Encoder {
    /// An encoder for the structure named `record`.
    #[inline]
    pub fn new(record: &'static str, widths: Widths) -> Self {
        Encoder { record, bytes: Vec::new(), start: 0, widths, failed: None, pending_checksums: Vec::new() }
    }

    /// The same encoder with room for `bytes` bytes.
    #[inline]
    pub fn with_capacity(mut self, bytes: usize) -> Self {
        self.bytes = Vec::with_capacity(bytes);
        self
    }

    /// An encoder that goes on behind `bytes`, which are the beginning of the structure.
    #[inline]
    pub(crate) fn after(record: &'static str, bytes: Vec<u8>, widths: Widths) -> Self {
        Encoder { bytes, ..Encoder::new(record, widths) }
    }

    /// An encoder of a structure that begins behind `bytes`.
    #[inline]
    pub(crate) fn behind(record: &'static str, bytes: Vec<u8>, widths: Widths) -> Self {
        Encoder { start: bytes.len(), bytes, ..Encoder::new(record, widths) }
    }

    /// The bytes of the structure so far.
    fn structure(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Bytes as they are.
    #[inline]
    pub(crate) fn slice(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The bytes so far, whatever did not fit.
    #[inline]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes.
    ///
    /// # Errors
    /// The first value that did not fit its field.
    #[inline]
    pub fn finish(mut self) -> std::result::Result<Vec<u8>, EncodeError> {
        match self.complete() {
            None => Ok(self.bytes),
            Some(error) => Err(error),
        }
    }

    /// Fills in what is still to be filled in. Returns the first value that did not fit its field.
    #[inline]
    pub(super) fn complete(&mut self) -> Option<EncodeError> {
        if !self.pending_checksums.is_empty() {
            self.fill_checksums();
        }
        self.failed.take()
    }

    /// Fills in the checksums that cover bytes after them.
    fn fill_checksums(&mut self) {
        for (at, len) in std::mem::take(&mut self.pending_checksums) {
            match self.structure().get(..len) {
                Some(covered) => {
                    let sum = lookup3(covered, 0).to_le_bytes();
                    self.bytes
                        .iter_mut()
                        .skip(self.start.saturating_add(at))
                        .zip(sum)
                        .for_each(|(byte, stored)| *byte = stored);
                }
                None => self.record_error("checksum", self.position() as u64, len as u64),
            }
        }
    }

    #[cold]
    fn record_error(&mut self, field: &'static str, value: u64, limit: u64) {
        let record = self.record;
        self.failed.get_or_insert(EncodeError { record, field, value, limit });
    }
}

impl Wire for Encoder {
    #[inline]
    fn widths(&self) -> Widths {
        self.widths
    }

    fn set_widths(&mut self, widths: Widths) {
        self.widths = widths;
    }

    #[inline]
    fn is_decoding(&self) -> bool {
        false
    }

    #[inline]
    fn position(&self) -> usize {
        self.bytes.len().saturating_sub(self.start)
    }

    fn remaining(&self) -> usize {
        usize::MAX
    }

    fn remaining_starts_with(&self, _bytes: &[u8]) -> bool {
        false
    }

    fn fault(&self, field: &'static str, fault: Fault) -> DecodeError {
        DecodeError { record: self.record, field, offset_in_structure: self.position(), fault }
    }

    #[inline]
    fn byte_array(&mut self, _field: &'static str, bytes: &mut [u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, field: &'static str, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
        if bytes.len() != len {
            self.record_error(field, bytes.len() as u64, len as u64);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn name(&mut self, field: &'static str, len: usize, name: &mut Name) -> Result<()> {
        let bytes = name.as_bytes();
        if bytes.len() != len {
            self.record_error(field, bytes.len() as u64, len as u64);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn nul_terminated_name(&mut self, field: &'static str, name: &mut Name) -> Result<()> {
        let len = name.as_bytes().len();
        if let Some(nul) = name.as_bytes().iter().position(|byte| *byte == 0) {
            self.record_error(field, len as u64, nul as u64);
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        Ok(())
    }

    #[inline]
    fn uint(&mut self, field: &'static str, width: Width, value: &mut u64) -> Result<()> {
        if *value > width.max_value() {
            self.record_error(field, *value, width.max_value());
        }
        // All eight bytes at once, and then what is not stored of them is cut off.
        let end = self.bytes.len().saturating_add(width.bytes());
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self.bytes.truncate(end);
        Ok(())
    }

    #[inline]
    fn addr(&mut self, field: &'static str, value: &mut Addr) -> Result<()> {
        let width = self.widths.offset;
        self.uint(field, width, &mut value.get().unwrap_or(width.max_value()))
    }

    #[inline]
    fn magic(&mut self, expected: &'static str) -> Result<()> {
        self.bytes.extend_from_slice(expected.as_bytes());
        Ok(())
    }

    fn checksum(&mut self) -> Result<()> {
        let sum = lookup3(self.structure(), 0);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        Ok(())
    }

    fn embedded_checksum(&mut self, len: usize) -> Result<()> {
        self.pending_checksums.push((self.position(), len));
        self.reserved(4)
    }

    #[inline]
    fn reserved(&mut self, len: usize) -> Result<()> {
        self.bytes.resize(self.bytes.len().saturating_add(len), 0);
        Ok(())
    }

    fn skip(&mut self, _field: &'static str, len: usize) -> Result<()> {
        self.reserved(len)
    }

    fn peek(&self, _len: usize) -> &[u8] {
        &[]
    }

    #[inline]
    fn enter(&mut self, record: &'static str) -> &'static str {
        std::mem::replace(&mut self.record, record)
    }

    #[inline]
    fn leave(&mut self, outer: &'static str) {
        self.record = outer;
    }
}
