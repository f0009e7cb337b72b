//! Checks that must hold for any bytes: the bodies of fuzz targets, and the damage that tests do to sound structures.
//!
//! Not part of the interface; needs the feature `fuzz`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::arithmetic_side_effects, clippy::cast_possible_truncation)]

mod round_trip;
mod seeds;
mod targets;

pub use round_trip::{assert_round_trip_if_sound, widths_from_byte};
pub use seeds::{Seed, all_seeds};
pub use targets::{FuzzTarget, TARGETS};

use crate::lookup3;

/// Runs the target of this name.
///
/// # Panics
/// If the target does, or if there is none of this name.
pub fn run_target(name: &str, data: &[u8]) -> bool {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(data)
}

/// Runs a target on a seed that has been damaged in every way, and calls `around_run` before and after each run.
///
/// # Panics
/// If the target does, or if it takes damage that the checksum covers for sound.
pub fn run_target_on_systematic_damage(seed: &Seed, mut around_run: impl FnMut(&[u8], &mut dyn FnMut())) {
    let mut run = |data: &[u8]| {
        let mut sound = false;
        around_run(data, &mut || sound = run_target(seed.target, data));
        sound
    };
    assert!(run(&seed.data), "{} refuses its own seed {:02x?}", seed.target, seed.data);
    let whole = seed.data.len();
    for len in 0..whole {
        let sound = run(&seed.data[..len]);
        let covered = len >= seed.structure_start && len < seed.structure_start + seed.checksummed_len;
        assert!(!sound || !covered, "{} takes the first {len} bytes of {whole} for sound", seed.target);
    }
    let step = (whole / 700).max(1);
    let mut data = seed.data.clone();
    for place in (0..whole).step_by(step) {
        let covered = place >= seed.structure_start && place < seed.structure_start + seed.checksummed_len;
        let original = data[place];
        for bit in 0..8 {
            data[place] = original ^ (1 << bit);
            let sound = run(&data);
            assert!(!sound || !covered, "{} takes bit {bit} of byte {place} flipped for sound", seed.target);
        }
        if whole <= 64 {
            for value in 0..=255 {
                data[place] = value;
                run(&data);
            }
        } else if !covered {
            for value in [0, 1, 0x7f, 0x80, 0xff, original.wrapping_add(1), original.wrapping_sub(1)] {
                data[place] = value;
                run(&data);
            }
        }
        data[place] = original;
    }
}

/// Changes a few bytes of a seed at random and runs a target on it, `rounds` times. Calls `around_run` before and after each
/// run. `rng_seed` is the seed of the random numbers.
///
/// # Panics
/// If the target does.
pub fn run_target_on_mutations(
    seed: &Seed,
    rounds: u32,
    rng_seed: u64,
    mut around_run: impl FnMut(&[u8], &mut dyn FnMut()),
) {
    let mut state = rng_seed | 1;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below.max(1)
    };
    for _ in 0..rounds {
        let mut data = seed.data.clone();
        for _ in 0..=next(6) {
            let (at, from, len) = (next(data.len()), next(data.len()), next(9));
            match next(5) {
                0 => data[at] = next(256) as u8,
                1 => data[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
                2 => data.truncate(at.max(1)),
                3 => {
                    let end = (at + len).min(data.len());
                    data[at..end].fill([0, 0xff][next(2)]);
                }
                _ => {
                    let piece = data[from..(from + len).min(data.len())].to_vec();
                    data.splice(at..at, piece);
                }
            }
        }
        if seed.checksummed_len > 0 {
            fix_checksum(seed, &mut data);
        }
        around_run(&data, &mut || {
            run_target(seed.target, &data);
        });
    }
}

/// Makes the checksum at the end of a changed structure right, so that the change is not refused because of it.
fn fix_checksum(seed: &Seed, data: &mut [u8]) {
    let after = seed.data.len() - seed.structure_start - seed.checksummed_len;
    let end = data.len().saturating_sub(after);
    if let Some(sum_at) = end.checked_sub(4).filter(|at| *at >= seed.structure_start) {
        let sum = lookup3(&data[seed.structure_start..sum_at], 0);
        data[sum_at..end].copy_from_slice(&sum.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
