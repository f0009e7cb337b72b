//! Filter 5, nbit: only the significant bits of numbers, packed without gaps, each number's most significant
//! bit first. The parameters describe the datatype; see [`Layout`].

mod layout;

use self::layout::{Layout, Node};
use crate::bits::{BitReader, BitWriter};
use crate::{Decoded, Encoded, Fault, Filter, Target};

/// Filter 5.
pub(crate) struct Nbit;

impl Filter for Nbit {
    fn id(&self) -> u16 {
        5
    }

    fn name(&self) -> &str {
        "nbit"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<Decoded, Fault> {
        let Some(layout) = Layout::parse(params)? else {
            return Ok(Decoded::Input(0..input.len()));
        };
        let limit = output.len();
        let bytes = layout.bytes().filter(|bytes| *bytes <= limit).ok_or(Fault::TooLarge { limit })?;
        let output = output.get_mut(..bytes).unwrap_or_default();
        output.fill(0);
        let mut reader = BitReader::new(input);
        for element in output.chunks_exact_mut(layout.size) {
            unpack(&layout.node, element, &mut reader)?;
        }
        Ok(Decoded::Output(bytes))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<Encoded, Fault> {
        let Some(layout) = Layout::parse(params)? else {
            return Ok(Encoded::Input);
        };
        if layout.bytes() != Some(input.len()) {
            return Err(Fault::Corrupt("number of elements"));
        }
        let mut writer = BitWriter::new(output);
        for element in input.chunks_exact(layout.size) {
            pack(&layout.node, element, &mut writer);
        }
        // Where the last bit ends a byte, libhdf5 stores one byte more.
        if !writer.finish() {
            output.push(0);
        }
        Ok(Encoded::Output)
    }

    fn complete(&self, _: &[u32], target: &Target<'_>) -> Result<Vec<u32>, Fault> {
        Layout::params(target)
    }
}

/// Fills the bytes of a value, which are zero, from the stream.
fn unpack(node: &Node, value: &mut [u8], reader: &mut BitReader<'_>) -> Result<(), Fault> {
    match node {
        Node::Atom(atom) => {
            for place in atom.places() {
                let bits = reader.take(place.bits)? as u8;
                if let Some(byte) = value.get_mut(place.byte) {
                    *byte = bits << place.shift;
                }
            }
        }
        Node::Bytes(size) => {
            for byte in value.iter_mut().take(*size) {
                *byte = reader.take(8)? as u8;
            }
        }
        Node::Array { size, base } => {
            for value in value.chunks_exact_mut(*size) {
                unpack(base, value, reader)?;
            }
        }
        Node::Compound(members) => {
            for member in members {
                let value = value.get_mut(member.offset..member.offset + member.size).unwrap_or_default();
                unpack(&member.node, value, reader)?;
            }
        }
    }
    Ok(())
}

/// Appends the significant bits of a value.
fn pack(node: &Node, value: &[u8], writer: &mut BitWriter<'_>) {
    match node {
        Node::Atom(atom) => {
            for place in atom.places() {
                let byte = value.get(place.byte).copied().unwrap_or_default();
                writer.put(u64::from(byte >> place.shift), place.bits);
            }
        }
        Node::Bytes(size) => value.iter().take(*size).for_each(|byte| writer.put(u64::from(*byte), 8)),
        Node::Array { size, base } => value.chunks_exact(*size).for_each(|value| pack(base, value, writer)),
        Node::Compound(members) => {
            for member in members {
                let value = value.get(member.offset..member.offset + member.size).unwrap_or_default();
                pack(&member.node, value, writer);
            }
        }
    }
}
