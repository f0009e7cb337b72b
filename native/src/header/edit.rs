//! Changes of an object header. A message is replaced in its place, or goes into unused space, or into a new chunk.
//!
//! Each change of a chunk is one write of that chunk. Before an old message is removed, the new one is in its place. So
//! no reader sees the object without it.

use h5live_cache::{DependencyKind, Owner, SpaceKind};
use h5live_format::messages::{ContinuationMessage, Message, MessageType, ReferenceCount};
use h5live_format::{Addr, ContinuationChunk, FirstHeaderChunk, MessageFlags, ObjectHeaderPrefix, RawMessage, Width};
use h5live_indexes::ObjectMetadataAccess;
use smallvec::smallvec;

use super::header_sizes::HeaderSizes;
use super::{CachedHeader, HeaderChunk, MessagePosition, must_stay_in_first_chunk};
use crate::{Error, Result};

/// Unused bytes in a new object header, for later messages.
///
/// Readers of other programs follow messages that are added in the first chunk. So there must be room for a
/// continuation message at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservedHeaderSpace {
    /// This many.
    AtEnd(usize),
    /// This many, before the last message.
    BeforeLastMessage(usize),
    /// As many as make all messages take this many.
    UpToTotal(usize),
}

/// Structures begin at multiples of this many bytes.
const HEADER_ALIGNMENT: u64 = 8;

/// Bytes of messages in a new continuation chunk, if nothing larger is to go in.
const CONTINUATION_ROOM_BYTES: usize = 480;

/// Most bytes of unused space in one message; a multiple of 8.
const MAX_NIL_BYTES: usize = 0xfff8;

/// Most bytes of a message body.
const MAX_BODY_BYTES: usize = u16::MAX as usize;

impl CachedHeader {
    /// A new header of the version that `prefix` has, with `messages` and unused space for later ones, in newly
    /// allocated space.
    ///
    /// # Errors
    /// If a message is too large, or there is no space.
    pub fn create_header(
        cache: &std::sync::Arc<h5live_cache::Cache>,
        mut prefix: ObjectHeaderPrefix,
        mut messages: Vec<RawMessage>,
        room: ReservedHeaderSpace,
    ) -> Result<Self> {
        let sizes = HeaderSizes::new(&prefix, cache.widths());
        if let Some(message) = messages.iter().find(|message| message.body.len() > MAX_BODY_BYTES) {
            return Err(too_large_message_error(message));
        }
        for message in &mut messages {
            message.body.resize(message.body.len().next_multiple_of(sizes.alignment_bytes));
        }
        let unused = match room {
            ReservedHeaderSpace::AtEnd(len) | ReservedHeaderSpace::BeforeLastMessage(len) => {
                len.next_multiple_of(sizes.alignment_bytes)
            }
            ReservedHeaderSpace::UpToTotal(len) => {
                let used: usize = messages.iter().map(|message| sizes.message_bytes_with_header(message)).sum();
                len.saturating_sub(used.saturating_add(sizes.message_header_bytes))
            }
        };
        let used: usize = messages.iter().map(|message| sizes.message_bytes_with_header(message)).sum();
        let mut unused = unused.max(sizes.continuation_bytes);
        // The next structure is aligned, so the bytes before it can be used here. A wider size field may need more
        // room.
        for _ in 0..3 {
            let area = used + sizes.message_header_bytes + unused;
            prefix.first_chunk_messages_size = area as u64;
            prefix.first_chunk_size_width = match area {
                0..=0xff => Width::ONE,
                0x100..=0xffff => Width::TWO,
                _ => Width::FOUR,
            };
            unused += (prefix.first_chunk_len().next_multiple_of(HEADER_ALIGNMENT) - prefix.first_chunk_len()) as usize;
        }
        let last = usize::from(matches!(room, ReservedHeaderSpace::BeforeLastMessage(_)));
        messages.insert(messages.len().saturating_sub(last), RawMessage::unused(unused));
        prefix.version_1_message_count = u16::try_from(messages.len()).unwrap_or(u16::MAX);
        let addr = cache.space().alloc(prefix.first_chunk_len(), SpaceKind::Metadata)?;
        let metadata = ObjectMetadataAccess::new(cache.clone(), Owner::new(addr));
        let first = cache.insert_entry(addr, metadata.owner(), FirstHeaderChunk { prefix, messages });
        Ok(CachedHeader { metadata, prefix, chunks: smallvec![HeaderChunk::First(first)] })
    }

