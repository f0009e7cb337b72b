//! Datatypes: how the bytes of an element are interpreted.

use crate::Name;

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
    /// VAX floats: 2-byte words little-endian, the words big-endian.
    Vax,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
}

/// The contents of unused bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Padding {
    /// Zeros.
    #[default]
    Zero,
    /// Ones.
    One,
}

/// Whether an integer has a sign (two's complement).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sign {
    /// No sign.
    #[default]
    Unsigned,
    /// Two's complement.
    Signed,
}

/// An integer of `precision` bits inside `size` bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct IntegerType {
    /// Bytes of an element.
    pub size: u32,
    /// Byte order.
    pub order: ByteOrder,
    /// Signed or not.
    pub sign: Sign,
    /// Bit position of the least significant bit.
    pub offset: u16,
    /// Significant bits.
    pub precision: u16,
    /// Bits below the significant ones.
    pub low_padding: Padding,
    /// Bits above the significant ones.
    pub high_padding: Padding,
}

/// Bits without a numeric meaning; the same layout as an unsigned integer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct BitfieldType {
    /// Bytes of an element.
    pub size: u32,
    /// Byte order.
    pub order: ByteOrder,
    /// Bit position of the least significant bit.
    pub offset: u16,
    /// Significant bits.
    pub precision: u16,
    /// Bits below the significant ones.
    pub low_padding: Padding,
    /// Bits above the significant ones.
    pub high_padding: Padding,
}

/// How the leading bit of a mantissa is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Normalization {
    /// The mantissa is not normalised.
    None,
    /// The most significant bit is always set, and stored.
    MsbSet,
    /// The most significant bit is always set, and not stored (IEEE 754).
    #[default]
    Implied,
}

/// A floating-point number of any layout.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FloatType {
    /// Bytes of an element.
    pub size: u32,
    /// Byte order.
    pub order: ByteOrder,
    /// Bit position of the least significant bit.
    pub offset: u16,
    /// Significant bits.
    pub precision: u16,
    /// Bits below the significant ones.
    pub low_padding: Padding,
    /// Bits above the significant ones.
    pub high_padding: Padding,
    /// Unused bits between the fields.
    pub internal_padding: Padding,
    /// Normalisation of the mantissa.
    pub normalization: Normalization,
    /// Bit position of the sign.
    pub sign_position: u8,
    /// Bit position of the exponent.
    pub exponent_position: u8,
    /// Bits of the exponent.
    pub exponent_size: u8,
    /// Bit position of the mantissa.
    pub mantissa_position: u8,
    /// Bits of the mantissa.
    pub mantissa_size: u8,
    /// Bias of the exponent.
    pub exponent_bias: u32,
}

/// A UNIX time of `precision` bits. Deprecated in HDF5, still read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TimeType {
    /// Bytes of an element.
    pub size: u32,
    /// Byte order.
    pub order: ByteOrder,
    /// Significant bits.
    pub precision: u16,
}

/// How a string shorter than its space is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StringPadding {
    /// A NUL ends the string.
    #[default]
    NullTerminated,
    /// NULs fill the rest.
    NullPadded,
    /// Spaces fill the rest.
    SpacePadded,
    /// A value that the format reserves.
    Reserved(u8),
}

/// The encoding of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CharacterSet {
    /// ASCII.
    #[default]
    Ascii,
    /// UTF-8.
    Utf8,
    /// A value that the format reserves.
    Reserved(u8),
}

/// A string of `size` bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FixedStringType {
    /// Bytes of an element.
    pub size: u32,
    /// How it is padded.
    pub padding: StringPadding,
    /// Its encoding.
    pub character_set: CharacterSet,
}

/// Uninterpreted bytes with a tag that describes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OpaqueType {
    /// Bytes of an element.
    pub size: u32,
    /// The tag.
    pub tag: Name,
}

/// A member of a compound type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CompoundMember {
    /// The member's name.
    pub name: Name,
    /// Bytes from the start of the compound.
    pub offset: u32,
    /// The member's type.
    pub datatype: Datatype,
}

