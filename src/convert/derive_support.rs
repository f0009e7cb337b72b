//! The items that the code written by `derive(H5Type)` uses.

use h5live_model::{ByteOrder, CompoundMember as FileMember, CompoundType, Datatype, EnumMember, EnumType, Sign};

use super::{ConvertError, NumberPlan, class};
use crate::types::{ConversionContext, H5Type, MemberColumn, part, part_mut};

/// Elements that are taken apart at a time: they stay in the nearest cache until the last member is done.
pub const BLOCK_ELEMENTS: usize = 256;

/// How a field is converted.
#[derive(Debug, Clone)]
pub struct MemberCodec<C> {
    at: usize,
    size: usize,
    code: C,
}

fn find<'a>(file: &'a Datatype, name: &str, memory: &'static str) -> Result<&'a FileMember, ConvertError> {
    let Datatype::Compound(compound) = file else { return Err(ConvertError::Class { file: class(file), memory }) };
    let member = compound.members.iter().find(|member| member.name == name);
    member.ok_or_else(|| ConvertError::NoMember(name.into()))
}

fn member<C>(
    file: &Datatype,
    name: &str,
    memory: &'static str,
    code: impl FnOnce(&Datatype) -> Result<C, ConvertError>,
) -> Result<MemberCodec<C>, ConvertError> {
    let found = find(file, name, memory)?;
    let code = code(&found.datatype)
        .map_err(|source| ConvertError::Member { name: found.name.clone(), source: Box::new(source) })?;
    Ok(MemberCodec { at: found.offset as usize, size: found.datatype.size() as usize, code })
}

impl<C> MemberCodec<C> {
    /// The way from a member of a compound in the file to a field.
    ///
    /// # Errors
    /// [`ConvertError::NoMember`], [`ConvertError::Member`].
    pub fn decoder<T: H5Type<Decoder = C>>(
        file: &Datatype,
        name: &str,
        rust_type_name: &'static str,
    ) -> Result<Self, ConvertError> {
        member(file, name, rust_type_name, T::decoder)
    }

    /// The way from a field to a member of a compound in the file.
    ///
    /// # Errors
    /// [`ConvertError::NoMember`], [`ConvertError::Member`].
    pub fn encoder<T: H5Type<Encoder = C>>(
        file: &Datatype,
        name: &str,
        rust_type_name: &'static str,
    ) -> Result<Self, ConvertError> {
        member(file, name, rust_type_name, T::encoder)
    }

    /// Bytes of the member in the file that are overwritten, or none if some are not.
    pub fn fully_overwritten_len<T: H5Type<Encoder = C>>(&self) -> usize {
        if T::leaves_bytes_unchanged(&self.code) { 0 } else { self.size }
    }

    /// Whether the member refuses some values of the field.
    pub fn may_refuse<T: H5Type<Encoder = C>>(&self) -> bool {
        T::may_refuse(&self.code)
    }

    /// Replaces a field by the value of its member.
    ///
    /// # Errors
    /// As [`H5Type::decode`].
    #[inline]
    pub fn decode<T: H5Type<Decoder = C>>(
        &self,
        element: &[u8],
        into: &mut T,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        T::decode(&self.code, part(element, self.at, self.size)?, into, context)
    }

    /// Replaces the same field of several values by the member of elements of `element_size` bytes, one after another.
    ///
    /// # Errors
    /// As [`H5Type::decode`].
    #[inline]
    pub fn decode_column<'a, T: H5Type<Decoder = C>>(
        &self,
        elements: &[u8],
        element_size: usize,
        into: impl Iterator<Item = &'a mut T>,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        T::decode_column(&self.code, MemberColumn::new(elements, element_size, self.at, self.size)?, into, context)
    }

    /// Overwrites a member by the value of its field.
    ///
    /// # Errors
    /// As [`H5Type::encode`].
    #[inline]
    pub fn encode<T: H5Type<Encoder = C>>(
        &self,
        value: &T,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        value.encode(&self.code, part_mut(element, self.at, self.size)?, context)
    }
}

