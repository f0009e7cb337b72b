//! The version 1 B-tree of chunks: the index of all chunked datasets before HDF5 1.10.

use std::sync::Arc;

use h5live_cache::{ChunkProxy, DependencyKind, DependencyNode, Handle};
use h5live_format::{Addr, Btree1ChunkKey, Btree1ChunkRank, Btree1Node, ChunkIndexEntry};
use h5live_model::{ChunkCoord, ChunkGrid};
use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::btree1::{Btree1, Btree1PathStep, KeyBounds, KeyRange, LeafCallbacks, NodeEntries};
use crate::{ChunkIndex, Error, IndexAddrSlot, ObjectMetadataAccess, Result};

/// Chunks that are looked up at a time in a walk over a whole tree, which may be changed meanwhile.
const CHUNKS_PER_BATCH: usize = 1024;

/// The version 1 B-tree of one dataset's chunks (format specification 4.0, III.A.1).
#[derive(Debug)]
pub struct ChunkBtree1 {
    metadata: ObjectMetadataAccess,
    root: Arc<dyn IndexAddrSlot>,
    grid: ChunkGrid,
    element_size: u64,
    k: u16,
    /// Held shared to read nodes, and alone to change them.
    lock: RwLock<()>,
}

impl ChunkBtree1 {
    /// The tree to which `root` leads, or will lead once a chunk is stored, over the chunks of `grid`, of elements of
    /// `element_size` bytes. Its nodes have at most `2 * k` children.
    pub fn new(
        metadata: ObjectMetadataAccess,
        root: Arc<dyn IndexAddrSlot>,
        grid: ChunkGrid,
        element_size: u64,
        k: u16,
    ) -> Self {
        ChunkBtree1 { metadata, root, grid, element_size, k, lock: RwLock::new(()) }
    }

    fn rank(&self) -> Btree1ChunkRank {
        Btree1ChunkRank(u8::try_from(self.grid.chunk_dims().len()).unwrap_or(u8::MAX))
    }

    fn open_tree(&self) -> Btree1<Btree1ChunkKey> {
        Btree1::new(self.metadata.clone(), self.root.addr(), self.k, self.rank())
    }

    fn tree_for_writing(&self) -> Result<Btree1<Btree1ChunkKey>> {
        if self.root.addr().is_defined() {
            return Ok(self.open_tree());
        }
        let (tree, node) = Btree1::create(self.metadata.clone(), self.k, self.rank())?;
        self.root.set_addr(tree.root())?;
        self.root.depend_on(&node)?;
        Ok(tree)
    }

    fn coord_of_key(&self, key: &Btree1ChunkKey) -> Result<ChunkCoord> {
        let scaled: SmallVec<[u64; 4]> =
            key.start.iter().zip(self.grid.chunk_dims()).map(|(at, dim)| at / dim).collect();
        let coord = ChunkCoord::new(&scaled);
        if self.grid.start_of(&coord)[..] != key.start[..] {
            let (record, other) = ("version 1 B-tree node", "data layout message");
            return Err(Error::Contradiction { record, at: self.root.addr(), other, rule: "its keys are of chunks" });
        }
        Ok(coord)
    }

    fn element_of_entry((key, addr): (Btree1ChunkKey, Addr)) -> ChunkIndexEntry {
        ChunkIndexEntry { addr, stored_size: key.stored_size.into(), filter_mask: key.filter_mask }
    }

    /// The key behind the last chunk of a tree; `None` if the chunk is too far out for it.
    fn end_key(&self, start: &[u64]) -> Option<Btree1ChunkKey> {
        let next = start.iter().zip(self.grid.chunk_dims()).map(|(at, dim)| at.checked_add(*dim));
        Some(Btree1ChunkKey {
            stored_size: 0,
            filter_mask: 0,
            start: next.collect::<Option<_>>()?,
            offset_in_element: self.element_size,
        })
    }

