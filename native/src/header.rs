//! The object header of one object: its chunks, and the messages in them.

mod edit;
mod entry_storage;
mod header_sizes;
mod move_out_message;

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use h5live_cache::{DependencyKind, DependencyNode, Handle};
use h5live_format::messages::{
    Comment, ContinuationMessage, Message, MessageType, ModificationTime, OldModificationTime, ReferenceCount,
};
use h5live_format::{
    Addr, ContinuationChunk, FirstHeaderChunk, ObjectHeaderPrefix, RawMessage, Widths, decode, decode_prefix,
    decode_prefix_with,
};
use h5live_indexes::ObjectMetadataAccess;
use h5live_model::{ObjectInfo, ObjectTimes};
use smallvec::{SmallVec, smallvec};

pub use edit::ReservedHeaderSpace;
use entry_storage::attribute_storage;
pub(crate) use entry_storage::creation_order;
use header_sizes::fill_with_unused_message;

use crate::{Error, Result};

/// Bytes that are read at once in the hope that they hold a whole first chunk.
const FIRST_READ_BYTES: usize = 512;

/// Most chunks of one header: more are taken for a circle or an attack.
const MAX_HEADER_CHUNKS: usize = 4096;

/// One chunk of a header.
#[derive(Debug, Clone)]
pub(crate) enum HeaderChunk {
    /// The first, in the cache.
    First(Handle<FirstHeaderChunk>),
    /// A continuation, in the cache.
    Next(Handle<ContinuationChunk>),
}

impl HeaderChunk {
    pub fn with_messages<R>(&self, look: impl FnOnce(&[RawMessage]) -> R) -> R {
        match self {
            HeaderChunk::First(chunk) => look(&chunk.read().messages),
            HeaderChunk::Next(chunk) => look(&chunk.read().messages),
        }
    }

    /// Changes the messages. The rest of the chunk is marked as unused.
    pub fn change_messages_and_fill<R>(&self, change: impl FnOnce(&mut Vec<RawMessage>) -> R) -> R {
        match self {
            HeaderChunk::First(chunk) => chunk.update(|chunk| {
                let done = change(&mut chunk.messages);
                fill_with_unused_message(
                    &mut chunk.messages,
                    chunk.prefix.message_header_len(),
                    chunk.prefix.first_chunk_messages_size,
                );
                done
            }),
            HeaderChunk::Next(chunk) => chunk.update(|chunk| {
                let done = change(&mut chunk.messages);
                let prefix = ObjectHeaderPrefix {
                    version: chunk.version,
                    attribute_order_tracked: chunk.attribute_order_tracked,
                    ..ObjectHeaderPrefix::default()
                };
                let area = chunk.chunk_len.saturating_sub(ContinuationChunk::overhead(chunk.version));
                fill_with_unused_message(&mut chunk.messages, prefix.message_header_len(), area);
                done
            }),
        }
    }

    /// Changes a message without changing its length.
    fn change_message<R>(&self, at: usize, change: impl FnOnce(&mut RawMessage) -> R) -> Option<R> {
        match self {
            HeaderChunk::First(chunk) => chunk.update(|chunk| chunk.messages.get_mut(at).map(change)),
            HeaderChunk::Next(chunk) => chunk.update(|chunk| chunk.messages.get_mut(at).map(change)),
        }
    }

    pub fn dependency_node(&self) -> &dyn DependencyNode {
        match self {
            HeaderChunk::First(chunk) => chunk,
            HeaderChunk::Next(chunk) => chunk,
        }
    }
}

/// The position of a message: its chunk, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePosition {
    chunk: usize,
    message: usize,
}

/// The object header of one object, in the cache.
#[derive(Debug, Clone)]
pub struct CachedHeader {
    metadata: ObjectMetadataAccess,
    prefix: ObjectHeaderPrefix,
    /// Nearly always one.
    chunks: SmallVec<[HeaderChunk; 1]>,
}

impl CachedHeader {
    /// Loads the header at the address that `metadata` names as its owner, with all its continuations. `writing` says
    /// whether the object will be changed.
    ///
    /// # Errors
    /// If a chunk cannot be read, or an unknown message forbids reading or writing.
    pub fn load_header(metadata: &ObjectMetadataAccess, writing: bool) -> Result<Self> {
        let at = metadata.owner().object_header_addr();
        let first = metadata.cache().load(at, metadata.owner(), || read_first_chunk(metadata, at))?;
        let prefix = first.read().prefix;
        let mut header =
            CachedHeader { metadata: metadata.clone(), prefix, chunks: smallvec![HeaderChunk::First(first)] };
        // Almost every header is one chunk.
        let mut seen = BTreeSet::new();
        let mut next = 0;
        while let Some(chunk) = header.chunks.get(next) {
            next += 1;
            let continues = chunk.with_messages(|messages| {
                messages.iter().try_fold(false, |continues, message| {
                    message.refuse_unknown_required(writing)?;
                    Ok(continues || message.kind == MessageType::CONTINUATION)
                })
            });
            if !continues.map_err(|source| header.message_error(source))? {
                continue;
            }
            for continuation in header.decode_messages::<ContinuationMessage>(chunk)? {
                if continuation.addr == at || !seen.insert(continuation.addr) || seen.len() >= MAX_HEADER_CHUNKS {
                    return Err(header.damaged_error("its continuations do not form a circle"));
                }
                let chunk = metadata.load(continuation.addr, continuation.length, || ContinuationChunk {
                    version: prefix.version,
                    attribute_order_tracked: prefix.attribute_order_tracked,
                    chunk_len: continuation.length,
                    messages: Vec::new(),
                })?;
                header.chunks.push(HeaderChunk::Next(chunk));
            }
        }
        Ok(header)
    }

    fn decode_messages<M: Message + Default>(&self, chunk: &HeaderChunk) -> Result<Vec<M>> {
        chunk.with_messages(|messages| {
            let of_type = messages.iter().filter(|message| message.kind == M::TYPE);
            of_type.map(|message| message.decode(self.widths()).map_err(|e| self.message_error(e))).collect()
        })
    }

    /// Where the header is.
    pub fn addr(&self) -> Addr {
        self.metadata.owner().object_header_addr()
    }

    /// The part of the header before the messages.
    pub fn prefix(&self) -> &ObjectHeaderPrefix {
        &self.prefix
    }

    /// The way to the object's structures.
    pub fn metadata(&self) -> &ObjectMetadataAccess {
        &self.metadata
    }

    /// The widths of the file.
    pub fn widths(&self) -> Widths {
        self.metadata.widths()
    }

    /// Hashes everything that the header says.
    pub fn hash_state(&self, state: &mut impl Hasher) {
        self.chunk_ranges().for_each(|extent| extent.hash(state));
        let mut hash_message =
            |message: &RawMessage| (format!("{:?}{:?}", message.kind, message.flags), &message.body).hash(state);
        self.chunks
            .iter()
            .for_each(|chunk| chunk.with_messages(|messages| messages.iter().for_each(&mut hash_message)));
    }

    /// Whether the first chunk is all of the header.
    pub fn is_single_chunk(&self) -> bool {
        self.chunks.len() == 1
    }

    /// The first byte and the length of each chunk.
    pub fn chunk_ranges(&self) -> impl Iterator<Item = (Addr, usize)> {
        self.chunks.iter().map(|chunk| {
            let (at, len) = match chunk {
                HeaderChunk::First(chunk) => (chunk.addr(), chunk.read().prefix.first_chunk_len()),
                HeaderChunk::Next(chunk) => (chunk.addr(), chunk.read().chunk_len),
            };
            (at, usize::try_from(len).unwrap_or(usize::MAX))
        })
    }

    /// Whether the first chunk holds the message of type `kind`.
    pub fn first_chunk_has(&self, kind: MessageType) -> bool {
        self.find_position(|message| message.kind == kind).is_some_and(|spot| spot.chunk == 0)
    }

    /// Whether the message of type `kind` is in a chunk that may be written before that of the message of type `other`:
    /// chunks are written from the last to the first.
    pub fn may_be_written_before(&self, kind: MessageType, other: MessageType) -> bool {
        let chunk_of = |kind| self.find_position(|message| message.kind == kind).map(|spot| spot.chunk);
        chunk_of(kind).is_some_and(|chunk| chunk > 0 && chunk_of(other) != Some(chunk))
    }

    /// The first chunk, and the position in it of the message of type `kind`, if it is there.
    pub fn find_in_first_chunk(&self, kind: MessageType) -> Option<(&Handle<FirstHeaderChunk>, usize)> {
        let Some(HeaderChunk::First(first)) = self.chunks.first() else { return None };
        let spot = first.read().messages.iter().position(|message| message.kind == kind)?;
        Some((first, spot))
    }

