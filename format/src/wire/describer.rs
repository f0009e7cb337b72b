//! Fields with their places: for `dump --bytes`, the checker, and error messages.

use h5live_model::Name;

use super::{Decoder, Result, Wire};
use crate::{DecodeError, Fault, Width, Widths};

/// One field of a structure, with its place and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The structure that it belongs to.
    pub record: &'static str,
    /// Its name.
    pub field: &'static str,
    /// Bytes from the start of the outermost structure.
    pub offset_in_structure: usize,
    /// Bytes.
    pub size: usize,
    /// The value, as text.
    pub value: String,
}

/// Lists the fields of a structure while it decodes them.
#[derive(Debug)]
pub struct Describer<'a> {
    inner: Decoder<'a>,
    record: &'static str,
    fields: Vec<Field>,
}

impl<'a> Describer<'a> {
    /// A describer at the start of `bytes`, for the structure named `record`.
    pub fn new(record: &'static str, bytes: &'a [u8], widths: Widths) -> Self {
        Describer { inner: Decoder::new(record, bytes, widths), record, fields: Vec::new() }
    }

    /// The fields that were found.
    pub fn into_fields(self) -> Vec<Field> {
        self.fields
    }

    fn push_field(&mut self, field: &'static str, start: usize, value: String) {
        let size = self.inner.position().saturating_sub(start);
        self.fields.push(Field { record: self.record, field, offset_in_structure: start, size, value });
    }
}

fn hex(bytes: &[u8]) -> String {
    const MAX_SHOWN_BYTES: usize = 32;
    let mut text: String = bytes.iter().take(MAX_SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > MAX_SHOWN_BYTES {
        text.push_str("...");
    }
    text
}

impl Wire for Describer<'_> {
    fn widths(&self) -> Widths {
        self.inner.widths()
    }

    fn set_widths(&mut self, widths: Widths) {
        self.inner.set_widths(widths);
    }

    fn is_decoding(&self) -> bool {
        true
    }

    fn position(&self) -> usize {
        self.inner.position()
    }

    fn remaining(&self) -> usize {
        self.inner.remaining()
    }

    fn remaining_starts_with(&self, bytes: &[u8]) -> bool {
        self.inner.remaining_starts_with(bytes)
    }

    fn fault(&self, field: &'static str, fault: Fault) -> DecodeError {
        self.inner.fault(field, fault)
    }

    fn byte_array(&mut self, field: &'static str, bytes: &mut [u8]) -> Result<()> {
        let start = self.position();
        self.inner.byte_array(field, bytes)?;
        self.push_field(field, start, hex(bytes));
        Ok(())
    }

    fn bytes(&mut self, field: &'static str, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let start = self.position();
        self.inner.bytes(field, len, bytes)?;
        self.push_field(field, start, hex(bytes));
        Ok(())
    }

    fn nul_terminated_name(&mut self, field: &'static str, name: &mut Name) -> Result<()> {
        let start = self.position();
        self.inner.nul_terminated_name(field, name)?;
        self.push_field(field, start, format!("{name:?}"));
        Ok(())
    }

    fn uint(&mut self, field: &'static str, width: Width, value: &mut u64) -> Result<()> {
        let start = self.position();
        self.inner.uint(field, width, value)?;
        let text = if *value == width.max_value() && width.bytes() >= 4 {
            "undefined".to_owned()
        } else if *value > 9 {
            format!("{value} ({value:#x})")
        } else {
            value.to_string()
        };
        self.push_field(field, start, text);
        Ok(())
    }

    fn magic(&mut self, expected: &'static str) -> Result<()> {
        let start = self.position();
        self.inner.magic(expected)?;
        self.push_field("signature", start, expected.to_owned());
        Ok(())
    }

    fn checksum(&mut self) -> Result<()> {
        let start = self.position();
        let checked = self.inner.checksum();
        self.push_field(
            "checksum",
            start,
            if checked.is_ok() { "valid".to_owned() } else { "does not match".to_owned() },
        );
        checked
    }

    fn embedded_checksum(&mut self, len: usize) -> Result<()> {
        let start = self.position();
        let checked = self.inner.embedded_checksum(len);
        self.push_field(
            "checksum",
            start,
            if checked.is_ok() { "valid".to_owned() } else { "does not match".to_owned() },
        );
        checked
    }

    fn reserved(&mut self, len: usize) -> Result<()> {
        let start = self.position();
        self.inner.reserved(len)?;
        self.push_field("reserved", start, String::new());
        Ok(())
    }

    fn skip(&mut self, field: &'static str, len: usize) -> Result<()> {
        let start = self.position();
        let value = hex(self.inner.peek(len));
        self.inner.skip(field, len)?;
        self.push_field(field, start, value);
        Ok(())
    }

    fn peek(&self, len: usize) -> &[u8] {
        self.inner.peek(len)
    }

    fn enter(&mut self, record: &'static str) -> &'static str {
        self.record = record;
        self.inner.enter(record)
    }

    fn leave(&mut self, outer: &'static str) {
        self.record = outer;
        self.inner.leave(outer);
    }
}
