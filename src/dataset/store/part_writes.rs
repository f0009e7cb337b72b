//! How a part of a chunk is handed to the store.

use h5live_filters::Pipeline;
use h5live_model::PartialWrites;

/// How a part of a chunk is handed to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartWrites {
    /// As a run of bytes. Short ones are staged.
    Runs,
    /// As whole pieces of so many bytes, from multiples of this many on; the last one of a chunk may be shorter. They
    /// are staged. What is not written of a piece is read first.
    Pieces(usize),
    /// As boxes of elements, which are not staged.
    Blocks,
    /// Not at all: chunks are staged, and written as a whole.
    Never,
}

impl PartWrites {
    pub(crate) fn new(filters: &Pipeline, partial_writes: PartialWrites) -> Self {
        match partial_writes {
            _ if !filters.is_empty() => PartWrites::Never,
            PartialWrites::Bytes { multiple_of: 0 | 1 } => PartWrites::Runs,
            PartialWrites::Bytes { multiple_of } => {
                usize::try_from(multiple_of).map_or(PartWrites::Never, PartWrites::Pieces)
            }
            PartialWrites::ElementBlocks => PartWrites::Blocks,
            PartialWrites::Whole => PartWrites::Never,
        }
    }
}
