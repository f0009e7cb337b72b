//! Objects of a fractal heap that are too large for its blocks.

use h5live_format::{Addr, FractalHeapHeader, HeapPlace, HugeIndirectFilteredRecord, HugeIndirectRecord, Record, Wire};

use super::{Before, FractalHeap, Header, Outside};
use crate::{Btree2, Error, Result};

/// The bytes of a huge object.
#[derive(Debug, Clone)]
struct HugeObject {
    bytes: Vec<u8>,
}

impl Record for HugeObject {
    const NAME: &'static str = "huge object";

    fn weight(&self) -> usize {
        size_of_val(self).saturating_add(self.bytes.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> h5live_format::Result<()> {
        let len = self.bytes.len();
        w.bytes("bytes", len, &mut self.bytes)
    }
}

impl FractalHeap {
    /// Where a huge object is.
    pub(super) fn huge(&self, header: &FractalHeapHeader, place: HeapPlace) -> Result<Outside> {
        match place {
            HeapPlace::Huge { addr, length, filter_mask, size } => Ok(Outside { addr, length, filter_mask, size }),
            HeapPlace::HugeNumber(number) => self.numbered(header, number),
            _ => Err(self.contradiction(self.addr, "heap ID", "it is the ID of a huge object")),
        }
    }

    /// Where the huge object of this number is.
    fn numbered(&self, header: &FractalHeapHeader, number: u64) -> Result<Outside> {
        let missing =
            || self.contradiction(self.addr, "fractal heap header", "a huge object that is referred to exists");
        if !header.huge_index.is_defined() {
            return Err(missing());
        }
        let metadata = self.metadata.clone();
        if header.filtered.is_some() {
            let tree = Btree2::new(metadata, header.huge_index, HugeIndirectFilteredRecord::default());
            let found = tree.find(|record| Ok::<_, Error>(record.id.cmp(&number)))?.ok_or_else(missing)?;
            let HugeIndirectFilteredRecord { addr, length, filter_mask, size, .. } = found;
            Ok(Outside { addr, length, filter_mask, size })
        } else {
            let tree = Btree2::new(metadata, header.huge_index, HugeIndirectRecord::default());
            let found = tree.find(|record| Ok::<_, Error>(record.id.cmp(&number)))?.ok_or_else(missing)?;
            Ok(Outside { addr: found.addr, length: found.length, filter_mask: 0, size: found.length })
        }
    }

    /// The stored bytes of a huge object, which stay in the cache only until they are in the file.
    pub(super) fn huge_bytes(&self, addr: Addr, length: u64) -> Result<Vec<u8>> {
        let cache = self.metadata.cache();
        if let Some(held) = cache.peek::<HugeObject>(addr)? {
            return Ok(held.read().bytes.clone());
        }
        Ok(cache.read_block(addr, usize::try_from(length).unwrap_or(usize::MAX))?)
    }

    pub(super) fn insert_huge(&self, _header: &Header, _object: &[u8], _before: &[Before<'_>]) -> Result<HeapPlace> {
        Err(Error::Unsupported("objects of more than 4096 bytes in a fractal heap"))
    }

    pub(super) fn remove_huge(&self, _header: &Header, _place: HeapPlace) -> Result<()> {
        Err(Error::Unsupported("removing huge objects of a fractal heap"))
    }

    pub(super) fn delete_huge(&self, _header: &FractalHeapHeader) -> Result<()> {
        Ok(())
    }
}
