//! The kinds of barriers of a durable flush: what the disk has before what.

use strum::VariantArray;

/// Why something must be durable before something else is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
#[non_exhaustive]
pub enum BarrierKind {
    /// New structures and raw data, before the redo record of the changes that lead to them, and before the end of file
    /// that is announced.
    NewData,
    /// The redo record, and an end of file that is announced, before the changes in place.
    Redo,
    /// The changes in place, before their redo record is retired.
    InPlaceChanges,
    /// In files whose readers go by generations: the generation at the new end of file, before that is announced.
    GenerationAtNewEof,
}

impl BarrierKind {
    /// Every kind.
    pub const ALL: &'static [BarrierKind] = <BarrierKind as VariantArray>::VARIANTS;
}
