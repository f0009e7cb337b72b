//! Floats of 16 bits (feature `half`).

use h5live_model::{ByteOrder, Datatype, FloatType};
use half::{bf16, f16};

use super::{ConversionContext, H5Type};
use crate::convert::{ConvertError, NumberPlan, class};

/// How a float of 16 bits is converted.
#[derive(Debug, Clone)]
pub struct HalfCodec(NumberPlan);

fn brain_float(order: ByteOrder) -> Datatype {
    Datatype::Float(FloatType {
        size: 2,
        order,
        precision: 16,
        sign_position: 15,
        exponent_position: 7,
        exponent_size: 8,
        mantissa_size: 7,
        exponent_bias: 127,
        ..FloatType::default()
    })
}

fn half_float(order: ByteOrder) -> Datatype {
    Datatype::float(2, order).unwrap_or_default()
}

macro_rules! half {
    ($($t:ident $datatype:ident)*) => {$(
        impl H5Type for $t {
            type Decoder = HalfCodec;
            type Encoder = HalfCodec;

            fn datatype() -> Datatype {
                $datatype(ByteOrder::Little)
            }

            fn placeholder() -> Self {
                $t::ZERO
            }

            fn decoder(file: &Datatype) -> Result<HalfCodec, ConvertError> {
                let plan = NumberPlan::new(file, &$datatype(ByteOrder::NATIVE));
                plan.ok_or(ConvertError::Class { file: class(file), memory: stringify!($t) })?.map(HalfCodec)
            }

            fn decode(
                decoder: &HalfCodec,
                element: &[u8],
                into: &mut Self,
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                Self::decode_slice(decoder, element, 0, std::slice::from_mut(into), context)
            }

            fn decode_slice(
                decoder: &HalfCodec,
                elements: &[u8],
                _size: usize,
                into: &mut [Self],
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                let expected = into.len().saturating_mul(decoder.0.input_size());
                if elements.len() != expected {
                    return Err(ConvertError::Truncated { expected, found: elements.len() });
                }
                decoder.0.convert(elements, bytemuck::cast_slice_mut(into), context.conversion())
            }

            fn as_stored_mut<'a>(decoder: &HalfCodec, into: &'a mut [Self]) -> Option<&'a mut [u8]> {
                decoder.0.is_copy().then(|| bytemuck::cast_slice_mut(into))
            }

            fn encoder(file: &Datatype) -> Result<HalfCodec, ConvertError> {
                let plan = NumberPlan::new(&$datatype(ByteOrder::NATIVE), file);
                plan.ok_or(ConvertError::Class { file: class(file), memory: stringify!($t) })?.map(HalfCodec)
            }

            fn encode(&self, encoder: &HalfCodec, element: &mut [u8], context: ConversionContext<'_>) -> Result<(), ConvertError> {
                Self::encode_slice(encoder, std::slice::from_ref(self), element, 0, context)
            }

            fn encode_slice(
                encoder: &HalfCodec,
                values: &[Self],
                elements: &mut [u8],
                _size: usize,
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                let expected = values.len().saturating_mul(encoder.0.output_size());
                if elements.len() != expected {
                    return Err(ConvertError::Truncated { expected, found: elements.len() });
                }
                encoder.0.convert(bytemuck::cast_slice(values), elements, context.conversion())
            }

            fn may_refuse(encoder: &HalfCodec) -> bool {
                !encoder.0.is_lossless()
            }

            fn as_stored_with_encoder<'a>(encoder: &HalfCodec, values: &'a [Self]) -> Option<&'a [u8]> {
                encoder.0.is_copy().then(|| bytemuck::cast_slice(values))
            }
        }
    )*};
}

half! { f16 half_float bf16 brain_float }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;

    #[test]
    fn halves_come_back_and_convert() {
        let file = File::in_memory();
        let values: Vec<f16> = [0.0, 1.5, -2.25, 65504.0, 1e-7].map(f16::from_f64).into();
        let data = file.new_dataset::<f16>().create_with_data("f16", &values).unwrap();
        assert_eq!(data.read::<f16>().unwrap(), values);
        let wide: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
        assert_eq!(data.read::<f32>().unwrap(), wide);
        let brain = file.new_dataset::<bf16>().create_with_data("bf16", &wide).unwrap();
        assert_eq!(brain.read::<bf16>().unwrap()[..3], [0.0, 1.5, -2.25].map(bf16::from_f64));
    }
}
