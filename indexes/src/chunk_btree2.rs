//! The version 2 B-tree of chunks: the index of datasets with more than one unlimited dimension.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::{ChunkProxy, DependencyKind};
use h5live_format::{
    Btree2Record, ChunkEntryFormat, ChunkIndexEntry, ChunkRecord, FilteredChunkRecord, Width, compare_chunk_coord,
};
use h5live_model::ChunkCoord;
use parking_lot::Mutex;

use crate::{Btree2, Btree2Parameters, ChunkIndex, Error, IndexAddrSlot, ObjectMetadataAccess, Result};

/// Chunks that are looked up at a time in a walk over a whole tree, which may be changed meanwhile.
const CHUNKS_PER_BATCH: usize = 1024;

/// The version 2 B-tree of one dataset's chunks (format specification 4.0, III.A.2).
#[derive(Debug)]
pub struct ChunkBtree2 {
    metadata: ObjectMetadataAccess,
    root: Arc<dyn IndexAddrSlot>,
    rank: usize,
    format: ChunkEntryFormat,
    shape: Btree2Parameters,
    /// The creation of the header, which two writers must not do at once.
    creation: Mutex<()>,
}

/// A record that says where a chunk is.
trait StoredChunkRecord: Btree2Record {
    fn coord(&self) -> &ChunkCoord;
    fn entry(&self) -> ChunkIndexEntry;
}

impl StoredChunkRecord for ChunkRecord {
    fn coord(&self) -> &ChunkCoord {
        &self.coord
    }

    fn entry(&self) -> ChunkIndexEntry {
        ChunkIndexEntry { addr: self.addr, ..ChunkIndexEntry::default() }
    }
}

impl StoredChunkRecord for FilteredChunkRecord {
    fn coord(&self) -> &ChunkCoord {
        &self.coord
    }

    fn entry(&self) -> ChunkIndexEntry {
        ChunkIndexEntry { addr: self.addr, stored_size: self.stored_size, filter_mask: self.filter_mask }
    }
}

/// Compares records with the wanted coordinate.
fn compare_to<R: StoredChunkRecord>(sought: &ChunkCoord) -> impl Fn(&R) -> Result<Ordering> {
    |record| Ok(record.coord().scaled().cmp(sought.scaled()))
}

/// Gathers the next chunks, from the first or from the one after `last` on.
fn next_batch<R: StoredChunkRecord>(
    tree: &Btree2<R>,
    last: Option<&ChunkCoord>,
) -> Result<Vec<(ChunkCoord, ChunkIndexEntry)>> {
    let mut batch = Vec::new();
    let mut before = |record: &R| Ok(last.is_some_and(|last| record.coord().scaled() <= last.scaled()));
    let mut each = |record: R| {
        batch.push((record.coord().clone(), record.entry()));
        Ok::<_, Error>(batch.len() < CHUNKS_PER_BATCH)
    };
    tree.for_each_from(&mut before, &mut each)?;
    Ok(batch)
}

impl ChunkBtree2 {
    /// The tree to which `root` leads, or will lead once a chunk is stored, over the chunks of a dataset of `rank`
    /// dimensions; `shape` as the layout message has it.
    pub fn new(
        metadata: ObjectMetadataAccess,
        root: Arc<dyn IndexAddrSlot>,
        rank: usize,
        format: ChunkEntryFormat,
        shape: Btree2Parameters,
    ) -> Self {
        ChunkBtree2 { metadata, root, rank, format, shape, creation: Mutex::new(()) }
    }

    fn blank_record(&self) -> ChunkRecord {
        ChunkRecord::blank(self.rank)
    }

    fn blank_filtered_record(&self, width: Width) -> FilteredChunkRecord {
        FilteredChunkRecord::blank(self.rank, width)
    }

    fn open_tree<R: StoredChunkRecord>(&self, blank: R) -> Option<Btree2<R>> {
        let addr = self.root.addr();
        addr.is_defined().then(|| Btree2::new(self.metadata.clone(), addr, blank))
    }

    fn tree_for_writing<R: StoredChunkRecord>(&self, blank: R) -> Result<Btree2<R>> {
        let _creation = self.creation.lock();
        let tree = match self.open_tree(blank.clone()) {
            Some(tree) => tree,
            None => {
                let tree = Btree2::create_with_parameters(self.metadata.clone(), blank, self.shape)?;
                self.root.set_addr(tree.addr())?;
                tree
            }
        };
        self.root.depend_on(&tree.dependency_node()?)?;
        Ok(tree)
    }

    fn find_element<R: StoredChunkRecord>(&self, blank: R, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        match self.open_tree(blank) {
            Some(tree) => Ok(tree
                .find_prefiltered(|record| compare_chunk_coord(record, coord), compare_to(coord))?
                .map(|record| record.entry())),
            None => Ok(None),
        }
    }

