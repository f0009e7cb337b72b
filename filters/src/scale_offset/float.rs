//! Floats, scaled and rounded, less the smallest one. The arithmetic is that of the stored type, step by
//! step as libhdf5 does it, so that both produce the same bytes.

use std::ops::{Add, Div, Mul, Sub};

use super::packing::{ScaleOffsetPacking, bits_for_count};
use super::params::{ScaleOffsetClass, ScaleOffsetParams};
use crate::FilterFault;
use crate::bit_io::{BitReader, BitWriter, ones};

/// The two floating-point types.
trait ScaledFloat:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    const BITS: u32;
    const ZERO: Self;
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
    fn power_of_ten(exponent: i32) -> Self;
    fn abs(self) -> Self;
    fn to_f64(self) -> f64;
    fn is_finite(self) -> bool;
    /// Rounds half away from zero.
    fn round_to_i64(self) -> i64;
    fn from_same_width_integer(value: i64) -> Self;
}

macro_rules! real {
    ($float:ty, $bits:ty, $integer:ty) => {
        impl ScaledFloat for $float {
            const BITS: u32 = <$bits>::BITS;
            const ZERO: Self = 0.0;
            fn from_bits(bits: u64) -> Self {
                <$float>::from_bits(bits as $bits)
            }
            fn to_bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn power_of_ten(exponent: i32) -> Self {
                <$float>::powf(10.0, exponent as $float)
            }
            fn abs(self) -> Self {
                self.abs()
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            fn round_to_i64(self) -> i64 {
                self.round() as i64
            }
            fn from_same_width_integer(value: i64) -> Self {
                value as $integer as $float
            }
        }
    };
}

real!(f32, u32, i32);
real!(f64, u64, i64);

/// Decimal places that are kept.
fn decimal_digits(params: &ScaleOffsetParams) -> i32 {
    match params.class {
        ScaleOffsetClass::Float { digits } => digits,
        ScaleOffsetClass::Integer { .. } => 0,
    }
}

/// Chooses bits and the smallest value as libhdf5 does. A chunk with values that have no scaled integer (infinities,
/// not-a-numbers, overflows) is stored unchanged instead.
pub(super) fn find_packing(params: &ScaleOffsetParams, input: &[u8]) -> ScaleOffsetPacking {
    if params.element_bytes == 4 {
        find_packing_of::<f32>(params, input)
    } else {
        find_packing_of::<f64>(params, input)
    }
}

fn find_packing_of<R: ScaledFloat>(params: &ScaleOffsetParams, input: &[u8]) -> ScaleOffsetPacking {
    let unpacked = ScaleOffsetPacking { bits: R::BITS, minimum: 0 };
    let scale = R::power_of_ten(decimal_digits(params));
    let fill = params.fill.map(R::from_bits);
    let near = 10f64.powf(-f64::from(decimal_digits(params)));
    let mut range: Option<(R, R)> = None;
    for value in params.element_values(input).map(R::from_bits) {
        if !(value * scale).is_finite() {
            return unpacked;
        }
        if fill.is_some_and(|fill| (value - fill).to_f64().abs() < near) {
            continue;
        }
        range = Some(match range {
            None => (value, value),
            Some((min, max)) => (if value < min { value } else { min }, if value > max { value } else { max }),
        });
    }
    let (min, max) = range.unwrap_or((R::ZERO, R::ZERO));
    let span = max * scale - min * scale;
    if !span.is_finite() || span.to_f64() >= ones(R::BITS - 1) as f64 {
        return unpacked;
    }
    let values = span.round_to_i64().cast_unsigned() + 1;
    let bits = bits_for_count(values + u64::from(fill.is_some())).min(R::BITS);
    ScaleOffsetPacking { bits, minimum: min.to_bits() }
}

/// Packs the values.
pub(super) fn reduce_values(
    params: &ScaleOffsetParams,
    packing: &ScaleOffsetPacking,
    input: &[u8],
    writer: &mut BitWriter<'_>,
) {
    if params.element_bytes == 4 {
        reduce_values_of::<f32>(params, packing, input, writer)
    } else {
        reduce_values_of::<f64>(params, packing, input, writer)
    }
}

fn reduce_values_of<R: ScaledFloat>(
    params: &ScaleOffsetParams,
    packing: &ScaleOffsetPacking,
    input: &[u8],
    writer: &mut BitWriter<'_>,
) {
    let scale = R::power_of_ten(decimal_digits(params));
    let near = R::power_of_ten(-decimal_digits(params));
    let fill = params.fill.map(R::from_bits);
    let min = R::from_bits(packing.minimum);
    for value in params.element_values(input).map(R::from_bits) {
        let fill = fill.is_some_and(|fill| (value - fill).abs() < near);
        let value =
            if fill { ones(packing.bits) } else { (value * scale - min * scale).round_to_i64().cast_unsigned() };
        writer.write_bits(value, packing.bits);
    }
}

/// Undoes [`reduce_values`], except for the rounding.
pub(super) fn restore_values(
    params: &ScaleOffsetParams,
    packing: &ScaleOffsetPacking,
    reader: &mut BitReader<'_>,
    output: &mut [u8],
) -> Result<(), FilterFault> {
    if params.element_bytes == 4 {
        restore_values_of::<f32>(params, packing, reader, output)
    } else {
        restore_values_of::<f64>(params, packing, reader, output)
    }
}

fn restore_values_of<R: ScaledFloat>(
    params: &ScaleOffsetParams,
    packing: &ScaleOffsetPacking,
    reader: &mut BitReader<'_>,
    output: &mut [u8],
) -> Result<(), FilterFault> {
    let scale = R::power_of_ten(decimal_digits(params));
    let min = R::from_bits(packing.minimum);
    let all_ones = ones(packing.bits);
    params.set_element_values(output, || {
        let value = reader.read_bits(packing.bits)?;
        Ok(match params.fill {
            Some(fill) if value == all_ones => fill,
            _ => (R::from_same_width_integer(value.cast_signed()) / scale + min).to_bits(),
        })
    })
}
