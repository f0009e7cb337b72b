//! Objects of a fractal heap that are too large for its blocks.

use std::cmp::Ordering;

use h5live_cache::{DependencyKind, Handle};
use h5live_format::{
    Addr, Btree2Record, FractalHeapHeader, HeapObjectLocation, HugeDirectFilteredRecord, HugeDirectRecord,
    HugeIndirectFilteredRecord, HugeIndirectRecord, Record, Wire,
};

use super::{FractalHeap, HeapHeader, HugeLocation};
use crate::{Btree2, Error, Prerequisite, Result};

/// Bytes of a node of the tree of huge objects.
const NODE_SIZE: u32 = 512;

/// The bytes of a huge object.
#[derive(Debug, Clone)]
struct HugeObject {
    bytes: Vec<u8>,
}

/// A comparison that does not fail.
fn infallible_compare<R>(compare: impl Fn(&R) -> Ordering) -> impl Fn(&R) -> Result<Ordering> {
    move |record| Ok(compare(record))
}

impl Record for HugeObject {
    const NAME: &'static str = "huge object";

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.bytes.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> h5live_format::Result<()> {
        let len = self.bytes.len();
        w.bytes("bytes", len, &mut self.bytes)
    }
}

impl FractalHeap {
    /// The address of a huge object.
    pub(super) fn locate_huge_object(
        &self,
        header: &FractalHeapHeader,
        place: HeapObjectLocation,
    ) -> Result<HugeLocation> {
        match place {
            HeapObjectLocation::HugeDirect { addr, length, filter_mask, size } => {
                Ok(HugeLocation { addr, stored_bytes: length, filter_mask, object_bytes: size })
            }
            HeapObjectLocation::HugeIndirect(number) => self.locate_huge_by_number(header, number),
            _ => Err(self.contradiction(self.addr, "heap ID", "it is the ID of a huge object")),
        }
    }

    /// Where the huge object of this number is.
    fn locate_huge_by_number(&self, header: &FractalHeapHeader, number: u64) -> Result<HugeLocation> {
        let missing =
            || self.contradiction(self.addr, "fractal heap header", "a huge object that is referred to exists");
        if !header.huge_index.is_defined() {
            return Err(missing());
        }
        if header.filter_info.is_some() {
            let tree = self.huge_object_tree(header, HugeIndirectFilteredRecord::default());
            let found = tree.find(|record| Ok::<_, Error>(record.id.cmp(&number)))?.ok_or_else(missing)?;
            let HugeIndirectFilteredRecord { addr, length, filter_mask, unfiltered_size: size, .. } = found;
            Ok(HugeLocation { addr, stored_bytes: length, filter_mask, object_bytes: size })
        } else {
            let tree = self.huge_object_tree(header, HugeIndirectRecord::default());
            let found = tree.find(|record| Ok::<_, Error>(record.id.cmp(&number)))?.ok_or_else(missing)?;
            Ok(HugeLocation {
                addr: found.addr,
                stored_bytes: found.length,
                filter_mask: 0,
                object_bytes: found.length,
            })
        }
    }

    /// The stored bytes of a huge object, which stay in the cache only until they are in the file.
    pub(super) fn read_stored_huge_object(&self, addr: Addr, length: u64) -> Result<Vec<u8>> {
        let cache = self.metadata.cache();
        if let Some(held) = cache.get_cached::<HugeObject>(addr)? {
            return Ok(held.read().bytes.clone());
        }
        Ok(cache.read_block_uncached(addr, usize::try_from(length).unwrap_or(usize::MAX))?)
    }

    /// The widest number that an ID can hold.
    fn max_huge_number(&self, header: &FractalHeapHeader) -> u64 {
        header.id_format(self.metadata.widths()).huge_object_number_width().max_value()
    }

    pub(super) fn huge_object_tree<R: Btree2Record>(&self, header: &FractalHeapHeader, blank: R) -> Btree2<R> {
        Btree2::new(self.metadata.clone(), header.huge_index, blank)
    }

    /// The tree of huge objects, which is made if there is none.
    fn huge_object_tree_for_writing<R: Btree2Record>(&self, header: &HeapHeader, blank: R) -> Result<Btree2<R>> {
        if !header.read().huge_index.is_defined() {
            let tree = Btree2::create(self.metadata.clone(), blank.clone(), NODE_SIZE)?;
            header.update(|header| header.huge_index = tree.addr());
        }
        let tree = self.huge_object_tree(&header.read().clone(), blank);
        tree.add_flush_parent(header, DependencyKind::FractalHeapBlock)?;
        Ok(tree)
    }