/// A compound type of members one right after the other.
pub fn packed_compound(members: Vec<(&str, Datatype)>) -> Datatype {
    let mut size = 0u32;
    let place = |(name, datatype): (&str, Datatype)| {
        let member = FileMember { name: name.into(), offset: size, datatype };
        size = size.saturating_add(member.datatype.size());
        member
    };
    let members = members.into_iter().map(place).collect();
    Datatype::Compound(CompoundType { size, members })
}

/// How the values of an enum are converted.
#[derive(Debug, Clone)]
pub struct EnumCodec<C> {
    code: C,
    /// The value in the file of each variant; `None` if the file's enum lacks it.
    values: Vec<Option<i64>>,
    memory: &'static str,
}

/// The enum type of variants with these names and values, on an integer of `size` bytes.
pub fn enumeration(variants: &[(&str, i64)], size: u32, signed: bool) -> Datatype {
    let sign = if signed { Sign::Signed } else { Sign::Unsigned };
    let member = |(name, value): &(&str, i64)| {
        let value = value.to_le_bytes().into_iter().take(size as usize).collect();
        EnumMember { name: (*name).into(), value }
    };
    let base = Box::new(Datatype::integer(size, ByteOrder::Little, sign));
    Datatype::Enum(EnumType { base, members: variants.iter().map(member).collect() })
}

/// The value in the file of each variant.
fn values(file: &Datatype, variants: &[(&str, i64)], memory: &'static str) -> Result<Vec<Option<i64>>, ConvertError> {
    let file = match file {
        Datatype::Enum(file) => file,
        Datatype::Integer(_) => return Ok(variants.iter().map(|(_, value)| Some(*value)).collect()),
        _ => return Err(ConvertError::Class { file: class(file), memory }),
    };
    let native = Datatype::integer(8, ByteOrder::NATIVE, Sign::Signed);
    let plan = NumberPlan::new(&file.base, &native);
    let plan = plan.ok_or(ConvertError::Class { file: class(&file.base), memory })??;
    let value = |(name, _): &(&str, i64)| {
        let member = file.members.iter().find(|member| member.name == *name)?;
        let mut value = [0; 8];
        plan.convert_values(&member.value, &mut value);
        Some(i64::from_ne_bytes(value))
    };
    Ok(variants.iter().map(value).collect())
}

impl<C> EnumCodec<C> {
    /// The way from a type in the file to an enum: by the names of the values, or by the values of an integer.
    ///
    /// # Errors
    /// [`ConvertError::Class`].
    pub fn decoder(
        file: &Datatype,
        variants: &[(&str, i64)],
        rust_type_name: &'static str,
    ) -> Result<Self, ConvertError>
    where
        i64: H5Type<Decoder = C>,
    {
        Ok(EnumCodec {
            values: values(file, variants, rust_type_name)?,
            code: i64::decoder(file)?,
            memory: rust_type_name,
        })
    }

    /// The position of the variant that an element holds.
    ///
    /// # Errors
    /// [`ConvertError::NoVariant`].
    pub fn decode_variant(&self, element: &[u8], context: ConversionContext<'_>) -> Result<usize, ConvertError>
    where
        i64: H5Type<Decoder = C>,
    {
        let mut value = 0;
        i64::decode(&self.code, element, &mut value, context)?;
        let variant = self.values.iter().position(|of| *of == Some(value));
        variant.ok_or_else(|| ConvertError::NoVariant { value: value.to_string(), memory: self.memory })
    }

    /// The way from an enum to a type in the file.
    ///
    /// # Errors
    /// [`ConvertError::Class`].
    pub fn encoder(
        file: &Datatype,
        variants: &[(&str, i64)],
        rust_type_name: &'static str,
    ) -> Result<Self, ConvertError>
    where
        i64: H5Type<Encoder = C>,
    {
        Ok(EnumCodec {
            values: values(file, variants, rust_type_name)?,
            code: i64::encoder(file)?,
            memory: rust_type_name,
        })
    }

    /// Overwrites an element by the variant at a position, which is called `name_for_error`.
    ///
    /// # Errors
    /// [`ConvertError::NoEnumName`].
    pub fn encode_variant(
        &self,
        variant: usize,
        name_for_error: &str,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError>
    where
        i64: H5Type<Encoder = C>,
    {
        let value = self.values.get(variant).copied().flatten();
        value.ok_or_else(|| ConvertError::NoEnumName(name_for_error.into()))?.encode(&self.code, element, context)
    }
}