    /// The leaf in which the chunk at `start` is or would be: its entries, the place there, and whether it is there.
    fn find_position(&self, tree: &Btree1<Btree1ChunkKey>, start: &[u64]) -> Result<ChunkPosition> {
        let mut sought = None;
        let path = tree.path_to_leaf(|node| {
            let place = child_count_up_to(node, start);
            if node.level == 0 {
                let found =
                    place.checked_sub(1).filter(|found| node.key(*found).is_some_and(|key| key.start[..] == *start));
                sought = Some((NodeEntries::from_node(node), found.unwrap_or(place), found.is_some()));
                return Ok(place);
            }
            Ok(place.saturating_sub(1))
        })?;
        let (entries, index, found) =
            sought.unwrap_or((NodeEntries { keys: Vec::new(), children: Vec::new() }, 0, false));
        Ok(ChunkPosition { path, entries, index, found })
    }

    /// Gathers the next chunks.
    fn next_batch(&self, last: Option<&[u64]>) -> Result<Vec<(Btree1ChunkKey, Addr)>> {
        let _shared = self.lock.read_recursive();
        let mut batch = Vec::new();
        let mut each = |_: &KeyBounds<Btree1ChunkKey>, key, addr| {
            batch.push((key, addr));
            Ok::<_, Error>(batch.len() < CHUNKS_PER_BATCH)
        };
        self.open_tree().for_each_in_range(&ChunksAfterStart(last), &mut each)?;
        Ok(batch)
    }
}

/// The chunks after one, or all.
struct ChunksAfterStart<'a>(Option<&'a [u64]>);

impl KeyRange<Btree1ChunkKey> for ChunksAfterStart<'_> {
    fn is_before(&self, key: &Btree1ChunkKey, other: &Btree1ChunkKey) -> Result<bool> {
        Ok((&key.start[..], key.offset_in_element) < (&other.start[..], other.offset_in_element))
    }

    fn may_contain(&self, level: u8, between: &KeyBounds<Btree1ChunkKey>) -> bool {
        let latest = if level == 0 { &between.begin } else { &between.end };
        self.0.zip(latest.as_ref()).is_none_or(|(last, latest)| latest.start[..] > *last)
    }
}

/// A place in a leaf.
struct ChunkPosition {
    path: Vec<Btree1PathStep>,
    entries: NodeEntries<Btree1ChunkKey>,
    index: usize,
    found: bool,
}

/// How many children of a node begin at or before `start`.
fn child_count_up_to(node: &Btree1Node<Btree1ChunkKey>, start: &[u64]) -> usize {
    let (mut low, mut high) = (0, node.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if node.key(middle).is_some_and(|key| key.start[..] <= *start) { low = middle + 1 } else { high = middle }
    }
    low
}

impl LeafCallbacks<Btree1ChunkKey> for ChunkBtree1 {
    fn add_child_dependency(&self, node: &Handle<Btree1Node<Btree1ChunkKey>>, chunk: Addr) -> Result<()> {
        let proxies = self.metadata.cache().chunk_proxies(chunk);
        proxies.iter().try_for_each(|proxy| self.metadata.add_dependency(node, proxy, DependencyKind::BTree1Chunk))
    }

    fn leaf_changed(&self, node: &dyn DependencyNode) -> Result<()> {
        self.root.depend_on(node)
    }
}

