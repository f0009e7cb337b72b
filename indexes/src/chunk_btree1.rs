//! The version 1 B-tree of chunks: the index of all chunked datasets before HDF5 1.10.

use std::cmp::Ordering;
use std::sync::Arc;

use h5live_cache::Proxy;
use h5live_format::{Btree1Node, ChunkElement, ChunkKey, ChunkRank};
use h5live_model::{ChunkCoord, ChunkGrid};
use smallvec::SmallVec;

use crate::btree1::Btree1;
use crate::{ChunkIndex, Error, IndexRoot, ObjectMetadata, Result};

/// The version 1 B-tree of one dataset's chunks (format specification 4.0, III.A.1).
#[derive(Debug)]
pub struct ChunkBtree1 {
    metadata: ObjectMetadata,
    root: Arc<dyn IndexRoot>,
    grid: ChunkGrid,
    k: u16,
}

impl ChunkBtree1 {
    /// The tree to which `root` leads, over the chunks of `grid`. Its nodes have at most `2 * k` children.
    pub fn new(metadata: ObjectMetadata, root: Arc<dyn IndexRoot>, grid: ChunkGrid, k: u16) -> Self {
        ChunkBtree1 { metadata, root, grid, k }
    }

    fn tree(&self) -> Btree1<ChunkKey> {
        let rank = ChunkRank(u8::try_from(self.grid.dims().len()).unwrap_or(u8::MAX));
        Btree1::new(self.metadata.clone(), self.root.addr(), self.k, rank)
    }

    fn coord(&self, key: &ChunkKey) -> Result<ChunkCoord> {
        let scaled: SmallVec<[u64; 4]> = key.start.iter().zip(self.grid.dims()).map(|(at, dim)| at / dim).collect();
        let coord = ChunkCoord::new(&scaled);
        if self.grid.start_of(&coord)[..] != key.start[..] {
            let (record, other) = ("version 1 B-tree node", "data layout message");
            return Err(Error::Contradiction { record, at: self.root.addr(), other, rule: "its keys are of chunks" });
        }
        Ok(coord)
    }

    fn element((key, addr): (ChunkKey, h5live_format::Addr)) -> ChunkElement {
        ChunkElement { addr, size: key.size.into(), filter_mask: key.filter_mask }
    }
}

impl ChunkIndex for ChunkBtree1 {
    fn get(&self, coord: &ChunkCoord) -> Result<Option<ChunkElement>> {
        let start = self.grid.start_of(coord);
        let order = |key: Option<ChunkKey>| key.map_or(Ordering::Greater, |key| key.start[..].cmp(&start[..]));
        // The last child whose first chunk does not come after the one that is sought.
        let choose = |node: &Btree1Node<ChunkKey>| {
            let (mut low, mut high) = (0, node.len());
            while low < high {
                let middle = low + (high - low) / 2;
                if order(node.key(middle)) == Ordering::Greater { high = middle } else { low = middle + 1 }
            }
            Ok(low.checked_sub(1))
        };
        let found = self.tree().find(choose)?.filter(|(key, _)| key.start[..] == start[..]);
        Ok(found.map(Self::element).filter(|element| element.addr.is_defined()))
    }

    fn set(&self, _: &ChunkCoord, _: ChunkElement, _: Option<&Proxy>) -> Result<()> {
        Err(Error::Unsupported("changing a version 1 B-tree of chunks"))
    }

    fn delete(&self) -> Result<()> {
        Err(Error::Unsupported("deleting a version 1 B-tree of chunks"))
    }

    fn for_each(&self, each: &mut dyn FnMut(ChunkCoord, ChunkElement) -> bool) -> Result<()> {
        self.tree().for_each(&mut |key, addr| {
            let coord = self.coord(&key)?;
            Ok(!addr.is_defined() || each(coord, Self::element((key, addr))))
        })
    }
}
