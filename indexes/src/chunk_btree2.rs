//! The version 2 B-tree of chunks: the index of datasets with more than one unlimited dimension.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::Proxy;
use h5live_format::{ChunkElement, ChunkRecord, ElementFormat, FilteredChunkRecord};
use h5live_model::ChunkCoord;

use crate::{Btree2, ChunkIndex, Error, IndexRoot, ObjectMetadata, Result};

/// The version 2 B-tree of one dataset's chunks (format specification 4.0, III.A.2).
#[derive(Debug)]
pub struct ChunkBtree2 {
    metadata: ObjectMetadata,
    root: Arc<dyn IndexRoot>,
    rank: usize,
    format: ElementFormat,
}

impl ChunkBtree2 {
    /// The tree to which `root` leads, over the chunks of a dataset of `rank` dimensions.
    pub fn new(metadata: ObjectMetadata, root: Arc<dyn IndexRoot>, rank: usize, format: ElementFormat) -> Self {
        ChunkBtree2 { metadata, root, rank, format }
    }

    fn plain(&self) -> Btree2<ChunkRecord> {
        Btree2::new(self.metadata.clone(), self.root.addr(), ChunkRecord::blank(self.rank))
    }

    fn filtered(&self, width: h5live_format::Width) -> Btree2<FilteredChunkRecord> {
        Btree2::new(self.metadata.clone(), self.root.addr(), FilteredChunkRecord::blank(self.rank, width))
    }
}

fn order(found: &ChunkCoord, sought: &ChunkCoord) -> Result<Ordering> {
    Ok(found.scaled().cmp(sought.scaled()))
}

fn of_filtered(record: &FilteredChunkRecord) -> ChunkElement {
    ChunkElement { addr: record.addr, size: record.size, filter_mask: record.filter_mask }
}

fn of_plain(record: &ChunkRecord) -> ChunkElement {
    ChunkElement { addr: record.addr, ..ChunkElement::default() }
}

impl ChunkIndex for ChunkBtree2 {
    fn get(&self, coord: &ChunkCoord) -> Result<Option<ChunkElement>> {
        if !self.root.addr().is_defined() {
            return Ok(None);
        }
        let found = match self.format {
            ElementFormat::Unfiltered => self.plain().find(|found| order(&found.coord, coord))?.as_ref().map(of_plain),
            ElementFormat::Filtered(width) => {
                self.filtered(width).find(|found| order(&found.coord, coord))?.as_ref().map(of_filtered)
            }
        };
        Ok(found.filter(|element| element.addr.is_defined()))
    }

    fn set(&self, _: &ChunkCoord, _: ChunkElement, _: Option<&Proxy>) -> Result<()> {
        Err(Error::Unsupported("changing a version 2 B-tree of chunks"))
    }

    fn for_each(&self, each: &mut dyn FnMut(ChunkCoord, ChunkElement) -> bool) -> Result<()> {
        if !self.root.addr().is_defined() {
            return Ok(());
        }
        let mut given =
            |coord: ChunkCoord, element: ChunkElement| Ok(!element.addr.is_defined() || each(coord, element));
        match self.format {
            ElementFormat::Unfiltered => self.plain().for_each(&mut |record| {
                let element = of_plain(&record);
                given(record.coord, element)
            }),
            ElementFormat::Filtered(width) => self.filtered(width).for_each(&mut |record| {
                let element = of_filtered(&record);
                given(record.coord, element)
            }),
        }
    }
}
