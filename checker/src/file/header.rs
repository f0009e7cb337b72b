//! Object headers: their chunks, and the messages in them.

use std::collections::HashSet;

use h5live_format::messages::{
    ContinuationMessage, Message, MessageType, ModificationTime, ReferenceCount, SharedMessageReference,
    SharedMessageTarget,
};
use h5live_format::{Addr, ContinuationChunk, FirstHeaderChunk, ObjectHeaderPrefix, RawMessage, Record};

use super::FindingCause;
use super::walk::{FileWalk, MAX_STRUCTURE_BYTES};

/// An object header, with the messages of all its chunks.
#[derive(Debug)]
pub(super) struct CheckedObjectHeader {
    pub addr: Addr,
    pub prefix: ObjectHeaderPrefix,
    pub messages: Vec<RawMessage>,
    /// The reference count message, where there is one.
    links: Option<u32>,
}

impl CheckedObjectHeader {
    pub fn structure_name(&self) -> &'static str {
        FirstHeaderChunk::NAME
    }

    /// The messages of a type.
    pub fn messages_of(&self, kind: MessageType) -> impl Iterator<Item = &RawMessage> {
        self.messages.iter().filter(move |message| message.kind == kind)
    }

    pub fn has_message(&self, kind: MessageType) -> bool {
        self.messages_of(kind).next().is_some()
    }

    /// The number of hard links, by the header's own statement.
    pub fn stated_link_count(&self) -> u32 {
        if self.prefix.version == 1 { self.prefix.version_1_reference_count } else { self.links.unwrap_or(1) }
    }
}

/// Message types that an object has at most once.
const SINGLETON_MESSAGES: [MessageType; 16] = [
    MessageType::DATASPACE,
    MessageType::LINK_INFO,
    MessageType::DATATYPE,
    MessageType::FILL_VALUE_OLD,
    MessageType::FILL_VALUE,
    MessageType::EXTERNAL_FILES,
    MessageType::LAYOUT,
    MessageType::GROUP_INFO,
    MessageType::FILTER_PIPELINE,
    MessageType::SHARED_MESSAGE_TABLE,
    MessageType::SYMBOL_TABLE,
    MessageType::MODIFICATION_TIME,
    MessageType::BTREE_K,
    MessageType::ATTRIBUTE_INFO,
    MessageType::REFERENCE_COUNT,
    MessageType::FILE_SPACE_INFO,
];

