//! Which of the operations without a barrier outlast a power failure.

use super::power_failure::PowerFailureSampling;

/// Some of `n` operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subset {
    /// Which ones, ascending.
    pub kept: Vec<usize>,
    /// Whether it is also tried with one of them in part.
    pub may_be_torn: bool,
}

/// Subsets of `n` operations, the small ones first, and whether they are all there are.
pub(super) fn subsets(n: usize, power: &PowerFailureSampling) -> (Vec<Subset>, bool) {
    let few = n <= power.max_ops_for_all_subsets as usize;
    if few {
        let all_torn = n <= power.max_ops_for_all_tears as usize;
        let is_near = |ones: u32| ones <= 2 || ones + 2 >= n as u32;
        let mut masks: Vec<u64> = (0..1u64 << n).collect();
        masks.sort_by_key(|mask| (mask.count_ones(), *mask));
        let subset = |mask: u64| Subset {
            kept: (0..n).filter(|bit| mask >> bit & 1 == 1).collect(),
            may_be_torn: all_torn || is_near(mask.count_ones()),
        };
        return (masks.into_iter().map(subset).collect(), true);
    }
    let mut chosen = Vec::new();
    let mut add = |kept: Vec<usize>, may_be_torn| chosen.push(Subset { kept, may_be_torn });
    add(Vec::new(), false);
    for one in 0..n {
        add(vec![one], true);
        (one + 1..n).for_each(|two| add(vec![one, two], true));
    }
    // The crash may come after any of them, and one or two before it may be missing.
    for end in 3..=n {
        add((0..end).collect(), true);
        for one in 0..end - 1 {
            add((0..end).filter(|at| *at != one).collect(), true);
            for two in one + 1..end - 1 {
                add((0..end).filter(|at| *at != one && *at != two).collect(), false);
            }
        }
    }
    let mut state = power.seed;
    let mut random = move || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    for _ in 0..power.random_subset_count {
        let bits: Vec<u64> = (0..n.div_ceil(64)).map(|_| random()).collect();
        add((0..n).filter(|at| bits[at / 64] >> (at % 64) & 1 == 1).collect(), false);
    }
    (chosen, false)
}
