//! The values of a block from a stream of bits.

use std::marker::PhantomData;

use super::coefficient_order::coefficient_order;
use super::header::ZfpHeader;
use crate::FilterFault;
use crate::bit_io::ones;

/// A source of blocks: the bits of their values, four along each dimension, the fastest-varying one first.
pub(super) trait BlockSource {
    fn next_block(&mut self) -> Result<&[u64], FilterFault>;
}

/// Integers of the width of a value, in which blocks are transformed. Sums wrap, as in the reference.
pub(super) trait ZfpInteger: Copy + Default {
    /// Bits of a value, and bits of a number of bit planes less one.
    const BITS: u32;
    const PLANES_BITS: u32;
    /// Bits of a float's exponent.
    const EXPONENT_BITS: u32;
    /// From base minus two.
    fn from_negabinary(bits: u64) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn half(self) -> Self;
    /// As the bits of an integer.
    fn bits(self) -> u64;
    /// As the bits of a float, multiplied by a power of two.
    fn scaled(self, exponent: i32) -> u64;
    /// As the bits of a float whose order as integers is that of the floats.
    fn reinterpreted(self) -> u64;
}

const NEGABINARY: u64 = 0xaaaa_aaaa_aaaa_aaaa;

macro_rules! int {
    ($int:ty, $uint:ty, $float:ty, $planes:expr, $exponent:expr) => {
        impl ZfpInteger for $int {
            const BITS: u32 = <$int>::BITS;
            const PLANES_BITS: u32 = $planes;
            const EXPONENT_BITS: u32 = $exponent;
            fn from_negabinary(bits: u64) -> Self {
                let mask = NEGABINARY as $uint;
                (bits as $uint ^ mask).wrapping_sub(mask).cast_signed()
            }
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn half(self) -> Self {
                self >> 1
            }
            fn bits(self) -> u64 {
                u64::from(self.cast_unsigned())
            }
            fn scaled(self, exponent: i32) -> u64 {
                u64::from((power_of_two(exponent) as $float * self as $float).to_bits())
            }
            fn reinterpreted(self) -> u64 {
                u64::from(if self < 0 { self ^ <$int>::MAX } else { self }.cast_unsigned())
            }
        }
    };
}

int!(i32, u32, f32, 5, 8);
int!(i64, u64, f64, 6, 11);

/// Two to the power of a number, exactly; zero or infinity beyond the range.
fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        ..-1074 => 0.0,
        -1074..-1022 => f64::from_bits(1 << (exponent + 1074)),
        -1022..1024 => f64::from_bits(u64::from((exponent + 1023).unsigned_abs()) << 52),
        _ => f64::INFINITY,
    }
}

/// Bits from the lowest of each byte up.
struct ZfpBitReader<'a> {
    rest: &'a [u8],
    next: u64,
    held: u32,
}

impl ZfpBitReader<'_> {
    /// The next bits as a number, at most 56.
    fn take_bits(&mut self, bits: u32) -> Result<u64, FilterFault> {
        while self.held < bits {
            let (byte, rest) = self.rest.split_first().ok_or(FilterFault::Truncated)?;
            self.next |= u64::from(*byte) << self.held;
            self.held += 8;
            self.rest = rest;
        }
        let value = self.next & ones(bits);
        self.next >>= bits;
        self.held -= bits;
        Ok(value)
    }

    fn take_bit(&mut self) -> Result<bool, FilterFault> {
        self.take_bits(1).map(|bit| bit == 1)
    }

    /// Leaves bits out, which need not be there.
    fn skip_bits(&mut self, bits: u32) {
        let held = bits.min(self.held);
        self.next >>= held;
        self.held -= held;
        let bits = bits - held;
        self.rest = self.rest.get((bits / 8) as usize..).unwrap_or_default();
        let _ = self.take_bits(bits % 8);
    }
}

/// Blocks of integers.
pub(super) struct IntegerBlocks;
/// Blocks of floats. Most of them are integers with a common exponent.
pub(super) struct FloatBlocks;

/// Decodes block after block.
pub(super) struct ZfpDecoder<'a, I, K> {
    header: &'a ZfpHeader,
    bits: ZfpBitReader<'a>,
    order: &'static [u8],
    /// The bits of the coefficients, in the order of coding.
    planes: Vec<u64>,
    integers: Vec<I>,
    values: Vec<u64>,
    kind: PhantomData<K>,
}

impl<'a, I: ZfpInteger, K> ZfpDecoder<'a, I, K> {
    pub fn new(header: &'a ZfpHeader, input: &'a [u8]) -> Self {
        let size = header.block_element_count();
        ZfpDecoder {
            header,
            bits: ZfpBitReader { rest: input, next: 0, held: 0 },
            order: coefficient_order(header.rank),
            planes: vec![0; size],
            integers: vec![I::default(); size],
            values: vec![0; size],
            kind: PhantomData,
        }
    }

    /// Reads a block of integers; `used` bits of it have been read before.
    fn decode_lossy(&mut self, used: u32, precision: u32) -> Result<(), FilterFault> {
        let used = used + self.decode_coefficients(self.header.max_bits.saturating_sub(used), precision)?;
        self.skip_block_rest(used);
        self.inverse_transform(inverse_lift);
        Ok(())
    }

    /// Reads a block of integers without loss.
    fn decode_lossless(&mut self, used: u32) -> Result<(), FilterFault> {
        let precision = self.bits.take_bits(I::PLANES_BITS)? as u32 + 1;
        let used = used + I::PLANES_BITS;
        let used = used + self.decode_coefficients(self.header.max_bits.saturating_sub(used), precision)?;
        self.skip_block_rest(used);
        self.inverse_transform(inverse_predict);
        Ok(())
    }