    pub(super) fn message_sizes(&self) -> HeaderSizes {
        HeaderSizes::new(&self.prefix, self.widths())
    }

    /// The message that holds `message`.
    ///
    /// # Errors
    /// If a value does not fit the format.
    pub fn encode_message<M: Message + Clone>(&self, message: &M, flags: MessageFlags) -> Result<RawMessage> {
        let mut raw = RawMessage::encode_from(message, flags, self.widths())?;
        raw.body.resize(raw.body.len().next_multiple_of(self.message_sizes().alignment_bytes));
        Ok(raw)
    }

    /// Replaces the message `M` by `message`, or adds it.
    ///
    /// # Errors
    /// As [`CachedHeader::replace_message`] and [`CachedHeader::add_message`].
    pub fn set_message<M: Message + Clone>(&mut self, message: &M) -> Result<()> {
        let Some(spot) = self.find_position(|held| held.kind == M::TYPE) else {
            return self.add_message(self.encode_message(message, MessageFlags::default())?);
        };
        let mut new = self.encode_message(message, MessageFlags::default())?;
        let chunk = self.chunk_of(spot)?;
        let fits = chunk.with_messages(|messages| {
            messages.get(spot.message).is_some_and(|old| {
                (new.flags, new.creation_index) = (old.flags, old.creation_index);
                old.body.len() == new.body.len()
            })
        });
        if !fits {
            return self.replace_message(spot, new);
        }
        chunk.change_message(spot.message, |old| *old = new);
        Ok(())
    }

    /// Changes the bytes of the first message of type `kind`, if there is one, and returns what `change` does.
    pub fn change_message_body<T>(&self, kind: MessageType, change: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
        let spot = self.find_position(|held| held.kind == kind)?;
        self.chunks.get(spot.chunk)?.change_message(spot.message, |message| change(&mut message.body))
    }

    /// Replaces the message at `spot`.
    ///
    /// # Errors
    /// If the message is too large, or there is no space for a new chunk. The header is then unchanged.
    pub fn replace_message(&mut self, spot: MessagePosition, new: RawMessage) -> Result<()> {
        let sizes = self.message_sizes();
        let chunk = self.chunk_of(spot)?.clone();
        let old = chunk.with_messages(|messages| messages.get(spot.message).cloned());
        let old = old.ok_or_else(|| self.damaged_error("the message is still there"))?;
        let room = sizes.message_bytes_with_header(&old);
        let needed = sizes.message_bytes_with_header(&new);
        if sizes.fits_with_any_remainder(room, needed) {
            chunk.change_messages_and_fill(|messages| {
                messages
                    .splice(spot.message..=spot.message, [new].into_iter().chain(sizes.unused_message(room - needed)));
            });
            self.update_message_count();
            return Ok(());
        }
        self.add_message(new.clone())?;
        if !self.order_old_after_new(&old, &new)? {
            // The chunk of the new message waits for that of the old one, because another message has gone the other
            // way since the last flush: whichever is written first, one of the two would be in neither. Nothing waits
            // for a new chunk.
            let (place, _) = self.find_message(|held| *held == new).ok_or_else(|| self.lost_message_error())?;
            self.remove_message(place)?;
            self.add_continuation_chunk(new.clone(), sizes)?;
            self.order_old_after_new(&old, &new)?;
        }
        let (spot, _) = self.find_message(|held| *held == old).ok_or_else(|| self.lost_message_error())?;
        self.remove_message(spot)
    }