impl FileWalk<'_> {
    /// An object header with all its chunks.
    pub fn check_object_header(&mut self, addr: Addr) -> Option<CheckedObjectHeader> {
        let name = FirstHeaderChunk::NAME;
        let bytes = self.read_up_to(name, addr, ObjectHeaderPrefix::MAX_LEN as u64)?;
        let prefix = self.decode(ObjectHeaderPrefix::default(), addr, &bytes)?;
        let first = self.claim_and_decode(FirstHeaderChunk::default(), addr, prefix.first_chunk_len())?;
        let mut header = CheckedObjectHeader { addr, prefix: first.prefix, messages: first.messages, links: None };
        self.count_header_chunk(&header.prefix, prefix.first_chunk_len());
        let in_first = header.messages.len() as u64;
        let frame = header.prefix.message_header_len();
        let area = header.prefix.first_chunk_messages_size;
        self.check_header_chunk_gap(name, addr, area, frame, &header.messages);
        let mut next = 0;
        while let Some(message) = header.messages.get(next) {
            next += 1;
            if message.kind != MessageType::CONTINUATION {
                continue;
            }
            let body = message.body.clone();
            let Some(continuation) = self.decode(ContinuationMessage::default(), addr, &body) else { continue };
            let context = ContinuationChunk {
                version: header.prefix.version,
                attribute_order_tracked: header.prefix.attribute_order_tracked,
                chunk_len: continuation.length,
                messages: Vec::new(),
            };
            match self.claim_and_decode(context, continuation.addr, continuation.length) {
                Some(chunk) => {
                    self.count_header_chunk(&header.prefix, continuation.length);
                    let area = continuation.length.saturating_sub(ContinuationChunk::overhead(chunk.version));
                    self.check_header_chunk_gap(
                        ContinuationChunk::NAME,
                        continuation.addr,
                        area,
                        frame,
                        &chunk.messages,
                    );
                    header.messages.extend(chunk.messages);
                }
                None => self.incomplete = true,
            }
        }
        if header.prefix.version == 1 {
            let (stated, found) = (u64::from(header.prefix.version_1_message_count), header.messages.len() as u64);
            let cause = FindingCause::NumberMismatch { what: "messages", stated, found };
            if stated < in_first {
                self.report(name, addr, cause);
            } else if stated != found {
                self.add_note(name, addr, cause);
            }
        }
        self.check_single_messages(&header);
        self.check_libhdf5_refused_messages(&header);
        header.links = self.load_message::<ReferenceCount>(&header).map(|count| count.hard_link_count);
        Some(header)
    }

    /// Chunks of headers have checksums since version 2.
    fn count_header_chunk(&mut self, prefix: &ObjectHeaderPrefix, len: u64) {
        if prefix.version == 1 {
            self.add_unchecksummed_bytes(len);
        }
    }

    fn check_single_messages(&mut self, header: &CheckedObjectHeader) {
        let mut seen = HashSet::new();
        for message in &header.messages {
            if SINGLETON_MESSAGES.contains(&message.kind) && !seen.insert(message.kind) {
                self.report(
                    FirstHeaderChunk::NAME,
                    header.addr,
                    FindingCause::Repeated(message.kind.name().unwrap_or("message")),
                );
            }
        }
    }

    /// The message of a type, if there is one that can be decoded.
    pub fn load_message<M: Message + Default>(&mut self, header: &CheckedObjectHeader) -> Option<M> {
        let message = header.messages_of(M::TYPE).find(|message| !message.flags.was_unknown_to_writer())?;
        let body = self.load_message_body(message, header.addr)?;
        self.decode(M::default(), header.addr, &body)
    }

    /// The body of a message, which may be elsewhere.
    pub fn load_message_body(&mut self, message: &RawMessage, header: Addr) -> Option<Vec<u8>> {
        if !message.flags.is_shared() {
            return Some(message.body.to_vec());
        }
        let shared = self.decode(SharedMessageReference::default(), header, &message.body)?;
        match shared.place {
            SharedMessageTarget::Heap(id) => self.load_shared_message_body(message.kind, &id, header),
            SharedMessageTarget::Committed(addr) => self.load_committed_message_body(message.kind, addr, header),
        }
    }

    /// The body of a message of another object.
    pub fn load_committed_message_body(&mut self, kind: MessageType, addr: Addr, from: Addr) -> Option<Vec<u8>> {
        let found = self.load_messages_without_report(addr);
        let Some(body) = found.and_then(|list| list.into_iter().find(|message| message.kind == kind)) else {
            self.report("shared message", from, FindingCause::Missing("message at the other object"));
            return None;
        };
        if body.flags.is_shared() {
            let shared = self.decode(SharedMessageReference::default(), from, &body.body)?;
            return match shared.place {
                SharedMessageTarget::Heap(id) => self.load_shared_message_body(kind, &id, from),
                SharedMessageTarget::Committed(_) => None,
            };
        }
        Some(body.body.to_vec())
    }

    /// All messages of an object that is visited elsewhere. Reports no faults.
    fn load_messages_without_report(&mut self, addr: Addr) -> Option<Vec<RawMessage>> {
        let at = addr.get().filter(|at| !self.exceeds_refreshed_end(*at, 1))?;
        let prefix = self.source.read(at, ObjectHeaderPrefix::MAX_LEN as u64).ok()?;
        let (prefix, _) = h5live_format::decode_prefix::<ObjectHeaderPrefix>(&prefix, self.widths).ok()?;
        let len = prefix.first_chunk_len();
        if len > MAX_STRUCTURE_BYTES {
            return None;
        }
        let bytes = self.source.read(at, len).ok()?;
        let (first, _) = h5live_format::decode_prefix::<FirstHeaderChunk>(&bytes, self.widths).ok()?;
        let mut messages = first.messages;
        let mut next = 0;
        let mut left = 64;
        while let Some(message) = messages.get(next) {
            next += 1;
            if message.kind != MessageType::CONTINUATION || left == 0 {
                continue;
            }
            left -= 1;
            let continuation: ContinuationMessage = message.decode(self.widths).ok()?;
            let context = ContinuationChunk {
                version: prefix.version,
                attribute_order_tracked: prefix.attribute_order_tracked,
                chunk_len: continuation.length,
                messages: Vec::new(),
            };
            let bytes =
                self.source.read(continuation.addr.get()?, continuation.length.min(MAX_STRUCTURE_BYTES)).ok()?;
            let (chunk, _) = h5live_format::decode_prefix_with(context, &bytes, self.widths).ok()?;
            messages.extend(chunk.messages);
        }
        // What refuses the other object refuses whoever uses a message of it.
        let is_refused = |message: &RawMessage| match message.kind {
            MessageType::REFERENCE_COUNT => message.decode::<ReferenceCount>(self.widths).is_err(),
            MessageType::MODIFICATION_TIME => message.decode::<ModificationTime>(self.widths).is_err(),
            _ => message.refuse_unknown_required(false).is_err(),
        };
        (!messages.iter().any(is_refused)).then_some(messages)
    }
}
