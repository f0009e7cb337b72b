//! Dense links: a heap of link messages, an index of their names, and perhaps one of the order of creation.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use h5live_format::messages::{FilterPipelineMessage, LinkInfo, LinkMessage};
use h5live_format::{LinkNameRecord, LinkOrderRecord, decode_prefix, lookup3, with_encoded};
use h5live_indexes::{Btree2, HeapParameters, Prerequisite};
use h5live_model::Name;
use smallvec::SmallVec;

use crate::dense_storage::{DenseLinkStorage, DenseStorage, HashOrderedPage};
use crate::header::CachedHeader;
use crate::session::NativeSession;
use crate::{Error, Result};

/// The dense links of a group.
pub(crate) struct DenseLinks {
    storage: Arc<DenseLinkStorage>,
    /// Whether another process may be changing them.
    follows: bool,
}

/// The bytes of a heap ID.
fn check_heap_id_len<const N: usize>(header: &CachedHeader, id: &[u8]) -> Result<[u8; N]> {
    id.try_into().map_err(|_| header.damaged_error("its heap has IDs of the length that its indexes hold"))
}

impl DenseLinks {
    /// The links to which `info` leads, to be read.
    pub fn open(session: &NativeSession, header: &CachedHeader, info: &LinkInfo) -> Self {
        let metadata = header.metadata();
        let heap = session.heaps.fractal_heap(metadata, info.heap);
        let storage = Arc::new(DenseStorage::new(metadata, heap, info.name_index, info.order_index));
        DenseLinks { storage, follows: session.is_follower() }
    }

    /// The links to which `info` leads, to be changed.
    pub fn open_for_writing(session: &NativeSession, header: &CachedHeader, info: &LinkInfo) -> Self {
        DenseLinks { storage: session.heaps.dense_links_for_writing(header.metadata(), info), follows: false }
    }

    /// The links to which `info` leads, for a comparison with other structures or for a correction of those.
    pub fn open_for_check_or_repair(
        session: &NativeSession,
        header: &CachedHeader,
        info: &LinkInfo,
        repair: bool,
    ) -> Self {
        if repair { Self::open_for_writing(session, header, info) } else { Self::open(session, header, info) }
    }

