//! Bytes that come again, of data that may be noise.

use std::cell::RefCell;

use wide::u8x16;

use super::piece::{MIN_PIECES_APART, PIECE_BYTES, STEP_BYTES, SegmentKind, WINDOW_BYTES, fixed_size_pieces};

const HASH_BITS: u32 = 13;

/// Positions are sampled if their bytes end in these four bits: a sixteenth of equally frequent bytes.
const SAMPLED_SUFFIX: u8 = 0x0b;

thread_local! {
    static POSITIONS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// How often four successive bytes were there before or come again; libdeflate uses such repeats. The choice of the
/// sampled bytes depends on the bytes alone. So every repeat is sampled twice, at any distance. Pieces that are far
/// from noise are not sampled.
#[derive(Default)]
pub(super) struct RepeatCounts {
    /// By pieces.
    pub(super) of_pieces: Vec<u32>,
    /// By steps.
    pub(super) of_steps: Vec<u32>,
}

impl RepeatCounts {
    /// Samples data of these kinds. The kinds may change with the result.
    pub(super) fn new(data: &[u8], kinds: &[SegmentKind]) -> RepeatCounts {
        let mut found =
            RepeatCounts { of_pieces: vec![0; kinds.len()], of_steps: vec![0; data.len().div_ceil(STEP_BYTES)] };
        POSITIONS.with_borrow_mut(|positions| {
            positions.clear();
            positions.resize(1 << HASH_BITS, u32::MAX);
            for (i, piece) in fixed_size_pieces(data).enumerate() {
                let near = i.saturating_sub(MIN_PIECES_APART)..(i + MIN_PIECES_APART + 1).min(kinds.len());
                if !kinds.get(near).is_some_and(|near| near.contains(&SegmentKind::Noise)) {
                    continue;
                }
                for (block, start) in piece.chunks_exact(64).zip((i * PIECE_BYTES..).step_by(64)) {
                    let mut chosen = sampled_bytes(block);
                    while chosen != 0 {
                        let at = start + chosen.trailing_zeros() as usize;
                        chosen &= chosen - 1;
                        if let Some(before) = swap_last_position(data, at, positions) {
                            found.add(before, at);
                        }
                    }
                }
            }
        });
        found
    }

    /// Counts four bytes that are at both positions.
    fn add(&mut self, before: usize, at: usize) {
        let last = self.of_pieces.len().saturating_sub(1);
        let add = |counts: &mut [u32], before: usize, at: usize| {
            // Once where something is repeated beside itself.
            for index in [Some(at), Some(before).filter(|before| *before != at)].into_iter().flatten() {
                if let Some(count) = counts.get_mut(index) {
                    *count += 1;
                }
            }
        };
        add(&mut self.of_pieces, (before / PIECE_BYTES).min(last), (at / PIECE_BYTES).min(last));
        add(&mut self.of_steps, before / STEP_BYTES, at / STEP_BYTES);
    }
}

/// Which of 64 bytes are looked at, the first one's bit the least significant.
#[inline]
fn sampled_bytes(block: &[u8]) -> u64 {
    let of_16 = |bytes: &[u8]| {
        let bytes = bytes.first_chunk().map_or(u8x16::ZERO, |bytes| u8x16::new(*bytes));
        u64::from((bytes & u8x16::splat(0x0f)).simd_eq(u8x16::splat(SAMPLED_SUFFIX)).to_bitmask())
    };
    block.rchunks_exact(16).fold(0, |bits, bytes| bits << 16 | of_16(bytes))
}

/// Where the four bytes at a position were last, in the window before it.
#[inline]
fn swap_last_position(data: &[u8], at: usize, positions: &mut [u32]) -> Option<usize> {
    let word = data.get(at..)?.first_chunk::<4>()?;
    let hash = u32::from_le_bytes(*word).wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS);
    let before = std::mem::replace(positions.get_mut(hash as usize)?, at as u32) as usize;
    let is_near = before < at && at - before <= WINDOW_BYTES;
    (is_near && data.get(before..)?.first_chunk::<4>()? == word).then_some(before)
}
