//! Filter 3, fletcher32: four bytes of checksum after the data, little-endian.

use crate::{Decoded, Encoded, Fault, Filter};

/// Filter 3.
pub(crate) struct Fletcher32;

/// Words summed before the sums are taken into 64 bits: the weighted sum of so many words fits 32 bits.
const BLOCK: u32 = 256;

/// The Fletcher checksum of 16-bit big-endian words; an odd last byte counts as the high byte of a word.
/// The sums are kept modulo 65535 with 65535 standing for zero, except that no data but zeros has sum 0.
pub fn checksum(data: &[u8]) -> u32 {
    let (mut low, mut high) = (0u64, 0u64);
    for block in data.chunks(BLOCK as usize * 2) {
        let (mut sum, mut weighted) = (0u32, 0u32);
        let words = block.chunks_exact(2);
        let odd = words.remainder();
        let count = (words.len() + odd.len()) as u32;
        for (weight, word) in (1..=count).rev().zip(words) {
            let word = word.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
            sum += word;
            weighted += weight * word;
        }
        if let [byte] = odd {
            sum += u32::from(*byte) << 8;
            weighted += u32::from(*byte) << 8;
        }
        high = fold(high + low * u64::from(count) + u64::from(weighted));
        low = fold(low + u64::from(sum));
    }
    (high << 16 | low) as u32
}

/// The sum modulo 65535, but 65535 in place of 0 unless the sum is 0.
fn fold(sum: u64) -> u64 {
    if sum == 0 { 0 } else { (sum - 1) % 65535 + 1 }
}

/// As libraries before 1.6.3 stored the checksum on little-endian machines.
fn swapped_in_halves(checksum: u32) -> u32 {
    checksum.rotate_left(16).swap_bytes()
}

impl Filter for Fletcher32 {
    fn id(&self) -> u16 {
        3
    }

    fn name(&self) -> &str {
        "fletcher32"
    }

    fn decode(&self, _: &[u32], input: &[u8], _: &mut [u8]) -> Result<Decoded, Fault> {
        let (data, stored) = input.split_last_chunk::<4>().ok_or(Fault::Truncated)?;
        let stored = u32::from_le_bytes(*stored);
        let computed = checksum(data);
        if stored != computed && stored != swapped_in_halves(computed) {
            return Err(Fault::Checksum { stored, computed });
        }
        Ok(Decoded::Input(0..data.len()))
    }

    fn encode(&self, _: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<Encoded, Fault> {
        output.reserve(input.len() + 4);
        output.extend_from_slice(input);
        output.extend_from_slice(&checksum(input).to_le_bytes());
        Ok(Encoded::Output)
    }
}
