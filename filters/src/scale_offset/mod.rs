//! Filter 6, scaleoffset: the differences of numbers from the smallest one, in as few bits as they need. Floats are
//! first multiplied by a power of ten and rounded.
//!
//! A chunk is the number of bits (4 bytes), the size of the smallest value (1 byte, always 8), the smallest value (8
//! bytes), 8 unused bytes, all little-endian; then the differences, packed. All ones stand for the fill value. If the
//! number of bits is that of the type, the values follow unchanged, but little-endian.

mod float;
mod integer;
mod packing;
mod params;

use self::packing::ScaleOffsetPacking;
use self::params::{ScaleOffsetClass, ScaleOffsetParams};
use crate::bit_io::{BitReader, BitWriter};
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 6.
pub(crate) struct ScaleOffset;

/// Bytes before the packed differences.
const HEADER_BYTES: usize = 21;

impl Filter for ScaleOffset {
    fn id(&self) -> u16 {
        6
    }

    fn name(&self) -> &str {
        "scaleoffset"
    }

    /// Floats are rounded, and integers are cut that need more bits than were given.
    fn is_lossy(&self, params: &[u32]) -> bool {
        ScaleOffsetParams::parse(params).is_ok_and(|params| match params.class {
            ScaleOffsetClass::Integer { bits, .. } => bits > 0 && bits < params.element_bits(),
            ScaleOffsetClass::Float { .. } => true,
        })
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let params = ScaleOffsetParams::parse(params)?;
        if params.is_identity() {
            return Ok(DecodeOutcome::InputRange(0..input.len()));
        }
        let limit = output.len();
        let bytes = params.chunk_bytes().filter(|bytes| *bytes <= limit).ok_or(FilterFault::TooLarge { limit })?;
        let output = output.get_mut(..bytes).unwrap_or_default();

        let (bits, rest) = input.split_first_chunk::<4>().ok_or(FilterFault::Truncated)?;
        let bits = u32::from_le_bytes(*bits);
        let (width, rest) = rest.split_first().ok_or(FilterFault::Truncated)?;
        let minimum = rest.get(..usize::from(*width).min(8)).ok_or(FilterFault::Truncated)?;
        let minimum = minimum.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        // A chunk whose values are all the smallest one has no packed bytes.
        let packed = input.get(HEADER_BYTES..).unwrap_or_default();

        if bits == params.element_bits() {
            let values = packed.get(..bytes).ok_or(FilterFault::Truncated)?;
            output.copy_from_slice(values);
            params.swap_if_big_endian(output);
            return Ok(DecodeOutcome::Decoded(bytes));
        }
        if bits > params.element_bits() {
            return Err(FilterFault::Corrupt("number of bits"));
        }
        let packing = ScaleOffsetPacking { bits, minimum };
        let mut reader = BitReader::new(packed);
        match params.class {
            ScaleOffsetClass::Integer { .. } => integer::restore_values(&params, &packing, &mut reader, output)?,
            ScaleOffsetClass::Float { .. } => float::restore_values(&params, &packing, &mut reader, output)?,
        }
        Ok(DecodeOutcome::Decoded(bytes))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        let params = ScaleOffsetParams::parse(params)?;
        if params.is_identity() {
            return Ok(EncodeOutcome::AppliedWithoutChange);
        }
        if params.chunk_bytes() != Some(input.len()) {
            return Err(FilterFault::Corrupt("number of elements"));
        }
        let packing = match params.class {
            ScaleOffsetClass::Integer { signed, .. } => integer::find_packing(&params, signed, input),
            ScaleOffsetClass::Float { .. } => float::find_packing(&params, input),
        };
        output.extend_from_slice(&packing.bits.to_le_bytes());
        output.push(8);
        output.extend_from_slice(&packing.minimum.to_le_bytes());
        output.resize(HEADER_BYTES, 0);
        if packing.bits == params.element_bits() {
            output.extend_from_slice(input);
            params.swap_if_big_endian(output.get_mut(HEADER_BYTES..).unwrap_or_default());
            return Ok(EncodeOutcome::Encoded);
        }
        let mut writer = BitWriter::new(output);
        match params.class {
            ScaleOffsetClass::Integer { .. } => integer::reduce_values(&params, &packing, input, &mut writer),
            ScaleOffsetClass::Float { .. } => float::reduce_values(&params, &packing, input, &mut writer),
        }
        // Where the last bit ends a byte, libhdf5 stores one byte more.
        if !writer.finish() {
            output.push(0);
        }
        Ok(EncodeOutcome::Encoded)
    }

    fn complete_params(&self, params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        ScaleOffsetParams::complete_params(params, target)
    }
}
