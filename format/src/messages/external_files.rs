//! The raw files beside the HDF5 file that hold a dataset's elements (format specification 4.0, IV.A.2.h).

use super::{Message, MessageType};
use crate::{Addr, Record, Result, Wire};

/// A piece of a raw file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExternalFileSlot {
    /// Where the name of the file begins in the local heap (bytes).
    pub name_offset: u64,
    /// Where the data begin in the file (bytes).
    pub data_offset: u64,
    /// Bytes that the file holds, or all ones if it has no limit.
    pub data_size: u64,
}

impl Record for ExternalFileSlot {
    const NAME: &'static str = "external file";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.length("name offset", &mut self.name_offset)?;
        w.length("offset", &mut self.data_offset)?;
        w.length("size", &mut self.data_size)
    }
}

/// The external data files message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExternalFiles {
    /// The local heap of the names.
    pub heap: Addr,
    /// The pieces, in the order of the elements.
    pub slots: Vec<ExternalFileSlot>,
}

impl Record for ExternalFiles {
    const NAME: &'static str = "external files";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=1, &mut 1)?;
        w.reserved(3)?;
        let count = super::count_u16(w, "files", self.slots.len())?;
        let allocated = w.derived_u16("allocated slots", count.max(1))?;
        w.require("allocated slots", allocated != 0, 0, "at least one")?;
        let used = w.derived_u16("used slots", count)?;
        w.require("used slots", used <= allocated, used.into(), "at most the allocated slots")?;
        w.addr("local heap", &mut self.heap)?;
        w.require("local heap", self.heap.is_defined(), u64::MAX, "must be defined")?;
        let each = w.widths().length.bytes().saturating_mul(3);
        w.list("files", used.into(), each, &mut self.slots)
    }
}

impl Message for ExternalFiles {
    const TYPE: MessageType = MessageType::EXTERNAL_FILES;
}
