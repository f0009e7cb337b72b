//! How the differences of a chunk are packed.

/// How a chunk is packed.
pub(super) struct ScaleOffsetPacking {
    /// Bits of a difference. The bits of the type if the values are stored unchanged.
    pub(super) bits: u32,
    /// The smallest value: a sign-extended integer, or the bits of a float.
    pub(super) minimum: u64,
}

/// The bits that can hold `values` different values.
pub(super) fn bits_for_count(values: u64) -> u32 {
    64 - values.saturating_sub(1).leading_zeros()
}
