//! Mutants: writers and readers that lack one rule each. The model checker must find each of them out.

use strum::VariantArray;

/// A rule that is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, VariantArray)]
pub enum LogMutant {
    /// All are kept.
    #[default]
    None,
    /// The end of a log is published before the entries are there.
    EndBeforeEntries,
    /// The index table is written before the entries that it has.
    TableBeforeEntries,
    /// Batches count in the order in which they are found.
    IgnoredOrders,
    /// An object may be seen before the entries with its elements.
    AnchorBeforeEntries,
}

impl LogMutant {
    /// The mutants.
    pub fn all() -> impl Iterator<Item = LogMutant> {
        LogMutant::VARIANTS.iter().copied().filter(|mutant| *mutant != LogMutant::None)
    }

    /// Whether this rule is not kept. Only builds for the model checker have mutants.
    #[inline]
    pub fn violates(self, rule: LogMutant) -> bool {
        cfg!(feature = "mutants") && self == rule
    }
}
