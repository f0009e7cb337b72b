//! The ways in which a file in memory can behave.

use crate::{Encoding, Parts};

/// How a file in memory takes chunks. Each way is one that another store has, so that the facade can be tried with all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBehavior {
    /// The parts of an unfiltered chunk that can be written by themselves.
    pub parts: Parts,
    /// Whether chunks cross the seam as filters left them.
    pub encoding: Encoding,
}

impl Default for MemoryBehavior {
    fn default() -> Self {
        MemoryBehavior { parts: Parts::Bytes { multiple_of: 1 }, encoding: Encoding::Pipeline }
    }
}
