//! Streams of bits, the most significant bit of a byte first.

use crate::FilterFault;

/// The low `bits` bits set; all of them from 64 on.
pub(crate) const fn ones(bits: u32) -> u64 {
    if bits < 64 { (1 << bits) - 1 } else { u64::MAX }
}

/// Takes bits from a slice.
pub(crate) struct BitReader<'a> {
    rest: &'a [u8],
    /// The next bits, from the most significant one down; zeros after them.
    next: u64,
    /// How many bits of `next` count.
    buffered: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        BitReader { rest: data, next: 0, buffered: 0 }
    }

    /// Refills the buffer: afterwards it holds at least 56 bits, or all that are left.
    #[inline]
    fn refill(&mut self) {
        if let Some(word) = self.rest.first_chunk::<8>() {
            let bytes = (63 - self.buffered) / 8;
            let kept = self.buffered + bytes * 8;
            self.next |= (u64::from_be_bytes(*word) >> self.buffered) & !ones(64 - kept);
            self.buffered = kept;
            self.rest = self.rest.get(bytes as usize..).unwrap_or_default();
        } else {
            while let (true, Some((byte, rest))) = (self.buffered <= 56, self.rest.split_first()) {
                self.next |= u64::from(*byte) << (56 - self.buffered);
                self.buffered += 8;
                self.rest = rest;
            }
        }
    }

    /// Drops bits that are held.
    #[inline]
    fn skip_bits(&mut self, bits: u32) {
        self.next = if bits < 64 { self.next << bits } else { 0 };
        self.buffered -= bits;
    }

    /// The next bits as a number, at most 64.
    #[inline]
    pub(crate) fn read_bits(&mut self, bits: u32) -> Result<u64, FilterFault> {
        if bits > 56 {
            let high = self.read_bits(bits - 32)?;
            return Ok(high << 32 | self.read_bits(32)?);
        }
        if self.buffered < bits {
            self.refill();
            if self.buffered < bits {
                return Err(FilterFault::Truncated);
            }
        }
        if bits == 0 {
            return Ok(0);
        }
        let value = self.next >> (64 - bits);
        self.skip_bits(bits);
        Ok(value)
    }

    /// The number of zeros before the next one, which is taken too.
    #[inline]
    pub(crate) fn read_unary(&mut self) -> Result<u32, FilterFault> {
        let mut zeros = 0u32;
        loop {
            let run = self.next.leading_zeros();
            if run < self.buffered {
                self.skip_bits(run + 1);
                return Ok(zeros.saturating_add(run));
            }
            zeros = zeros.saturating_add(self.buffered);
            self.skip_bits(self.buffered);
            self.refill();
            if self.buffered == 0 {
                return Err(FilterFault::Truncated);
            }
        }
    }
}

/// Appends bits to bytes.
pub(crate) struct BitWriter<'a> {
    output: &'a mut Vec<u8>,
    /// The last bits, in the low places.
    last: u64,
    /// How many bits of `last` count: fewer than 32 between calls.
    held: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(output: &'a mut Vec<u8>) -> Self {
        BitWriter { output, last: 0, held: 0 }
    }

    /// Appends the low bits of a number, at most 64.
    #[inline]
    pub(crate) fn write_bits(&mut self, value: u64, bits: u32) {
        if bits > 32 {
            self.write_bits(value >> 32, bits - 32);
            return self.write_bits(value, 32);
        }
        self.last = self.last << bits | value & ones(bits);
        self.held += bits;
        if self.held >= 32 {
            self.held -= 32;
            self.output.extend_from_slice(&((self.last >> self.held) as u32).to_be_bytes());
        }
    }

    /// Appends zeros and a one.
    pub(crate) fn write_unary(&mut self, mut zeros: u32) {
        while zeros >= 32 {
            self.write_bits(0, 32);
            zeros -= 32;
        }
        self.write_bits(1, zeros + 1);
    }

    /// Fills the last byte up with zeros. Returns whether there was anything to fill.
    pub(crate) fn finish(mut self) -> bool {
        let partial = !self.held.is_multiple_of(8);
        if partial {
            self.write_bits(0, 8 - self.held % 8);
        }
        while self.held > 0 {
            self.held -= 8;
            self.output.push((self.last >> self.held) as u8);
        }
        partial
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reads_what_was_written(numbers in prop::collection::vec((any::<u64>(), 0..=64u32, 0..100u32), 0..100)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for (value, bits, zeros) in &numbers {
                writer.write_bits(*value, *bits);
                writer.write_unary(*zeros);
            }
            writer.finish();
            let mut reader = BitReader::new(&bytes);
            for (value, bits, zeros) in &numbers {
                prop_assert_eq!(reader.read_bits(*bits).unwrap(), value & ones(*bits));
                prop_assert_eq!(reader.read_unary().unwrap(), *zeros);
            }
            prop_assert!(reader.read_bits(8).is_err());
        }
    }

    #[test]
    fn the_first_bit_is_the_most_significant_one() {
        let mut bytes = Vec::new();
        let mut writer = BitWriter::new(&mut bytes);
        writer.write_bits(1, 1);
        writer.write_bits(0b1010, 4);
        writer.write_bits(0x1ff, 9);
        assert!(writer.finish());
        assert_eq!(bytes, [0b1101_0111, 0b1111_1100]);
    }

    #[test]
    fn refuses_to_read_beyond_the_end() {
        for len in 0..20 {
            let bytes = vec![0; len];
            assert!(BitReader::new(&bytes).read_unary().is_err());
            let mut reader = BitReader::new(&bytes);
            for _ in 0..len {
                reader.read_bits(8).unwrap();
            }
            assert!(reader.read_bits(1).is_err());
            assert!(reader.read_bits(64).is_err());
        }
    }
}
