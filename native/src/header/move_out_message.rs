//! Taking all links or attributes out of a header when they move elsewhere: readers see them in one place or the other.

use h5live_cache::DependencyKind;
use h5live_format::messages::{ContinuationMessage, MessageType};
use h5live_format::{ContinuationChunk, RawMessage};

use super::edit::{continuation_room, find_unused_room, merge_unused_messages, put_in_unused_space};
use super::header_sizes::HeaderSizes;
use super::{CachedHeader, HeaderChunk, must_stay_in_first_chunk};
use crate::Result;

impl CachedHeader {
    /// Removes all messages of type `removed_type`, and replaces the message of the type of `new`, both with one write of the
    /// first chunk. Messages in other chunks move, and the old chunks are given up. If some of these messages must stay
    /// in their place, chunk is written after chunk instead.
    ///
    /// # Errors
    /// If there is no space for a new chunk. The header is then unchanged.
    pub fn remove_type_and_set_message(&mut self, removed_type: MessageType, new: RawMessage) -> Result<()> {
        let sizes = self.message_sizes();
        if self.chunks[1..].iter().any(|chunk| chunk.with_messages(|held| held.iter().any(must_stay_in_first_chunk))) {
            return self.move_out_in_place(removed_type, new);
        }
        let is_kept = |message: &RawMessage| {
            !message.is_unused() && message.kind != removed_type && message.kind != MessageType::CONTINUATION
        };
        let replaced = |message: &RawMessage| message.kind == new.kind;
        let mut moving: Vec<RawMessage> = Vec::new();
        for chunk in &self.chunks[1..] {
            chunk.with_messages(|held| moving.extend(held.iter().filter(|m| is_kept(m) && !replaced(m)).cloned()));
        }
        let mut messages = self.chunks[0].with_messages(<[RawMessage]>::to_vec);
        let mut placed = false;
        for message in &mut messages {
            if replaced(message) && sizes.message_bytes_with_header(message) == sizes.message_bytes_with_header(&new) {
                *message = new.clone();
                placed = true;
            } else if replaced(message) || !is_kept(message) {
                *message = RawMessage::unused(message.body.len());
            }
        }
        merge_unused_messages(&mut messages, sizes.message_header_bytes);
        if !placed {
            moving.insert(0, new);
        }
        if let Some(whole) = try_merge(&messages, &moving, sizes) {
            let old: Vec<_> = self.chunks.drain(1..).collect();
            self.chunks[0].change_messages_and_fill(|held| *held = whole);
            old.into_iter().for_each(|chunk| self.free_chunk(chunk));
        } else {
            self.move_messages_to_new_chunk(messages, moving, sizes)?;
        }
        self.update_message_count();
        Ok(())
    }

    /// Moves the messages that do not fit into the first chunk to one new chunk, which replaces all others.
    fn move_messages_to_new_chunk(
        &mut self,
        mut messages: Vec<RawMessage>,
        mut moving: Vec<RawMessage>,
        sizes: HeaderSizes,
    ) -> Result<()> {
        let continuation_message_bytes = sizes.message_header_bytes + sizes.continuation_bytes;
        let place = |messages: &[RawMessage]| {
            messages.iter().position(|message| {
                message.is_unused()
                    && sizes
                        .fits_with_any_remainder(sizes.message_bytes_with_header(message), continuation_message_bytes)
            })
        };
        while place(&messages).is_none() {
            // Some message of the first chunk makes way.
            let movable = |message: &RawMessage| !message.is_unused() && !must_stay_in_first_chunk(message);
            let at = messages.iter().rposition(movable);
            let at =
                at.ok_or_else(|| self.damaged_error("a chunk has messages that can make way for a continuation"))?;
            let unused = RawMessage::unused(messages[at].body.len());
            moving.push(std::mem::replace(&mut messages[at], unused));
            messages.sort_by_key(RawMessage::is_unused);
            merge_unused_messages(&mut messages, sizes.message_header_bytes);
        }
        let used: usize = moving.iter().map(|message| sizes.message_bytes_with_header(message)).sum();
        let room = continuation_room(used, continuation_message_bytes);
        moving.extend(sizes.unused_message(room));
        let version = self.prefix.version;
        let len = ContinuationChunk::overhead(version) + (used + room) as u64;
        let attribute_order_tracked = self.prefix.attribute_order_tracked;
        let chunk = ContinuationChunk { version, attribute_order_tracked, chunk_len: len, messages: moving };
        let chunk = self.metadata.create(len, chunk)?;
        let continuation = ContinuationMessage { addr: chunk.addr(), length: len };
        let continuation = self.encode_message(&continuation, Default::default())?;
        let first = self.chunks[0].clone();
        self.metadata
            .cache()
            .add_dependency(first.dependency_node(), &chunk, DependencyKind::Continuation)
            .map_err(h5live_cache::Error::from)?;
        if let Some(at) = place(&messages) {
            put_in_unused_space(&mut messages, at, continuation, sizes);
        }
        let old: Vec<_> = self.chunks.drain(1..).collect();
        first.change_messages_and_fill(|held| *held = messages);
        self.chunks.push(HeaderChunk::Next(chunk));
        old.into_iter().for_each(|chunk| self.free_chunk(chunk));
        Ok(())
    }

    fn move_out_in_place(&mut self, gone: MessageType, new: RawMessage) -> Result<()> {
        match self.find_message(|message| message.kind == new.kind) {
            Some((spot, _)) => self.replace_message(spot, new)?,
            None => self.add_message(new)?,
        }
        while let Some((spot, _)) = self.find_message(|message| message.kind == gone) {
            self.remove_message(spot)?;
        }
        Ok(())
    }

    fn free_chunk(&self, chunk: HeaderChunk) {
        if let HeaderChunk::Next(chunk) = chunk {
            let len = chunk.read().chunk_len;
            self.metadata.free_structure(chunk.addr(), len);
        }
    }
}

/// A chunk of `messages` that also has all of `moving`, and room for a continuation; `None` if they do not fit.
fn try_merge(messages: &[RawMessage], moving: &[RawMessage], sizes: HeaderSizes) -> Option<Vec<RawMessage>> {
    let mut messages = messages.to_vec();
    for message in moving {
        let at = find_unused_room(&messages, sizes.message_bytes_with_header(message), sizes, true)?;
        put_in_unused_space(&mut messages, at, message.clone(), sizes);
    }
    Some(messages)
}
