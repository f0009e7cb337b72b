//! The records of version 2 B-trees, of all types but that of shared messages (format specification 4.0, III.A.2).

use std::cmp::Ordering;

use h5live_model::ChunkCoord;
use smallvec::SmallVec;

use crate::{Addr, Record, Result, Width, Wire};

/// A record of a version 2 B-tree.
pub trait Btree2Record: Record + Clone {
    /// The type of record, as the header and the nodes of the tree state it.
    const KIND: u8;
}

/// A huge object of a heap, found by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HugeIndirectRecord {
    /// The object.
    pub addr: Addr,
    /// Bytes of the object.
    pub length: u64,
    /// Its number.
    pub id: u64,
}

impl Record for HugeIndirectRecord {
    const NAME: &'static str = "huge object record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.addr)?;
        w.length("length", &mut self.length)?;
        w.length("number", &mut self.id)
    }
}

impl Btree2Record for HugeIndirectRecord {
    const KIND: u8 = 1;
}

/// A huge object of a heap with filters, found by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HugeIndirectFilteredRecord {
    /// The object.
    pub addr: Addr,
    /// Stored bytes, after the filters.
    pub length: u64,
    /// Bit `i` set: filter `i` was skipped.
    pub filter_mask: u32,
    /// Bytes of the object, before the filters.
    pub unfiltered_size: u64,
    /// Its number.
    pub id: u64,
}

impl Record for HugeIndirectFilteredRecord {
    const NAME: &'static str = "filtered huge object record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.addr)?;
        w.length("length", &mut self.length)?;
        w.u32("filter mask", &mut self.filter_mask)?;
        w.length("object size", &mut self.unfiltered_size)?;
        w.length("number", &mut self.id)
    }
}

impl Btree2Record for HugeIndirectFilteredRecord {
    const KIND: u8 = 2;
}

/// A huge object of a heap whose IDs hold its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HugeDirectRecord {
    /// The object.
    pub addr: Addr,
    /// Bytes of the object.
    pub length: u64,
}

impl Record for HugeDirectRecord {
    const NAME: &'static str = "direct huge object record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.addr)?;
        w.length("length", &mut self.length)
    }
}

impl Btree2Record for HugeDirectRecord {
    const KIND: u8 = 3;
}

/// A huge object of a heap with filters whose IDs hold its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HugeDirectFilteredRecord {
    /// The object.
    pub addr: Addr,
    /// Stored bytes, after the filters.
    pub length: u64,
    /// Bit `i` set: filter `i` was skipped.
    pub filter_mask: u32,
    /// Bytes of the object, before the filters.
    pub unfiltered_size: u64,
}

impl Record for HugeDirectFilteredRecord {
    const NAME: &'static str = "direct filtered huge object record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.addr)?;
        w.length("length", &mut self.length)?;
        w.u32("filter mask", &mut self.filter_mask)?;
        w.length("object size", &mut self.unfiltered_size)
    }
}

impl Btree2Record for HugeDirectFilteredRecord {
    const KIND: u8 = 4;
}

/// A dense link, found by its name. Sorted by hash, then by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LinkNameRecord {
    /// The lookup3 hash of the name.
    pub hash: u32,
    /// The link message in the group's heap.
    pub heap_id: [u8; 7],
}

impl Record for LinkNameRecord {
    const NAME: &'static str = "link name record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.u32("hash", &mut self.hash)?;
        w.byte_array("heap ID", &mut self.heap_id)
    }
}

impl Btree2Record for LinkNameRecord {
    const KIND: u8 = 5;
}

impl LinkNameRecord {
    /// Bytes of a record.
    const SIZE: usize = 11;

    /// How the hash with which the bytes of a record begin compares with `hash`; `Equal` if they are no record.
    #[inline]
    pub fn compare_hash(record: &[u8], hash: u32) -> Ordering {
        match record.first_chunk() {
            Some(stored) if record.len() == Self::SIZE => u32::from_le_bytes(*stored).cmp(&hash),
            _ => Ordering::Equal,
        }
    }
}

/// A dense link, found by its position in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LinkOrderRecord {
    /// The position.
    pub creation_order: i64,
    /// The link message in the group's heap.
    pub heap_id: [u8; 7],
}

impl Record for LinkOrderRecord {
    const NAME: &'static str = "link creation order record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.i64("creation order", &mut self.creation_order)?;
        w.byte_array("heap ID", &mut self.heap_id)
    }
}

impl Btree2Record for LinkOrderRecord {
    const KIND: u8 = 6;
}

