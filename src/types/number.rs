//! Integers and floats.

use h5live_model::{ByteOrder, Datatype};

use super::{ConversionContext, H5Type, MemberColumn};
use crate::convert::{ConversionPolicy, ConvertError, Number, NumberPlan};

/// How a number is converted.
#[derive(Debug, Clone)]
pub struct NumberCodec(NumberPlan);

fn decoder<T: Number>(file: &Datatype) -> Result<NumberCodec, ConvertError> {
    NumberPlan::to_native(file, T::NATIVE).map(NumberCodec)
}

fn encoder<T: Number>(file: &Datatype) -> Result<NumberCodec, ConvertError> {
    NumberPlan::from_native(T::NATIVE, file).map(NumberCodec)
}

fn short(expected: usize, found: usize) -> ConvertError {
    ConvertError::Truncated { expected, found }
}

/// Least elements of a buffer for which memory is asked that comes as zeros.
const MIN_ZEROED_ELEMENTS: usize = 128;

/// Members that are converted at a time.
const BLOCK_ELEMENTS: usize = 256;
/// Bytes of such members.
const BLOCK_BYTES: usize = 16 * BLOCK_ELEMENTS;

/// Converts members that are not the number that they become.
fn convert_column<'a, T: Number>(
    plan: &NumberPlan,
    column: MemberColumn<'_>,
    mut into: impl Iterator<Item = &'a mut T>,
    conversion: ConversionPolicy,
) -> Result<(), ConvertError> {
    let size = plan.input_size();
    if column.member_size() != size {
        return Err(short(size, column.member_size()));
    }
    let mut parts = column.member_slices();
    if size > BLOCK_BYTES / BLOCK_ELEMENTS {
        let mut pairs = parts.zip(&mut into);
        return pairs.try_for_each(|(element, into)| plan.convert(element, bytemuck::bytes_of_mut(into), conversion));
    }
    let (mut gathered, mut converted) = ([0; BLOCK_BYTES], [T::default(); BLOCK_ELEMENTS]);
    loop {
        let room = gathered.chunks_exact_mut(size).take(BLOCK_ELEMENTS);
        let n = room.zip(&mut parts).map(|(to, element)| to.copy_from_slice(element)).count();
        if n == 0 {
            return Ok(());
        }
        plan.convert(&gathered[..n * size], bytemuck::cast_slice_mut(&mut converted[..n]), conversion)?;
        converted[..n].iter().zip(&mut into).for_each(|(value, into)| *into = *value);
    }
}

macro_rules! number {
    ($($t:ident)*) => {$(
        impl H5Type for $t {
            type Decoder = NumberCodec;
            type Encoder = NumberCodec;

            fn datatype() -> Datatype {
                $t::NATIVE.datatype(ByteOrder::Little)
            }

            fn placeholder() -> Self {
                $t::default()
            }

            fn try_alloc_buffer(n: usize) -> Option<Vec<Self>> {
                match n {
                    // Memory that comes as zeros takes longer where it is little.
                    0..MIN_ZEROED_ELEMENTS => Some(std::iter::repeat_n(std::hint::black_box(0 as $t), n).collect()),
                    _ => bytemuck::allocation::try_zeroed_vec(n).ok(),
                }
            }

            fn decoder(file: &Datatype) -> Result<NumberCodec, ConvertError> {
                decoder::<$t>(file)
            }

            #[inline]
            fn decode(
                decoder: &NumberCodec,
                element: &[u8],
                into: &mut Self,
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                if decoder.0.is_copy() {
                    let bytes = element.try_into().map_err(|_| short(size_of::<$t>(), element.len()))?;
                    *into = $t::from_ne_bytes(bytes);
                } else if element.len() == decoder.0.input_size() {
                    decoder.0.convert(element, bytemuck::bytes_of_mut(into), context.conversion())?;
                } else {
                    return Err(short(decoder.0.input_size(), element.len()));
                }
                Ok(())
            }

            fn decode_slice(
                decoder: &NumberCodec,
                elements: &[u8],
                _size: usize,
                into: &mut [Self],
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                let expected = into.len().saturating_mul(decoder.0.input_size());
                if elements.len() != expected {
                    return Err(short(expected, elements.len()));
                }
                decoder.0.convert(elements, bytemuck::cast_slice_mut(into), context.conversion())
            }

            fn decode_column<'a>(
                decoder: &NumberCodec,
                column: MemberColumn<'_>,
                mut into: impl Iterator<Item = &'a mut Self>,
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                if !decoder.0.is_copy() {
                    return convert_column(&decoder.0, column, into, context.conversion());
                }
                let elements = column.member_arrays().ok_or_else(|| short(size_of::<$t>(), column.member_size()))?;
                elements.zip(&mut into).for_each(|(element, into)| *into = $t::from_ne_bytes(*element));
                Ok(())
            }

            fn as_stored_mut<'a>(decoder: &NumberCodec, into: &'a mut [Self]) -> Option<&'a mut [u8]> {
                decoder.0.is_copy().then(|| bytemuck::cast_slice_mut(into))
            }

            fn encoder(file: &Datatype) -> Result<NumberCodec, ConvertError> {
                encoder::<$t>(file)
            }

            #[inline]
            fn encode(
                &self,
                encoder: &NumberCodec,
                element: &mut [u8],
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                if element.len() != encoder.0.output_size() {
                    return Err(short(encoder.0.output_size(), element.len()));
                }
                if encoder.0.is_copy() {
                    element.copy_from_slice(&self.to_ne_bytes());
                } else {
                    encoder.0.convert(bytemuck::bytes_of(self), element, context.conversion())?;
                }
                Ok(())
            }

            fn encode_slice(
                encoder: &NumberCodec,
                values: &[Self],
                elements: &mut [u8],
                _size: usize,
                context: ConversionContext<'_>,
            ) -> Result<(), ConvertError> {
                let expected = values.len().saturating_mul(encoder.0.output_size());
                if elements.len() != expected {
                    return Err(short(expected, elements.len()));
                }
                encoder.0.convert(bytemuck::cast_slice(values), elements, context.conversion())
            }

            fn may_refuse(encoder: &NumberCodec) -> bool {
                !encoder.0.is_lossless()
            }

            fn as_stored_with_encoder<'a>(encoder: &NumberCodec, values: &'a [Self]) -> Option<&'a [u8]> {
                encoder.0.is_copy().then(|| bytemuck::cast_slice(values))
            }

            fn as_stored<'a>(file: &Datatype, values: &'a [Self]) -> Option<&'a [u8]> {
                $t::NATIVE.matches(file).then(|| bytemuck::cast_slice(values))
            }
        }
    )*};
}

number! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }
