//! Messages that object headers share: in the header of a committed datatype, or in the file's heap of shared messages.

use h5live_cache::Owner;
use h5live_format::messages::{Message, MessageType, Shareable, SharedMessage, SharedMessageTarget};
use h5live_format::{RawMessage, decode_prefix};
use h5live_indexes::{FractalHeap, ObjectMetadata};

use crate::header::CachedHeader;
use crate::session::NativeSession;
use crate::{Error, Result};

impl NativeSession {
    /// The message `M` of an object, wherever it is stored.
    ///
    /// # Errors
    /// If it cannot be decoded, or is not where the header says.
    pub fn message<M: Message + Default>(&self, header: &CachedHeader) -> Result<Option<M>> {
        // Where it is shared, other headers are to be read: not while this one is held.
        let found = header.with_first(M::TYPE, |raw| match raw.flags.is_shared() {
            true => Err(raw.clone()),
            false => Ok(header.decode(raw)),
        });
        match found {
            None => Ok(None),
            Some(Ok(message)) => message.map(Some),
            Some(Err(raw)) => self.resolve_raw(header, &raw).map(Some),
        }
    }

    /// As [`NativeSession::message`], of a message that the object cannot do without.
    ///
    /// # Errors
    /// As [`NativeSession::message`]; [`Error::Object`] if there is none.
    pub fn required<M: Message + Default>(&self, header: &CachedHeader, rule: &'static str) -> Result<M> {
        self.message(header)?.ok_or_else(|| header.damaged_error(rule))
    }

    /// The message `M` that stands in a header, or to which what stands there leads.
    ///
    /// # Errors
    /// As [`NativeSession::message`].
    pub fn resolve_raw<M: Message + Default>(&self, header: &CachedHeader, raw: &RawMessage) -> Result<M> {
        if !raw.flags.is_shared() {
            return header.decode(raw);
        }
        let shared = Shareable::<M>::decode(&raw.body, true, header.widths());
        self.resolve(shared.map_err(|source| Error::Message { header: header.addr(), source })?)
    }

    /// The message that is here, or to which a reference leads.
    ///
    /// # Errors
    /// As [`NativeSession::message`].
    pub fn resolve<M: Message + Default>(&self, message: Shareable<M>) -> Result<M> {
        match message {
            Shareable::Inline(message) => Ok(message),
            Shareable::Shared(SharedMessage { place: SharedMessageTarget::Committed(addr), .. }) => {
                let header = self.header(addr)?;
                header.require("an object header has the message that others share")
            }
            Shareable::Shared(SharedMessage { place: SharedMessageTarget::Heap(id), .. }) => self.shared_in_heap(&id),
        }
    }

    /// The message `M` in the file's heap of shared messages under a heap ID.
    ///
    /// # Errors
    /// If there is no such heap, or nothing under the ID.
    pub fn shared_in_heap<M: Message + Default>(&self, id: &[u8; 8]) -> Result<M> {
        let bytes = self.shared_heap(M::TYPE)?.read_object(id)?;
        let decoded = decode_prefix::<M>(&bytes, self.cache.widths());
        decoded
            .map(|(message, _)| message)
            .map_err(|source| Error::Message { header: self.superblock.extension, source })
    }

    fn shared_heap(&self, kind: MessageType) -> Result<FractalHeap> {
        let tables = self.extension.shared.iter().flat_map(|table| &table.indexes);
        let index = tables.into_iter().find(|index| index.has(kind) && index.heap.is_defined());
        let rule = "the file has a heap for the messages that are shared";
        let index = index.ok_or(Error::Object { header: self.superblock.extension, rule })?;
        Ok(self.heaps.fractal_heap(&ObjectMetadata::new(self.cache.clone(), Owner::FILE), index.heap))
    }
}
