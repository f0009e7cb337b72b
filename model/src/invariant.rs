//! The promises of a writer to its readers.

use std::fmt;

/// The promises of a writer to its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SwmrInvariant {
    /// I1: the contents of every reachable address were written before the pointer to it.
    NoDanglingAddress,
    /// I2: elements below the extent that is seen have their final values.
    FinalElementsBelowExtent,
    /// I4: a structure that is read while it is written is old or new, or becomes so soon.
    NoLastingTornWrites,
}

impl fmt::Display for SwmrInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SwmrInvariant::NoDanglingAddress => "I1, no dangling address",
            SwmrInvariant::FinalElementsBelowExtent => "I2, whole appends",
            SwmrInvariant::NoLastingTornWrites => "I4, torn writes are seen",
        })
    }
}
