//! How many bytes the parts of an object header take.

use h5live_format::{ObjectHeaderPrefix, RawMessage, Widths};

/// The sizes of one header.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeaderSizes {
    /// Bytes before each message body.
    pub frame: usize,
    /// Bytes of the body of a continuation message.
    pub continuation: usize,
    /// Bodies are of multiples of this.
    pub unit: usize,
}

impl HeaderSizes {
    pub fn new(prefix: &ObjectHeaderPrefix, widths: Widths) -> Self {
        let unit = if prefix.version == 1 { 8 } else { 1 };
        let continuation = widths.offset.bytes() + widths.length.bytes();
        HeaderSizes { frame: prefix.message_header_len(), continuation: continuation.next_multiple_of(unit), unit }
    }

    /// Bytes that a message takes, its frame included.
    pub fn of_message(&self, message: &RawMessage) -> usize {
        self.frame + message.body.len().next_multiple_of(self.unit)
    }

    /// Whether `room` bytes can hold `taken`. A rest that is too small to be marked as unused goes to the end of the
    /// chunk (see [`fill_unused`]). In version 1 nothing is that small.
    pub fn fits(&self, room: usize, taken: usize) -> bool {
        room >= taken
    }

    /// Unused space of `room` bytes, its frame included; `None` if there is none to mark.
    pub fn unused(&self, room: usize) -> Option<RawMessage> {
        room.checked_sub(self.frame).map(RawMessage::unused)
    }
}

/// Makes `messages`, each with `frame` bytes before its body, fill a chunk of `area` bytes: the rest becomes unused
/// space. If there is no unused space, less than one frame may be left at the end.
pub(super) fn fill_unused(messages: &mut Vec<RawMessage>, frame: usize, area: u64) {
    let used: usize = messages.iter().map(|message| frame + message.body.len()).sum();
    let left = usize::try_from(area).unwrap_or(0).saturating_sub(used);
    let widest = usize::from(u16::MAX);
    let unused = messages.iter_mut().rfind(|message| message.is_unused() && message.body.len() + left <= widest);
    match unused {
        Some(unused) => unused.body.resize(unused.body.len() + left),
        None => messages.extend(left.checked_sub(frame).map(RawMessage::unused)),
    }
}