/// A dense attribute, found by its name. Sorted by hash, then by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AttributeNameRecord {
    /// The attribute message in the object's heap, or in that of shared messages.
    pub heap_id: [u8; 8],
    /// The flags of the message; 0x02: it is in the heap of shared messages.
    pub message_flags: u8,
    /// The position in the order of creation.
    pub creation_order: u32,
    /// The lookup3 hash of the name.
    pub hash: u32,
}

impl Record for AttributeNameRecord {
    const NAME: &'static str = "attribute name record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.byte_array("heap ID", &mut self.heap_id)?;
        w.u8("message flags", &mut self.message_flags)?;
        w.u32("creation order", &mut self.creation_order)?;
        w.u32("hash", &mut self.hash)
    }
}

impl Btree2Record for AttributeNameRecord {
    const KIND: u8 = 8;
}

/// A dense attribute, found by its position in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AttributeOrderRecord {
    /// The attribute message in the object's heap, or in that of shared messages.
    pub heap_id: [u8; 8],
    /// The flags of the message; 0x02: it is in the heap of shared messages.
    pub message_flags: u8,
    /// The position in the order of creation.
    pub creation_order: u32,
}

impl Record for AttributeOrderRecord {
    const NAME: &'static str = "attribute creation order record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.byte_array("heap ID", &mut self.heap_id)?;
        w.u8("message flags", &mut self.message_flags)?;
        w.u32("creation order", &mut self.creation_order)
    }
}

impl Btree2Record for AttributeOrderRecord {
    const KIND: u8 = 9;
}

/// A chunk of a dataset without filters. Sorted by coordinate, slowest-varying first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ChunkRecord {
    /// The chunk.
    pub addr: Addr,
    /// The position in the grid of chunks. Its rank is context for decoding.
    pub coord: ChunkCoord,
}

/// The position of a chunk, eight bytes for each dimension.
fn wire_chunk_coord(w: &mut impl Wire, coord: &mut ChunkCoord) -> Result<()> {
    let mut scaled: SmallVec<[u64; 4]> = coord.scaled().into();
    scaled.iter_mut().try_for_each(|at| w.u64("scaled offset", at))?;
    if w.is_decoding() {
        *coord = ChunkCoord::new(&scaled);
    }
    Ok(())
}

/// How the position with which the bytes of a chunk's record end compares with `sought`; `Equal` if they have none of
/// that rank.
pub fn compare_chunk_coord(record: &[u8], sought: &ChunkCoord) -> Ordering {
    let sought = sought.scaled();
    let Some(stored) = record.len().checked_sub(size_of_val(sought)).and_then(|start| record.get(start..)) else {
        return Ordering::Equal;
    };
    let stored = stored.as_chunks().0.iter().map(|at| u64::from_le_bytes(*at));
    stored.cmp(sought.iter().copied())
}

impl ChunkRecord {
    /// A record of a dataset of this rank: context for decoding.
    pub fn blank(rank: usize) -> Self {
        ChunkRecord { addr: Addr::UNDEFINED, coord: ChunkCoord::origin(rank) }
    }
}

impl Record for ChunkRecord {
    const NAME: &'static str = "chunk record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.addr)?;
        wire_chunk_coord(w, &mut self.coord)
    }
}

impl Btree2Record for ChunkRecord {
    const KIND: u8 = 10;
}

/// A chunk of a dataset with filters. Sorted by coordinate, slowest-varying first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FilteredChunkRecord {
    /// The width of the stored size. Context for decoding.
    pub stored_size_width: Width,
    /// The chunk.
    pub addr: Addr,
    /// Stored bytes, after the filters.
    pub stored_size: u64,
    /// Bit `i` set: filter `i` was skipped.
    pub filter_mask: u32,
    /// The position in the grid of chunks. Its rank is context for decoding.
    pub coord: ChunkCoord,
}

impl FilteredChunkRecord {
    /// An empty record of a dataset of this rank. Stored sizes of its chunks have this width. Context for decoding.
    pub fn blank(rank: usize, size_width: Width) -> Self {
        let coord = ChunkCoord::origin(rank);
        FilteredChunkRecord {
            stored_size_width: size_width,
            addr: Addr::UNDEFINED,
            stored_size: 0,
            filter_mask: 0,
            coord,
        }
    }
}

impl Record for FilteredChunkRecord {
    const NAME: &'static str = "filtered chunk record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.addr)?;
        w.uint("stored size", self.stored_size_width, &mut self.stored_size)?;
        w.u32("filter mask", &mut self.filter_mask)?;
        wire_chunk_coord(w, &mut self.coord)
    }
}

impl Btree2Record for FilteredChunkRecord {
    const KIND: u8 = 11;
}
