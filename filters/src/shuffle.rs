//! Filter 2, shuffle: all first bytes of the elements, then all second bytes, and so on. Parameter 0 is the
//! size of an element; bytes that fill no element stay at the end as they are.

use crate::params::{count, param};
use crate::{Decoded, Encoded, Fault, Filter, Target};

/// Filter 2.
pub(crate) struct Shuffle;

/// Elements that are moved together when their size has no path of its own, so that they stay in the cache.
const TILE: usize = 256;

/// Gathers byte `i` of every element into run `i`. Both slices have the same length.
pub(crate) fn shuffle(size: usize, input: &[u8], output: &mut [u8]) {
    let elements = input.len().checked_div(size).unwrap_or(0);
    if size < 2 || elements < 2 || input.len() != output.len() {
        return output.copy_from_slice(input);
    }
    let (input, input_rest) = input.split_at(elements * size);
    let (output, output_rest) = output.split_at_mut(elements * size);
    output_rest.copy_from_slice(input_rest);
    match size {
        2 => gather::<2>(elements, input, output),
        4 => gather::<4>(elements, input, output),
        8 => gather::<8>(elements, input, output),
        16 => gather::<16>(elements, input, output),
        _ => gather_any(size, elements, input, output),
    }
}

/// Undoes [`shuffle`].
pub(crate) fn unshuffle(size: usize, input: &[u8], output: &mut [u8]) {
    let elements = input.len().checked_div(size).unwrap_or(0);
    if size < 2 || elements < 2 || input.len() != output.len() {
        return output.copy_from_slice(input);
    }
    let (input, input_rest) = input.split_at(elements * size);
    let (output, output_rest) = output.split_at_mut(elements * size);
    output_rest.copy_from_slice(input_rest);
    match size {
        2 => scatter::<2>(elements, input, output),
        4 => scatter::<4>(elements, input, output),
        8 => scatter::<8>(elements, input, output),
        16 => scatter::<16>(elements, input, output),
        _ => scatter_any(size, elements, input, output),
    }
}

fn gather<const SIZE: usize>(elements: usize, input: &[u8], output: &mut [u8]) {
    let (input, _) = input.as_chunks::<SIZE>();
    for (tile, input) in input.chunks(TILE).enumerate() {
        for (i, run) in output.chunks_exact_mut(elements).enumerate().take(SIZE) {
            let run = run.get_mut(tile * TILE..).unwrap_or_default();
            for (byte, element) in run.iter_mut().zip(input) {
                *byte = element.get(i).copied().unwrap_or_default();
            }
        }
    }
}

fn scatter<const SIZE: usize>(elements: usize, input: &[u8], output: &mut [u8]) {
    let (output, _) = output.as_chunks_mut::<SIZE>();
    for (tile, output) in output.chunks_mut(TILE).enumerate() {
        for (i, run) in input.chunks_exact(elements).enumerate().take(SIZE) {
            let run = run.get(tile * TILE..).unwrap_or_default();
            for (element, byte) in output.iter_mut().zip(run) {
                if let Some(to) = element.get_mut(i) {
                    *to = *byte;
                }
            }
        }
    }
}

fn gather_any(size: usize, elements: usize, input: &[u8], output: &mut [u8]) {
    for (tile, input) in input.chunks(TILE * size).enumerate() {
        for (i, run) in output.chunks_exact_mut(elements).enumerate() {
            let run = run.get_mut(tile * TILE..).unwrap_or_default();
            for (byte, from) in run.iter_mut().zip(input.iter().skip(i).step_by(size)) {
                *byte = *from;
            }
        }
    }
}

fn scatter_any(size: usize, elements: usize, input: &[u8], output: &mut [u8]) {
    for (tile, output) in output.chunks_mut(TILE * size).enumerate() {
        for (i, run) in input.chunks_exact(elements).enumerate() {
            let run = run.get(tile * TILE..).unwrap_or_default();
            for (to, byte) in output.iter_mut().skip(i).step_by(size).zip(run) {
                *to = *byte;
            }
        }
    }
}

/// The size of an element that parameter 0 gives.
fn element_size(params: &[u32]) -> Result<usize, Fault> {
    match param(params, 0)? {
        0 => Err(Fault::Parameter { index: 0, value: 0 }),
        size => Ok(count(size)),
    }
}

impl Filter for Shuffle {
    fn id(&self) -> u16 {
        2
    }

    fn name(&self) -> &str {
        "shuffle"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<Decoded, Fault> {
        let size = element_size(params)?;
        if size == 1 {
            return Ok(Decoded::Input(0..input.len()));
        }
        let limit = output.len();
        let output = output.get_mut(..input.len()).ok_or(Fault::TooLarge { limit })?;
        unshuffle(size, input, output);
        Ok(Decoded::Output(input.len()))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<Encoded, Fault> {
        let size = element_size(params)?;
        if size == 1 {
            return Ok(Encoded::Input);
        }
        output.resize(input.len(), 0);
        shuffle(size, input, output);
        Ok(Encoded::Output)
    }

    fn complete(&self, _: &[u32], target: &Target<'_>) -> Result<Vec<u32>, Fault> {
        match target.datatype.size() {
            0 => Err(Fault::NotApplicable("elements of at least one byte")),
            size => Ok(vec![size]),
        }
    }
}
