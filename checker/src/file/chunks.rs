//! Chunks: whether each lies where its index says, within the shape of its dataset.

use std::rc::Rc;

use h5live_format::messages::{ChunkIndexType, ChunkedStorage, LayoutMessage};
use h5live_format::{
    Addr, Btree1ChunkKey, Btree1ChunkRank, Btree1Node, Btree2Header, ChunkEntryFormat, ChunkIndexEntry, ChunkRecord,
    FilteredChunkRecord, Record,
};
use h5live_model::{Datatype, FilterSpecs, UNLIMITED};

use super::FindingCause;
use super::btree1::Btree1Check;
use super::walk::FileWalk;

/// Registered numbers of filters.
const DEFLATE: u16 = 1;
const FLETCHER32: u16 = 3;

/// The known properties of a chunked dataset.
pub(super) struct ChunkedDataset {
    pub header: Addr,
    /// The version of the layout message.
    pub version: u8,
    pub storage: ChunkedStorage,
    /// Bytes of a chunk before the filters.
    pub bytes: u64,
    /// The extent (`[rank]`, elements).
    pub dims: Vec<u64>,
    /// The largest extent (`[rank]`, elements).
    pub max: Vec<u64>,
    pub filters: FilterSpecs,
    /// The type of an element, if elements lead elsewhere.
    pub datatype: Option<Rc<Datatype>>,
}

impl ChunkedDataset {
    /// Chunks along a dimension of the largest extent; `None` without a limit.
    pub fn max_chunks_along(&self, dim: usize) -> Option<u64> {
        let (max, chunk) = (*self.max.get(dim)?, *self.storage.chunk_dims.get(dim)?);
        (max != UNLIMITED).then(|| max.div_ceil(chunk.max(1)))
    }

    /// All chunks of the largest extent, if it has a limit and they fit 64 bits.
    pub fn max_chunk_count(&self) -> Option<u64> {
        (0..self.max.len()).try_fold(1u64, |n, dim| n.checked_mul(self.max_chunks_along(dim)?))
    }

    /// The position of the chunk at an index of an array: row-major, the unlimited dimension slowest.
    pub fn chunk_coord(&self, index: u64) -> Vec<u64> {
        let mut rest = index;
        let mut coord = vec![0; self.max.len()];
        for (dim, at) in coord.iter_mut().enumerate().rev() {
            if let Some(limit) = self.max_chunks_along(dim) {
                *at = rest.checked_rem(limit).unwrap_or(0);
                rest = rest.checked_div(limit).unwrap_or(0);
            }
        }
        if let Some(dim) = (0..self.max.len()).find(|dim| self.max_chunks_along(*dim).is_none()) {
            if let Some(at) = coord.get_mut(dim) {
                *at = rest;
            }
        } else if let (Some(first), true) = (coord.first_mut(), rest > 0) {
            *first = first.saturating_add(rest);
        }
        coord
    }

    /// The format of the elements of an array index.
    pub fn chunk_entry_format(&self, length: h5live_format::Width) -> ChunkEntryFormat {
        if self.filters.is_empty() {
            ChunkEntryFormat::Unfiltered
        } else {
            ChunkEntryFormat::filtered(self.bytes, self.version, length)
        }
    }

    /// Whether a chunk reaches over the extent.
    fn is_edge_chunk(&self, coord: &[u64]) -> bool {
        let over = |((at, chunk), dim): ((&u64, &u64), &u64)| {
            at.checked_add(1).and_then(|next| next.checked_mul(*chunk)).is_none_or(|end| end > *dim)
        };
        coord.iter().zip(&self.storage.chunk_dims).zip(&self.dims).any(over)
    }

    /// Whether a chunk with this filter mask went through a filter that adds a checksum: Fletcher32's own, or the Adler-32 of
    /// the zlib streams of deflate.
    fn has_checksum(&self, filter_mask: u32) -> bool {
        let is_used =
            |at: usize| u32::try_from(at).ok().and_then(|at| filter_mask.checked_shr(at)).unwrap_or(0) & 1 == 0;
        self.filters.iter().enumerate().any(|(at, filter)| matches!(filter.id, DEFLATE | FLETCHER32) && is_used(at))
    }

    /// Bytes of a chunk as an element of an array states it.
    fn stored_chunk_bytes(&self, element: ChunkIndexEntry) -> u64 {
        if self.filters.is_empty() { self.bytes } else { element.stored_size }
    }
}

