//! The place of the next chunk of an object header (format specification 4.0, IV.A.2.q).

use super::{Message, MessageType};
use crate::{Addr, Record, Result, Wire};

/// The object header continuation message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContinuationMessage {
    /// The next chunk of the header.
    pub addr: Addr,
    /// Bytes of the chunk, signature and checksum included.
    pub length: u64,
}

impl Record for ContinuationMessage {
    const NAME: &'static str = "continuation";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.addr)?;
        w.length("length", &mut self.length)
    }
}

impl Message for ContinuationMessage {
    const TYPE: MessageType = MessageType::CONTINUATION;
}
