//! How many bytes the parts of an object header take.

use h5live_format::{ObjectHeaderPrefix, RawMessage, Widths};

/// The sizes of one header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes before each message body.
    pub frame: usize,
    /// Bytes of the body of a continuation message.
    pub continuation: usize,
    /// Bodies are of multiples of this.
    pub unit: usize,
}

impl Sizes {
    pub fn of(prefix: &ObjectHeaderPrefix, widths: Widths) -> Self {
        let unit = if prefix.version == 1 { 8 } else { 1 };
        let continuation = widths.offset.bytes() + widths.length.bytes();
        Sizes { frame: prefix.message_header_len(), continuation: continuation.next_multiple_of(unit), unit }
    }

    /// Bytes that a message takes, its frame included.
    pub fn of_message(&self, message: &RawMessage) -> usize {
        self.frame + message.body.len().next_multiple_of(self.unit)
    }

    /// Whether `room` bytes can hold exactly `taken`, or so that what is left can be marked as unused.
    pub fn fits(&self, room: usize, taken: usize) -> bool {
        room == taken || room >= taken + self.frame
    }

    /// Unused space of `room` bytes, its frame included; `None` if there is none to mark.
    pub fn unused(&self, room: usize) -> Option<RawMessage> {
        room.checked_sub(self.frame).map(RawMessage::unused)
    }
}