impl FileWalk<'_> {
    /// The chunk index of a dataset, and its chunks.
    pub fn check_chunk_index_and_chunks(&mut self, chunked: &ChunkedDataset) {
        let at = chunked.storage.addr;
        if !at.is_defined() {
            return;
        }
        match chunked.storage.index {
            ChunkIndexType::Btree1 => self.check_chunk_btree1(chunked),
            ChunkIndexType::Single { filtered } => {
                let size = filtered.map_or(chunked.bytes, |chunk| chunk.size);
                let filter_mask = filtered.map_or(u32::MAX, |chunk| chunk.filter_mask);
                let coord = vec![0; chunked.dims.len()];
                let unfiltered = filtered.is_none();
                self.check_chunk(
                    chunked,
                    LayoutMessage::NAME,
                    chunked.header,
                    &coord,
                    at,
                    size,
                    filter_mask,
                    unfiltered,
                );
            }
            ChunkIndexType::Implicit => match chunked.max_chunk_count().and_then(|n| n.checked_mul(chunked.bytes)) {
                Some(bytes) => self.add_unchecksummed_raw_data("chunks", at, bytes),
                None => {
                    let rule = "chunks without an index have a limit in each dimension";
                    self.report(LayoutMessage::NAME, chunked.header, FindingCause::BrokenRule(rule));
                }
            },
            ChunkIndexType::FixedArray { page_bits } => self.check_fixed_array(chunked, page_bits),
            ChunkIndexType::ExtensibleArray(parameters) => self.check_extensible_array(chunked, parameters),
            ChunkIndexType::Btree2 { node_size, split, merge } => {
                if let Some(header) = self.check_chunk_btree2(chunked) {
                    const NAME: &str = Btree2Header::NAME;
                    self.check_equal(NAME, at, "node size of the layout", node_size.into(), header.node_size.into());
                    self.check_equal(
                        NAME,
                        at,
                        "split percent of the layout",
                        split.into(),
                        header.split_percent.into(),
                    );
                    self.check_equal(
                        NAME,
                        at,
                        "merge percent of the layout",
                        merge.into(),
                        header.merge_percent.into(),
                    );
                }
            }
        }
    }

    /// Reports the header `structure` of an array index at `at` whose elements have another format than that of the
    /// dataset. Returns whether it has not.
    pub fn check_chunk_entry_format(
        &mut self,
        (structure, at): (&'static str, Addr),
        chunked: &ChunkedDataset,
        found: ChunkEntryFormat,
    ) -> bool {
        let is_right = found == chunked.chunk_entry_format(self.widths.length);
        if !is_right {
            self.report(
                structure,
                at,
                FindingCause::BrokenRule("elements look as the layout and the filters of the dataset make them"),
            );
        }
        is_right
    }

    /// A chunk to which an element of an array leads.
    pub fn check_chunk_of_entry(
        &mut self,
        chunked: &ChunkedDataset,
        structure: &'static str,
        at: Addr,
        index: u64,
        element: ChunkIndexEntry,
    ) {
        let (size, coord) = (chunked.stored_chunk_bytes(element), chunked.chunk_coord(index));
        self.check_chunk(chunked, structure, at, &coord, element.addr, size, element.filter_mask, false);
    }

    /// A chunk; `name` and `at` are the structure that leads to it.
    #[allow(clippy::too_many_arguments)]
    fn check_chunk(
        &mut self,
        chunked: &ChunkedDataset,
        name: &'static str,
        at: Addr,
        coord: &[u64],
        addr: Addr,
        size: u64,
        filter_mask: u32,
        unfiltered: bool,
    ) {
        for (dim, place) in coord.iter().enumerate() {
            if let Some(limit) = chunked.max_chunks_along(dim).filter(|limit| place >= limit && *limit > 0) {
                let cause = FindingCause::ExceedsLimit { what: "position of a chunk", found: *place, limit: limit - 1 };
                self.report(name, at, cause);
                return;
            }
        }
        let starts =
            |((place, chunk), dim): ((&u64, &u64), &u64)| place.checked_mul(*chunk).is_some_and(|start| start < *dim);
        let is_inside = coord.iter().zip(&chunked.storage.chunk_dims).zip(&chunked.dims).all(starts);
        if !is_inside {
            self.add_note("chunk", addr, FindingCause::BrokenRule("lies outside the extent"));
        }
        let every = 1u32.checked_shl(u32::try_from(chunked.filters.len()).unwrap_or(32)).map_or(u32::MAX, |n| n - 1);
        let plain = unfiltered
            || chunked.filters.is_empty()
            || filter_mask & every == every
            || (chunked.storage.unfiltered_partial_chunks && is_inside && chunked.is_edge_chunk(coord));
        if size == 0 {
            self.report(name, at, FindingCause::BrokenRule("a stored chunk has bytes"));
            return;
        }
        if plain {
            self.check_equal(name, at, "bytes of a chunk without filters", size, chunked.bytes);
        }
        match chunked.has_checksum(if plain { u32::MAX } else { filter_mask }) {
            true => self.add_checksummed_raw_data("chunk", addr, size),
            false => self.add_unchecksummed_raw_data("chunk", addr, size),
        }
        let leads = chunked.datatype.is_some() && is_inside;
        if leads || (self.options.unfilters_all_chunks && !plain) {
            let mask = if plain { u32::MAX } else { filter_mask };
            self.unfilter_and_check_chunk(chunked, coord, addr, size, mask);
        }
    }

    fn check_chunk_btree1(&mut self, chunked: &ChunkedDataset) {
        const NAME: &str = Btree1Node::<Btree1ChunkKey>::NAME;
        let root = chunked.storage.addr;
        let Ok(rank) = u8::try_from(chunked.dims.len()) else { return };
        let sorted = |from: &Btree1ChunkKey, to: &Btree1ChunkKey| {
            (&from.start, from.offset_in_element) < (&to.start, to.offset_in_element)
        };
        let tree = Btree1Check::<Btree1ChunkKey>::new(self.k.chunk, Btree1ChunkRank(rank), &sorted);
        let whole = self.check_and_walk_btree1(root, tree, &mut |walk, key, addr, _| {
            let dims = &chunked.storage.chunk_dims;
            let odd = key.start.iter().zip(dims).any(|(start, chunk)| start % chunk.max(&1) != 0);
            if odd || key.offset_in_element != 0 {
                walk.report(
                    NAME,
                    root,
                    FindingCause::BrokenRule("a chunk begins at a multiple of the chunk dimensions"),
                );
                return;
            }
            let coord: Vec<u64> = key.start.iter().zip(dims).map(|(start, chunk)| start / chunk.max(&1)).collect();
            walk.check_chunk(chunked, NAME, root, &coord, addr, key.stored_size.into(), key.filter_mask, false);
        });
        self.incomplete |= !whole && chunked.datatype.is_some();
    }

    fn check_chunk_btree2(&mut self, chunked: &ChunkedDataset) -> Option<Btree2Header> {
        let (root, rank) = (chunked.storage.addr, chunked.dims.len());
        let mut last: Option<Vec<u64>> = None;
        let mut follows = |walk: &mut FileWalk<'_>, name: &'static str, index: u64, coord: &[u64]| {
            if last.as_deref().is_some_and(|last| last >= coord) {
                walk.report(name, root, FindingCause::OutOfOrder { what: "record", index });
            }
            last = Some(coord.to_vec());
        };
        match chunked.chunk_entry_format(self.widths.length) {
            ChunkEntryFormat::Unfiltered => {
                self.check_and_walk_btree2(root, ChunkRecord::blank(rank), &mut |walk, index, record| {
                    const NAME: &str = ChunkRecord::NAME;
                    follows(walk, NAME, index, record.coord.scaled());
                    walk.check_chunk(chunked, NAME, root, record.coord.scaled(), record.addr, chunked.bytes, 0, true);
                })
            }
            ChunkEntryFormat::Filtered(width) => {
                self.check_and_walk_btree2(root, FilteredChunkRecord::blank(rank, width), &mut |walk, index, record| {
                    const NAME: &str = FilteredChunkRecord::NAME;
                    let coord = record.coord.scaled();
                    follows(walk, NAME, index, coord);
                    walk.check_chunk(
                        chunked,
                        NAME,
                        root,
                        coord,
                        record.addr,
                        record.stored_size,
                        record.filter_mask,
                        false,
                    );
                })
            }
        }
    }
}
