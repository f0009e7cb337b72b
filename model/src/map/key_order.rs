//! The order of the keys of a map, as bytes that sort in this order.

use super::{MapKey, MapKeyBuf};
use crate::{
    ByteOrder, Datatype, Error, FixedStringType, FloatType, IntegerType, Normalization, Padding, Result, Sign,
    StringPadding, VarLenKind,
};

/// Makes of keys of one type bytes that sort bytewise in the order of the keys, and keys of such bytes.
///
/// | type | order | the same key |
/// |---|---|---|
/// | integers, enumerations, bit fields | the value | the same value; unused bits do not count |
/// | IEEE 754 floats | the value, -0.0 before 0.0, all NaN last | the same bits |
/// | strings of fixed size | bytes | the same text; padding does not count |
/// | strings of variable length | bytes, null before "" | the same bytes |
/// | compounds, arrays, complex numbers | member by member | all members are the same; gaps do not count |
/// | sequences | element by element, the shorter one first | the same elements |
/// | all other types | the stored bytes | the same bytes |
///
/// Numbers of more than 16 bytes, of VAX byte order, and floats of other layouts are in the order of their stored bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderPreservingKeyCodec {
    whole: WholeKey,
}

/// A key as a whole: nothing follows it, so that it needs no end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WholeKey {
    Element(Part),
    FixedText(FixedText),
    Text,
    Sequence(Part),
}

/// An element of fixed size within a key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// Bytes as they are stored.
    size: usize,
    form: PartForm,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PartForm {
    /// As it is stored.
    Stored,
    Number(NumberBits),
    FixedText(FixedText),
    /// Parts with their offsets in the element (bytes).
    Members(Vec<(usize, Part)>),
    /// The same part, so many times.
    Repeated(Box<Part>, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FixedText {
    size: usize,
    padding: StringPadding,
}

/// A number of at most 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NumberBits {
    size: usize,
    big_endian: bool,
    offset: u32,
    precision: u32,
    /// The unused bits as they are stored.
    unused: u128,
    kind: NumberKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Unsigned,
    Signed,
    /// With so many NaN of each sign.
    Float(u128),
}

impl OrderPreservingKeyCodec {
    /// The order of keys of a type.
    pub fn new(key_type: &Datatype) -> Self {
        let whole = match key_type {
            Datatype::VarLen(t) if t.kind == VarLenKind::Sequence => WholeKey::Sequence(Part::new(&t.base)),
            Datatype::VarLen(_) => WholeKey::Text,
            Datatype::String(t) => match FixedText::new(t) {
                Some(text) => WholeKey::FixedText(text),
                None => WholeKey::Element(Part::stored(key_type)),
            },
            other => WholeKey::Element(Part::new(other)),
        };
        OrderPreservingKeyCodec { whole }
    }

    /// Appends the bytes of a key.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is no key of this type ([`MapSpec::check_key`](crate::MapSpec::check_key)).
    pub fn append_encoded(&self, key: MapKey<'_>, ordered: &mut Vec<u8>) -> Result<()> {
        match (&self.whole, key) {
            (WholeKey::Text, MapKey::Null) => ordered.push(0),
            (WholeKey::Text, MapKey::Bytes(text)) => {
                ordered.push(1);
                ordered.extend_from_slice(text);
            }
            (WholeKey::Element(part), MapKey::Bytes(element)) if element.len() == part.size => {
                part.encode(element, ordered);
            }
            (WholeKey::FixedText(text), MapKey::Bytes(element)) if element.len() == text.size => {
                ordered.extend_from_slice(text.trim(element));
            }
            (WholeKey::Sequence(part), MapKey::Bytes(elements))
                if !elements.is_empty() && part.size > 0 && elements.len().is_multiple_of(part.size) =>
            {
                elements.chunks_exact(part.size).for_each(|element| part.encode(element, ordered));
            }
            _ => return Err(Error::Invalid("this is no key of the type of the map's keys".into())),
        }
        Ok(())
    }

    /// The bytes of a key.
    ///
    /// # Errors
    /// As [`OrderPreservingKeyCodec::append_encoded`].
    pub fn encode_to_vec(&self, key: MapKey<'_>) -> Result<Vec<u8>> {
        let mut ordered = Vec::with_capacity(key.bytes_or_empty().len() + 1);
        self.append_encoded(key, &mut ordered)?;
        Ok(ordered)
    }

    /// The key of bytes that [`OrderPreservingKeyCodec::append_encoded`] has made. `into` holds its bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no key has such bytes.
    pub fn decode<'b>(&self, ordered: &[u8], into: &'b mut Vec<u8>) -> Result<MapKey<'b>> {
        into.clear();
        let mut rest = ordered;
        match &self.whole {
            WholeKey::Text => match ordered {
                [0] => return Ok(MapKey::Null),
                [1, text @ ..] => {
                    into.extend_from_slice(text);
                    rest = &[];
                }
                _ => return Err(not_ordered()),
            },
            WholeKey::Element(part) => part.decode(&mut rest, into)?,
            WholeKey::FixedText(text) => {
                text.pad(ordered, into)?;
                rest = &[];
            }
            WholeKey::Sequence(part) => loop {
                part.decode(&mut rest, into)?;
                if rest.is_empty() {
                    break;
                }
            },
        }
        if rest.is_empty() { Ok(MapKey::Bytes(into)) } else { Err(not_ordered()) }
    }

    /// The key of bytes that [`OrderPreservingKeyCodec::append_encoded`] has made.
    ///
    /// # Errors
    /// As [`OrderPreservingKeyCodec::decode`].
    pub fn decode_to_buf(&self, ordered: &[u8]) -> Result<MapKeyBuf> {
        let mut bytes = Vec::new();
        Ok(match self.decode(ordered, &mut bytes)? {
            MapKey::Null => MapKeyBuf::Null,
            MapKey::Bytes(_) => MapKeyBuf::Bytes(bytes),
        })
    }
}