impl ChunkIndex for ChunkBtree1 {
    fn get_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        let _shared = self.lock.read_recursive();
        let start = self.grid.start_of(coord);
        // The last child whose first chunk does not come after the one that is sought.
        let choose = |node: &Btree1Node<Btree1ChunkKey>| Ok(child_count_up_to(node, &start).checked_sub(1));
        let found = self.open_tree().find_entry(choose)?.filter(|(key, _)| key.start[..] == start[..]);
        Ok(found.map(Self::element_of_entry).filter(|element| element.addr.is_defined()))
    }

    fn set_chunk_entry(&self, coord: &ChunkCoord, entry: ChunkIndexEntry, proxy: Option<&ChunkProxy>) -> Result<()> {
        debug_assert!(proxy.is_none_or(|proxy| proxy.chunk() == entry.addr));
        let outside = || Error::ChunkOutOfBounds(coord.clone());
        if coord.rank() != self.grid.chunk_dims().len() {
            return Err(outside());
        }
        // Unfiltered chunks state a size here, though it is always the same.
        let whole = self.grid.chunk_element_count().and_then(|elements| elements.checked_mul(self.element_size));
        let size = if entry.stored_size == 0 { whole.unwrap_or(u64::MAX) } else { entry.stored_size };
        let size = u32::try_from(size).map_err(|_| Error::StoredChunkTooLarge { size })?;
        let start = self.grid.start_of(coord);
        let behind = self.end_key(&start).ok_or_else(outside)?;
        let key = Btree1ChunkKey {
            stored_size: size,
            filter_mask: entry.filter_mask,
            start: start.clone(),
            offset_in_element: 0,
        };

        let _alone = self.lock.write();
        let tree = self.tree_for_writing()?;
        let ChunkPosition { path, mut entries, index, found } = self.find_position(&tree, &start)?;
        if found {
            entries.keys.splice(index..=index, [key]);
            entries.children.splice(index..=index, [entry.addr]);
        } else {
            let last = index == entries.children.len();
            let beyond = |bound: &Btree1ChunkKey| (&bound.start[..], bound.offset_in_element) <= (&start[..], 0);
            if last && entries.keys.last().is_none_or(beyond) {
                entries.keys.pop();
                entries.keys.extend([key, behind]);
            } else {
                entries.keys.insert(index, key);
            }
            entries.children.insert(index, entry.addr);
        }
        tree.replace_leaf_entries(&path, entries, &[entry.addr], self)
    }

    fn allows_shared_proxy(&self) -> bool {
        false
    }

    fn remove_chunk_entry(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        let start = self.grid.start_of(coord);
        let _alone = self.lock.write();
        if !self.root.addr().is_defined() {
            return Ok(None);
        }
        let tree = self.open_tree();
        let ChunkPosition { path, mut entries, index, found } = self.find_position(&tree, &start)?;
        let old = entries.keys.get(index).cloned().zip(entries.children.get(index).copied());
        let Some(old) = old.filter(|_| found).map(Self::element_of_entry) else { return Ok(None) };
        entries.remove(index);
        tree.replace_leaf_entries(&path, entries, &[], self)?;
        Ok(Some(old).filter(|old| old.addr.is_defined()))
    }

    fn delete_index(&self) -> Result<()> {
        let _alone = self.lock.write();
        let tree = self.open_tree();
        let size = tree.node_size();
        tree.all_blocks()?.nodes.into_iter().for_each(|node| self.metadata.free_structure(node, size));
        Ok(())
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        self.for_each_after_if_supported(None, each).map(drop)
    }

    fn for_each_after_if_supported(
        &self,
        after: Option<&ChunkCoord>,
        each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool,
    ) -> Result<bool> {
        let mut give = |key: Btree1ChunkKey, addr: Addr| -> Result<bool> {
            let coord = self.coord_of_key(&key)?;
            Ok(!addr.is_defined() || each(coord, Self::element_of_entry((key, addr))))
        };
        let mut last = after.map(|after| self.grid.start_of(after));
        if self.metadata.cache().is_read_only() {
            let range = ChunksAfterStart(last.as_deref());
            self.open_tree().for_each_in_range(&range, &mut |_, key, addr| give(key, addr))?;
            return Ok(true);
        }
        loop {
            let batch = self.next_batch(last.as_deref())?;
            let Some((end, _)) = batch.last() else { return Ok(true) };
            last = Some(end.start.clone());
            for (key, addr) in batch {
                if !give(key, addr)? {
                    return Ok(true);
                }
            }
        }
    }
}
