//! Integers less the smallest one.

use super::packing::{ScaleOffsetPacking, bits_for_count};
use super::params::{ScaleOffsetClass, ScaleOffsetParams};
use crate::FilterFault;
use crate::bit_io::{BitReader, BitWriter, ones};

/// Chooses bits and smallest value as libhdf5 does.
pub(super) fn find_packing(params: &ScaleOffsetParams, signed: bool, input: &[u8]) -> ScaleOffsetPacking {
    let width = params.element_bits();
    // Flipping the sign bit turns the order of signed integers into that of unsigned ones.
    let bias = if signed { 1 << (width - 1) } else { 0 };
    let values = params.element_values(input).filter(|value| Some(*value) != params.fill).map(|value| value ^ bias);
    // If there is nothing but fill values, libhdf5 takes zero for the smallest one.
    let smallest = values.clone().min().unwrap_or(bias);
    let largest = values.max().unwrap_or(bias);
    let minimum = (smallest ^ bias) << (64 - width);
    let minimum =
        if signed { (minimum.cast_signed() >> (64 - width)).cast_unsigned() } else { minimum >> (64 - width) };

    let span = largest - smallest;
    let bits = match params.class {
        ScaleOffsetClass::Integer { bits, .. } if bits != 0 => bits,
        _ if span > ones(width) - 2 => {
            let kept = signed && width == 8 && params.fill.is_none();
            return ScaleOffsetPacking { bits: width, minimum: if kept { minimum } else { 0 } };
        }
        _ => bits_for_count(span + 1 + u64::from(params.fill.is_some())),
    };
    ScaleOffsetPacking { bits, minimum }
}

/// Packs the values.
pub(super) fn reduce_values(
    params: &ScaleOffsetParams,
    packing: &ScaleOffsetPacking,
    input: &[u8],
    writer: &mut BitWriter<'_>,
) {
    for value in params.element_values(input) {
        let fill = Some(value) == params.fill;
        let value = if fill { ones(packing.bits) } else { value.wrapping_sub(packing.minimum) };
        writer.write_bits(value, packing.bits);
    }
}

/// Undoes [`reduce_values`].
pub(super) fn restore_values(
    params: &ScaleOffsetParams,
    packing: &ScaleOffsetPacking,
    reader: &mut BitReader<'_>,
    output: &mut [u8],
) -> Result<(), FilterFault> {
    let all_ones = ones(packing.bits);
    params.set_element_values(output, || {
        let value = reader.read_bits(packing.bits)?;
        Ok(match params.fill {
            Some(fill) if value == all_ones => fill,
            _ => value.wrapping_add(packing.minimum),
        })
    })
}