fn not_ordered() -> Error {
    Error::Invalid("no key of this type has such ordered bytes".into())
}

/// The first `n` of `rest`, which is moved past them.
fn take<'a>(rest: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(n).ok_or_else(not_ordered)?;
    *rest = left;
    Ok(taken)
}

impl Part {
    fn new(datatype: &Datatype) -> Self {
        let size = datatype.size() as usize;
        let form = match datatype {
            Datatype::Integer(t) => NumberBits::of_integer(t).map(PartForm::Number),
            Datatype::Bitfield(t) => {
                let t = t.clone();
                let (low_padding, high_padding) = (t.low_padding, t.high_padding);
                let (size, order, offset, precision) = (t.size, t.order, t.offset, t.precision);
                let bits =
                    IntegerType { size, order, sign: Sign::Unsigned, offset, precision, low_padding, high_padding };
                NumberBits::of_integer(&bits).map(PartForm::Number)
            }
            Datatype::Float(t) => NumberBits::of_float(t).map(PartForm::Number),
            Datatype::Enum(t) => return Part::new(&t.base),
            Datatype::String(t) => FixedText::new(t).map(PartForm::FixedText),
            Datatype::Complex(t) => Some(PartForm::Repeated(Box::new(Part::new(&t.base)), 2)),
            Datatype::Array(t) => {
                let count = t.dims.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim as usize));
                let base = Part::new(&t.base);
                let fits = |count: &usize| count.checked_mul(base.size) == Some(size);
                count.filter(fits).map(|count| PartForm::Repeated(Box::new(base), count))
            }
            Datatype::Compound(t) => {
                let members: Vec<_> = t.members.iter().map(|m| (m.offset as usize, Part::new(&m.datatype))).collect();
                are_apart(&members, size).then_some(PartForm::Members(members))
            }
            _ => None,
        };
        Part { size, form: form.unwrap_or(PartForm::Stored) }
    }

    fn stored(datatype: &Datatype) -> Self {
        Part { size: datatype.size() as usize, form: PartForm::Stored }
    }

    /// `element` has the size of the part.
    fn encode(&self, element: &[u8], ordered: &mut Vec<u8>) {
        match &self.form {
            PartForm::Stored => ordered.extend_from_slice(element),
            PartForm::Number(bits) => bits.encode(element, ordered),
            PartForm::FixedText(text) => {
                for byte in text.trim(element) {
                    ordered.push(*byte);
                    if *byte == 0 {
                        ordered.push(0xFF);
                    }
                }
                ordered.extend_from_slice(&[0, 0]);
            }
            PartForm::Members(members) => members.iter().for_each(|(at, part)| {
                part.encode(element.get(*at..at + part.size).unwrap_or_default(), ordered);
            }),
            PartForm::Repeated(part, _) => {
                element.chunks_exact(part.size.max(1)).for_each(|element| part.encode(element, ordered));
            }
        }
    }

    /// Appends the element that begins in `rest`, which is moved past it.
    fn decode(&self, rest: &mut &[u8], into: &mut Vec<u8>) -> Result<()> {
        match &self.form {
            PartForm::Stored => into.extend_from_slice(take(rest, self.size)?),
            PartForm::Number(bits) => bits.decode(take(rest, bits.ordered_len())?, into)?,
            PartForm::FixedText(text) => {
                let mut found = Vec::new();
                loop {
                    match take(rest, 1)? {
                        [0] => match take(rest, 1)? {
                            [0] => break,
                            [0xFF] => found.push(0),
                            _ => return Err(not_ordered()),
                        },
                        byte => found.extend_from_slice(byte),
                    }
                }
                text.pad(&found, into)?;
            }
            PartForm::Members(members) => {
                let start = into.len();
                into.resize(start + self.size, 0);
                let mut element = Vec::new();
                for (at, part) in members {
                    element.clear();
                    part.decode(rest, &mut element)?;
                    let place = into.get_mut(start + at..start + at + part.size).ok_or_else(not_ordered)?;
                    place.copy_from_slice(&element);
                }
            }
            PartForm::Repeated(part, count) => (0..*count).try_for_each(|_| part.decode(rest, into))?,
        }
        Ok(())
    }
}