    /// Has the old message go after the new one has come: a writer that dies in between leaves both. `false` if the
    /// chunks cannot be written in this order.
    fn order_old_after_new(&self, old: &RawMessage, new: &RawMessage) -> Result<bool> {
        let place = |message| {
            self.find_message(|held| held == message).map(|(place, _)| place).ok_or_else(|| self.lost_message_error())
        };
        // The added message may have moved the old one.
        let (goes, comes) = (place(old)?, place(new)?);
        if goes.chunk == comes.chunk {
            return Ok(true);
        }
        let (goes, comes) = (self.chunk_of(goes)?.dependency_node(), self.chunk_of(comes)?.dependency_node());
        Ok(self.metadata.cache().add_dependency(goes, comes, DependencyKind::Continuation).is_ok())
    }

    fn lost_message_error(&self) -> Error {
        self.damaged_error("the message is still there")
    }

    /// Turns the message at `spot` into unused space.
    ///
    /// # Errors
    /// If there is no such message.
    pub fn remove_message(&mut self, spot: MessagePosition) -> Result<()> {
        let frame = self.message_sizes().message_header_bytes;
        self.chunk_of(spot)?.change_messages_and_fill(|messages| {
            if let Some(message) = messages.get_mut(spot.message) {
                *message = RawMessage::unused(message.body.len());
            }
            merge_unused_messages(messages, frame);
        });
        self.update_message_count();
        Ok(())
    }

    /// Adds a message in unused space, or in a new chunk.
    ///
    /// # Errors
    /// If the message is too large, or there is no space for a new chunk. The header is then unchanged.
    pub fn add_message(&mut self, message: RawMessage) -> Result<()> {
        if message.body.len() > MAX_BODY_BYTES {
            return Err(too_large_message_error(&message));
        }
        let sizes = self.message_sizes();
        let needed = sizes.message_bytes_with_header(&message);
        let last = self.chunks.len() - 1;
        for (number, chunk) in self.chunks.iter().enumerate() {
            let is_last_chunk = number == last;
            if let Some(at) = chunk.with_messages(|messages| find_unused_room(messages, needed, sizes, is_last_chunk)) {
                chunk.change_messages_and_fill(|messages| put_in_unused_space(messages, at, message, sizes));
                self.update_message_count();
                return Ok(());
            }
        }
        self.add_continuation_chunk(message, sizes)
    }

    /// Puts a message into a new chunk, to which the last one leads.
    fn add_continuation_chunk(&mut self, message: RawMessage, sizes: HeaderSizes) -> Result<()> {
        let last = self.chunks[self.chunks.len() - 1].clone();
        let continuation_message_bytes = sizes.message_header_bytes + sizes.continuation_bytes;
        let way = last.with_messages(|messages| make_continuation_room(messages, continuation_message_bytes, sizes));
        let (mut kept, at, moved) =
            way.ok_or_else(|| self.damaged_error("a chunk has messages that can make way for a continuation"))?;
        let mut messages: Vec<_> = moved.into_iter().chain([message]).collect();
        let used: usize = messages.iter().map(|message| sizes.message_bytes_with_header(message)).sum();
        let room = continuation_room(used, continuation_message_bytes);
        messages.extend(sizes.unused_message(room));
        let version = self.prefix.version;
        let length = ContinuationChunk::overhead(version) + (used + room) as u64;
        let chunk = ContinuationChunk {
            version,
            attribute_order_tracked: self.prefix.attribute_order_tracked,
            chunk_len: length,
            messages,
        };
        let chunk = self.metadata.create(length, chunk)?;
        let continuation =
            self.encode_message(&ContinuationMessage { addr: chunk.addr(), length }, MessageFlags::default())?;
        self.metadata
            .cache()
            .add_dependency(last.dependency_node(), &chunk, DependencyKind::Continuation)
            .map_err(h5live_cache::Error::from)?;
        put_in_unused_space(&mut kept, at, continuation, sizes);
        last.change_messages_and_fill(|messages| *messages = kept);
        self.chunks.push(HeaderChunk::Next(chunk));
        self.update_message_count();
        Ok(())
    }

