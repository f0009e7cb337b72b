//! The class of a datatype, and the 24 bits whose meaning depends on it.

use h5live_model::{
    BitfieldType, ByteOrder, CharacterSet, CompoundType, Datatype, EnumType, FixedStringType, FloatType, IntegerType,
    Normalization, OpaqueType, Padding, ReferenceKind, ReferenceType, Sign, StringPadding, TimeType, VarLenKind,
    VarLenType,
};

/// The number of the class.
pub(super) fn class_number(t: &Datatype) -> u8 {
    match t {
        Datatype::Integer(_) => 0,
        Datatype::Float(_) => 1,
        Datatype::Time(_) => 2,
        Datatype::String(_) => 3,
        Datatype::Bitfield(_) => 4,
        Datatype::Opaque(_) => 5,
        Datatype::Compound(_) => 6,
        Datatype::Reference(_) => 7,
        Datatype::Enum(_) => 8,
        Datatype::VarLen(_) => 9,
        Datatype::Array(_) => 10,
        Datatype::Complex(_) => 11,
    }
}

/// A type of this class and size, to be filled in.
pub(super) fn blank_of_class(class: u8, size: u32) -> Option<Datatype> {
    Some(match class {
        0 => Datatype::Integer(IntegerType { size, ..Default::default() }),
        1 => Datatype::Float(FloatType { size, ..Default::default() }),
        2 => Datatype::Time(TimeType { size, ..Default::default() }),
        3 => Datatype::String(FixedStringType { size, ..Default::default() }),
        4 => Datatype::Bitfield(BitfieldType { size, ..Default::default() }),
        5 => Datatype::Opaque(OpaqueType { size, ..Default::default() }),
        6 => Datatype::Compound(CompoundType { size, ..Default::default() }),
        7 => Datatype::Reference(ReferenceType { size, ..Default::default() }),
        8 => Datatype::Enum(EnumType::default()),
        9 => Datatype::VarLen(VarLenType { size, ..Default::default() }),
        10 => Datatype::Array(Default::default()),
        11 => Datatype::Complex(Default::default()),
        _ => return None,
    })
}

/// Class bits that are being put together, or taken apart.
#[derive(Debug)]
pub(super) struct ClassBits {
    value: u32,
    reading: bool,
    broken: Option<&'static str>,
}

impl ClassBits {
    /// No bits yet.
    pub(super) fn to_write() -> Self {
        ClassBits { value: 0, reading: false, broken: None }
    }

    /// The bits of a file.
    pub(super) fn read(value: u32) -> Self {
        ClassBits { value, reading: true, broken: None }
    }

    /// The bits as a number.
    pub(super) fn value(&self) -> u32 {
        self.value
    }

