//! Where the file's shared messages are kept (format specification 4.0, IV.A.2.p).

use super::{Message, MessageType};
use crate::{Addr, Record, Result, Wire};

/// The shared message table message, in the superblock extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedMessageTableInfo {
    /// The table.
    pub table: Addr,
    /// The number of indexes in the table.
    pub index_count: u8,
}

impl Record for SharedMessageTableInfo {
    const NAME: &'static str = "shared message table info";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        w.addr("table", &mut self.table)?;
        w.u8("indexes", &mut self.index_count)
    }
}

impl Message for SharedMessageTableInfo {
    const TYPE: MessageType = MessageType::SHARED_MESSAGE_TABLE;
}
