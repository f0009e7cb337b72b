//! The uses of the messages in the file's indexes of shared messages (format specification 4.0, III.I).
//!
//! Objects that h5live makes share no messages. But it deletes and changes objects of other programs that do, and counts
//! these uses as libhdf5 does: a message that nobody uses any more leaves its index and its heap. An index that becomes
//! empty stays.

use h5live_cache::{Handle, Owner};
use h5live_format::messages::{AttributeMessage, MessageType};
use h5live_format::{
    SharedMessageIndex, SharedMessageIndexKind, SharedMessageLocation, SharedMessageRecord, SharedMessageTable,
    decode_prefix,
};
use h5live_indexes::{Btree2, ObjectMetadataAccess};
use h5live_model::Name;

use crate::attributes::{AttributeStorage, DenseAttributes};
use crate::header::CachedHeader;
use crate::session::NativeSession;
use crate::shared_table_use::{
    SharedTableUse, add_uses_of_message, release_in_btree, release_in_list, uses_of_attribute, without_use,
};
use crate::superblock_extension::shared_message_table_bytes;
use crate::{Error, Result};

impl NativeSession {
    /// The shared messages that an object uses.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn shared_uses_of_object(&self, header: &CachedHeader) -> Result<Vec<SharedTableUse>> {
        let mut uses = Vec::new();
        if self.extension.shared.is_none() {
            return Ok(uses);
        }
        header.for_each_message(|_, raw| add_uses_of_message(header, raw, &mut uses))?;
        if let AttributeStorage::Dense(dense) = AttributeStorage::load(self, header)? {
            dense.for_each_shared_use(self, header, &mut |_, used| uses.push(used))?;
        }
        Ok(uses)
    }

    /// The shared messages that the message of type `kind` of an object uses.
    ///
    /// # Errors
    /// If the message cannot be read.
    pub fn shared_uses_of_message(&self, header: &CachedHeader, kind: MessageType) -> Result<Vec<SharedTableUse>> {
        let mut uses = Vec::new();
        if self.extension.shared.is_some()
            && let Some((_, raw)) = header.find_message(|message| message.kind == kind)
        {
            add_uses_of_message(header, &raw, &mut uses)?;
        }
        Ok(uses)
    }

    /// The shared messages that an attribute uses; none if there is no such attribute.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn shared_uses_of_attribute(&self, header: &CachedHeader, name: &Name) -> Result<Vec<SharedTableUse>> {
        let mut uses = Vec::new();
        if self.extension.shared.is_none() {
            return Ok(uses);
        }
        if let AttributeStorage::Dense(dense) = AttributeStorage::load(self, header)? {
            dense.for_each_shared_use(self, header, &mut |of, used| {
                if of == name {
                    uses.push(used);
                }
            })?;
            return Ok(uses);
        }
        header.for_each_message(|_, raw| {
            if raw.kind == MessageType::ATTRIBUTE {
                let attribute = self.resolve_raw_message::<AttributeMessage>(header, raw)?;
                if attribute.name == *name {
                    add_uses_of_message(header, raw, &mut uses)?;
                }
            }
            Ok(())
        })?;
        Ok(uses)
    }

    /// These uses of shared messages are no more.
    ///
    /// # Errors
    /// If a structure cannot be read or changed.
    pub fn release_shared_uses(&self, uses: Vec<SharedTableUse>) -> Result<()> {
        if !uses.is_empty() {
            self.make_flush_atomic_unless_followed();
        }
        let mut waiting = uses;
        while let Some(used) = waiting.pop() {
            let gone = self.release_shared_use(&used)?;
            if let Some(body) = gone.filter(|_| used.kind() == MessageType::ATTRIBUTE) {
                let attribute = decode_prefix::<AttributeMessage>(&body, self.cache.widths());
                let header = self.superblock.extension_or_free_space;
                let (attribute, _) = attribute.map_err(|source| Error::DamagedMessage { header, source })?;
                waiting.extend(uses_of_attribute(&attribute));
            }
        }
        Ok(())
    }

    /// As [`NativeSession::release_shared_uses`], of one. Returns the message if nobody uses it any more and it was in a heap.
    fn release_shared_use(&self, used: &SharedTableUse) -> Result<Option<Vec<u8>>> {
        let Some(table) = &self.extension.shared else { return Ok(None) };
        let is_index = |index: &SharedMessageIndex| index.indexes_type(used.kind()) && index.index.is_defined();
        let Some(number) = table.indexes.iter().position(is_index) else { return Ok(None) };
        let Some(index) = table.indexes.get(number) else { return Ok(None) };
        let metadata = ObjectMetadataAccess::new(self.cache.clone(), Owner::FILE);
        let heap = self.heaps.fractal_heap_for_writing(&metadata, index.heap);
        let table = self.shared_message_table(&metadata, table)?;
        let released = match index.kind {
            SharedMessageIndexKind::List => {
                let blank = || table.read().indexes.get(number).map(SharedMessageIndex::blank_list).unwrap_or_default();
                let record = SharedMessageRecord::size(self.cache.widths()) as u64;
                let len = 8 + record * u64::from(index.max_list_messages);
                release_in_list(&metadata.load(index.index, len, blank)?, used, &heap)?
            }
            SharedMessageIndexKind::Btree => {
                release_in_btree(&Btree2::new(metadata, index.index, SharedMessageRecord::default()), used, &heap)?
            }
        };
        let Some(gone) = released.filter(|record| without_use(record).is_none()) else { return Ok(None) };
        table.update(|table| {
            let count = table.indexes.get_mut(number).map(|index| &mut index.message_count);
            count.into_iter().for_each(|count| *count = count.saturating_sub(1));
        });
        let SharedMessageLocation::Heap { heap_id, .. } = gone.place else { return Ok(None) };
        let body = heap.read_object(&heap_id)?;
        heap.remove_object(&heap_id)?;
        Ok(Some(body))
    }

    fn shared_message_table(
        &self,
        metadata: &ObjectMetadataAccess,
        table: &SharedMessageTable,
    ) -> Result<Handle<SharedMessageTable>> {
        let len = shared_message_table_bytes(table.index_count, self.cache.widths());
        Ok(metadata.load(self.extension.shared_addr, len, || SharedMessageTable::blank(table.index_count))?)
    }
}

impl DenseAttributes {
    /// Calls `each` with every use of a shared message, and the name of the attribute that uses it.
    ///
    /// # Errors
    /// If a structure cannot be read.
    fn for_each_shared_use(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        each: &mut dyn FnMut(&Name, SharedTableUse),
    ) -> Result<()> {
        self.for_each_with_shared_id(session, header, &mut |shared, stored| {
            match shared {
                Some(id) => each(&stored.message.name, SharedTableUse::Heap { kind: MessageType::ATTRIBUTE, id }),
                None => uses_of_attribute(&stored.message).for_each(|used| each(&stored.message.name, used)),
            }
            Ok(())
        })
    }
}