    fn insert_or_replace_record<R: StoredChunkRecord>(
        &self,
        blank: R,
        record: &R,
        proxy: Option<&ChunkProxy>,
    ) -> Result<Option<ChunkIndexEntry>> {
        let tree = self.tree_for_writing(blank)?;
        if let Some(proxy) = proxy {
            tree.depend_on(proxy, DependencyKind::BTree2Chunk)?;
        }
        let old = tree.insert_or_overwrite(
            record,
            |other| compare_chunk_coord(other, record.coord()),
            compare_to(record.coord()),
        )?;
        Ok(old.map(|record| record.entry()).filter(|element| element.addr.is_defined()))
    }

    fn remove_record<R: StoredChunkRecord>(&self, blank: R, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        if self.open_tree(blank.clone()).is_none() {
            return Ok(None);
        }
        let removed = self.tree_for_writing(blank)?.remove(compare_to(coord))?;
        Ok(removed.map(|record| record.entry()).filter(|element| element.addr.is_defined()))
    }

    fn for_each_record<R: StoredChunkRecord>(
        &self,
        blank: R,
        each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool,
    ) -> Result<()> {
        let Some(tree) = self.open_tree(blank) else { return Ok(()) };
        if self.metadata.cache().is_read_only() {
            return tree.for_each(&mut |record| {
                let element = record.entry();
                Ok(!element.addr.is_defined() || each(record.coord().clone(), element))
            });
        }
        let mut last: Option<ChunkCoord> = None;
        loop {
            let batch = next_batch(&tree, last.as_ref())?;
            let Some((end, _)) = batch.last() else { return Ok(()) };
            if last.is_some_and(|last| last.scaled() >= end.scaled()) {
                let (record, other, at) = ("version 2 B-tree node", "version 2 B-tree", self.root.addr());
                return Err(Error::Contradiction { record, at, other, rule: "its records are sorted" });
            }
            last = Some(end.clone());
            for (coord, element) in batch {
                if element.addr.is_defined() && !each(coord, element) {
                    return Ok(());
                }
            }
        }
    }

    fn delete_tree<R: StoredChunkRecord>(&self, blank: R) -> Result<()> {
        self.open_tree(blank).map_or(Ok(()), |tree| tree.delete_tree())
    }
}

impl ChunkIndex for ChunkBtree2 {
    fn get_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        let found = match self.format {
            ChunkEntryFormat::Unfiltered => self.find_element(self.blank_record(), coord)?,
            ChunkEntryFormat::Filtered(width) => self.find_element(self.blank_filtered_record(width), coord)?,
        };
        Ok(found.filter(|element| element.addr.is_defined()))
    }

    fn set_chunk_entry(&self, coord: &ChunkCoord, entry: ChunkIndexEntry, proxy: Option<&ChunkProxy>) -> Result<()> {
        self.replace_chunk_entry(coord, entry, proxy).map(|_| ())
    }

    fn replace_chunk_entry(
        &self,
        coord: &ChunkCoord,
        entry: ChunkIndexEntry,
        proxy: Option<&ChunkProxy>,
    ) -> Result<Option<ChunkIndexEntry>> {
        if coord.rank() != self.rank {
            return Err(Error::ChunkOutOfBounds(coord.clone()));
        }
        let ChunkIndexEntry { addr, stored_size: size, filter_mask } = entry;
        let coord = coord.clone();
        match self.format {
            ChunkEntryFormat::Unfiltered => {
                self.insert_or_replace_record(self.blank_record(), &ChunkRecord { addr, coord }, proxy)
            }
            ChunkEntryFormat::Filtered(width) if size > width.max_value() => Err(Error::StoredChunkTooLarge { size }),
            ChunkEntryFormat::Filtered(size_width) => {
                let record =
                    FilteredChunkRecord { stored_size_width: size_width, addr, stored_size: size, filter_mask, coord };
                self.insert_or_replace_record(self.blank_filtered_record(size_width), &record, proxy)
            }
        }
    }

    fn remove_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        match self.format {
            ChunkEntryFormat::Unfiltered => self.remove_record(self.blank_record(), coord),
            ChunkEntryFormat::Filtered(width) => self.remove_record(self.blank_filtered_record(width), coord),
        }
    }

    fn delete_index(&self) -> Result<()> {
        match self.format {
            ChunkEntryFormat::Unfiltered => self.delete_tree(self.blank_record()),
            ChunkEntryFormat::Filtered(width) => self.delete_tree(self.blank_filtered_record(width)),
        }
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        match self.format {
            ChunkEntryFormat::Unfiltered => self.for_each_record(self.blank_record(), each),
            ChunkEntryFormat::Filtered(width) => self.for_each_record(self.blank_filtered_record(width), each),
        }
    }
}