    /// Makes the chunk with the message of type `kind` wait for `child`.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn add_message_dependency(
        &self,
        kind: MessageType,
        child: &dyn DependencyNode,
        edge: DependencyKind,
    ) -> Result<()> {
        if let Some(node) = self.chunk_node_of(kind) {
            self.metadata.cache().add_dependency(node, child, edge).map_err(h5live_cache::Error::from)?;
        }
        Ok(())
    }

    /// The chunk that holds the message of type `kind`.
    pub fn chunk_node_of(&self, kind: MessageType) -> Option<&dyn DependencyNode> {
        let holds =
            |chunk: &&HeaderChunk| chunk.with_messages(|messages| messages.iter().any(|message| message.kind == kind));
        self.chunks.iter().find(holds).map(HeaderChunk::dependency_node)
    }

    /// The chunks, for those that must be written before or after the header.
    pub fn chunk_nodes(&self) -> impl Iterator<Item = &dyn DependencyNode> {
        self.chunks.iter().map(HeaderChunk::dependency_node)
    }

    /// Whether nothing in the file leads to the object, because it is not there yet.
    pub fn is_new(&self) -> bool {
        self.chunks.first().is_some_and(|chunk| match chunk {
            HeaderChunk::First(chunk) => chunk.is_new(),
            HeaderChunk::Next(chunk) => chunk.is_new(),
        })
    }

    /// Makes every chunk of this header wait for every chunk of `other`. If that would close a circle, as between
    /// groups that link to each other, `other` had a link before and is in the file already.
    pub fn add_dependency_on(&self, other: &CachedHeader, edge: DependencyKind) {
        for parent in &self.chunks {
            for child in &other.chunks {
                let _circle =
                    self.metadata.cache().add_dependency(parent.dependency_node(), child.dependency_node(), edge);
            }
        }
    }

    /// Calls `look` with every message but unused space and continuations, until it fails.
    ///
    /// # Errors
    /// The error of `look`.
    pub fn for_each_message(&self, mut look: impl FnMut(MessagePosition, &RawMessage) -> Result<()>) -> Result<()> {
        for (number, chunk) in self.chunks.iter().enumerate() {
            chunk.with_messages(|messages| {
                let used = messages.iter().enumerate();
                let mut used = used.filter(|(_, m)| !m.is_unused() && m.kind != MessageType::CONTINUATION);
                used.try_for_each(|(message, raw)| look(MessagePosition { chunk: number, message }, raw))
            })?;
        }
        Ok(())
    }

    /// Calls `look` with the type of every message.
    pub fn for_each_message_type(&self, mut look: impl FnMut(MessageType)) {
        self.chunks
            .iter()
            .for_each(|chunk| chunk.with_messages(|messages| messages.iter().for_each(|held| look(held.kind))));
    }

    /// Where the first message is that `wanted` accepts.
    fn find_position(&self, mut wanted: impl FnMut(&RawMessage) -> bool) -> Option<MessagePosition> {
        self.chunks.iter().enumerate().find_map(|(chunk, held)| {
            let message = held.with_messages(|messages| messages.iter().position(&mut wanted))?;
            Some(MessagePosition { chunk, message })
        })
    }

    /// The first message that `wanted` accepts, and where it is.
    pub fn find_message(&self, mut wanted: impl FnMut(&RawMessage) -> bool) -> Option<(MessagePosition, RawMessage)> {
        self.chunks.iter().enumerate().find_map(|(chunk, held)| {
            held.with_messages(|messages| {
                let message = messages.iter().position(&mut wanted)?;
                Some((MessagePosition { chunk, message }, messages.get(message)?.clone()))
            })
        })
    }

    /// Calls `look` with the first message of type `kind`, and returns its result.
    pub fn with_first_message<T>(&self, kind: MessageType, look: impl FnOnce(&RawMessage) -> T) -> Option<T> {
        let mut look = Some(look);
        self.chunks.iter().find_map(|chunk| {
            chunk.with_messages(|messages| {
                let message = messages.iter().find(|message| message.kind == kind)?;
                look.take().map(|look| look(message))
            })
        })
    }

    /// Whether there are no messages: the object is deleted.
    pub fn is_tombstone(&self) -> bool {
        self.find_position(|message| !message.is_unused()).is_none()
    }

    /// How many messages of a type there are.
    pub fn message_count(&self, kind: MessageType) -> u64 {
        let mut count = 0;
        self.for_each_message_type(|held| count += u64::from(held == kind));
        count
    }

    /// Whether there is a message of a type.
    pub fn has_message(&self, kind: MessageType) -> bool {
        self.find_position(|message| message.kind == kind).is_some()
    }

    /// The message `M`, if the header has one. One that may be stored elsewhere is loaded by
    /// [`NativeSession::load_message`](crate::session::NativeSession::load_message).
    ///
    /// # Errors
    /// If it cannot be decoded.
    pub fn get_message<M: Message + Default>(&self) -> Result<Option<M>> {
        self.with_first_message(M::TYPE, |message| self.decode_message(message)).transpose()
    }

    /// The message `M`, which the object cannot do without.
    ///
    /// # Errors
    /// If it is not there, or cannot be decoded.
    pub fn require_message<M: Message + Default>(&self, rule: &'static str) -> Result<M> {
        self.get_message()?.ok_or_else(|| self.damaged_error(rule))
    }

    /// The body of `message` as `M`.
    ///
    /// # Errors
    /// If it cannot be decoded.
    pub fn decode_message<M: Message + Default>(&self, message: &RawMessage) -> Result<M> {
        message.decode(self.widths()).map_err(|source| self.message_error(source))
    }

    /// Information about the object beside links, attributes and values.
    ///
    /// # Errors
    /// If a message cannot be decoded.
    pub fn object_info(&self) -> Result<ObjectInfo> {
        let links = match self.get_message::<ReferenceCount>()? {
            Some(count) => count.hard_link_count,
            None => self.prefix.version_1_reference_count,
        };
        let change = match self.get_message::<ModificationTime>()? {
            Some(time) => Some(time.unix_seconds.into()),
            None => self.get_message::<OldModificationTime>()?.map(|time| time.unix_seconds()),
        };
        let times = match (self.prefix.times, change) {
            (Some(times), _) => Some(ObjectTimes {
                access: times.access.into(),
                modification: times.modification.into(),
                change: times.change.into(),
                birth: times.birth.into(),
            }),
            (None, change) => change.map(|change| ObjectTimes { change, ..ObjectTimes::default() }),
        };
        let comment = self.get_message::<Comment>()?.map(|comment| comment.text);
        let attributes = attribute_storage(&self.prefix);
        Ok(ObjectInfo { hard_link_count: links, times, comment, attribute_storage: attributes })
    }

    /// Says when the object was touched, as far as the header keeps that.
    ///
    /// # Errors
    /// If the header cannot be changed.
    pub fn set_times(&mut self, times: ObjectTimes) -> Result<()> {
        // Headers of version 1 know one time alone.
        let seconds = |time: i64| {
            let time = if time == 0 { times.change } else { time };
            u32::try_from(time.max(0)).unwrap_or(u32::MAX)
        };
        if self.prefix.times.is_some() {
            let times = h5live_format::HeaderTimes {
                access: seconds(times.access),
                modification: seconds(times.modification),
                change: seconds(times.change),
                birth: seconds(times.birth),
            };
            self.prefix.times = Some(times);
            if let Some(HeaderChunk::First(first)) = self.chunks.first() {
                first.update(|header| header.prefix.times = Some(times));
            }
        } else if self.has_message(MessageType::MODIFICATION_TIME) {
            self.set_message(&ModificationTime { unix_seconds: seconds(times.change) })?;
        }
        Ok(())
    }

    /// The error of an object that breaks `rule`.
    pub fn damaged_error(&self, rule: &'static str) -> Error {
        Error::DamagedObject { header: self.addr(), rule }
    }

    fn message_error(&self, source: h5live_format::DecodeError) -> Error {
        Error::DamagedMessage { header: self.addr(), source }
    }
}