    /// The rule that the bits break, if they break one.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.broken
    }

    /// The field of `width` bits from bit `at` on: stores `value` there, or returns the stored value.
    fn wire_bits(&mut self, at: u32, width: u32, value: u32) -> u32 {
        let mask = 1u32.checked_shl(width).unwrap_or(0).wrapping_sub(1);
        if self.reading {
            return (self.value >> at) & mask;
        }
        if value > mask {
            self.broken = Some("a count fits its bits");
        }
        self.value |= (value & mask) << at;
        value
    }

    fn refuse_unless(&mut self, holds: bool, rule: &'static str) {
        if !holds {
            self.broken.get_or_insert(rule);
        }
    }

    /// A choice of two.
    fn wire_choice<T: Copy + PartialEq>(&mut self, at: u32, value: &mut T, clear: T, set: T) {
        let is_set = self.wire_bits(at, 1, u32::from(*value == set));
        *value = if is_set == 0 { clear } else { set };
    }

    fn order(&mut self, order: &mut ByteOrder) {
        self.wire_choice(0, order, ByteOrder::Little, ByteOrder::Big);
    }

    fn pad(&mut self, at: u32, padding: &mut Padding) {
        self.wire_choice(at, padding, Padding::Zero, Padding::One);
    }

    /// The order of a float, which takes two bits that are apart.
    fn float_order(&mut self, order: &mut ByteOrder, version: u8) {
        let big = self.wire_bits(0, 1, u32::from(*order != ByteOrder::Little)) != 0;
        let vax = self.wire_bits(6, 1, u32::from(*order == ByteOrder::Vax)) != 0 && version >= 3;
        self.refuse_unless(big || !vax, "bit 6 without bit 0 is no byte order");
        *order = match (big, vax) {
            (_, true) => ByteOrder::Vax,
            (true, false) => ByteOrder::Big,
            (false, false) => ByteOrder::Little,
        };
    }

    fn normalization(&mut self, normalization: &mut Normalization) {
        let number = match normalization {
            Normalization::None => 0,
            Normalization::MsbSet => 1,
            Normalization::Implied => 2,
        };
        *normalization = match self.wire_bits(4, 2, number) {
            0 => Normalization::None,
            1 => Normalization::MsbSet,
            2 => Normalization::Implied,
            _ => {
                self.refuse_unless(false, "a mantissa normalization is 0, 1 or 2");
                Normalization::None
            }
        };
    }

    fn string_padding(&mut self, at: u32, padding: &mut StringPadding) {
        let number = match *padding {
            StringPadding::NullTerminated => 0,
            StringPadding::NullPadded => 1,
            StringPadding::SpacePadded => 2,
            StringPadding::Reserved(number) => number.into(),
        };
        *padding = match self.wire_bits(at, 4, number) {
            0 => StringPadding::NullTerminated,
            1 => StringPadding::NullPadded,
            2 => StringPadding::SpacePadded,
            number => StringPadding::Reserved(u8::try_from(number).unwrap_or(u8::MAX)),
        };
    }

    fn character_set(&mut self, at: u32, set: &mut CharacterSet) {
        let number = match *set {
            CharacterSet::Ascii => 0,
            CharacterSet::Utf8 => 1,
            CharacterSet::Reserved(number) => number.into(),
        };
        *set = match self.wire_bits(at, 4, number) {
            0 => CharacterSet::Ascii,
            1 => CharacterSet::Utf8,
            number => CharacterSet::Reserved(u8::try_from(number).unwrap_or(u8::MAX)),
        };
    }

    fn reference(&mut self, kind: &mut ReferenceKind) {
        let number = match kind {
            ReferenceKind::Object1 => 0,
            ReferenceKind::Region1 => 1,
            ReferenceKind::Object2 => 2,
            ReferenceKind::Region2 => 3,
            ReferenceKind::Attribute => 4,
        };
        *kind = match self.wire_bits(0, 4, number) {
            0 => ReferenceKind::Object1,
            1 => ReferenceKind::Region1,
            2 => ReferenceKind::Object2,
            3 => ReferenceKind::Region2,
            4 => ReferenceKind::Attribute,
            _ => {
                self.refuse_unless(false, "a reference type is 0 to 4");
                ReferenceKind::Object1
            }
        };
        if !matches!(kind, ReferenceKind::Object1 | ReferenceKind::Region1) {
            let encoding = self.wire_bits(4, 4, 1);
            self.refuse_unless(encoding == 1, "the encoding of references has version 1");
        }
    }

    fn var_len(&mut self, kind: &mut VarLenKind) {
        let is_string = self.wire_bits(0, 4, u32::from(*kind != VarLenKind::Sequence));
        match (is_string, &mut *kind) {
            (0, _) => *kind = VarLenKind::Sequence,
            (1, VarLenKind::String { .. }) => {}
            (1, VarLenKind::Sequence) => {
                let (padding, character_set) = (StringPadding::default(), CharacterSet::default());
                *kind = VarLenKind::String { padding, character_set };
            }
            _ => self.refuse_unless(false, "variable-length data are a sequence (0) or a string (1)"),
        }
        if let VarLenKind::String { padding, character_set } = kind {
            self.string_padding(4, padding);
            self.character_set(8, character_set);
        }
    }
}

/// A count, saturated so that [`ClassBits::wire_bits`] refuses it when it does not fit.
fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The bits of a type of a class, between the type and its bits. Returns the number that the bits of some classes
/// hold: members, or bytes of a tag.
pub(super) fn class_bits(t: &mut Datatype, bits: &mut ClassBits, version: u8) -> u32 {
    match t {
        Datatype::Integer(t) => {
            bits.order(&mut t.order);
            bits.pad(1, &mut t.low_padding);
            bits.pad(2, &mut t.high_padding);
            bits.wire_choice(3, &mut t.sign, Sign::Unsigned, Sign::Signed);
        }
        Datatype::Bitfield(t) => {
            bits.order(&mut t.order);
            bits.pad(1, &mut t.low_padding);
            bits.pad(2, &mut t.high_padding);
        }
        Datatype::Float(t) => {
            bits.float_order(&mut t.order, version);
            bits.pad(1, &mut t.low_padding);
            bits.pad(2, &mut t.high_padding);
            bits.pad(3, &mut t.internal_padding);
            bits.normalization(&mut t.normalization);
            t.sign_position = u8::try_from(bits.wire_bits(8, 8, t.sign_position.into())).unwrap_or(u8::MAX);
        }
        Datatype::Time(t) => bits.order(&mut t.order),
        Datatype::String(t) => {
            bits.string_padding(0, &mut t.padding);
            bits.character_set(4, &mut t.character_set);
        }
        Datatype::Opaque(t) => {
            let len = bits.wire_bits(0, 8, count(super::super::padded_len(t.tag.as_bytes().len())));
            bits.refuse_unless(len.is_multiple_of(8), "the length of a tag is a multiple of 8");
            return len;
        }
        Datatype::Compound(t) => return bits.wire_bits(0, 16, count(t.members.len())),
        Datatype::Reference(t) => bits.reference(&mut t.kind),
        Datatype::Enum(t) => return bits.wire_bits(0, 16, count(t.members.len())),
        Datatype::VarLen(t) => bits.var_len(&mut t.kind),
        Datatype::Array(_) => {}
        Datatype::Complex(_) => {
            let homogeneous = bits.wire_bits(0, 1, 1);
            let rest = bits.wire_bits(1, 23, 0);
            bits.refuse_unless(homogeneous == 1 && rest == 0, "complex numbers are homogeneous and rectangular");
        }
    }
    0
}