/// A record of named members.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CompoundType {
    /// Bytes of an element, gaps included.
    pub size: u32,
    /// The members, in the file's order.
    pub members: Vec<CompoundMember>,
}

/// The kind of a reference: its target, and how it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReferenceKind {
    /// An object, by its address (since HDF5 1.2).
    #[default]
    Object1,
    /// A region of a dataset, by a global heap object (since HDF5 1.2).
    Region1,
    /// An object (since HDF5 1.12).
    Object2,
    /// A region of a dataset (since HDF5 1.12).
    Region2,
    /// An attribute (since HDF5 1.12).
    Attribute,
}

/// A reference to an object, a region, or an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ReferenceType {
    /// The kind of target.
    pub kind: ReferenceKind,
    /// Bytes of an element in the file.
    pub size: u32,
}

/// A named value of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct EnumMember {
    /// The name.
    pub name: Name,
    /// The value, as bytes of the base type in its byte order.
    pub value: Vec<u8>,
}

/// Named values of an integer type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct EnumType {
    /// The integer type of the values.
    pub base: Box<Datatype>,
    /// The names and values, in the file's order.
    pub members: Vec<EnumMember>,
}

/// A sequence or a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VarLenKind {
    /// A sequence of elements of the base type.
    #[default]
    Sequence,
    /// A string.
    String {
        /// How it is padded.
        padding: StringPadding,
        /// Its encoding.
        character_set: CharacterSet,
    },
}

/// A sequence or string whose length differs from element to element.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VarLenType {
    /// Sequence or string.
    pub kind: VarLenKind,
    /// Bytes of an element in the file: the length and the place in the global heap.
    pub size: u32,
    /// The type of each element (one byte for strings).
    pub base: Box<Datatype>,
}

/// An array of fixed dimensions as one element.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ArrayType {
    /// Dimensions, slowest-varying first (elements).
    pub dims: Vec<u32>,
    /// The type of an element of the array.
    pub base: Box<Datatype>,
}

/// A complex number: real part, imaginary part.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ComplexType {
    /// The floating-point type of each part.
    pub base: Box<Datatype>,
}

/// The type of an element (format specification 4.0, IV.A.2.d).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Datatype {
    /// Class 0.
    Integer(IntegerType),
    /// Class 1.
    Float(FloatType),
    /// Class 2.
    Time(TimeType),
    /// Class 3.
    String(FixedStringType),
    /// Class 4.
    Bitfield(BitfieldType),
    /// Class 5.
    Opaque(OpaqueType),
    /// Class 6.
    Compound(CompoundType),
    /// Class 7.
    Reference(ReferenceType),
    /// Class 8.
    Enum(EnumType),
    /// Class 9.
    VarLen(VarLenType),
    /// Class 10.
    Array(ArrayType),
    /// Class 11.
    Complex(ComplexType),
}

impl Default for Datatype {
    fn default() -> Self {
        Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)
    }
}

impl Datatype {
    /// An integer that uses all bits of its `size` bytes.
    pub fn integer(size: u32, order: ByteOrder, sign: Sign) -> Self {
        Datatype::Integer(IntegerType { size, order, sign, precision: (size * 8) as u16, ..Default::default() })
    }

    /// An IEEE 754 float of 2, 4 or 8 bytes; `None` for any other size.
    pub fn float(size: u32, order: ByteOrder) -> Option<Self> {
        let (exponent_size, mantissa_size, exponent_bias) = match size {
            2 => (5, 10, 15),
            4 => (8, 23, 127),
            8 => (11, 52, 1023),
            _ => return None,
        };
        Some(Datatype::Float(FloatType {
            size,
            order,
            precision: (size * 8) as u16,
            sign_position: (size * 8 - 1) as u8,
            exponent_position: mantissa_size,
            exponent_size,
            mantissa_size,
            exponent_bias,
            ..Default::default()
        }))
    }

