//! Where the links of an old-style group are kept (format specification 4.0, IV.A.2.r).

use super::{Message, MessageType};
use crate::{Addr, Record, Result, Wire};

/// The symbol table message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SymbolTableMessage {
    /// The version 1 B-tree of the names.
    pub btree: Addr,
    /// The local heap of the names.
    pub heap: Addr,
}

impl Record for SymbolTableMessage {
    const NAME: &'static str = "symbol table";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("B-tree", &mut self.btree)?;
        w.addr("local heap", &mut self.heap)
    }
}

impl Message for SymbolTableMessage {
    const TYPE: MessageType = MessageType::SYMBOL_TABLE;
}
