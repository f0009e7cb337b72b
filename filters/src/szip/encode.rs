//! Coded blocks from samples, with the choices that libaec makes.

use super::coding::{REST_OF_SEGMENT, SEGMENT, SzipCoding};
use crate::bit_io::BitWriter;

/// Appends the stream for samples.
pub(super) fn encode(coding: &SzipCoding, input: &[u8], output: &mut Vec<u8>) {
    let padded = coding.blocks_per_line() * coding.samples_per_block;
    let mut encoder = SzipEncoder { coding, writer: BitWriter::new(output), k: 0 };
    let mut line = Vec::with_capacity(padded);
    for bytes in input.chunks(coding.samples_per_line * coding.sample_bytes()) {
        line.clear();
        line.extend(bytes.chunks_exact(coding.sample_bytes()).map(|bytes| coding.load_sample(bytes)));
        let padding = if coding.differences { line.last().copied().unwrap_or_default() } else { 0 };
        line.resize(padded, padding);
        let mut reference = None;
        if coding.differences {
            reference = line.first().copied();
            to_differences(coding.max_sample(), &mut line);
        }
        encoder.encode_line(&line, reference);
    }
    encoder.writer.finish();
}

/// Replaces all samples but the first, which becomes zero, by differences; see `SzipDecoder::undo_differences`.
fn to_differences(largest: u32, line: &mut [u32]) {
    let Some((first, rest)) = line.split_first_mut() else { return };
    let mut last = std::mem::take(first);
    for sample in rest {
        let value = *sample;
        let room = last.min(largest - last);
        *sample = match (value >= last, value.abs_diff(last)) {
            (true, up) if up <= room => up * 2,
            (false, down) if down <= room => down * 2 - 1,
            (true, up) => last.min(room) + up,
            (false, down) => (largest - last).min(room) + down,
        };
        last = value;
    }
}

struct SzipEncoder<'a> {
    coding: &'a SzipCoding,
    writer: BitWriter<'a>,
    /// The split of the block before.
    k: u32,
}

/// Zero blocks that are not written yet.
#[derive(Default)]
struct ZeroRun {
    blocks: usize,
    reference: Option<u32>,
}

impl SzipEncoder<'_> {
    /// Appends the blocks of a scanline; `reference` is its first sample if the others are differences.
    fn encode_line(&mut self, line: &[u32], reference: Option<u32>) {
        let mut run = ZeroRun::default();
        let blocks = self.coding.blocks_per_line();
        for (i, block) in line.chunks_exact(self.coding.samples_per_block).enumerate() {
            let reference = reference.filter(|_| i == 0);
            if block.iter().any(|sample| *sample != 0) {
                self.write_zero_run(std::mem::take(&mut run), false);
                self.encode_block(block, reference);
                continue;
            }
            run.blocks += 1;
            run.reference = run.reference.or(reference);
            if i + 1 == blocks || (i + 1) % SEGMENT == 0 {
                self.write_zero_run(std::mem::take(&mut run), true);
            }
        }
    }

    fn write_reference(&mut self, reference: Option<u32>) {
        if let Some(sample) = reference {
            self.writer.write_bits(u64::from(sample), self.coding.bits_per_sample);
        }
    }

    fn write_zero_run(&mut self, run: ZeroRun, ends_segment: bool) {
        if run.blocks == 0 {
            return;
        }
        self.writer.write_bits(0, self.coding.id_bits() + 1);
        self.write_reference(run.reference);
        let number = match run.blocks {
            blocks if blocks < REST_OF_SEGMENT => blocks - 1,
            _ if ends_segment => REST_OF_SEGMENT - 1,
            blocks => blocks,
        };
        self.writer.write_unary(number as u32);
    }

    fn encode_block(&mut self, block: &[u32], reference: Option<u32>) {
        let coded = block.get(usize::from(reference.is_some())..).unwrap_or_default();
        let id_bits = self.coding.id_bits();
        let uncoded = coded.len() as u64 * u64::from(self.coding.bits_per_sample);
        let (k, split) = self.best_split(coded);
        self.k = k;
        let pairs = 1 + block.chunks_exact(2).map(|pair| second_extension_code(pair) + 1).sum::<u64>();
        if split < uncoded && split < pairs {
            self.writer.write_bits(u64::from(k + 1), id_bits);
            self.write_reference(reference);
            coded.iter().for_each(|sample| self.writer.write_unary(sample >> k));
            if k > 0 {
                coded.iter().for_each(|sample| self.writer.write_bits(u64::from(*sample), k));
            }
        } else if uncoded <= pairs {
            self.writer.write_bits(u64::MAX, id_bits);
            self.write_reference(reference);
            coded.iter().for_each(|sample| self.writer.write_bits(u64::from(*sample), self.coding.bits_per_sample));
        } else {
            self.writer.write_bits(1, id_bits + 1);
            self.write_reference(reference);
            block.chunks_exact(2).for_each(|pair| self.writer.write_unary(second_extension_code(pair) as u32));
        }
    }

    /// The split that takes the fewest bits, and how many it takes. There is one minimum, and it is seldom
    /// far from that of the block before.
    fn best_split(&self, coded: &[u32]) -> (u32, u64) {
        let max_k = (1 << self.coding.id_bits()) - 3;
        let bits = |k: u32| coded.iter().map(|sample| u64::from(sample >> k) + u64::from(k + 1)).sum::<u64>();
        let mut best = (self.k, bits(self.k));
        while best.0 < max_k {
            match bits(best.0 + 1) {
                fewer if fewer < best.1 => best = (best.0 + 1, fewer),
                _ => break,
            }
        }
        while best.0 > 0 {
            match bits(best.0 - 1) {
                fewer if fewer < best.1 => best = (best.0 - 1, fewer),
                _ => break,
            }
        }
        best
    }
}

/// The number of a pair of samples: pairs are counted by their sum, then by the second sample.
fn second_extension_code(pair: &[u32]) -> u64 {
    let sum = pair.iter().map(|sample| u64::from(*sample)).sum::<u64>();
    sum * (sum + 1) / 2 + u64::from(pair.last().copied().unwrap_or_default())
}