    /// A string of `size` bytes, NUL-padded.
    pub fn fixed_string(size: u32, character_set: CharacterSet) -> Self {
        Datatype::String(FixedStringType { size, padding: StringPadding::NullPadded, character_set })
    }

    /// A record of members, each behind the one before, without gaps.
    ///
    /// ```
    /// use h5live_model::{ByteOrder, Datatype, Sign};
    ///
    /// let time = Datatype::integer(8, ByteOrder::Little, Sign::Unsigned);
    /// let value = Datatype::float(4, ByteOrder::Little).unwrap();
    /// let sample = Datatype::compound([("time", time), ("value", value)]);
    /// assert_eq!(sample.to_string(), "compound(12){time@0:u64le,value@8:f32le}");
    /// ```
    pub fn compound<N: Into<Name>>(members: impl IntoIterator<Item = (N, Datatype)>) -> Self {
        let mut compound = CompoundType::default();
        for (name, datatype) in members {
            let offset = compound.size;
            // Beyond 4 GiB it is refused where it is stored.
            compound.size = offset.saturating_add(datatype.size());
            compound.members.push(CompoundMember { name: name.into(), offset, datatype });
        }
        Datatype::Compound(compound)
    }

    /// Bytes of an element in the file. Saturates for arrays beyond 4 GiB, which no decoder lets through.
    pub fn size(&self) -> u32 {
        match self {
            Datatype::Integer(t) => t.size,
            Datatype::Float(t) => t.size,
            Datatype::Time(t) => t.size,
            Datatype::String(t) => t.size,
            Datatype::Bitfield(t) => t.size,
            Datatype::Opaque(t) => t.size,
            Datatype::Compound(t) => t.size,
            Datatype::Reference(t) => t.size,
            Datatype::Enum(t) => t.base.size(),
            Datatype::VarLen(t) => t.size,
            Datatype::Array(t) => t.dims.iter().fold(t.base.size(), |n, d| n.saturating_mul(*d)),
            Datatype::Complex(t) => t.base.size().saturating_mul(2),
        }
    }

    /// Whether elements hold variable-length data, at any depth.
    pub fn has_vlen(&self) -> bool {
        match self {
            Datatype::VarLen(_) => true,
            Datatype::Compound(t) => t.members.iter().any(|m| m.datatype.has_vlen()),
            Datatype::Array(t) => t.base.has_vlen(),
            _ => false,
        }
    }

    /// Whether elements hold places in a heap: variable-length data or references, at any depth.
    pub fn has_vlen_or_references(&self) -> bool {
        match self {
            Datatype::VarLen(_) | Datatype::Reference(_) => true,
            Datatype::Compound(t) => t.members.iter().any(|m| m.datatype.has_vlen_or_references()),
            Datatype::Array(t) => t.base.has_vlen_or_references(),
            _ => false,
        }
    }

    /// Whether some number in the type leaves more than half of its bits unused. libhdf5 takes that for damage when
    /// it finds it in an object header without a checksum, and refuses the object.
    pub fn has_number_over_half_unused(&self) -> bool {
        let unusual = |size: u32, offset: u16, precision: u16| {
            let used = u64::from(precision).saturating_add(offset.into());
            size > 1 && u64::from(size).saturating_mul(8) > used.saturating_mul(2)
        };
        match self {
            Datatype::Integer(t) => unusual(t.size, t.offset, t.precision),
            Datatype::Bitfield(t) => unusual(t.size, t.offset, t.precision),
            Datatype::Float(t) => unusual(t.size, t.offset, t.precision),
            Datatype::Compound(t) => t.members.iter().any(|member| member.datatype.has_number_over_half_unused()),
            Datatype::Enum(t) => t.base.has_number_over_half_unused(),
            Datatype::VarLen(t) => t.base.has_number_over_half_unused(),
            Datatype::Array(t) => t.base.has_number_over_half_unused(),
            Datatype::Complex(t) => t.base.has_number_over_half_unused(),
            _ => false,
        }
    }
}

#[cfg(test)]
#[path = "datatype_tests.rs"]
mod tests;