    /// Makes room for dense links, to which `info` leads from then on.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create_empty(session: &NativeSession, header: &CachedHeader, info: &mut LinkInfo) -> Result<Self> {
        let metadata = header.metadata();
        // The filters of a group are those of its heap.
        let filters = header.get_message::<FilterPipelineMessage>()?;
        let heap = session.heaps.new_fractal_heap(metadata, &HeapParameters::LINKS, filters)?;
        let storage = Arc::new(DenseStorage::create(metadata, heap, info.order_index.is_some())?);
        (info.heap, info.name_index) = (storage.heap.addr(), storage.names.addr());
        info.order_index = storage.order.as_ref().map(Btree2::addr);
        storage.make_indexes_wait_for_heap()?;
        Ok(DenseLinks { storage, follows: false })
    }

    /// Makes the header wait for everything else, and the indexes for the heap. Call it before a link is added, because
    /// a structure to which the link leads may already wait for the header.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn add_flush_parent(&self, header: &CachedHeader) -> Result<()> {
        self.storage.add_flush_parent(header)
    }

    /// The number of links.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn link_count(&self) -> Result<u64> {
        self.storage.len()
    }

    fn decode_record(&self, header: &CachedHeader, record: &LinkNameRecord) -> Result<LinkMessage> {
        Self::decode_link(header, &self.storage.heap.read_object(&record.heap_id)?)
    }

    pub fn decode_link(header: &CachedHeader, bytes: &[u8]) -> Result<LinkMessage> {
        let decoded = decode_prefix::<LinkMessage>(bytes, header.widths());
        Ok(decoded.map_err(|source| Error::DamagedMessage { header: header.addr(), source })?.0)
    }

    /// How a record compares with a name.
    fn compare_name(&self, header: &CachedHeader, record: &LinkNameRecord, hash: u32, name: &Name) -> Result<Ordering> {
        match record.hash.cmp(&hash) {
            Ordering::Equal => Ok(self.decode_record(header, record)?.name.cmp(name)),
            different => Ok(different),
        }
    }

    /// The link of this name.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn find_link(&self, header: &CachedHeader, name: &Name) -> Result<Option<LinkMessage>> {
        let hash = lookup3(name.as_bytes(), 0);
        let (mut found, mut collides) = (None, false);
        let prefilter = |record: &[u8]| LinkNameRecord::compare_hash(record, hash);
        self.storage.names.find_prefiltered(prefilter, |record| {
            if record.hash != hash {
                return Ok(record.hash.cmp(&hash));
            }
            let stored = self.decode_record(header, record)?;
            let order = stored.name.cmp(name);
            collides |= order != Ordering::Equal;
            found = (order == Ordering::Equal).then_some(stored);
            Ok::<_, Error>(order)
        })?;
        if found.is_none() && collides { self.find_colliding(header, hash, name) } else { Ok(found) }
    }

    /// The link of this name among all of its hash: some programs do not sort them.
    fn find_colliding(&self, header: &CachedHeader, hash: u32, name: &Name) -> Result<Option<LinkMessage>> {
        let mut found = None;
        self.storage.names.for_each(&mut |record| {
            if record.hash == hash && found.is_none() {
                let stored = self.decode_record(header, &record)?;
                found = (stored.name == *name).then_some(stored);
            }
            Ok::<_, Error>(record.hash <= hash && found.is_none())
        })?;
        Ok(found)
    }

    /// Calls `each` with every link, until it returns `false`.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn for_each_link(&self, header: &CachedHeader, each: &mut dyn FnMut(LinkMessage) -> bool) -> Result<()> {
        if self.follows {
            return self.storage.names.for_each(&mut |record| Ok(each(self.decode_record(header, &record)?)));
        }
        self.for_each_encoded_link_unordered(&mut |bytes| Ok(each(Self::decode_link(header, bytes)?))).map(drop)
    }

    /// Calls `each` with every link whose name has a greater hash than `after`, until it returns `false` and the hash
    /// changes. Returns whether there are more.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn for_each_link_page(
        &self,
        header: &CachedHeader,
        after: Option<&Name>,
        each: &mut dyn FnMut(LinkMessage) -> bool,
    ) -> Result<bool> {
        if !self.follows && after.is_none() {
            return self.for_each_link(header, each).map(|()| false);
        }
        let (first, mut part) = (HashOrderedPage::after(after), HashOrderedPage::after(after));
        self.storage
            .names
            .for_each_from(&mut |record| Ok::<_, Error>(first.hash_precedes_page(record.hash)), &mut |record| {
                part.visit_if_in_page(record.hash, || Ok(each(self.decode_record(header, &record)?)))
            })?;
        Ok(part.has_more_after_page())
    }

    /// Calls `each` with the bytes of every link, in no particular order, until it returns `false`; returns whether it
    /// never did. Nobody may change them meanwhile.
    ///
    /// # Errors
    /// The first error of `each`; if a structure cannot be read.
    pub fn for_each_encoded_link_unordered(&self, each: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
        let (mut heap, mut whole) = (self.storage.heap.bulk_reader()?, true);
        self.storage.names.for_each_batch_unordered(&mut |records| {
            let ids = records.iter().map(|record| record.heap_id);
            whole = heap.for_each_object_unordered(ids, &mut *each)?;
            Ok::<_, Error>(whole)
        })?;
        Ok(whole)
    }

    /// Adds a link, which is written after `before`, unless there is one of its name; returns whether it did.
    ///
    /// # Errors
    /// If a structure cannot be read, or there is no room.
    pub fn insert_link(
        &self,
        header: &CachedHeader,
        mut link: LinkMessage,
        before: &[Prerequisite<'_>],
    ) -> Result<bool> {
        self.storage.heap.init_free_space(|each| {
            self.storage.names.for_each(&mut |record| {
                each(&record.heap_id);
                Ok::<_, Error>(true)
            })
        })?;
        // Most links are short.
        let bytes = with_encoded(&mut link, header.widths(), SmallVec::<[u8; 128]>::from_slice)?;
        let hash = lookup3(link.name.as_bytes(), 0);
        let mut looked_through = false;
        loop {
            let (collides, mut added) = (Cell::new(false), None);
            let compare = |record: &LinkNameRecord| {
                let order = self.compare_name(header, record, hash, &link.name)?;
                collides.set(collides.get() || record.hash == hash && order != Ordering::Equal);
                Ok::<_, Error>(order)
            };
            // The name is sought once: its place is where the record goes, if it is not there.
            let prefilter = |record: &[u8]| LinkNameRecord::compare_hash(record, hash);
            let there = self.storage.names.insert_if_absent_with(prefilter, compare, || {
                if collides.get() && !looked_through {
                    return Ok(None);
                }
                let heap_id = check_heap_id_len(header, &self.storage.heap.insert_object(&bytes, before)?)?;
                added = Some(heap_id);
                Ok(Some(LinkNameRecord { hash, heap_id }))
            })?;
            if there.is_some() {
                return Ok(false);
            }
            let Some(heap_id) = added else {
                if self.find_colliding(header, hash, &link.name)?.is_some() {
                    return Ok(false);
                }
                looked_through = true;
                continue;
            };
            if let (Some(order), Some(position)) = (&self.storage.order, link.creation_order) {
                let record = LinkOrderRecord { creation_order: position, heap_id };
                order.insert_if_absent(&record, |record| Ok::<_, Error>(record.creation_order.cmp(&position)))?;
            }
            return Ok(true);
        }
    }

    /// Removes the link of this name, and returns it.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn remove_link(&self, header: &CachedHeader, name: &Name) -> Result<Option<LinkMessage>> {
        let hash = lookup3(name.as_bytes(), 0);
        let removed = self.storage.names.remove(|record| self.compare_name(header, record, hash, name))?;
        let Some(record) = removed else { return Ok(None) };
        let link = self.decode_record(header, &record)?;
        if let (Some(order), Some(position)) = (&self.storage.order, link.creation_order) {
            order.remove(|record| Ok::<_, Error>(record.creation_order.cmp(&position)))?;
        }
        self.storage.heap.remove_object(&record.heap_id)?;
        Ok(Some(link))
    }

    /// Whether the heap and the index of positions do not agree with the index of names; with `repair`, they do
    /// afterwards.
    ///
    /// # Errors
    /// If a structure cannot be read or changed.
    pub fn find_or_repair_inconsistency(&self, header: &CachedHeader, repair: bool) -> Result<bool> {
        let mut missing = HashMap::new();
        let recount = self.storage.heap.recount_contents(|each| {
            self.storage.names.for_each(&mut |LinkNameRecord { heap_id, .. }| {
                each(&heap_id);
                if self.storage.order.is_some() {
                    missing.insert(heap_id, ());
                }
                Ok::<_, Error>(true)
            })
        })?;
        let mut wrong = !recount.is_consistent();
        if repair && wrong {
            self.storage.heap.apply_recount_and_free_lost(&recount)?;
        }
        let add = |tree: &Btree2<LinkOrderRecord>, heap_id: [u8; 7], ()| {
            let link = Self::decode_link(header, &self.storage.heap.read_object(&heap_id)?)?;
            let order = link.creation_order;
            let order =
                order.ok_or_else(|| header.damaged_error("links have a position if there is an index of them"))?;
            let record = LinkOrderRecord { creation_order: order, heap_id };
            tree.insert_if_absent(&record, |held| Ok::<_, Error>(held.creation_order.cmp(&order)))?;
            Ok(())
        };
        let (key, position) =
            (|record: &LinkOrderRecord| record.heap_id, |record: &LinkOrderRecord| record.creation_order);
        wrong |= self.storage.find_or_repair_order_index_fault(missing, (key, position), add, repair)?;
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
