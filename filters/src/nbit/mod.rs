//! Filter 5, nbit: only the significant bits of numbers, packed without gaps, each number's most significant
//! bit first. The parameters describe the datatype; see [`NbitLayout`].

mod nbit_layout;

use self::nbit_layout::{NbitLayout, NbitType};
use crate::bit_io::{BitReader, BitWriter};
use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, FilterTarget};

/// Filter 5.
pub(crate) struct Nbit;

impl Filter for Nbit {
    fn id(&self) -> u16 {
        5
    }

    fn name(&self) -> &str {
        "nbit"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let Some(layout) = NbitLayout::parse(params)? else {
            return Ok(DecodeOutcome::InputRange(0..input.len()));
        };
        let limit = output.len();
        let bytes = layout.decoded_bytes().filter(|bytes| *bytes <= limit).ok_or(FilterFault::TooLarge { limit })?;
        let output = output.get_mut(..bytes).unwrap_or_default();
        output.fill(0);
        let mut reader = BitReader::new(input);
        for element in output.chunks_exact_mut(layout.size) {
            unpack_value(&layout.node, element, &mut reader)?;
        }
        Ok(DecodeOutcome::Decoded(bytes))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        let Some(layout) = NbitLayout::parse(params)? else {
            return Ok(EncodeOutcome::AppliedWithoutChange);
        };
        if layout.decoded_bytes() != Some(input.len()) {
            return Err(FilterFault::Corrupt("number of elements"));
        }
        let mut writer = BitWriter::new(output);
        for element in input.chunks_exact(layout.size) {
            pack_value(&layout.node, element, &mut writer);
        }
        // Where the last bit ends a byte, libhdf5 stores one byte more.
        if !writer.finish() {
            output.push(0);
        }
        Ok(EncodeOutcome::Encoded)
    }

    fn complete_params(&self, _: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        NbitLayout::params_for(target)
    }
}

/// Fills the bytes of a value, which are zero, from the stream.
fn unpack_value(node: &NbitType, value: &mut [u8], reader: &mut BitReader<'_>) -> Result<(), FilterFault> {
    match node {
        NbitType::Atom(atom) => {
            for place in atom.bit_spans() {
                let bits = reader.read_bits(place.bits)? as u8;
                if let Some(byte) = value.get_mut(place.byte) {
                    *byte = bits << place.shift;
                }
            }
        }
        NbitType::Bytes(size) => {
            for byte in value.iter_mut().take(*size) {
                *byte = reader.read_bits(8)? as u8;
            }
        }
        NbitType::Array { size, base } => {
            for value in value.chunks_exact_mut(*size) {
                unpack_value(base, value, reader)?;
            }
        }
        NbitType::Compound(members) => {
            for member in members {
                let value = value.get_mut(member.offset..member.offset + member.size).unwrap_or_default();
                unpack_value(&member.node, value, reader)?;
            }
        }
    }
    Ok(())
}

/// Appends the significant bits of a value.
fn pack_value(node: &NbitType, value: &[u8], writer: &mut BitWriter<'_>) {
    match node {
        NbitType::Atom(atom) => {
            for place in atom.bit_spans() {
                let byte = value.get(place.byte).copied().unwrap_or_default();
                writer.write_bits(u64::from(byte >> place.shift), place.bits);
            }
        }
        NbitType::Bytes(size) => value.iter().take(*size).for_each(|byte| writer.write_bits(u64::from(*byte), 8)),
        NbitType::Array { size, base } => value.chunks_exact(*size).for_each(|value| pack_value(base, value, writer)),
        NbitType::Compound(members) => {
            for member in members {
                let value = value.get(member.offset..member.offset + member.size).unwrap_or_default();
                pack_value(&member.node, value, writer);
            }
        }
    }
}
