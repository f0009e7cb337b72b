//! Dense attributes: a heap of attribute messages, an index of their names, and perhaps one of the order of creation.

use std::cmp::Ordering;
use std::collections::HashMap;

use h5live_format::messages::{AttributeInfo, AttributeMessage};
use h5live_format::{AttributeNameRecord, AttributeOrderRecord, decode_prefix, encode, lookup3};
use h5live_indexes::{Btree2, FractalHeap, HeapParameters, Prerequisite};
use h5live_model::Name;

use super::stored::StoredAttribute;
use crate::dense_storage::{DenseStorage, HashOrderedPage};
use crate::header::CachedHeader;
use crate::session::NativeSession;
use crate::{Error, Result};

/// The flag of a dense attribute that is in the file's heap of shared messages.
const SHARED_FLAG: u8 = 0x02;

/// The dense attributes of an object.
pub(crate) struct DenseAttributes {
    storage: DenseStorage<AttributeNameRecord, AttributeOrderRecord>,
}

/// The source of a new dense attribute.
pub(crate) enum AttributeSource<'a> {
    /// A message.
    Message(&'a AttributeMessage),
    /// A message in the file's heap of shared messages, under an ID.
    Shared([u8; 8]),
}

impl DenseAttributes {
    /// The attributes to which `info` leads, to be read.
    pub fn open(session: &NativeSession, header: &CachedHeader, info: &AttributeInfo) -> Self {
        Self::from_info(session.heaps.fractal_heap(header.metadata(), info.heap), header, info)
    }

    /// The attributes to which `info` leads, to be changed.
    pub fn open_for_writing(session: &NativeSession, header: &CachedHeader, info: &AttributeInfo) -> Self {
        Self::from_info(session.heaps.fractal_heap_for_writing(header.metadata(), info.heap), header, info)
    }

    /// The attributes to which `info` leads, for a comparison with other structures or for a correction of those.
    pub fn open_for_check_or_repair(
        session: &NativeSession,
        header: &CachedHeader,
        info: &AttributeInfo,
        repair: bool,
    ) -> Self {
        if repair { Self::open_for_writing(session, header, info) } else { Self::open(session, header, info) }
    }

    fn from_info(heap: FractalHeap, header: &CachedHeader, info: &AttributeInfo) -> Self {
        let storage = DenseStorage::new(header.metadata(), heap, info.name_index, info.order_index);
        DenseAttributes { storage }
    }

