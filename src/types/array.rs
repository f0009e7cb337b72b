//! Arrays of fixed length as elements.

use h5live_model::{ArrayType, Datatype};

use super::{ConversionContext, H5Type};
use crate::convert::{ConvertError, class};

/// How an array is converted: its elements, one by one, or as one run.
#[derive(Debug, Clone)]
pub struct ArrayCodec<C> {
    element: C,
    /// Bytes of an element in the file.
    size: usize,
}

/// The type of what an array is made of: without its first dimension, or one part of a complex number.
fn inner<const N: usize>(file: &Datatype) -> Result<Datatype, ConvertError> {
    if let (Datatype::Complex(complex), 2) = (file, N) {
        return Ok((*complex.base).clone());
    }
    let Datatype::Array(ArrayType { dims, base }) = file else {
        return Err(ConvertError::Class { file: class(file), memory: "array" });
    };
    match dims.split_first() {
        Some((first, [])) if *first as usize == N => Ok((**base).clone()),
        Some((first, rest)) if *first as usize == N => {
            Ok(Datatype::Array(ArrayType { dims: rest.into(), base: base.clone() }))
        }
        _ => Err(ConvertError::ArrayLength { file: dims.clone(), memory: N }),
    }
}

impl<T: H5Type, const N: usize> H5Type for [T; N] {
    type Decoder = ArrayCodec<T::Decoder>;
    type Encoder = ArrayCodec<T::Encoder>;

    fn datatype() -> Datatype {
        let n = u32::try_from(N).unwrap_or(u32::MAX);
        Datatype::Array(match T::datatype() {
            Datatype::Array(ArrayType { dims, base }) => ArrayType { dims: [vec![n], dims].concat(), base },
            base => ArrayType { dims: vec![n], base: Box::new(base) },
        })
    }

    fn placeholder() -> Self {
        std::array::from_fn(|_| T::placeholder())
    }

    fn decoder(file: &Datatype) -> Result<Self::Decoder, ConvertError> {
        let file = inner::<N>(file)?;
        Ok(ArrayCodec { element: T::decoder(&file)?, size: file.size() as usize })
    }

    fn decode(
        decoder: &Self::Decoder,
        element: &[u8],
        into: &mut Self,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        T::decode_slice(&decoder.element, element, decoder.size, into, context)
    }

    fn decode_slice(
        decoder: &Self::Decoder,
        elements: &[u8],
        _size: usize,
        into: &mut [Self],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        T::decode_slice(&decoder.element, elements, decoder.size, into.as_flattened_mut(), context)
    }

    fn as_stored_mut<'a>(decoder: &Self::Decoder, into: &'a mut [Self]) -> Option<&'a mut [u8]> {
        T::as_stored_mut(&decoder.element, into.as_flattened_mut())
    }

    fn encoder(file: &Datatype) -> Result<Self::Encoder, ConvertError> {
        let file = inner::<N>(file)?;
        Ok(ArrayCodec { element: T::encoder(&file)?, size: file.size() as usize })
    }

    fn encode(
        &self,
        encoder: &Self::Encoder,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        T::encode_slice(&encoder.element, self, element, encoder.size, context)
    }

    fn encode_slice(
        encoder: &Self::Encoder,
        values: &[Self],
        elements: &mut [u8],
        _size: usize,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        T::encode_slice(&encoder.element, values.as_flattened(), elements, encoder.size, context)
    }

    fn as_stored_with_encoder<'a>(encoder: &Self::Encoder, values: &'a [Self]) -> Option<&'a [u8]> {
        T::as_stored_with_encoder(&encoder.element, values.as_flattened())
    }

    fn may_refuse(encoder: &Self::Encoder) -> bool {
        T::may_refuse(&encoder.element)
    }

    fn leaves_bytes_unchanged(encoder: &Self::Encoder) -> bool {
        T::leaves_bytes_unchanged(&encoder.element)
    }
}
