//! Filter 3, fletcher32: four bytes of checksum after the data, little-endian.

use crate::{DecodeOutcome, EncodeOutcome, Filter, FilterFault};

/// Filter 3.
pub(crate) struct Fletcher32;

/// Words that are summed side by side, and how many rows of them before the sums could overflow 32 bits.
const LANES: usize = 16;
const ROWS: usize = 256;

/// The Fletcher checksum of 16-bit big-endian words; an odd last byte counts as the high byte of a word.
/// The sums are kept modulo 65535 with 65535 standing for zero, except that no data but zeros has sum 0.
pub fn fletcher32_checksum(data: &[u8]) -> u32 {
    let mut sums = FletcherSums::default();
    for block in data.chunks(ROWS * LANES * 2) {
        let (words, odd) = block.as_chunks::<2>();
        let (rows, rest) = words.as_chunks::<LANES>();
        sums.add_rows(rows);
        rest.iter().for_each(|word| sums.add_word(u16::from_be_bytes(*word)));
        odd.iter().for_each(|byte| sums.add_word(u16::from(*byte) << 8));
        sums = FletcherSums { low: fold_sum(sums.low), high: fold_sum(sums.high) };
    }
    (sums.high << 16 | sums.low) as u32
}

/// The sum of the words, and the sum of that sum after each word.
#[derive(Default)]
struct FletcherSums {
    low: u64,
    high: u64,
}

impl FletcherSums {
    fn add_word(&mut self, word: u16) {
        self.low += u64::from(word);
        self.high += self.low;
    }

    /// Adds at most [`ROWS`] rows. In a row, word `l` counts `l` times less than the first one.
    fn add_rows(&mut self, rows: &[[[u8; 2]; LANES]]) {
        let (mut sums, mut weighted) = ([0u32; LANES], [0u32; LANES]);
        for row in rows {
            for ((sum, weighted), word) in sums.iter_mut().zip(&mut weighted).zip(row) {
                *sum += u32::from(u16::from_be_bytes(*word));
                *weighted += *sum;
            }
        }
        let words = (rows.len() * LANES) as u64;
        self.high += words * self.low;
        for (lane, (sum, weighted)) in (0..).zip(sums.into_iter().zip(weighted)) {
            self.low += u64::from(sum);
            self.high += LANES as u64 * u64::from(weighted) - lane * u64::from(sum);
        }
    }
}

/// The sum modulo 65535, but 65535 in place of 0 unless the sum is 0.
fn fold_sum(sum: u64) -> u64 {
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

    fn decode(&self, _: &[u32], input: &[u8], _: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let (data, stored) = input.split_last_chunk::<4>().ok_or(FilterFault::Truncated)?;
        let stored = u32::from_le_bytes(*stored);
        let computed = fletcher32_checksum(data);
        if stored != computed && stored != swapped_in_halves(computed) {
            return Err(FilterFault::Checksum { stored, computed });
        }
        Ok(DecodeOutcome::InputRange(0..data.len()))
    }

    fn encode(&self, _: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        output.reserve(input.len() + 4);
        output.extend_from_slice(input);
        output.extend_from_slice(&fletcher32_checksum(input).to_le_bytes());
        Ok(EncodeOutcome::Encoded)
    }
}