/// Whether members lie within the element, and apart from each other.
fn are_apart(members: &[(usize, Part)], size: usize) -> bool {
    let mut places: Vec<_> = members.iter().map(|(at, part)| (*at, at.saturating_add(part.size))).collect();
    places.sort_unstable();
    places.iter().all(|(_, end)| *end <= size) && places.windows(2).all(|two| two[0].1 <= two[1].0)
}

impl FixedText {
    fn new(t: &FixedStringType) -> Option<Self> {
        let text = FixedText { size: t.size as usize, padding: t.padding };
        (!matches!(t.padding, StringPadding::Reserved(_))).then_some(text)
    }

    /// The text without its padding.
    fn trim<'a>(&self, element: &'a [u8]) -> &'a [u8] {
        let padding = match self.padding {
            StringPadding::NullTerminated => {
                let end = element.iter().position(|byte| *byte == 0).unwrap_or(element.len());
                return &element[..end];
            }
            StringPadding::SpacePadded => b' ',
            _ => 0,
        };
        let end = element.iter().rposition(|byte| *byte != padding).map_or(0, |last| last + 1);
        &element[..end]
    }

    /// Appends the element that has this text. It is refused if a part of it would be padding.
    fn pad(&self, text: &[u8], into: &mut Vec<u8>) -> Result<()> {
        if text.len() > self.size || self.trim(text).len() != text.len() {
            return Err(not_ordered());
        }
        let padding = if self.padding == StringPadding::SpacePadded { b' ' } else { 0 };
        into.extend_from_slice(text);
        into.resize(into.len() + self.size - text.len(), padding);
        Ok(())
    }
}

impl NumberBits {
    fn of_integer(t: &IntegerType) -> Option<Self> {
        let kind = if t.sign == Sign::Signed { NumberKind::Signed } else { NumberKind::Unsigned };
        let bits = NumberBits::new(t.size, t.order, t.offset, t.precision, kind)?;
        let all = mask(t.size * 8);
        let low = if t.low_padding == Padding::One { mask(t.offset.into()) } else { 0 };
        let used_to = u32::from(t.offset) + u32::from(t.precision);
        let high = if t.high_padding == Padding::One { all & !mask(used_to) } else { 0 };
        Some(NumberBits { unused: low | high, ..bits })
    }

