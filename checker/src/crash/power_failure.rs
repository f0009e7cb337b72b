//! How the states after a power failure are chosen.

/// How the states after a power failure are chosen, where there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerFailureSampling {
    /// If there are no more than this many operations without a barrier, every subset is tried. If there are more:
    /// subsets that lack at most two, subsets with at most two, and some at random.
    pub max_ops_for_all_subsets: u32,
    /// How many random subsets.
    pub random_subset_count: u32,
    /// The seed of the random subsets.
    pub seed: u64,
    /// If there are no more than this many operations without a barrier, every subset is tried with part of one write
    /// missing. If there are more: subsets that lack at most two, and subsets with at most two.
    pub max_ops_for_all_tears: u32,
}

impl Default for PowerFailureSampling {
    fn default() -> Self {
        PowerFailureSampling {
            max_ops_for_all_subsets: 18,
            random_subset_count: 20_000,
            seed: 1,
            max_ops_for_all_tears: 8,
        }
    }
}
