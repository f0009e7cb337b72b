//! Values for `serde`.

use std::fmt;

use h5live_model::Name;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::Value;

/// Why a value cannot be of a type of `serde` (feature `serde`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeserializeError(String);

impl de::Error for DeserializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        DeserializeError(message.to_string())
    }
}

/// Compounds as maps, complex numbers as `(real, imaginary)`, references as bytes, what cannot be read as nothing.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Unreadable | Value::Null => serializer.serialize_none(),
            Value::Integer(i) => match (i64::try_from(*i), u64::try_from(*i)) {
                (Ok(i), _) => serializer.serialize_i64(i),
                (_, Ok(u)) => serializer.serialize_u64(u),
                _ => serializer.serialize_i128(*i),
            },
            Value::Float32(v) => serializer.serialize_f32(*v),
            Value::Float64(v) => serializer.serialize_f64(*v),
            Value::Text(text) => serializer.serialize_str(text),
            Value::EnumName(name) => serializer.collect_str(name),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Value::Reference(reference) => serializer.serialize_bytes(reference.as_bytes()),
            Value::Complex(parts) => (&parts[0], &parts[1]).serialize(serializer),
            Value::Compound(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name.to_string(), value)))
            }
            Value::List(values) => serializer.collect_seq(values),
        }
    }
}

/// A value that is taken apart.
pub(crate) struct ValueDeserializer(pub(crate) Value);

impl<'de> IntoDeserializer<'de, DeserializeError> for ValueDeserializer {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl ValueDeserializer {
    /// The number as a float, if it is one that `is_exact` takes.
    fn float(&self, is_exact: impl Fn(f64) -> bool, name: &str) -> Result<Option<f64>, DeserializeError> {
        let Some(float) = self.0.number().filter(|_| !matches!(self.0, Value::Bool(_))) else { return Ok(None) };
        let is_same = match self.0 {
            // The largest `i128` is one more as a float, to which `as` saturates.
            Value::Integer(i) => float as i128 == i && float < i128::MAX as f64,
            _ => true,
        };
        if is_same && (float.is_nan() || is_exact(float)) {
            return Ok(Some(float));
        }
        Err(de::Error::custom(format_args!("{} is not exact as {name}", self.0)))
    }
}

fn by_name((name, value): (Name, Value)) -> (String, ValueDeserializer) {
    (name.to_string(), ValueDeserializer(value))
}

impl<'de> Deserializer<'de> for ValueDeserializer {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let list = |values: Vec<Value>| SeqDeserializer::new(values.into_iter().map(ValueDeserializer));
        match self.0 {
            Value::Unreadable | Value::Null => visitor.visit_unit(),
            Value::Integer(i) => match (i64::try_from(i), u64::try_from(i)) {
                (Ok(i), _) => visitor.visit_i64(i),
                (_, Ok(u)) => visitor.visit_u64(u),
                _ => visitor.visit_i128(i),
            },
            Value::Float32(v) => visitor.visit_f32(v),
            Value::Float64(v) => visitor.visit_f64(v),
            Value::Text(text) => visitor.visit_string(text),
            Value::EnumName(name) => visitor.visit_string(name.to_string()),
            Value::Bool(truth) => visitor.visit_bool(truth),
            Value::Bytes(bytes) => visitor.visit_byte_buf(bytes),
            Value::Reference(reference) => visitor.visit_byte_buf(reference.as_bytes().to_vec()),
            Value::Complex(parts) => {
                let mut parts = list((*parts).into());
                let value = visitor.visit_seq(&mut parts)?;
                parts.end().map(|()| value)
            }
            Value::Compound(members) => {
                let mut members = MapDeserializer::new(members.into_iter().map(by_name));
                let value = visitor.visit_map(&mut members)?;
                members.end().map(|()| value)
            }
            Value::List(values) => {
                let mut values = list(values);
                let value = visitor.visit_seq(&mut values)?;
                values.end().map(|()| value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if matches!(self.0, Value::Unreadable | Value::Null) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    // `serde` would round.
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.float(|float| f64::from(float as f32) == float, "f32")? {
            Some(float) => visitor.visit_f32(float as f32),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.float(|_| true, "f64")? {
            Some(float) => visitor.visit_f64(float),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The name of an enum's value is a variant without data.
impl<'de> EnumAccess<'de> for ValueDeserializer {
    type Error = DeserializeError;
    type Variant = UnitVariant;

    fn variant_seed<V: de::DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, UnitVariant), DeserializeError> {
        Ok((seed.deserialize(self)?, UnitVariant))
    }
}

pub(crate) struct UnitVariant;

impl<'de> VariantAccess<'de> for UnitVariant {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<(), DeserializeError> {
        Ok(())
    }

    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, DeserializeError> {
        Err(de::Error::custom("the value of an enum has no data"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, DeserializeError> {
        Err(de::Error::custom("the value of an enum has no data"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        Err(de::Error::custom("the value of an enum has no data"))
    }
}
