//! The number of hard links to an object (format specification 4.0, IV.A.2.w).

use super::{Message, MessageType};
use crate::{Record, Result, Wire};

/// The object reference count message; without it, a version 2 object header has one hard link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceCount {
    /// Hard links.
    pub hard_link_count: u32,
}

impl Default for ReferenceCount {
    fn default() -> Self {
        ReferenceCount { hard_link_count: 1 }
    }
}

impl Record for ReferenceCount {
    const NAME: &'static str = "reference count";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        w.u32("links", &mut self.hard_link_count)
    }
}

impl Message for ReferenceCount {
    const TYPE: MessageType = MessageType::REFERENCE_COUNT;
}
