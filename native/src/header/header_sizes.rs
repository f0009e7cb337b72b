//! How many bytes the parts of an object header take.

use h5live_format::{ObjectHeaderPrefix, RawMessage, Widths};

/// The sizes of one header.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeaderSizes {
    /// Bytes before each message body.
    pub message_header_bytes: usize,
    /// Bytes of the body of a continuation message.
    pub continuation_bytes: usize,
    /// Bodies are of multiples of this.
    pub alignment_bytes: usize,
}

impl HeaderSizes {
    pub fn new(prefix: &ObjectHeaderPrefix, widths: Widths) -> Self {
        let unit = if prefix.version == 1 { 8 } else { 1 };
        let continuation = widths.offset.bytes() + widths.length.bytes();
        HeaderSizes {
            message_header_bytes: prefix.message_header_len(),
            continuation_bytes: continuation.next_multiple_of(unit),
            alignment_bytes: unit,
        }
    }

    /// Bytes that a message takes, its frame included.
    pub fn message_bytes_with_header(&self, message: &RawMessage) -> usize {
        self.message_header_bytes + message.body.len().next_multiple_of(self.alignment_bytes)
    }

    /// Whether `room` bytes can hold `needed`. A rest that is too small to be marked as unused goes to the end of the
    /// chunk (see [`fill_with_unused_message`]). In version 1 nothing is that small.
    pub fn fits_with_any_remainder(&self, room: usize, needed: usize) -> bool {
        room >= needed
    }

    /// Unused space of `room` bytes, its frame included; `None` if there is none to mark.
    pub fn unused_message(&self, room: usize) -> Option<RawMessage> {
        room.checked_sub(self.message_header_bytes).map(RawMessage::unused)
    }
}

/// Makes `messages`, each with `frame` bytes before its body, fill a chunk of `area` bytes: the rest becomes unused
/// space. If there is no unused space, less than one frame may be left at the end.
pub(super) fn fill_with_unused_message(messages: &mut Vec<RawMessage>, frame: usize, area: u64) {
    let used: usize = messages.iter().map(|message| frame + message.body.len()).sum();
    let left = usize::try_from(area).unwrap_or(0).saturating_sub(used);
    let widest = usize::from(u16::MAX);
    let unused = messages.iter_mut().rfind(|message| message.is_unused() && message.body.len() + left <= widest);
    match unused {
        Some(unused) => unused.body.resize(unused.body.len() + left),
        None => messages.extend(left.checked_sub(frame).map(RawMessage::unused)),
    }
}
