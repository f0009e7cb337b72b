//! The chunks of an object header: the first, with the prefix, and its continuations.

use super::raw_message::messages;
use super::{ObjectHeaderPrefix, RawMessage};
use crate::{Record, Result, Wire};

/// The memory that messages take, in bytes.
fn messages_weight(messages: &[RawMessage]) -> usize {
    messages.iter().map(|message| size_of_val(message).saturating_add(message.body.extra_memory_bytes())).sum()
}

/// The first chunk of an object header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FirstHeaderChunk {
    /// The part before the messages.
    pub prefix: ObjectHeaderPrefix,
    /// The messages, unused space included.
    pub messages: Vec<RawMessage>,
}

impl FirstHeaderChunk {
    /// The offset of the body of a message in the image (bytes).
    pub fn body_offset(&self, message_index: usize) -> Option<usize> {
        let frame = self.prefix.message_header_len();
        let (before, rest) = self.messages.split_at_checked(message_index)?;
        let start = self.prefix.messages_offset().checked_add(frame).filter(|_| !rest.is_empty())?;
        before.iter().try_fold(start, |at, message| at.checked_add(frame)?.checked_add(message.body.len()))
    }
}

impl Record for FirstHeaderChunk {
    const NAME: &'static str = "object header";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.record(&mut self.prefix)?;
        let prefix = self.prefix;
        messages(
            w,
            prefix.version,
            prefix.attribute_order_tracked,
            prefix.first_chunk_messages_size,
            &mut self.messages,
        )?;
        if prefix.version > 1 { w.checksum() } else { Ok(()) }
    }

    fn size_hint(&self) -> usize {
        usize::try_from(self.prefix.first_chunk_len()).unwrap_or(usize::MAX)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(messages_weight(&self.messages))
    }
}

/// A continuation of an object header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContinuationChunk {
    /// The version of the object header.
    pub version: u8,
    /// Whether messages bear the order of creation of attributes.
    pub attribute_order_tracked: bool,
    /// Bytes of the whole chunk, signature and checksum included, as the continuation message states it.
    pub chunk_len: u64,
    /// The messages, unused space included.
    pub messages: Vec<RawMessage>,
}

impl ContinuationChunk {
    /// Bytes of signature and checksum.
    pub fn overhead(version: u8) -> u64 {
        if version > 1 { 8 } else { 0 }
    }
}

impl Record for ContinuationChunk {
    const NAME: &'static str = "object header continuation";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let area = self.chunk_len.checked_sub(Self::overhead(self.version));
        w.require("length", area.is_some(), self.chunk_len, "room for signature and checksum")?;
        let area = area.unwrap_or(0);
        if self.version > 1 {
            w.magic("OCHK")?;
        }
        messages(w, self.version, self.attribute_order_tracked, area, &mut self.messages)?;
        if self.version > 1 { w.checksum() } else { Ok(()) }
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(messages_weight(&self.messages))
    }
}