    /// Makes room for dense attributes, to which `info` leads from then on.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create_empty(session: &NativeSession, header: &CachedHeader, info: &mut AttributeInfo) -> Result<Self> {
        let metadata = header.metadata();
        let heap = session.heaps.new_fractal_heap(metadata, &HeapParameters::ATTRIBUTES, None)?;
        let storage = DenseStorage::create(metadata, heap, info.order_index.is_some())?;
        (info.heap, info.name_index) = (storage.heap.addr(), storage.names.addr());
        info.order_index = storage.order.as_ref().map(Btree2::addr);
        Ok(DenseAttributes { storage })
    }

    /// Makes the header wait for the indexes, and these for the heap. Call it before an attribute is added, because a
    /// structure to which the attribute leads may already wait for the header.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn add_flush_parent(&self, header: &CachedHeader) -> Result<()> {
        self.storage.add_flush_parent(header)
    }

    /// The number of attributes.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn attribute_count(&self) -> Result<u64> {
        self.storage.len()
    }

    fn decode_record(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        record: &AttributeNameRecord,
    ) -> Result<StoredAttribute> {
        let message = if record.message_flags & SHARED_FLAG != 0 {
            session.load_message_from_shared_heap(&record.heap_id)?
        } else {
            let bytes = self.storage.heap.read_object(&record.heap_id)?;
            let decoded = decode_prefix::<AttributeMessage>(&bytes, header.widths());
            decoded.map_err(|source| Error::DamagedMessage { header: header.addr(), source })?.0
        };
        // Positions of dense attributes take four bytes, of which two are used.
        Ok(StoredAttribute { message, creation_order: u16::try_from(record.creation_order).unwrap_or(u16::MAX) })
    }

    /// How a record compares with a name.
    fn compare_name(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        record: &AttributeNameRecord,
        (hash, name): (u32, &Name),
    ) -> Result<Ordering> {
        match record.hash.cmp(&hash) {
            Ordering::Equal => Ok(self.decode_record(session, header, record)?.message.name.cmp(name)),
            different => Ok(different),
        }
    }

    /// The attribute of this name.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn find_attribute(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        name: &Name,
    ) -> Result<Option<StoredAttribute>> {
        let hash = lookup3(name.as_bytes(), 0);
        let (mut found, mut collides) = (None, false);
        self.storage.names.find(|record| {
            if record.hash != hash {
                return Ok(record.hash.cmp(&hash));
            }
            let stored = self.decode_record(session, header, record)?;
            let order = stored.message.name.cmp(name);
            collides |= order != Ordering::Equal;
            found = (order == Ordering::Equal).then_some(stored);
            Ok::<_, Error>(order)
        })?;
        if found.is_none() && collides {
            // Some programs do not sort names of the same hash.
            self.storage.names.for_each(&mut |record| {
                if record.hash == hash && found.is_none() {
                    let stored = self.decode_record(session, header, &record)?;
                    found = (stored.message.name == *name).then_some(stored);
                }
                Ok::<_, Error>(record.hash <= hash && found.is_none())
            })?;
        }
        Ok(found)
    }

    /// Calls `each` with every attribute, until it returns `false` or fails.
    ///
    /// # Errors
    /// If a structure cannot be read; the error of `each`.
    pub fn for_each_attribute(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        each: &mut dyn FnMut(StoredAttribute) -> Result<bool>,
    ) -> Result<()> {
        self.storage.names.for_each(&mut |record| each(self.decode_record(session, header, &record)?))
    }

    /// Calls `each` with every attribute whose name has a greater hash than `after`, until it returns `false` and the hash
    /// changes, or fails. Returns whether there are more.
    ///
    /// # Errors
    /// If a structure cannot be read; the error of `each`.
    pub fn for_each_attribute_page(
        &self,
        (session, header): (&NativeSession, &CachedHeader),
        after: Option<&Name>,
        each: &mut dyn FnMut(StoredAttribute) -> Result<bool>,
    ) -> Result<bool> {
        let (first, mut part) = (HashOrderedPage::after(after), HashOrderedPage::after(after));
        self.storage
            .names
            .for_each_from(&mut |record| Ok::<_, Error>(first.hash_precedes_page(record.hash)), &mut |record| {
                part.visit_if_in_page(record.hash, || each(self.decode_record(session, header, &record)?))
            })?;
        Ok(part.has_more_after_page())
    }

    /// Calls `each` with every attribute, and its ID in the file's heap of shared messages if it is there.
    ///
    /// # Errors
    /// If a structure cannot be read; the error of `each`.
    pub fn for_each_with_shared_id(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        each: &mut dyn FnMut(Option<[u8; 8]>, StoredAttribute) -> Result<()>,
    ) -> Result<()> {
        self.storage.names.for_each(&mut |record| {
            let shared = (record.message_flags & SHARED_FLAG != 0).then_some(record.heap_id);
            each(shared, self.decode_record(session, header, &record)?).map(|()| true)
        })
    }

    /// Whether an attribute is in the file's heap of shared messages.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn has_shared_attributes(&self) -> Result<bool> {
        let mut found = false;
        self.storage.names.for_each(&mut |record| {
            found |= record.message_flags & SHARED_FLAG != 0;
            Ok::<_, Error>(!found)
        })?;
        Ok(found)
    }

    fn init_heap_space(&self) -> Result<()> {
        self.storage.heap.init_free_space(|each| {
            self.storage.names.for_each(&mut |record| {
                if record.message_flags & SHARED_FLAG == 0 {
                    each(&record.heap_id);
                }
                Ok::<_, Error>(true)
            })
        })
    }

    /// Adds an attribute, which is written after `before`, or replaces the one of its name.
    ///
    /// # Errors
    /// If a structure cannot be read, or there is no room.
    pub fn insert_or_replace_attribute(
        &self,
        (session, header): (&NativeSession, &CachedHeader),
        name: &Name,
        source: &AttributeSource<'_>,
        creation_order: u16,
        before: &[Prerequisite<'_>],
    ) -> Result<()> {
        self.init_heap_space()?;
        let key = (lookup3(name.as_bytes(), 0), name);
        let compare = |record: &AttributeNameRecord| self.compare_name(session, header, record, key);
        let old = self.storage.names.find(compare)?;
        let replaced = old.as_ref().filter(|old| old.message_flags & SHARED_FLAG == 0).map(|old| &old.heap_id[..]);
        let (id, flags) = match (source, replaced) {
            (AttributeSource::Shared(id), _) => (id.to_vec(), SHARED_FLAG),
            (AttributeSource::Message(message), None) => {
                (self.storage.heap.insert_object(&encode(*message, header.widths())?, before)?, 0)
            }
            (AttributeSource::Message(message), Some(old)) => {
                (self.storage.heap.replace_object(old, &encode(*message, header.widths())?, before)?, 0)
            }
        };
        let heap_id = <[u8; 8]>::try_from(&id[..]);
        let heap_id =
            heap_id.map_err(|_| header.damaged_error("its heap has IDs of the length that its indexes hold"))?;
        let order = old.as_ref().map_or(u32::from(creation_order), |old| old.creation_order);
        let record = AttributeNameRecord { heap_id, message_flags: flags, creation_order: order, hash: key.0 };
        if old.as_ref().is_some_and(|old| *old == record) {
            return Ok(());
        }
        self.storage.names.insert_or_overwrite(&record, |_| Ordering::Equal, compare)?;
        if let Some(tree) = &self.storage.order {
            let record = AttributeOrderRecord { heap_id, message_flags: flags, creation_order: order };
            tree.insert_or_overwrite(
                &record,
                |_| Ordering::Equal,
                |held| Ok::<_, Error>(held.creation_order.cmp(&order)),
            )?;
        }
        Ok(())
    }

    /// Removes the attribute of this name, and says whether there was one.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn remove_attribute(&self, session: &NativeSession, header: &CachedHeader, name: &Name) -> Result<bool> {
        let key = (lookup3(name.as_bytes(), 0), name);
        let removed = self.storage.names.remove(|record| self.compare_name(session, header, record, key))?;
        let Some(record) = removed else { return Ok(false) };
        if let Some(order) = &self.storage.order {
            order.remove(|held| Ok::<_, Error>(held.creation_order.cmp(&record.creation_order)))?;
        }
        if record.message_flags & SHARED_FLAG == 0 {
            self.storage.heap.remove_object(&record.heap_id)?;
        }
        Ok(true)
    }

    /// Whether the heap and the index of positions do not agree with the index of names; with `repair`, they do
    /// afterwards.
    ///
    /// # Errors
    /// If a structure cannot be read or changed.
    pub fn find_or_repair_inconsistency(&self, repair: bool) -> Result<bool> {
        let mut missing = HashMap::new();
        let recount = self.storage.heap.recount_contents(|each| {
            self.storage.names.for_each(&mut |AttributeNameRecord {
                                                  heap_id,
                                                  message_flags: flags,
                                                  creation_order: order,
                                                  ..
                                              }| {
                if flags & SHARED_FLAG == 0 {
                    each(&heap_id);
                }
                if self.storage.order.is_some() {
                    missing.insert((order, heap_id), flags);
                }
                Ok::<_, Error>(true)
            })
        })?;
        let mut wrong = !recount.is_consistent();
        if repair && wrong {
            self.storage.heap.apply_recount_and_free_lost(&recount)?;
        }
        let add = |tree: &Btree2<AttributeOrderRecord>, (order, heap_id), flags| {
            let record = AttributeOrderRecord { heap_id, message_flags: flags, creation_order: order };
            let by_position = |held: &AttributeOrderRecord| Ok::<_, Error>(held.creation_order.cmp(&order));
            tree.insert_or_overwrite(&record, |_| Ordering::Equal, by_position)?;
            Ok(())
        };
        let key = |record: &AttributeOrderRecord| (record.creation_order, record.heap_id);
        wrong |= self.storage.find_or_repair_order_index_fault(
            missing,
            (key, |record| record.creation_order),
            add,
            repair,
        )?;
        Ok(wrong)
    }

    /// Gives back the space of the heap and of the indexes.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_heap_and_indexes(&self) -> Result<()> {
        self.storage.delete()
    }
}
