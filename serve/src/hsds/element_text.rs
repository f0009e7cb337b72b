//! Elements in JSON, as HSDS writes them.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use h5live::model::ByteOrder;

use super::element_bytes::{float_value, without_padding};
use super::hdf5_json_type::Hdf5JsonType;
use crate::fault::Fault;

/// Writes elements in JSON.
pub(super) struct ElementWriter<'a> {
    /// What is left to be written.
    pub bytes: &'a [u8],
    pub text: String,
    /// Whether what is no number is `null`; else it is `NaN` and `Infinity`, as Python writes them.
    pub is_nan_null: bool,
    pub max_bytes: u64,
}

/// What is no text is not written in JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextFault {
    NoText,
    Other(Fault),
}

impl ElementWriter<'_> {
    fn take(&mut self, size: usize) -> &[u8] {
        let (taken, left) = self.bytes.split_at_checked(size).unwrap_or((self.bytes, &[]));
        self.bytes = left;
        taken
    }

    /// Lists within lists of these dimensions.
    pub fn push_nested(&mut self, dims: &[u64], of: &Hdf5JsonType) -> Result<(), TextFault> {
        let [first, rest @ ..] = dims else { return self.push(of) };
        self.text.push('[');
        for n in 0..*first {
            if n > 0 {
                self.text.push(',');
            }
            self.push_nested(rest, of)?;
        }
        self.text.push(']');
        match self.text.len() as u64 {
            bytes if bytes > self.max_bytes => Err(TextFault::Other(Fault::answer_too_large(bytes, self.max_bytes))),
            _ => Ok(()),
        }
    }

    fn push(&mut self, of: &Hdf5JsonType) -> Result<(), TextFault> {
        match of {
            Hdf5JsonType::Integer { size, .. } => {
                let value = of.integer_value(self.take(*size)).unwrap_or_default();
                let _ = write!(self.text, "{value}");
            }
            Hdf5JsonType::Enum { base, .. } => self.push(base)?,
            Hdf5JsonType::Float { size, order } => self.push_float(*size, *order),
            Hdf5JsonType::Text { size, padding, .. } => {
                let bytes = without_padding(self.take(*size), *padding);
                let text = std::str::from_utf8(bytes).map_err(|_| TextFault::NoText)?.to_owned();
                self.push_text(&text);
            }
            Hdf5JsonType::ObjectReference => {
                let bytes = self.take(super::hdf5_json_type::REFERENCE_BYTES);
                let text = String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
                self.push_text(&text);
            }
            Hdf5JsonType::Opaque { size, .. } => {
                let bytes = self.take(*size);
                let text = if bytes.iter().all(|byte| *byte == 0) { String::new() } else { BASE64.encode(bytes) };
                self.push_text(&text);
            }
            Hdf5JsonType::Compound(members) => {
                self.text.push('[');
                for (n, (_, member)) in members.iter().enumerate() {
                    if n > 0 {
                        self.text.push(',');
                    }
                    self.push(member)?;
                }
                self.text.push(']');
            }
            Hdf5JsonType::Array { dims, base } => self.push_nested(dims, base)?,
            Hdf5JsonType::VarText { .. } => {
                let length = self.take_length();
                let text = std::str::from_utf8(self.take(length)).map_err(|_| TextFault::NoText)?.to_owned();
                self.push_text(&text);
            }
            Hdf5JsonType::Sequence(base) => self.push_sequence(base)?,
            Hdf5JsonType::OtherReference => self.text.push_str("null"),
        }
        Ok(())
    }

    fn take_length(&mut self) -> usize {
        let head = self.take(4).try_into().unwrap_or_default();
        usize::try_from(i32::from_le_bytes(head)).unwrap_or_default()
    }

    fn push_sequence(&mut self, base: &Hdf5JsonType) -> Result<(), TextFault> {
        let length = self.take_length();
        let after = self.bytes.len().saturating_sub(length);
        self.text.push('[');
        let mut is_first = true;
        while self.bytes.len() > after {
            if !is_first {
                self.text.push(',');
            }
            is_first = false;
            self.push(base)?;
        }
        self.text.push(']');
        Ok(())
    }

    fn push_float(&mut self, size: usize, order: ByteOrder) {
        let value = float_value(self.take(size), order);
        let text = match value {
            value if value.is_finite() => format!("{value:?}"),
            _ if self.is_nan_null => "null".to_owned(),
            value if value.is_nan() => "NaN".to_owned(),
            value => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        };
        self.text.push_str(&text);
    }

    fn push_text(&mut self, text: &str) {
        self.text.push_str(&serde_json::Value::from(text).to_string());
    }
}

#[cfg(test)]
mod tests {
    use h5live::model::{CharacterSet, Sign, StringPadding};

    use super::*;

    fn text(of: &Hdf5JsonType, dims: &[u64], bytes: &[u8]) -> Result<String, TextFault> {
        let mut writer = ElementWriter { bytes, text: String::new(), is_nan_null: false, max_bytes: 1000 };
        writer.push_nested(dims, of).map(|()| writer.text)
    }

    #[test]
    fn elements_are_written_as_python_writes_them() {
        let float = Hdf5JsonType::Float { size: 4, order: ByteOrder::Big };
        let bytes: Vec<u8> = [0.1f32, f32::NAN, f32::NEG_INFINITY].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(text(&float, &[3], &bytes).unwrap(), "[0.10000000149011612,NaN,-Infinity]");
        let small = Hdf5JsonType::Integer { size: 2, order: ByteOrder::Little, sign: Sign::Signed };
        let sequence = Hdf5JsonType::Sequence(small.clone().into());
        assert_eq!(text(&sequence, &[2], &[4, 0, 0, 0, 1, 0, 0xff, 0xff, 0, 0, 0, 0]).unwrap(), "[[1,-1],[]]");
        let fixed = Hdf5JsonType::Text { size: 3, set: CharacterSet::Ascii, padding: StringPadding::NullPadded };
        assert_eq!(text(&fixed, &[2], b"a\0\0\"b\n").unwrap(), r#"["a","\"b\n"]"#);
        assert_eq!(text(&fixed, &[1], b"\xff\0\0"), Err(TextFault::NoText));
        let pair = Hdf5JsonType::Compound(vec![
            ("a".into(), small),
            ("b".into(), Hdf5JsonType::Opaque { size: 2, tag: "".into() }),
        ]);
        assert_eq!(text(&pair, &[], &[5, 0, 1, 2]).unwrap(), r#"[5,"AQI="]"#);
    }
}
