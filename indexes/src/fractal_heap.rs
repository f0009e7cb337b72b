//! Fractal heaps: dense links and attributes, shared messages.

mod block_path;
mod blocks;
mod bulk_read;
mod filtered;
mod huge;
mod managed;
mod recount;
mod space;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use h5live_cache::Handle;
use h5live_format::messages::FilterPipelineMessage;
use h5live_format::{
    Addr, DoublingTable, FractalHeapFilterInfo, FractalHeapHeader, FractalHeapIdFormat, FreeSpaceHeader,
    HeapObjectLocation, decode_with, encode, encode_mut, encoded_len,
};
use h5live_model::{FilterEngine, FilterSpec};

pub use self::bulk_read::HeapBulkReader;
pub use self::recount::HeapRecount;
pub use self::space::FractalHeapFreeSpace;
use self::space::HeapSections;
use crate::{Error, ObjectMetadataAccess, Prerequisite, Result};

type HeapHeader = Handle<FractalHeapHeader>;

/// The heap of one object (format specification 4.0, III.G).
#[derive(Debug, Clone)]
pub struct FractalHeap {
    metadata: ObjectMetadataAccess,
    addr: Addr,
    unfilter: Arc<dyn FilterEngine>,
    space: Arc<FractalHeapFreeSpace>,
    /// The header, once it was loaded.
    header: OnceLock<HeapHeader>,
}

/// The parameters of a new heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapParameters {
    /// Bytes of a heap ID.
    pub id_len: u16,
    /// The shape of the heap space.
    pub table: DoublingTable,
    /// Bytes of the largest object in a direct block.
    pub max_managed_bytes: u32,
}

impl HeapParameters {
    /// The parameters of libhdf5 for dense links.
    pub const LINKS: HeapParameters =
        HeapParameters { id_len: 7, table: DoublingTable::LINKS, max_managed_bytes: 4096 };

    /// The parameters of libhdf5 for dense attributes.
    pub const ATTRIBUTES: HeapParameters =
        HeapParameters { id_len: 8, table: DoublingTable::ATTRIBUTES, max_managed_bytes: 4096 };
}

/// Bytes that lie outside of the heap's blocks.
#[derive(Debug, Clone, Copy)]
struct HugeLocation {
    addr: Addr,
    /// Stored bytes.
    stored_bytes: u64,
    filter_mask: u32,
    /// Bytes after the filters are undone.
    object_bytes: u64,
}

impl FractalHeap {
    /// The heap with its header at `addr`. `unfilter` undoes the filters of filtered heaps. All handles of one session
    /// share `space`.
    pub fn new(
        metadata: ObjectMetadataAccess,
        addr: Addr,
        unfilter: Arc<dyn FilterEngine>,
        space: Arc<FractalHeapFreeSpace>,
    ) -> Self {
        FractalHeap { metadata, addr, unfilter, space, header: OnceLock::new() }
    }

