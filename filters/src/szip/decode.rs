//! Samples from a stream of coded blocks.

use super::coding::{REST_OF_SEGMENT, SEGMENT, SzipCoding};
use crate::FilterFault;
use crate::bit_io::BitReader;

/// The largest number that the second extension uses for a pair of samples.
const MAX_PAIR: u32 = 90;

/// Fills `output` with samples.
pub(super) fn decode(coding: &SzipCoding, stream: &[u8], output: &mut [u8]) -> Result<(), FilterFault> {
    if !output.len().is_multiple_of(coding.sample_bytes()) {
        return Err(FilterFault::Corrupt("number of bytes"));
    }
    let mut decoder = SzipDecoder { coding, reader: BitReader::new(stream), line: Vec::new() };
    for line in output.chunks_mut(coding.samples_per_line * coding.sample_bytes()) {
        decoder.decode_line(line.len() / coding.sample_bytes())?;
        if coding.differences {
            decoder.undo_differences();
        }
        for (bytes, sample) in line.chunks_exact_mut(coding.sample_bytes()).zip(&decoder.line) {
            coding.store_sample(*sample, bytes);
        }
    }
    Ok(())
}

struct SzipDecoder<'a> {
    coding: &'a SzipCoding,
    reader: BitReader<'a>,
    /// The samples of the scanline so far. If the others are differences, the first one is a plain value.
    line: Vec<u32>,
}

impl SzipDecoder<'_> {
    /// Reads the blocks of a scanline with `wanted` samples.
    fn decode_line(&mut self, wanted: usize) -> Result<(), FilterFault> {
        let SzipCoding { bits_per_sample: bits, samples_per_block: block, .. } = *self.coding;
        let id_bits = self.coding.id_bits();
        let uncoded = (1 << id_bits) - 1;
        self.line.clear();
        while self.line.len() < wanted {
            let first = self.line.is_empty() && self.coding.differences;
            let end = self.line.len() + block;
            match self.reader.read_bits(id_bits)? as u32 {
                0 => self.decode_low_entropy_block(first)?,
                id if id == uncoded => {
                    for _ in 0..block {
                        self.decode_sample(bits)?;
                    }
                }
                id => {
                    if first {
                        self.decode_sample(bits)?;
                    }
                    self.decode_split_block(id - 1, end - self.line.len())?;
                }
            }
        }
        Ok(())
    }

    fn decode_sample(&mut self, bits: u32) -> Result<(), FilterFault> {
        self.line.push(self.reader.read_bits(bits)? as u32);
        Ok(())
    }

    /// Samples whose low `k` bits are stored apart from the others.
    fn decode_split_block(&mut self, k: u32, count: usize) -> Result<(), FilterFault> {
        let start = self.line.len();
        for _ in 0..count {
            let high = self.reader.read_unary()?;
            self.line.push(high.wrapping_shl(k));
        }
        if k > 0 {
            for sample in self.line.iter_mut().skip(start) {
                *sample |= self.reader.read_bits(k)? as u32;
            }
        }
        Ok(())
    }

    /// Zero blocks, or a block in pairs of samples.
    fn decode_low_entropy_block(&mut self, first: bool) -> Result<(), FilterFault> {
        let SzipCoding { bits_per_sample: bits, samples_per_block: block, .. } = *self.coding;
        let pairs = self.reader.read_bits(1)? == 1;
        let start = self.line.len();
        if first {
            self.decode_sample(bits)?;
        }
        if pairs {
            return self.decode_second_extension(start + block);
        }
        let run = self.reader.read_unary()? as usize + 1;
        let at = start / block;
        let left = self.coding.blocks_per_line() - at;
        let run = match run {
            REST_OF_SEGMENT => left.min(SEGMENT - at % SEGMENT),
            run if run > REST_OF_SEGMENT => run - 1,
            run => run,
        };
        if run > left {
            return Err(FilterFault::Corrupt("run of zero blocks"));
        }
        self.line.resize(start + run * block, 0);
        Ok(())
    }

    /// Pairs up to `end` samples; the first one of the scanline takes part in its pair as a zero.
    fn decode_second_extension(&mut self, end: usize) -> Result<(), FilterFault> {
        while self.line.len() < end {
            let number = self.reader.read_unary()?;
            if number > MAX_PAIR {
                return Err(FilterFault::Corrupt("pair of samples"));
            }
            let sum = (0..).find(|sum| (sum + 1) * (sum + 2) / 2 > number).unwrap_or_default();
            let second = number - sum * (sum + 1) / 2;
            if self.line.len().is_multiple_of(2) {
                self.line.push(sum - second);
            }
            self.line.push(second);
        }
        Ok(())
    }

    /// Turns differences into samples: even ones count up and odd ones down, until one of the ends of the
    /// range is reached, and from there on only to the other one.
    fn undo_differences(&mut self) {
        let largest = self.coding.max_sample();
        let mut samples = self.line.iter_mut();
        let Some(mut last) = samples.next().map(|first| *first & largest) else { return };
        for sample in samples {
            let mapped = *sample;
            // Without branches, as there is no telling which way they would go.
            let upper = (last >> (self.coding.bits_per_sample - 1)).wrapping_neg() & largest;
            let room = last ^ upper;
            let step = mapped >> 1 ^ (mapped & 1).wrapping_neg();
            let within = mapped.div_ceil(2) <= room;
            last = if within { last.wrapping_add(step) } else { mapped ^ upper } & largest;
            *sample = last;
        }
    }
}
