//! Bytes to fields.

use h5live_model::Name;

use super::{Result, Wire};
use crate::{DecodeError, Fault, Width, Widths, lookup3};

/// Fills in the fields of a structure from bytes.
#[derive(Debug)]
pub struct Decoder<'a> {
    record: &'static str,
    bytes: &'a [u8],
    at: usize,
    widths: Widths,
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`, for the structure named `record`.
    #[inline]
    pub fn new(record: &'static str, bytes: &'a [u8], widths: Widths) -> Self {
        Decoder { record, bytes, at: 0, widths }
    }

    /// Passes over the next `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest
            .get(..len)
            .ok_or_else(|| self.fault(field, Fault::Truncated { needed: len as u64, left: rest.len() }))?;
        self.at = self.at.saturating_add(len);
        Ok(taken)
    }
}

impl Decoder<'_> {
    fn checksum_error(&self, offset_in_structure: usize, fault: Fault) -> DecodeError {
        DecodeError { record: self.record, field: "checksum", offset_in_structure, fault }
    }
}

impl Wire for Decoder<'_> {
    #[inline]
    fn widths(&self) -> Widths {
        self.widths
    }

    fn set_widths(&mut self, widths: Widths) {
        self.widths = widths;
    }

    #[inline]
    fn is_decoding(&self) -> bool {
        true
    }

    #[inline]
    fn position(&self) -> usize {
        self.at
    }

    #[inline]
    fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn remaining_starts_with(&self, bytes: &[u8]) -> bool {
        self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(bytes))
    }

    fn fault(&self, field: &'static str, fault: Fault) -> DecodeError {
        DecodeError { record: self.record, field, offset_in_structure: self.at, fault }
    }

    #[inline]
    fn byte_array(&mut self, field: &'static str, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(self.take(field, bytes.len())?);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, field: &'static str, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let taken = self.take(field, len)?;
        match bytes.capacity() {
            0 => *bytes = taken.to_vec(),
            _ => {
                bytes.clear();
                bytes.extend_from_slice(taken);
            }
        }
        Ok(())
    }

    #[inline]
    fn name(&mut self, field: &'static str, len: usize, name: &mut Name) -> Result<()> {
        *name = Name::from(self.take(field, len)?);
        Ok(())
    }

    fn nul_terminated_name(&mut self, field: &'static str, name: &mut Name) -> Result<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(len) = rest.iter().position(|byte| *byte == 0) else {
            let needed = (rest.len() as u64).saturating_add(1);
            return Err(self.fault(field, Fault::Truncated { needed, left: rest.len() }));
        };
        *name = Name::from(self.take(field, len)?);
        self.take(field, 1).map(drop)
    }

    #[inline]
    fn uint(&mut self, field: &'static str, width: Width, value: &mut u64) -> Result<()> {
        let taken = self.take(field, width.bytes())?;
        *value = match taken {
            [a] => u64::from(*a),
            [a, b] => u64::from(u16::from_le_bytes([*a, *b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
            odd => odd.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte)),
        };
        Ok(())
    }

    fn magic(&mut self, expected: &'static str) -> Result<()> {
        let at = self.at;
        let found = self.take("signature", expected.len())?;
        if found == expected.as_bytes() {
            return Ok(());
        }
        let fault = Fault::Signature { expected, found: found.to_vec() };
        Err(DecodeError { record: self.record, field: "signature", offset_in_structure: at, fault })
    }

    // A fuzzer does not find checksums: there, any is taken for right.
    fn checksum(&mut self) -> Result<()> {
        let at = self.at;
        let computed = lookup3(self.bytes.get(..at).unwrap_or_default(), 0);
        let mut stored = 0;
        self.u32("checksum", &mut stored)?;
        if stored == computed || cfg!(fuzzing) || crate::checksum_override::ignores_checksums() {
            return Ok(());
        }
        Err(self.checksum_error(at, Fault::Checksum { stored, computed }))
    }

    fn embedded_checksum(&mut self, len: usize) -> Result<()> {
        let at = self.at;
        let mut stored = 0;
        self.u32("checksum", &mut stored)?;
        let whole = self.bytes.get(..len).filter(|_| self.at <= len).ok_or_else(|| {
            let fault =
                Fault::Truncated { needed: len.saturating_sub(at) as u64, left: self.bytes.len().saturating_sub(at) };
            self.checksum_error(at, fault)
        })?;
        let mut bytes = whole.to_vec();
        bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0);
        let computed = lookup3(&bytes, 0);
        if stored == computed || cfg!(fuzzing) || crate::checksum_override::ignores_checksums() {
            return Ok(());
        }
        Err(self.checksum_error(at, Fault::Checksum { stored, computed }))
    }

    #[inline]
    fn reserved(&mut self, len: usize) -> Result<()> {
        self.take("reserved", len).map(drop)
    }

    #[inline]
    fn skip(&mut self, field: &'static str, len: usize) -> Result<()> {
        self.take(field, len).map(drop)
    }

    fn peek(&self, len: usize) -> &[u8] {
        self.bytes.get(self.at..).and_then(|rest| rest.get(..len)).unwrap_or_default()
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