    pub(super) fn insert_huge_object(
        &self,
        header: &HeapHeader,
        object: &[u8],
        before: &[Prerequisite<'_>],
    ) -> Result<HeapObjectLocation> {
        let shape = header.read().clone();
        let number = shape.next_huge_id.saturating_add(1);
        let is_direct = shape.id_format(self.metadata.widths()).has_direct_huge_ids();
        if !is_direct && (shape.huge_ids_wrapped || number > self.max_huge_number(&shape)) {
            return Err(Error::HeapFull { at: self.addr });
        }
        let (bytes, filter_mask) = match &shape.filter_info {
            None => (object.to_vec(), 0),
            Some(filtered) => self.apply_filters(&filtered.filters.filters, object)?,
        };
        let (length, size) = (bytes.len() as u64, object.len() as u64);
        let stored = self.metadata.create(length, HugeObject { bytes })?;
        self.metadata.add_prerequisites(&stored, before);
        let (addr, id) = (stored.addr(), number);
        match (is_direct, shape.filter_info.is_some()) {
            (true, false) => {
                let record = HugeDirectRecord { addr, length };
                self.insert_huge_record(header, &stored, record, |held| held.addr.cmp(&addr))?;
            }
            (true, true) => {
                let record = HugeDirectFilteredRecord { addr, length, filter_mask, unfiltered_size: size };
                self.insert_huge_record(header, &stored, record, |held| held.addr.cmp(&addr))?;
            }
            (false, false) => {
                let record = HugeIndirectRecord { addr, length, id };
                self.insert_huge_record(header, &stored, record, |held| held.id.cmp(&id))?;
            }
            (false, true) => {
                let record = HugeIndirectFilteredRecord { addr, length, filter_mask, unfiltered_size: size, id };
                self.insert_huge_record(header, &stored, record, |held| held.id.cmp(&id))?;
            }
        }
        let place = if is_direct {
            HeapObjectLocation::HugeDirect { addr, length, filter_mask, size }
        } else {
            header.update(|header| header.next_huge_id = number);
            HeapObjectLocation::HugeIndirect(number)
        };
        header.update(|header| {
            header.huge_bytes = header.huge_bytes.saturating_add(size);
            header.huge_object_count = header.huge_object_count.saturating_add(1);
        });
        Ok(place)
    }

    /// Adds a record to the tree of huge objects, which is written after the object.
    fn insert_huge_record<R: Btree2Record>(
        &self,
        header: &HeapHeader,
        stored: &Handle<HugeObject>,
        record: R,
        compare: impl Fn(&R) -> Ordering,
    ) -> Result<()> {
        let tree = self.huge_object_tree_for_writing(header, record.clone())?;
        tree.depend_on(stored, DependencyKind::FractalHeapBlock)?;
        tree.insert_if_absent(&record, infallible_compare(compare))?;
        Ok(())
    }

    /// Frees a huge object to which nothing in the file leads any more.
    pub(super) fn free_huge_object(&self, header: &HeapHeader, place: &HeapObjectLocation) -> Result<()> {
        let shape = header.read().clone();
        let removed = match (place.clone(), shape.filter_info.is_some()) {
            (HeapObjectLocation::HugeDirect { addr, .. }, false) => {
                let found = self
                    .huge_object_tree(&shape, HugeDirectRecord::default())
                    .remove(infallible_compare(|held: &HugeDirectRecord| held.addr.cmp(&addr)))?;
                found.map(|held| (held.addr, held.length, held.length))
            }
            (HeapObjectLocation::HugeDirect { addr, .. }, true) => {
                let found = self
                    .huge_object_tree(&shape, HugeDirectFilteredRecord::default())
                    .remove(infallible_compare(|held: &HugeDirectFilteredRecord| held.addr.cmp(&addr)))?;
                found.map(|held| (held.addr, held.length, held.unfiltered_size))
            }
            (HeapObjectLocation::HugeIndirect(id), false) => {
                let found = self
                    .huge_object_tree(&shape, HugeIndirectRecord::default())
                    .remove(infallible_compare(|held: &HugeIndirectRecord| held.id.cmp(&id)))?;
                found.map(|held| (held.addr, held.length, held.length))
            }
            (HeapObjectLocation::HugeIndirect(id), true) => {
                let tree = self.huge_object_tree(&shape, HugeIndirectFilteredRecord::default());
                tree.remove(infallible_compare(|held: &HugeIndirectFilteredRecord| held.id.cmp(&id)))?
                    .map(|held| (held.addr, held.length, held.unfiltered_size))
            }
            _ => None,
        };
        if let Some((addr, length, size)) = removed {
            self.free_structure(addr, length);
            header.update(|header| {
                header.huge_bytes = header.huge_bytes.saturating_sub(size);
                header.huge_object_count = header.huge_object_count.saturating_sub(1);
            });
        }
        // libhdf5 gives up a tree without objects even when it only reads, and fails.
        if header.read().huge_object_count == 0 {
            self.delete_huge_objects(&shape)?;
            header.update(|header| header.huge_index = Addr::UNDEFINED);
        }
        Ok(())
    }

    /// Gives up all huge objects.
    pub(super) fn delete_huge_objects(&self, header: &FractalHeapHeader) -> Result<()> {
        if !header.huge_index.is_defined() {
            return Ok(());
        }
        match (header.id_format(self.metadata.widths()).has_direct_huge_ids(), header.filter_info.is_some()) {
            (true, false) => {
                self.delete_huge_object_tree(header, HugeDirectRecord::default(), |held| (held.addr, held.length))
            }
            (true, true) => self
                .delete_huge_object_tree(header, HugeDirectFilteredRecord::default(), |held| (held.addr, held.length)),
            (false, false) => {
                self.delete_huge_object_tree(header, HugeIndirectRecord::default(), |held| (held.addr, held.length))
            }
            (false, true) => self.delete_huge_object_tree(header, HugeIndirectFilteredRecord::default(), |held| {
                (held.addr, held.length)
            }),
        }
    }

    fn delete_huge_object_tree<R: Btree2Record>(
        &self,
        header: &FractalHeapHeader,
        blank: R,
        place: impl Fn(&R) -> (Addr, u64),
    ) -> Result<()> {
        let tree = self.huge_object_tree(header, blank);
        let mut places = Vec::new();
        tree.for_each(&mut |record| {
            places.push(place(&record));
            Ok::<_, Error>(true)
        })?;
        places.into_iter().for_each(|(addr, length)| self.free_structure(addr, length));
        tree.delete_tree()
    }
}
