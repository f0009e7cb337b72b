//! Messages that object headers share: in the header of a committed datatype, or in the file's heap of shared messages.

use h5live_cache::Owner;
use h5live_format::messages::{Message, MessageType, Shareable, SharedMessageReference, SharedMessageTarget};
use h5live_format::{RawMessage, decode_prefix};
use h5live_indexes::{FractalHeap, ObjectMetadataAccess};

use crate::header::CachedHeader;
use crate::session::NativeSession;
use crate::{Error, Result};

impl NativeSession {
    /// The message `M` of an object, wherever it is stored.
    ///
    /// # Errors
    /// If it cannot be decoded, or is not where the header says.
    pub fn load_message<M: Message + Default>(&self, header: &CachedHeader) -> Result<Option<M>> {
        // Where it is shared, other headers are to be read: not while this one is held.
        let found = header.with_first_message(M::TYPE, |raw| match raw.flags.is_shared() {
            true => Err(raw.clone()),
            false => Ok(header.decode_message(raw)),
        });
        match found {
            None => Ok(None),
            Some(Ok(message)) => message.map(Some),
            Some(Err(raw)) => self.resolve_raw_message(header, &raw).map(Some),
        }
    }

    /// As [`NativeSession::load_message`], of a message that the object cannot do without.
    ///
    /// # Errors
    /// As [`NativeSession::load_message`]; [`Error::DamagedObject`] if there is none.
    pub fn require_message<M: Message + Default>(&self, header: &CachedHeader, rule: &'static str) -> Result<M> {
        self.load_message(header)?.ok_or_else(|| header.damaged_error(rule))
    }

    /// The message `M` that stands in a header, or to which what stands there leads.
    ///
    /// # Errors
    /// As [`NativeSession::load_message`].
    pub fn resolve_raw_message<M: Message + Default>(&self, header: &CachedHeader, raw: &RawMessage) -> Result<M> {
        if !raw.flags.is_shared() {
            return header.decode_message(raw);
        }
        let shared = Shareable::<M>::decode(&raw.body, true, header.widths());
        self.resolve_shareable(shared.map_err(|source| Error::DamagedMessage { header: header.addr(), source })?)
    }

    /// The message that is here, or to which a reference leads.
    ///
    /// # Errors
    /// As [`NativeSession::load_message`].
    pub fn resolve_shareable<M: Message + Default>(&self, message: Shareable<M>) -> Result<M> {
        match message {
            Shareable::Inline(message) => Ok(message),
            Shareable::Shared(SharedMessageReference { place: SharedMessageTarget::Committed(addr), .. }) => {
                let header = self.load_header(addr)?;
                header.require_message("an object header has the message that others share")
            }
            Shareable::Shared(SharedMessageReference { place: SharedMessageTarget::Heap(id), .. }) => {
                self.load_message_from_shared_heap(&id)
            }
        }
    }

    /// The message `M` in the file's heap of shared messages under a heap ID.
    ///
    /// # Errors
    /// If there is no such heap, or nothing under the ID.
    pub fn load_message_from_shared_heap<M: Message + Default>(&self, id: &[u8; 8]) -> Result<M> {
        let bytes = self.open_shared_message_heap(M::TYPE)?.read_object(id)?;
        let decoded = decode_prefix::<M>(&bytes, self.cache.widths());
        decoded
            .map(|(message, _)| message)
            .map_err(|source| Error::DamagedMessage { header: self.superblock.extension_or_free_space, source })
    }

    fn open_shared_message_heap(&self, kind: MessageType) -> Result<FractalHeap> {
        let tables = self.extension.shared.iter().flat_map(|table| &table.indexes);
        let index = tables.into_iter().find(|index| index.indexes_type(kind) && index.heap.is_defined());
        let rule = "the file has a heap for the messages that are shared";
        let index = index.ok_or(Error::DamagedObject { header: self.superblock.extension_or_free_space, rule })?;
        Ok(self.heaps.fractal_heap(&ObjectMetadataAccess::new(self.cache.clone(), Owner::FILE), index.heap))
    }
}
