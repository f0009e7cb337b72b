//! The twenty parameters of scaleoffset.

use h5live_model::{ByteOrder, Datatype, FillValue, Sign};

use crate::params::{param, param_to_usize};
use crate::{FilterFault, FilterTarget};

const PARAMS: usize = 20;
const SCALE_TYPE: usize = 0;
const SCALE_FACTOR: usize = 1;
const ELEMENTS: usize = 2;
const CLASS: usize = 3;
const SIZE: usize = 4;
const SIGN: usize = 5;
const ORDER: usize = 6;
const FILL_DEFINED: usize = 7;
const FILL: usize = 8;

/// Scale type: the factor is a number of decimal digits.
const DECIMAL: u32 = 0;
/// Scale type: integers; the factor is a number of bits, or zero.
const INTEGER: u32 = 2;

/// The decoded parameters.
pub(super) struct ScaleOffsetParams {
    pub class: ScaleOffsetClass,
    element_count: usize,
    /// Bytes of an element.
    pub element_bytes: usize,
    big_endian: bool,
    /// The fill value's bits, if there is one.
    pub fill: Option<u64>,
}

/// The kind of packed numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ScaleOffsetClass {
    /// Integers of 1, 2, 4 or 8 bytes, packed into `bits` bits, or as few as possible if that is zero.
    Integer { signed: bool, bits: u32 },
    /// Floats of 4 or 8 bytes, stored with `digits` decimal places.
    Float { digits: i32 },
}

impl ScaleOffsetParams {
    pub fn parse(params: &[u32]) -> Result<Self, FilterFault> {
        if params.len() != PARAMS {
            return Err(FilterFault::MissingParameter { index: params.len().min(PARAMS) });
        }
        let at = |index| param(params, index);
        let fault = |index| param(params, index).map(|value| FilterFault::InvalidParameter { index, value });
        let flag = |index| match param(params, index)? {
            value @ (0 | 1) => Ok(value == 1),
            value => Err(FilterFault::InvalidParameter { index, value }),
        };
        let size = at(SIZE)?;
        let factor = at(SCALE_FACTOR)?.cast_signed();
        let class = match (at(CLASS)?, size) {
            (0, 1 | 2 | 4 | 8) if at(SCALE_TYPE)? == INTEGER => {
                let bits = factor.max(0).unsigned_abs();
                if bits > size * 8 {
                    return Err(fault(SCALE_FACTOR)?);
                }
                ScaleOffsetClass::Integer { signed: flag(SIGN)?, bits }
            }
            (1, 4 | 8) if at(SCALE_TYPE)? == DECIMAL => ScaleOffsetClass::Float { digits: factor },
            (0, 1 | 2 | 4 | 8) | (1, 4 | 8) => return Err(fault(SCALE_TYPE)?),
            (0 | 1, _) => return Err(fault(SIZE)?),
            _ => return Err(fault(CLASS)?),
        };
        let low = u64::from(at(FILL)?) | u64::from(at(FILL + 1)?) << 32;
        let fill = flag(FILL_DEFINED)?.then_some(low & crate::bit_io::ones(size * 8));
        Ok(ScaleOffsetParams {
            class,
            element_count: param_to_usize(at(ELEMENTS)?),
            element_bytes: param_to_usize(size),
            big_endian: flag(ORDER)?,
            fill,
        })
    }

    /// All parameters, from the scale type and the scale factor.
    pub fn complete_params(params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let not_applicable = FilterFault::AppliesOnlyTo("integers of 1, 2, 4 or 8 bytes and floats of 4 or 8");
        let (class, size, order, sign) = match target.datatype {
            Datatype::Integer(t) if matches!(t.size, 1 | 2 | 4 | 8) => (0, t.size, t.order, t.sign == Sign::Signed),
            Datatype::Float(t) if matches!(t.size, 4 | 8) => (1, t.size, t.order, false),
            _ => return Err(not_applicable),
        };
        let big_endian = match order {
            ByteOrder::Little => false,
            ByteOrder::Big => true,
            ByteOrder::Vax => return Err(not_applicable),
        };
        let elements = target.chunk_element_count().ok_or(FilterFault::AppliesOnlyTo("chunks of less than 4 GiB"))?;
        let fill = match target.fill {
            FillValue::Undefined => None,
            FillValue::Default => Some(0),
            FillValue::Value(bytes) => {
                let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
                let bytes = bytes
                    .get(..param_to_usize(size))
                    .ok_or(FilterFault::AppliesOnlyTo("fill values of the datatype"))?;
                Some(if big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
            }
        };
        let value = fill.unwrap_or_default();
        let mut all = vec![param(params, SCALE_TYPE)?, param(params, SCALE_FACTOR)?, elements, class, size];
        all.extend([u32::from(sign), u32::from(big_endian), u32::from(fill.is_some())]);
        all.extend([value as u32, (value >> 32) as u32]);
        all.resize(PARAMS, 0);
        ScaleOffsetParams::parse(&all)?;
        Ok(all)
    }

    /// Whether integers are packed into as many bits as they have.
    pub fn is_identity(&self) -> bool {
        matches!(self.class, ScaleOffsetClass::Integer { bits, .. } if bits == self.element_bits())
    }

    /// Bits of an element.
    pub fn element_bits(&self) -> u32 {
        // The size is at most 8.
        self.element_bytes as u32 * 8
    }

    /// Bytes of all elements.
    pub fn chunk_bytes(&self) -> Option<usize> {
        self.element_count.checked_mul(self.element_bytes)
    }

    /// The values in a chunk, zero-extended.
    pub fn element_values<'a>(&self, chunk: &'a [u8]) -> impl Iterator<Item = u64> + Clone + use<'a> {
        let big_endian = self.big_endian;
        chunk.chunks_exact(self.element_bytes).map(move |bytes| {
            let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
            if big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
        })
    }

    /// Sets the values of a chunk one after the other.
    pub fn set_element_values(
        &self,
        chunk: &mut [u8],
        mut next: impl FnMut() -> Result<u64, FilterFault>,
    ) -> Result<(), FilterFault> {
        for bytes in chunk.chunks_exact_mut(self.element_bytes) {
            for (to, byte) in bytes.iter_mut().zip(next()?.to_le_bytes()) {
                *to = byte;
            }
            if self.big_endian {
                bytes.reverse();
            }
        }
        Ok(())
    }

    /// Turns little-endian values into those of the dataset, or back.
    pub fn swap_if_big_endian(&self, chunk: &mut [u8]) {
        if self.big_endian {
            chunk.chunks_exact_mut(self.element_bytes).for_each(<[u8]>::reverse);
        }
    }
}