    /// Moves the message of type `kind` into a new chunk, as other programs do where the first one is full.
    #[cfg(test)]
    pub(crate) fn move_to_new_chunk(&mut self, kind: MessageType) -> Result<()> {
        let found = self.find_message(|message| message.kind == kind);
        let (spot, message) = found.ok_or_else(|| self.damaged_error("the message is there"))?;
        self.remove_message(spot)?;
        self.add_continuation_chunk(message, self.message_sizes())
    }

    /// Changes the number of hard links to the object by `change`.
    ///
    /// # Errors
    /// As [`CachedHeader::add_message`].
    pub fn change_link_count(&mut self, change: i32) -> Result<()> {
        let count = match (self.get_message::<ReferenceCount>()?, self.prefix.version) {
            (Some(message), _) => message.hard_link_count,
            (None, 1) => self.prefix.version_1_reference_count,
            (None, _) => 1,
        };
        let count = count.saturating_add_signed(change);
        if self.prefix.version == 1 {
            self.prefix.version_1_reference_count = count;
            if let HeaderChunk::First(first) = &self.chunks[0] {
                first.update(|first| first.prefix.version_1_reference_count = count);
            }
            return Ok(());
        }
        self.set_message(&ReferenceCount { hard_link_count: count })
    }

    /// Reduces the header to an empty first chunk. A reader that still has the object open finds that it is deleted.
    /// Nothing leads to that chunk any more; returns where it is, and its length (bytes).
    pub fn replace_with_tombstone(self) -> (Addr, u64) {
        for chunk in &self.chunks {
            match chunk {
                HeaderChunk::First(first) => first.update(|first| {
                    let frame = self.message_sizes().message_header_bytes;
                    let mut left = usize::try_from(first.prefix.first_chunk_messages_size).unwrap_or(0);
                    first.messages.clear();
                    while let Some(room) = left.checked_sub(frame) {
                        first.messages.push(RawMessage::unused(room.min(MAX_NIL_BYTES)));
                        left = room - room.min(MAX_NIL_BYTES);
                    }
                    first.prefix.version_1_message_count = u16::try_from(first.messages.len()).unwrap_or(u16::MAX);
                }),
                HeaderChunk::Next(chunk) => self.metadata.free_structure(chunk.addr(), chunk.read().chunk_len),
            }
        }
        (self.addr(), self.prefix.first_chunk_len())
    }

    /// Gives back the space of the header, to which nothing must lead any more.
    pub fn delete_header(self) {
        let cache = self.metadata.cache();
        for chunk in &self.chunks {
            let (at, len) = match chunk {
                HeaderChunk::First(chunk) => (chunk.addr(), self.prefix.first_chunk_len()),
                HeaderChunk::Next(chunk) => (chunk.addr(), chunk.read().chunk_len),
            };
            cache.forget_entry(at);
            cache.space().free_metadata_after_full_flush(at, len);
        }
    }

    /// Version 1 headers state the number of their messages.
    pub(super) fn update_message_count(&mut self) {
        if self.prefix.version > 1 {
            return;
        }
        let count: usize = self.chunks.iter().map(|chunk| chunk.with_messages(<[RawMessage]>::len)).sum();
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        if std::mem::replace(&mut self.prefix.version_1_message_count, count) == count {
            return;
        }
        if let HeaderChunk::First(first) = &self.chunks[0] {
            first.update(|first| first.prefix.version_1_message_count = self.prefix.version_1_message_count);
        }
    }

    fn chunk_of(&self, spot: MessagePosition) -> Result<&HeaderChunk> {
        self.chunks.get(spot.chunk).ok_or_else(|| self.damaged_error("the message is still there"))
    }
}

fn too_large_message_error(message: &RawMessage) -> Error {
    Error::Model(h5live_model::Error::Invalid(format!(
        "{} bytes are too many for a {} message, which holds {MAX_BODY_BYTES}",
        message.body.len(),
        message.kind
    )))
}

