//! Strings, of fixed and of variable length.

use std::fmt;

use h5live_model::{CharacterSet, Datatype, FixedStringType, StringPadding, VarLenKind, VarLenType};

use super::{ConversionContext, H5Type};
use crate::convert::{ConversionPolicy, ConvertError, class};

/// Where the text of an element is.
#[derive(Debug, Clone)]
pub enum StringCodec {
    /// In the element, padded.
    Fixed(StringPadding),
    /// In the heap.
    Heap,
}

fn code(file: &Datatype, memory: &'static str) -> Result<StringCodec, ConvertError> {
    match file {
        Datatype::String(FixedStringType { padding, .. }) => Ok(StringCodec::Fixed(*padding)),
        Datatype::VarLen(VarLenType { kind: VarLenKind::String { .. }, .. }) => Ok(StringCodec::Heap),
        _ => Err(ConvertError::Class { file: class(file), memory }),
    }
}

/// The text of a padded element.
pub(crate) fn trim(element: &[u8], padding: StringPadding) -> &[u8] {
    let end = match padding {
        StringPadding::NullTerminated => element.iter().position(|byte| *byte == 0),
        StringPadding::SpacePadded => Some(element.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)),
        _ => Some(element.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)),
    };
    &element[..end.unwrap_or(element.len())]
}

/// Writes a text into an element, padded.
pub(crate) fn pad(text: &[u8], element: &mut [u8], padding: StringPadding) -> Result<(), ConvertError> {
    let space = match padding {
        StringPadding::NullTerminated => element.len().saturating_sub(1),
        _ => element.len(),
    };
    if text.len() > space {
        return Err(ConvertError::StringTooLong { length: text.len(), space });
    }
    let (start, rest) = element.split_at_mut(text.len());
    start.copy_from_slice(text);
    rest.fill(if padding == StringPadding::SpacePadded { b' ' } else { 0 });
    Ok(())
}

/// The part of a text that a string in the file keeps: a NUL ends it, unless it is padded (`None` for a string in the
/// heap).
///
/// # Errors
/// [`ConvertError::StringWithNul`] if that is not all of it, and the conversion is exact.
pub(crate) fn kept_text(
    text: &[u8],
    padding: Option<StringPadding>,
    conversion: ConversionPolicy,
) -> Result<&[u8], ConvertError> {
    let kept = match padding {
        Some(StringPadding::SpacePadded) => text,
        Some(padding) => trim(text, padding),
        None => trim(text, StringPadding::NullTerminated),
    };
    if kept.len() < text.len() && conversion == ConversionPolicy::Checked {
        return Err(ConvertError::StringWithNul { length: text.len(), kept: kept.len() });
    }
    Ok(kept)
}

/// The first `space` bytes of a text, or some less if they would end within a character of UTF-8.
pub(crate) fn cut_text(text: &[u8], space: usize) -> &[u8] {
    let is_start = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000);
    let space = space.min(text.len());
    // A character has four bytes at most; what has longer runs of such bytes is no UTF-8.
    let end = (space.saturating_sub(3)..=space).rev().find(is_start);
    &text[..end.unwrap_or(space)]
}

fn decode(
    code: &StringCodec,
    element: &[u8],
    context: ConversionContext<'_>,
    text: impl FnOnce(&[u8]) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    match code {
        StringCodec::Fixed(padding) => text(trim(element, *padding)),
        StringCodec::Heap => context.with(element, |bytes| text(trim(bytes, StringPadding::NullTerminated)))?,
    }
}

pub(super) fn encode(
    code: &StringCodec,
    text: &[u8],
    element: &mut [u8],
    context: ConversionContext<'_>,
) -> Result<(), ConvertError> {
    match code {
        StringCodec::Fixed(padding) => {
            let text = kept_text(text, Some(*padding), context.conversion())?;
            let space = element.len().saturating_sub(usize::from(*padding == StringPadding::NullTerminated));
            pad(
                if context.conversion() == ConversionPolicy::Lossy { cut_text(text, space) } else { text },
                element,
                *padding,
            )
        }
        StringCodec::Heap => {
            let text = kept_text(text, None, context.conversion())?;
            context.write_varlen(text, text.len(), element)
        }
    }
}

impl H5Type for String {
    type Decoder = StringCodec;
    type Encoder = StringCodec;

    fn datatype() -> Datatype {
        let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
        Datatype::VarLen(VarLenType { kind, size: 16, base: Box::default() })
    }

    fn placeholder() -> Self {
        String::new()
    }

    fn decoder(file: &Datatype) -> Result<StringCodec, ConvertError> {
        code(file, "a String")
    }

    fn decode(
        decoder: &StringCodec,
        element: &[u8],
        into: &mut Self,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        into.clear();
        decode(decoder, element, context, |text| {
            into.push_str(std::str::from_utf8(text)?);
            Ok(())
        })
    }

    fn encoder(file: &Datatype) -> Result<StringCodec, ConvertError> {
        code(file, "a String")
    }

    fn encode(
        &self,
        encoder: &StringCodec,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        encode(encoder, self.as_bytes(), element, context)
    }
}

/// A string of at most `N` bytes, kept inside the element: a fixed string, padded with NULs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FixedStr<const N: usize>([u8; N]);

impl<const N: usize> FixedStr<N> {
    /// A string, if it has at most `N` bytes.
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(FixedStr(bytes))
    }

    /// The bytes, without the padding.
    pub fn as_bytes(&self) -> &[u8] {
        trim(&self.0, StringPadding::NullPadded)
    }

    /// The text, if it is valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }
}

impl<const N: usize> Default for FixedStr<N> {
    fn default() -> Self {
        FixedStr([0; N])
    }
}

impl<const N: usize> fmt::Debug for FixedStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const N: usize> fmt::Display for FixedStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const N: usize> H5Type for FixedStr<N> {
    type Decoder = StringCodec;
    type Encoder = StringCodec;

    fn datatype() -> Datatype {
        Datatype::fixed_string(u32::try_from(N).unwrap_or(u32::MAX), CharacterSet::Utf8)
    }

    fn placeholder() -> Self {
        FixedStr::default()
    }

    fn decoder(file: &Datatype) -> Result<StringCodec, ConvertError> {
        code(file, "a FixedStr")
    }

    /// Text that does not fit is an error, or is cut off as libhdf5 does it ([`ConversionPolicy::Lossy`]).
    fn decode(
        decoder: &StringCodec,
        element: &[u8],
        into: &mut Self,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        decode(decoder, element, context, |text| {
            if text.len() > N && context.conversion() == ConversionPolicy::Checked {
                return Err(ConvertError::StringTooLong { length: text.len(), space: N });
            }
            let n = text.len().min(N);
            into.0.fill(0);
            into.0[..n].copy_from_slice(&text[..n]);
            Ok(())
        })
    }

    fn encoder(file: &Datatype) -> Result<StringCodec, ConvertError> {
        code(file, "a FixedStr")
    }

    fn encode(
        &self,
        encoder: &StringCodec,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        encode(encoder, self.as_bytes(), element, context)
    }
}
