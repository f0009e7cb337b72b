//! Where the links of a group are kept (format specification 4.0, IV.A.2.c).

use super::{Message, MessageType};
use crate::{Addr, Record, Result, Wire};

/// The link info message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkInfo {
    /// One more than the largest creation order value ever given, if the group tracks the order of creation.
    pub next_creation_order: Option<i64>,
    /// The fractal heap of dense links; undefined while links are compact.
    pub heap: Addr,
    /// The version 2 B-tree of names of dense links; undefined while links are compact.
    pub name_index: Addr,
    /// The version 2 B-tree of creation order values, if the order of creation is indexed.
    pub order_index: Option<Addr>,
}

impl LinkInfo {
    /// Whether links are kept in a heap.
    pub fn is_dense(&self) -> bool {
        self.heap.is_defined()
    }
}

impl Record for LinkInfo {
    const NAME: &'static str = "link info";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        let (tracked, indexed) =
            super::wire_order_flags(w, self.next_creation_order.is_some(), self.order_index.is_some())?;
        super::wire_optional(w, tracked, &mut self.next_creation_order, |w, order| {
            w.i64("maximum creation order", order)?;
            w.require("maximum creation order", *order >= 0, order.cast_unsigned(), "must not be negative")
        })?;
        w.addr("fractal heap", &mut self.heap)?;
        w.addr("name index", &mut self.name_index)?;
        super::wire_optional(w, indexed, &mut self.order_index, |w, order| w.addr("creation order index", order))
    }
}

impl Message for LinkInfo {
    const TYPE: MessageType = MessageType::LINK_INFO;
}