    /// Creates an empty heap. Its blocks and huge objects go through `filters`, if there are any.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(
        metadata: ObjectMetadataAccess,
        unfilter: Arc<dyn FilterEngine>,
        parameters: &HeapParameters,
        filters: Option<FilterPipelineMessage>,
        space: Arc<FractalHeapFreeSpace>,
    ) -> Result<Self> {
        let HeapParameters { id_len, table, max_managed_bytes: max_managed } = *parameters;
        let filtered = filters.filter(|filters| !filters.filters.is_empty());
        let filtered = filtered.map(|filters| FractalHeapFilterInfo { filters, ..FractalHeapFilterInfo::default() });
        let header = FractalHeapHeader {
            id_len,
            table,
            max_managed_object_bytes: max_managed,
            filter_info: filtered,
            ..FractalHeapHeader::default()
        };
        let len = encoded_len(&header, metadata.widths());
        let len = len.map_err(|source| h5live_cache::Error::Encode { at: Addr::UNDEFINED, source })?;
        let header = metadata.create(len as u64, header)?;
        *space.lock() = HeapSections::empty(true);
        Ok(FractalHeap::new(metadata, header.addr(), unfilter, space))
    }

    /// Where the header of the heap is.
    pub fn addr(&self) -> Addr {
        self.addr
    }

    fn contradiction(&self, at: Addr, record: &'static str, rule: &'static str) -> Error {
        Error::Contradiction { record, at, other: "fractal heap", rule }
    }

    fn header(&self) -> Result<HeapHeader> {
        if let Some(found) = self.header.get().filter(|found| !found.is_invalidated()) {
            return Ok(found.clone());
        }
        let (cache, widths) = (self.metadata.cache(), self.metadata.widths());
        let wrong = |source| h5live_cache::Error::Decode { at: self.addr, source };
        let load = || {
            let start = cache.read_block_uncached(self.addr, FractalHeapHeader::size_without_filters(widths))?;
            let len = FractalHeapHeader::stated_size(&start, widths).map_err(wrong)?;
            let bytes = cache.read_block_uncached(self.addr, len)?;
            decode_with(FractalHeapHeader::default(), &bytes, widths).map_err(wrong)
        };
        let header = cache.load(self.addr, self.metadata.owner(), load)?;
        let _others = self.header.set(header.clone());
        Ok(header)
    }

    /// The header, for entries that must wait for the heap. It is written after all blocks of the heap.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn dependency_node(&self) -> Result<Handle<FractalHeapHeader>> {
        self.header()
    }

    fn decode_id(&self, header: &FractalHeapHeader, id: &[u8]) -> Result<HeapObjectLocation> {
        self.decode_id_with(&header.id_format(self.metadata.widths()), id)
    }

    fn decode_id_with(&self, shape: &FractalHeapIdFormat, id: &[u8]) -> Result<HeapObjectLocation> {
        let id = id.get(..usize::from(shape.id_len)).unwrap_or(id);
        let id = decode_with(shape.id_of(HeapObjectLocation::default()), id, shape.widths);
        Ok(id.map_err(|source| h5live_cache::Error::Decode { at: self.addr, source })?.location)
    }

    fn encode_id(&self, shape: &FractalHeapIdFormat, place: HeapObjectLocation) -> Result<Vec<u8>> {
        let id = encode_mut(&mut shape.id_of(place), shape.widths);
        Ok(id.map_err(|source| h5live_cache::Error::Encode { at: self.addr, source })?)
    }

    /// The bytes of the object with this heap ID.
    ///
    /// # Errors
    /// [`Error::Contradiction`] if the heap has no such object; if a block cannot be read or its filters be undone.
    pub fn read_object(&self, id: &[u8]) -> Result<Vec<u8>> {
        let header = self.header()?.read().clone();
        match self.decode_id(&header, id)? {
            HeapObjectLocation::Tiny(bytes) => Ok(bytes),
            HeapObjectLocation::Managed { offset, length } => self.read_managed_object(&header, offset, length),
            huge => self.read_huge_object(&header, self.locate_huge_object(&header, huge)?),
        }
    }

    fn read_huge_object(&self, header: &FractalHeapHeader, place: HugeLocation) -> Result<Vec<u8>> {
        let bytes = self.read_stored_huge_object(place.addr, place.stored_bytes)?;
        match &header.filter_info {
            None => Ok(bytes),
            Some(filtered) => self.unfilter_huge(&filtered.filters.filters, place, bytes),
        }
    }

    fn unfilter_huge(&self, filters: &[FilterSpec], place: HugeLocation, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let undone = self.unfilter.unfilter(filters, place.filter_mask, bytes, place.object_bytes);
        undone.map_err(|source| Error::FilterFailed { at: place.addr, source })
    }

    /// Computes the free space of the heap, if it is not known yet. `visit_ids` calls its argument with the IDs of all
    /// objects. Without this, [`FractalHeap::insert_object`] does not find space that earlier sessions have freed.
    ///
    /// # Errors
    /// The error of `visit_ids`; if a block cannot be read.
    pub fn init_free_space<E: From<Error>>(
        &self,
        visit_ids: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.space.lock().is_known {
            return Ok(());
        }
        let header = self.header()?.read().clone();
        let mut taken = Vec::new();
        visit_ids(&mut |id| {
            if let Ok(HeapObjectLocation::Managed { offset, length }) = self.decode_id(&header, id) {
                taken.push((offset, length));
            }
        })?;
        Ok(self.compute_free_space(&header, &taken)?)
    }

    /// Adds an object, which is written after `before`, and returns its ID.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the object is empty; [`Error::HeapFull`]; if a block cannot be read or its filters be
    /// applied, or there is no room for a new one.
    pub fn insert_object(&self, object: &[u8], before: &[Prerequisite<'_>]) -> Result<Vec<u8>> {
        let header = self.header_for_writing()?;
        let mut sections = self.space.lock();
        let done = self.insert_object_in(&header, &mut sections, object, before);
        let place = self.forget_free_space_on_error(done, &mut sections)?;
        let shape = header.read().id_format(self.metadata.widths());
        self.encode_id(&shape, place)
    }

    fn insert_object_in(
        &self,
        header: &HeapHeader,
        sections: &mut HeapSections,
        object: &[u8],
        before: &[Prerequisite<'_>],
    ) -> Result<HeapObjectLocation> {
        self.reclaim_removed_objects(header, sections)?;
        let (max_managed, max_tiny) = {
            let header = header.read();
            (header.max_managed_object_bytes.into(), header.id_format(self.metadata.widths()).max_tiny_object_bytes())
        };
        let len = object.len() as u64;
        if object.is_empty() {
            Err(Error::Unsupported("an empty object in a fractal heap"))
        } else if len > max_managed {
            self.insert_huge_object(header, object, before)
        } else if object.len() <= max_tiny {
            header.update(|header| {
                header.tiny_bytes = header.tiny_bytes.saturating_add(len);
                header.tiny_object_count = header.tiny_object_count.saturating_add(1);
            });
            Ok(HeapObjectLocation::Tiny(object.to_vec()))
        } else {
            self.insert_managed_object(header, sections, object, before)
        }
    }

    /// Replaces an object, and returns its new ID. The ID stays the same if the length does not change and the object
    /// lies in a block of the heap.
    ///
    /// # Errors
    /// As [`FractalHeap::insert_object`] and [`FractalHeap::remove_object`].
    pub fn replace_object(&self, id: &[u8], object: &[u8], before: &[Prerequisite<'_>]) -> Result<Vec<u8>> {
        let header = self.header_for_writing()?;
        let shape = header.read().clone();
        if let HeapObjectLocation::Managed { offset, length } = self.decode_id(&shape, id)?
            && length == object.len() as u64
        {
            self.write_managed_object(&header, offset, object, before)?;
            return Ok(id.to_vec());
        }
        let new = self.insert_object(object, before)?;
        self.remove_object(id)?;
        Ok(new)
    }

    /// Removes an object.
    ///
    /// # Errors
    /// [`Error::Contradiction`] if the heap has no such object; if its filters cannot be applied.
    pub fn remove_object(&self, id: &[u8]) -> Result<()> {
        let header = self.header_for_writing()?;
        let shape = header.read().clone();
        let place = self.decode_id(&shape, id)?;
        let mut sections = self.space.lock();
        let done = self.reclaim_removed_objects(&header, &mut sections).and_then(|()| match place {
            HeapObjectLocation::Tiny(bytes) => {
                header.update(|header| {
                    header.tiny_bytes = header.tiny_bytes.saturating_sub(bytes.len() as u64);
                    header.tiny_object_count = header.tiny_object_count.saturating_sub(1);
                });
                Ok(())
            }
            HeapObjectLocation::Managed { offset, length } => {
                self.free_managed_object(&header, &mut sections, offset, length)
            }
            huge => {
                sections.add_removed_huge_object(self.metadata.cache().space(), huge);
                Ok(())
            }
        });
        self.forget_free_space_on_error(done, &mut sections)
    }

    /// Frees the space of objects that were removed before the last whole flush. Each change does this, too. Returns
    /// whether there was any.
    ///
    /// # Errors
    /// If a block cannot be read.
    pub fn reclaim_space(&self) -> Result<bool> {
        let mut sections = self.space.lock();
        if !sections.has_unreclaimed_objects() {
            return Ok(false);
        }
        let done = self.reclaim_removed_objects(&self.header()?, &mut sections);
        self.forget_free_space_on_error(done, &mut sections).map(|()| true)
    }

    /// After an error, the free space is no longer known.
    fn forget_free_space_on_error<T>(&self, done: Result<T>, sections: &mut HeapSections) -> Result<T> {
        if done.is_err() {
            *sections = HeapSections::empty(false);
        }
        done
    }

    /// The header, which no longer leads to a list of free space.
    fn header_for_writing(&self) -> Result<HeapHeader> {
        let header = self.header()?;
        let manager = header.read().free_space_manager;
        if manager.is_defined() {
            self.delete_space_manager(manager);
            header.update(|header| header.free_space_manager = Addr::UNDEFINED);
        }
        Ok(header)
    }

    /// Gives up a list of free space. If it cannot be read, its space is lost.
    fn delete_space_manager(&self, at: Addr) {
        let len = FreeSpaceHeader::size(self.metadata.widths()) as u64;
        if let Ok(manager) = self.metadata.load(at, len, FreeSpaceHeader::default) {
            let (list, allocated) = {
                let manager = manager.read();
                (manager.section_list_addr, manager.section_list_allocated_bytes)
            };
            self.free_structure(at, len);
            if list.is_defined() {
                self.free_structure(list, allocated);
            }
        }
    }

    /// Gives up the heap with everything in it.
    ///
    /// # Errors
    /// If a block cannot be read; what could be read is given up.
    pub fn delete_heap(&self) -> Result<()> {
        let shape = self.header()?.read().clone();
        if shape.free_space_manager.is_defined() {
            self.delete_space_manager(shape.free_space_manager);
        }
        let managed = self.for_each_block(&shape, &mut |block| {
            if block.addr.is_defined() {
                self.free_structure(block.addr, block.stored_bytes);
            }
        });
        let huge = self.delete_huge_objects(&shape);
        let widths = self.metadata.widths();
        let len = encode(&shape, widths).map_or(0, |bytes| bytes.len());
        self.free_structure(self.addr, len as u64);
        *self.space.lock() = HeapSections::empty(false);
        managed.and(huge)
    }
}
