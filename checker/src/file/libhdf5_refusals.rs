//! Objects that libhdf5 refuses to open although each structure is sound by itself.

use h5live_format::messages::{DatatypeMessage, MessageType};
use h5live_format::{Addr, FirstHeaderChunk, RawMessage, Record};
use h5live_model::Name;

use super::FindingCause;
use super::header::CheckedObjectHeader;
use super::walk::FileWalk;

impl FileWalk<'_> {
    /// Messages that an object is not opened with.
    pub fn check_libhdf5_refused_messages(&mut self, header: &CheckedObjectHeader) {
        for message in &header.messages {
            if message.refuse_unknown_required(false).is_err() {
                self.report(
                    FirstHeaderChunk::NAME,
                    header.addr,
                    FindingCause::BrokenRule("a message of unknown type must be known"),
                );
            }
        }
        if header.prefix.version == 1 && header.has_message(MessageType::REFERENCE_COUNT) {
            let rule = "a header of version 1 has no reference count message";
            self.report(FirstHeaderChunk::NAME, header.addr, FindingCause::BrokenRule(rule));
        }
    }

    /// Checks the space at the end of a chunk of `message_area_bytes` bytes that is too small for a message. Unused space that is
    /// large enough must include it.
    pub fn check_header_chunk_gap(
        &mut self,
        structure: &'static str,
        at: Addr,
        message_area_bytes: u64,
        message_header_len: usize,
        messages: &[RawMessage],
    ) {
        let each = |message: &RawMessage| message_header_len.saturating_add(message.body.len()) as u64;
        let used = messages.iter().map(each).fold(0, u64::saturating_add);
        if message_area_bytes > used && (messages.is_empty() || messages.iter().any(RawMessage::is_unused)) {
            self.report(
                structure,
                at,
                FindingCause::BrokenRule("there is no gap beside unused space, or instead of messages"),
            );
        }
    }

    /// A number with few used bits counts as damaged if there is no checksum.
    pub fn check_datatype_uses_half_bits(&mut self, header: &CheckedObjectHeader, message: &DatatypeMessage) {
        if header.prefix.version == 1 && message.datatype.has_number_over_half_unused() {
            let rule = "numbers use half of their bits or more, in a header without a checksum";
            self.report(DatatypeMessage::NAME, header.addr, FindingCause::BrokenRule(rule));
        }
    }

    /// A name ends at its first NUL for every program in C.
    pub fn check_name_has_no_nul(&mut self, structure: &'static str, at: Addr, name: &Name) {
        if name.as_bytes().contains(&0) {
            self.report(structure, at, FindingCause::BrokenRule("a name holds no NUL"));
        }
    }
}