    fn of_float(t: &FloatType) -> Option<Self> {
        let (mantissa, exponent) = (u32::from(t.mantissa_size), u32::from(t.exponent_size));
        let is_ieee = t.normalization == Normalization::Implied
            && (t.offset, t.mantissa_position, t.exponent_position) == (0, 0, t.mantissa_size)
            && u32::from(t.sign_position) == mantissa + exponent
            && u32::from(t.precision) == mantissa + exponent + 1
            && u32::from(t.precision) == t.size.saturating_mul(8);
        let kind = NumberKind::Float(mask(mantissa));
        is_ieee.then(|| NumberBits::new(t.size, t.order, t.offset, t.precision, kind)).flatten()
    }

    fn new(size: u32, order: ByteOrder, offset: u16, precision: u16, kind: NumberKind) -> Option<Self> {
        let (offset, precision) = (u32::from(offset), u32::from(precision));
        let fits = (1..=16).contains(&size) && precision > 0 && offset + precision <= size * 8;
        let big_endian = match order {
            ByteOrder::Little => false,
            ByteOrder::Big => true,
            ByteOrder::Vax => return None,
        };
        let size = size as usize;
        fits.then_some(NumberBits { size, big_endian, offset, precision, unused: 0, kind })
    }

    fn ordered_len(&self) -> usize {
        self.precision.div_ceil(8) as usize
    }

    fn encode(&self, element: &[u8], ordered: &mut Vec<u8>) {
        let stored = if self.big_endian { number_be(element) } else { number_le(element) };
        let (all, sign) = (mask(self.precision), 1 << (self.precision - 1));
        let value = stored >> self.offset & all;
        let sorted = match self.kind {
            NumberKind::Unsigned => value,
            NumberKind::Signed => value ^ sign,
            // Negative NaN would be the first: they move behind the positive ones, round the end.
            NumberKind::Float(nan) => {
                if value & sign == 0 { value | sign } else { !value & all }.wrapping_sub(nan) & all
            }
        };
        ordered.extend_from_slice(&sorted.to_be_bytes()[16 - self.ordered_len()..]);
    }

    /// `ordered` has the length of what is made of such numbers.
    fn decode(&self, ordered: &[u8], into: &mut Vec<u8>) -> Result<()> {
        let (all, sign) = (mask(self.precision), 1 << (self.precision - 1));
        let sorted = number_be(ordered);
        if sorted > all {
            return Err(not_ordered());
        }
        let value = match self.kind {
            NumberKind::Unsigned => sorted,
            NumberKind::Signed => sorted ^ sign,
            NumberKind::Float(nan) => {
                let bits = sorted.wrapping_add(nan) & all;
                if bits & sign == 0 { !bits & all } else { bits ^ sign }
            }
        };
        let stored = value << self.offset | self.unused;
        match self.big_endian {
            true => into.extend_from_slice(&stored.to_be_bytes()[16 - self.size..]),
            false => into.extend_from_slice(&stored.to_le_bytes()[..self.size]),
        }
        Ok(())
    }
}

/// The number that at most 16 bytes are, the highest first.
fn number_be(bytes: &[u8]) -> u128 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_be_bytes(bytes).into();
    }
    let mut all = [0; 16];
    all.iter_mut().rev().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
    u128::from_be_bytes(all)
}

/// The number that at most 16 bytes are, the lowest first.
fn number_le(bytes: &[u8]) -> u128 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_le_bytes(bytes).into();
    }
    let mut all = [0; 16];
    all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u128::from_le_bytes(all)
}

/// So many low bits.
fn mask(bits: u32) -> u128 {
    1u128.checked_shl(bits).map_or(u128::MAX, |bit| bit - 1)
}

#[cfg(test)]
#[path = "key_order_tests.rs"]
mod tests;
