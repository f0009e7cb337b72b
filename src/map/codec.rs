//! Keys and values, between the caller's types and the bytes of a map.

use h5live_model::{Datatype, MapKey, MapKeyBuf, StringPadding, VarLenKind};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::convert::{ConvertError, blank_elements};
use crate::types::{ConversionContext, H5Type, PlainElement, trim};
use crate::value::{DecodePlan, EncodePlan};
use crate::{File, Value};

use super::EncodeAs;

/// A blank element whose bytes lie elsewhere. Most have 16 bytes.
fn varlen_element(size: usize) -> Result<SmallVec<[u8; 32]>, ConvertError> {
    Ok(if size <= 32 { SmallVec::from_elem(0, size) } else { blank_elements(1, size)?.into() })
}

/// Appends the bytes of a key or a value, which `encode` writes into an element. `old` is what the element holds before.
/// After an error, `bytes` may be longer.
///
/// # Errors
/// Those of `encode`.
pub(super) fn append_encoded_element(
    context: ConversionContext<'_>,
    datatype: &Datatype,
    old: Option<&[u8]>,
    bytes: &mut Vec<u8>,
    encode: impl FnOnce(&mut [u8], ConversionContext<'_>) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let (start, size) = (bytes.len(), datatype.size() as usize);
    if let Datatype::VarLen(_) = datatype {
        let mut element = varlen_element(size)?;
        let written = Mutex::new(std::mem::take(bytes));
        let plain = PlainElement::to_write(&element, &written, start);
        let encoded = encode(&mut element, context.with_plain(plain));
        *bytes = written.into_inner();
        return encoded;
    }
    match old.filter(|old| old.len() == size) {
        Some(old) => bytes.extend_from_slice(old),
        None if size <= MAX_UNCHECKED_BYTES => bytes.resize(start + size, 0),
        None => bytes.append(&mut blank_elements(1, size)?),
    }
    encode(&mut bytes[start..], context)
}

/// Elements of more bytes may find no memory.
const MAX_UNCHECKED_BYTES: usize = 64 << 10;

/// What `decode` makes of the bytes of a key or a value.
///
/// # Errors
/// Those of `decode`.
#[inline]
fn decode_with(
    context: ConversionContext<'_>,
    datatype: &Datatype,
    bytes: &[u8],
    decode: impl FnOnce(&[u8], ConversionContext<'_>) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    match datatype {
        Datatype::VarLen(_) => {
            let element = varlen_element(datatype.size() as usize)?;
            decode(&element, context.with_plain(PlainElement::with_bytes(&element, bytes)))
        }
        _ => decode(bytes, context),
    }
}

/// The way between values of a type and the keys or the values of a map. Some types go one way only.
#[derive(Debug)]
pub(super) struct Codec<T: H5Type> {
    datatype: Datatype,
    /// Nothing in the bytes leads to other bytes of the store.
    is_plain: bool,
    encoder: Result<T::Encoder, ConvertError>,
    decoder: Result<T::Decoder, ConvertError>,
}

impl<T: H5Type> Codec<T> {
    /// The way between a type and a datatype.
    ///
    /// # Errors
    /// If there is neither a way there nor a way back.
    pub(super) fn new(datatype: &Datatype) -> Result<Self, ConvertError> {
        let (encoder, decoder) = (T::encoder(datatype), T::decoder(datatype));
        match (encoder, decoder) {
            (Err(error), Err(_)) => Err(error),
            (encoder, decoder) => {
                let is_plain = match datatype {
                    Datatype::VarLen(t) => !t.base.has_vlen_or_references(),
                    datatype => !datatype.has_vlen_or_references(),
                };
                Ok(Codec { datatype: datatype.clone(), is_plain, encoder, decoder })
            }
        }
    }

    /// Whether nothing in the bytes leads to other bytes of the store, so that decoding does not call it.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether encoding leaves part of what was there.
    pub(super) fn is_partial(&self) -> bool {
        self.encoder.as_ref().is_ok_and(|encoder| T::leaves_bytes_unchanged(encoder))
    }

    /// Appends the bytes of a value. `old` is what is there before. After an error, `bytes` may be longer.
    pub(super) fn encode(
        &self,
        context: ConversionContext<'_>,
        value: &(impl EncodeAs<T> + ?Sized),
        old: Option<&[u8]>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let encoder = self.encoder.as_ref().map_err(Clone::clone)?;
        let encode = |element: &mut [u8], context: ConversionContext<'_>| value.encode_as(encoder, element, context);
        append_encoded_element(context, &self.datatype, old, bytes, encode)
    }

    #[inline]
    pub(super) fn decode(&self, context: ConversionContext<'_>, bytes: &[u8]) -> Result<T, ConvertError> {
        let decoder = self.decoder.as_ref().map_err(Clone::clone)?;
        let mut value = T::placeholder();
        let decode = |element: &[u8], context: ConversionContext<'_>| T::decode(decoder, element, &mut value, context);
        decode_with(context, &self.datatype, bytes, decode)?;
        Ok(value)
    }

    /// A key; there is no value of another type than text for the null string.
    #[inline]
    pub(super) fn decode_key(&self, context: ConversionContext<'_>, key: MapKey<'_>) -> Result<T, ConvertError> {
        match key {
            MapKey::Null => Err(ConvertError::Class { file: "null string", memory: "a key (UntypedMap has it)" }),
            MapKey::Bytes(bytes) => self.decode(context, bytes),
        }
    }
}

/// A key or a value of a map as a value of any type.
///
/// # Errors
/// If the datatype makes no sense.
pub(super) fn decode_value(file: &File, datatype: &Datatype, bytes: &[u8]) -> Result<Value, ConvertError> {
    match datatype {
        Datatype::VarLen(t) if matches!(t.kind, VarLenKind::String { .. }) => {
            let text = trim(bytes, StringPadding::NullTerminated);
            Ok(Value::Text(String::from_utf8_lossy(text).into_owned()))
        }
        Datatype::VarLen(t) => {
            let plan = DecodePlan::new(&t.base)?;
            let elements = bytes.chunks_exact(plan.size());
            Ok(Value::List(elements.map(|element| plan.decode_value(element, Some(file.store()))).collect()))
        }
        _ => Ok(DecodePlan::new(datatype)?.decode_value(bytes, Some(file.store()))),
    }
}

/// As [`decode_value`], of a key.
pub(super) fn decode_key_value(file: &File, datatype: &Datatype, key: MapKey<'_>) -> Result<Value, ConvertError> {
    match key {
        MapKey::Null => Ok(Value::Null),
        MapKey::Bytes(bytes) => decode_value(file, datatype, bytes),
    }
}

/// The bytes of a value.
///
/// # Errors
/// [`ConvertError::Value`] if the datatype has no such value.
pub(super) fn encode_value(file: &File, datatype: &Datatype, value: &Value) -> Result<Vec<u8>, ConvertError> {
    let plan = EncodePlan::new(datatype)?;
    let mut bytes = Vec::new();
    append_encoded_element(file.context(), datatype, None, &mut bytes, |element, context| {
        plan.encode(value, element, context)
    })?;
    Ok(bytes)
}

/// As [`encode_value`], of a key.
pub(super) fn encode_key_value(file: &File, datatype: &Datatype, key: &Value) -> Result<MapKeyBuf, ConvertError> {
    match key {
        Value::Null => Ok(MapKeyBuf::Null),
        key => encode_value(file, datatype, key).map(MapKeyBuf::Bytes),
    }
}