/// Whether writers of chunks of a dataset rely on the header chunk in which the message is.
fn must_stay_in_first_chunk(message: &RawMessage) -> bool {
    [MessageType::LAYOUT, MessageType::DATASPACE].contains(&message.kind)
}

/// Reads the first chunk: its size is known only when its beginning has been read.
fn read_first_chunk(metadata: &ObjectMetadataAccess, at: Addr) -> h5live_cache::Result<FirstHeaderChunk> {
    let cache = metadata.cache();
    let widths = metadata.widths();
    let wrong = |source| h5live_cache::Error::Decode { at, source };
    let mut first = [0; FIRST_READ_BYTES];
    let bytes = cache.read_uncached_to_eof_into(at, &mut first)?;
    // Nearly all are complete. Other faults are found below.
    if let Ok((header, _)) = decode_prefix(bytes, widths) {
        return Ok(header);
    }
    let (prefix, _) = decode_prefix_with(ObjectHeaderPrefix::default(), bytes, widths).map_err(wrong)?;
    let len = usize::try_from(prefix.first_chunk_len()).unwrap_or(usize::MAX);
    match bytes.get(..len) {
        Some(whole) => decode(whole, widths),
        None => decode(&cache.read_block_uncached(at, len)?, widths),
    }
    .map_err(wrong)
}
