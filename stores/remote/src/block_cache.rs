//! Blocks of an object that are kept in memory.

use h5live_objects::Bytes;
use parking_lot::{Condvar, Mutex};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most blocks that are read ahead of a reader that goes on where it was.
const MAX_BLOCKS_AHEAD: u64 = 16;

/// The blocks of one object that were used last. Each block has the same number of bytes, but the last one.
#[derive(Debug)]
pub struct BlockCache {
    block_bytes: u64,
    max_blocks: usize,
    state: Mutex<BlockState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct BlockState {
    /// Each with the time of its last use.
    blocks: FxHashMap<u64, (Bytes, u64)>,
    /// Those that somebody is reading.
    awaited: FxHashSet<u64>,
    clock: u64,
    /// The block behind the last one that was read, and how many were read ahead then.
    next: u64,
    ahead: u64,
}

/// What is known of some blocks that follow each other.
#[derive(Debug)]
pub struct BlockLookup {
    /// Those that are here, with their numbers.
    pub found: Vec<(u64, Bytes)>,
    /// Those that are to be read, in ascending order, also some that are read ahead. Whoever got this reads them, and gives
    /// each to [`BlockCache::insert`]; at the end, [`BlockCache::release_claims`] lets others read those that did not come.
    pub claimed: Vec<u64>,
}

impl BlockCache {
    /// An empty cache of blocks of so many bytes, for as many as fit into `max_bytes`.
    pub fn new(block_bytes: u64, max_bytes: u64) -> Self {
        let max_blocks = usize::try_from(max_bytes / block_bytes).unwrap_or(usize::MAX).max(4);
        BlockCache { block_bytes, max_blocks, state: Mutex::default(), arrived: Condvar::new() }
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Looks for the blocks from `first` to `last`. If others read some of them, it waits for those. `object_block_count` is the number
    /// of blocks of the object.
    pub fn look_up_or_claim(&self, first: u64, last: u64, object_block_count: u64) -> BlockLookup {
        let mut state = self.state.lock();
        while (first..=last).any(|block| state.awaited.contains(&block)) {
            self.arrived.wait(&mut state);
        }
        state.clock += 1;
        let now = state.clock;
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for block in first..=last {
            match state.blocks.get_mut(&block) {
                Some((bytes, used)) => {
                    *used = now;
                    found.push((block, bytes.clone()));
                }
                None => missing.push(block),
            }
        }
        let Some(start) = missing.first().copied() else { return BlockLookup { found, claimed: missing } };
        // What is read ahead must not drive out what was just read.
        let max_ahead = MAX_BLOCKS_AHEAD.min(self.max_blocks as u64 / 4);
        state.ahead = if start == state.next { (state.ahead * 2).clamp(1, max_ahead) } else { 0 };
        let more = last + 1..(last + 1 + state.ahead).min(object_block_count);
        let is_free = |block: &u64| !state.blocks.contains_key(block) && !state.awaited.contains(block);
        missing.extend(more.take_while(is_free));
        state.next = missing.last().map_or(0, |block| block + 1);
        state.awaited.extend(&missing);
        BlockLookup { found, claimed: missing }
    }

    /// The bytes of a range, if they are all here. The time of their use is not noted.
    pub fn peek_range(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let mut bytes = Vec::new();
        for block in start / self.block_bytes..end.div_ceil(self.block_bytes) {
            let (found, _) = state.blocks.get(&block)?;
            let begin = block * self.block_bytes;
            let (from, to) = (start.saturating_sub(begin), (end - begin).min(self.block_bytes));
            bytes.extend_from_slice(found.get(from as usize..to as usize)?);
        }
        Some(bytes)
    }

    /// Keeps a block.
    pub fn insert(&self, block: u64, bytes: Bytes) {
        let mut state = self.state.lock();
        state.clock += 1;
        let now = state.clock;
        state.blocks.insert(block, (bytes, now));
        state.awaited.remove(&block);
        if state.blocks.len() > self.max_blocks {
            let oldest = state.blocks.iter().min_by_key(|(_, (_, used))| *used).map(|(block, _)| *block);
            oldest.and_then(|oldest| state.blocks.remove(&oldest));
        }
        self.arrived.notify_all();
    }

    /// Nobody reads these blocks any more.
    pub fn release_claims(&self, blocks: &[u64]) {
        let mut state = self.state.lock();
        state.awaited.retain(|block| !blocks.contains(block));
        self.arrived.notify_all();
    }
}