/// Bytes of unused space in a new continuation chunk beside `used` bytes of messages; a further continuation message of
/// `continuation_message_bytes` fits in.
pub(super) fn continuation_room(used: usize, continuation_message_bytes: usize) -> usize {
    CONTINUATION_ROOM_BYTES.saturating_sub(used).max(continuation_message_bytes).next_multiple_of(8)
}

/// The unused space to put a message of `needed` bytes in. If the chunk is the last, room for a continuation must be
/// left in it.
pub(super) fn find_unused_room(
    messages: &[RawMessage],
    needed: usize,
    sizes: HeaderSizes,
    is_last_chunk: bool,
) -> Option<usize> {
    let continuation_message_bytes = sizes.message_header_bytes + sizes.continuation_bytes;
    let unused = || messages.iter().enumerate().filter(|(_, message)| message.is_unused());
    let continued = messages.iter().any(|message| message.kind == MessageType::CONTINUATION);
    let must_keep = is_last_chunk && !continued;
    let found = unused().find(|(at, message)| {
        let room = sizes.message_bytes_with_header(message);
        let elsewhere = || {
            unused().any(|(other, message)| {
                other != *at
                    && sizes
                        .fits_with_any_remainder(sizes.message_bytes_with_header(message), continuation_message_bytes)
            })
        };
        sizes.fits_with_any_remainder(room, needed)
            && (!must_keep || sizes.fits_with_any_remainder(room - needed, continuation_message_bytes) || elsewhere())
    });
    found.map(|(at, _)| at)
}

/// Makes room for a continuation message of `continuation_message_bytes` among the messages of a chunk. Returns the
/// remaining messages, the position of unused space that is large enough, and the messages that must move. `None` if
/// too few can move.
pub(super) fn make_continuation_room(
    messages: &[RawMessage],
    continuation_message_bytes: usize,
    sizes: HeaderSizes,
) -> Option<(Vec<RawMessage>, usize, Vec<RawMessage>)> {
    let mut kept = messages.to_vec();
    let mut moved = Vec::new();
    let large = |message: &RawMessage| {
        sizes.fits_with_any_remainder(sizes.message_bytes_with_header(message), continuation_message_bytes)
    };
    loop {
        if let Some(at) = kept.iter().position(|message| message.is_unused() && large(message)) {
            return Some((kept, at, moved));
        }
        // One message that is large enough, or else one after the other from the end; those that must come in an order,
        // and of which others know where they are, if there is no other.
        let movable = |message: &RawMessage| !message.is_unused() && message.kind != MessageType::CONTINUATION;
        let free = |message: &RawMessage| movable(message) && !must_stay_in_first_chunk(message);
        let one = kept.iter().rposition(|message| free(message) && large(message));
        let at = one.or_else(|| kept.iter().rposition(free)).or_else(|| kept.iter().rposition(movable))?;
        let unused = RawMessage::unused(kept.get(at)?.body.len());
        moved.push(std::mem::replace(kept.get_mut(at)?, unused));
        if one.is_none() {
            kept.sort_by_key(RawMessage::is_unused);
            merge_unused_messages(&mut kept, sizes.message_header_bytes);
        }
    }
}

pub(super) fn put_in_unused_space(messages: &mut Vec<RawMessage>, at: usize, message: RawMessage, sizes: HeaderSizes) {
    let room = messages.get(at).map_or(0, |unused| sizes.message_bytes_with_header(unused));
    let rest = sizes.unused_message(room - sizes.message_bytes_with_header(&message));
    messages.splice(at..=at, [message].into_iter().chain(rest));
}

pub(super) fn merge_unused_messages(messages: &mut Vec<RawMessage>, frame: usize) {
    messages.dedup_by(|next, kept| {
        let merged = kept.body.len() + next.body.len() + frame;
        let both = kept.is_unused() && next.is_unused() && merged <= MAX_BODY_BYTES;
        if both {
            kept.body.resize(merged);
        }
        both
    });
}
