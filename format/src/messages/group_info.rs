//! When a group keeps its links compact (format specification 4.0, IV.A.2.k).

use super::{Message, MessageType};
use crate::{Record, Result, Wire};

/// When links move from the header to a heap, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkPhaseChange {
    /// Most links that are kept in the header.
    pub max_compact: u16,
    /// Fewest links that are kept in a heap.
    pub min_dense: u16,
}

impl Default for LinkPhaseChange {
    fn default() -> Self {
        LinkPhaseChange { max_compact: 8, min_dense: 6 }
    }
}

/// The expected links of a group, for the size of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkEstimate {
    /// Number of links.
    pub link_count: u16,
    /// Bytes of a name.
    pub name_length: u16,
}

impl Default for LinkEstimate {
    fn default() -> Self {
        LinkEstimate { link_count: 4, name_length: 8 }
    }
}

/// The group info message. Missing fields have their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupInfo {
    /// When links move to a heap, if not by default.
    pub link_phase_change: Option<LinkPhaseChange>,
    /// The expected links, if not the default.
    pub estimate: Option<LinkEstimate>,
}

impl Record for GroupInfo {
    const NAME: &'static str = "group info";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        let flags = u8::from(self.link_phase_change.is_some()) | (u8::from(self.estimate.is_some()) << 1);
        let flags = w.derived_u8("flags", flags)?;
        w.require("flags", flags & !0x03 == 0, flags.into(), "only the flags 1 and 2 exist")?;
        super::wire_optional(w, flags & 0x01 != 0, &mut self.link_phase_change, |w, phase| {
            w.u16("most compact links", &mut phase.max_compact)?;
            w.u16("fewest dense links", &mut phase.min_dense)
        })?;
        super::wire_optional(w, flags & 0x02 != 0, &mut self.estimate, |w, estimate| {
            w.u16("estimated links", &mut estimate.link_count)?;
            w.u16("estimated name length", &mut estimate.name_length)
        })
    }
}

impl Message for GroupInfo {
    const TYPE: MessageType = MessageType::GROUP_INFO;
}
