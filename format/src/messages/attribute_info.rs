//! Where the attributes of an object are kept (format specification 4.0, IV.A.2.v).

use super::{Message, MessageType};
use crate::{Addr, Record, Result, Wire};

/// The attribute info message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributeInfo {
    /// One more than the largest creation order value ever given, if the object tracks the order of creation.
    pub next_creation_order: Option<u16>,
    /// The fractal heap of dense attributes; undefined while attributes are compact.
    pub heap: Addr,
    /// The version 2 B-tree of names of dense attributes; undefined while attributes are compact.
    pub name_index: Addr,
    /// The version 2 B-tree of creation order values, if the order of creation is indexed.
    pub order_index: Option<Addr>,
}

impl AttributeInfo {
    /// Whether attributes are kept in a heap.
    pub fn is_dense(&self) -> bool {
        self.heap.is_defined()
    }
}

impl Record for AttributeInfo {
    const NAME: &'static str = "attribute info";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        let (tracked, indexed) =
            super::wire_order_flags(w, self.next_creation_order.is_some(), self.order_index.is_some())?;
        super::wire_optional(w, tracked, &mut self.next_creation_order, |w, order| {
            w.u16("maximum creation order", order)
        })?;
        w.addr("fractal heap", &mut self.heap)?;
        w.addr("name index", &mut self.name_index)?;
        super::wire_optional(w, indexed, &mut self.order_index, |w, order| w.addr("creation order index", order))
    }
}

impl Message for AttributeInfo {
    const TYPE: MessageType = MessageType::ATTRIBUTE_INFO;
}
