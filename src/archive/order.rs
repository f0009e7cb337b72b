//! A random order of many numbers that needs no memory: a keyed permutation.
//!
//! [`Permutation`] is a Feistel network over the numbers below `4^k`, the smallest such power that is not less than `n`. A
//! result that is not below `n` is permuted again until it is (cycle walking). `docs/tar.md` gives the arithmetic.

/// Rounds of the network.
const ROUNDS: usize = 6;

/// Mixes a 64-bit number: the finalizer of SplitMix64.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A permutation of the numbers from 0 to `n - 1` that a key chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    round_keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `n` numbers for a key.
    pub fn new(n: u64, key: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let mut round_keys = [0; ROUNDS];
        for (round, round_key) in (1u64..).zip(&mut round_keys) {
            *round_key = mix(key.wrapping_add(GOLDEN.wrapping_mul(round)));
        }
        Permutation { n, half_bits: bits.div_ceil(2).max(1), round_keys }
    }

    /// The key for the order of an epoch.
    pub fn epoch_key(seed: u64, epoch: u64) -> u64 {
        mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(GOLDEN.wrapping_mul(epoch.wrapping_add(1))))
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }

    /// The number at a position. Both are below `n`; a position that is not is returned as it is.
    pub fn at(&self, position: u64) -> u64 {
        self.walk(position, |value| {
            let (mut left, mut right) = (value >> self.half_bits, value & self.mask());
            for key in self.round_keys {
                (left, right) = (right, left ^ (mix(right ^ key) & self.mask()));
            }
            left << self.half_bits | right
        })
    }

    /// The position of a number: the inverse of [`Permutation::at`].
    pub fn position_of(&self, number: u64) -> u64 {
        self.walk(number, |value| {
            let (mut left, mut right) = (value >> self.half_bits, value & self.mask());
            for key in self.round_keys.iter().rev() {
                (left, right) = (right ^ (mix(left ^ key) & self.mask()), left);
            }
            left << self.half_bits | right
        })
    }

    /// The network permutes fewer than `4 n` numbers, so that some steps lead below `n`, and a cycle leads back.
    fn walk(&self, from: u64, step: impl Fn(u64) -> u64) -> u64 {
        if from >= self.n {
            return from;
        }
        let mut value = step(from);
        while value >= self.n {
            value = step(value);
        }
        value
    }
}

/// The order of the samples of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EpochOrder {
    /// As they are stored.
    Stored,
    /// Any order.
    Shuffled(Permutation),
    /// Blocks in any order, and in each block any order of its samples.
    Blocks {
        n: u64,
        /// Samples of a block. The last block may have fewer.
        block: u64,
        /// Of the blocks.
        blocks: Permutation,
        /// The position of the block that may be shorter.
        short_position: u64,
        key: u64,
    },
}

impl EpochOrder {
    pub(crate) fn blocks(n: u64, block: u64, key: u64) -> Self {
        let block = block.clamp(1, n.max(1));
        let count = n.div_ceil(block);
        let blocks = Permutation::new(count, key);
        let short_position = blocks.position_of(count.saturating_sub(1));
        EpochOrder::Blocks { n, block, blocks, short_position, key }
    }

    /// The sample at a position. Both are below the number of samples.
    pub(crate) fn at(&self, position: u64) -> u64 {
        match *self {
            EpochOrder::Stored => position,
            EpochOrder::Shuffled(permutation) => permutation.at(position),
            EpochOrder::Blocks { n, block, blocks, short_position, key } => {
                let short = n - (n.div_ceil(block) - 1) * block;
                let short_start = short_position * block;
                let (at, within) = if position < short_start {
                    (position / block, position % block)
                } else if position < short_start + short {
                    (short_position, position - short_start)
                } else {
                    let behind = position - short_start - short;
                    (short_position + 1 + behind / block, behind % block)
                };
                let number = blocks.at(at);
                let samples = if at == short_position { short } else { block };
                let inner = Permutation::new(samples, mix(key ^ GOLDEN.wrapping_mul(number.wrapping_add(1))));
                number * block + inner.at(within)
            }
        }
    }
}