    /// Skips the unused bits of a block of fixed size.
    fn skip_block_rest(&mut self, used: u32) {
        self.bits.skip_bits(self.header.min_bits.saturating_sub(used));
    }

    /// Reads coefficients, bit plane by bit plane, in at most `max_bits` bits. Returns the number of bits read. In each
    /// plane, the coefficients that are known not to be zero have one bit each. Then follow, in turn, a bit that says
    /// whether there are any more, and the bits of the next ones up to the first bit that is set.
    fn decode_coefficients(&mut self, max_bits: u32, precision: u32) -> Result<u32, FilterFault> {
        let mut left = max_bits;
        let mut known = 0;
        self.planes.fill(0);
        let all = self.planes.len();
        for plane in (I::BITS.saturating_sub(precision)..I::BITS).rev() {
            if left == 0 {
                break;
            }
            let bit = 1u64 << plane;
            for value in self.planes.iter_mut().take(known) {
                if left == 0 {
                    break;
                }
                left -= 1;
                if self.bits.take_bit()? {
                    *value |= bit;
                }
            }
            while left > 0 && known < all {
                left -= 1;
                if !self.bits.take_bit()? {
                    break;
                }
                while left > 0 && known + 1 < all {
                    left -= 1;
                    if self.bits.take_bit()? {
                        break;
                    }
                    known += 1;
                }
                if let Some(value) = self.planes.get_mut(known) {
                    *value |= bit;
                }
                known += 1;
            }
        }
        Ok(max_bits - left)
    }

    /// Turns coefficients into values, along the slowest-varying dimension first.
    fn inverse_transform(&mut self, lift: fn([I; 4]) -> [I; 4]) {
        for (coefficient, place) in self.planes.iter().zip(self.order) {
            if let Some(value) = self.integers.get_mut(usize::from(*place)) {
                *value = I::from_negabinary(*coefficient);
            }
        }
        for stride in (0..self.header.rank as u32).rev().map(|dim| 4usize.pow(dim)) {
            for group in self.integers.chunks_exact_mut(stride * 4) {
                for start in 0..stride {
                    let mut values = [I::default(); 4];
                    let along = group.iter().skip(start).step_by(stride);
                    values.iter_mut().zip(along).for_each(|(to, value)| *to = *value);
                    let along = group.iter_mut().skip(start).step_by(stride);
                    along.zip(lift(values)).for_each(|(to, value)| *to = value);
                }
            }
        }
    }

    fn set_values(&mut self, value: impl Fn(I) -> u64) {
        for (to, integer) in self.values.iter_mut().zip(&self.integers) {
            *to = value(*integer);
        }
    }
}

/// Undoes the decorrelating transform along one dimension.
fn inverse_lift<I: ZfpInteger>([x, y, z, w]: [I; 4]) -> [I; 4] {
    // The sum of two values, and twice the second one less that sum.
    let turn = |a: I, b: I| (a.add(b), b.sub(a.add(b).sub(b)));
    let y = y.add(w.half());
    let w = w.sub(y.half());
    let (y, w) = turn(y, w);
    let (z, x) = turn(z, x);
    let (y, z) = turn(y, z);
    let (w, x) = turn(w, x);
    [x, y, z, w]
}

/// Undoes the prediction of each value from those before it.
fn inverse_predict<I: ZfpInteger>([x, y, z, w]: [I; 4]) -> [I; 4] {
    let w = w.add(z);
    let z = z.add(y);
    let w = w.add(z);
    let y = y.add(x);
    let z = z.add(y);
    let w = w.add(z);
    [x, y, z, w]
}

impl<I: ZfpInteger> BlockSource for ZfpDecoder<'_, I, IntegerBlocks> {
    fn next_block(&mut self) -> Result<&[u64], FilterFault> {
        match self.header.min_exponent {
            Some(_) => self.decode_lossy(0, self.header.precision)?,
            None => self.decode_lossless(0)?,
        }
        self.set_values(I::bits);
        Ok(&self.values)
    }
}

impl<I: ZfpInteger> ZfpDecoder<'_, I, FloatBlocks> {
    /// Reads the common exponent.
    fn read_exponent(&mut self) -> Result<i32, FilterFault> {
        let bias = ones(I::EXPONENT_BITS - 1) as i32;
        Ok(self.bits.take_bits(I::EXPONENT_BITS)? as i32 - bias)
    }

    /// Multiplies integers by the power of two that makes the largest one less than the exponent says.
    fn scale_to_floats(&mut self, exponent: i32) {
        let exponent = exponent - (I::BITS as i32 - 2);
        self.set_values(|integer| integer.scaled(exponent));
    }
}

impl<I: ZfpInteger> BlockSource for ZfpDecoder<'_, I, FloatBlocks> {
    fn next_block(&mut self) -> Result<&[u64], FilterFault> {
        if !self.bits.take_bit()? {
            self.values.fill(0);
            self.skip_block_rest(1);
        } else if let Some(min_exponent) = self.header.min_exponent {
            let exponent = self.read_exponent()?;
            let planes = (exponent - min_exponent + 2 * self.header.rank as i32 + 2).max(0).unsigned_abs();
            self.decode_lossy(1 + I::EXPONENT_BITS, self.header.precision.min(planes))?;
            self.scale_to_floats(exponent);
        } else if self.bits.take_bit()? {
            self.decode_lossless(2)?;
            self.set_values(I::reinterpreted);
        } else {
            let exponent = self.read_exponent()?;
            self.decode_lossless(2 + I::EXPONENT_BITS)?;
            self.scale_to_floats(exponent);
        }
        Ok(&self.values)
    }
}
