//! The raw data of a file that is not yet written, by chunk.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize as Counter, Ordering::Relaxed},
    },
};

use h5live_format::Addr;
use rustc_hash::FxHashMap;

use super::merged_writes::{MergedWrites, ReplacedBytesVisibility};
use crate::{
    dependency_node::ChunkProxy,
    metadata::SharedGraph,
    primitive::{
        Condvar, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

/// The raw data of a file that is not yet written.
#[derive(Debug)]
pub(crate) struct DirtyRawData {
    pub(super) shards: Box<[RawShard]>,
    /// Chunks in the shards. While it is zero, reads go straight to the storage.
    pub(super) chunk_count: AtomicUsize,
    /// Bytes of memory that waiting writes take, those in flight not counted.
    pub(super) waiting_byte_count: Counter,
}

#[derive(Debug)]
pub(super) struct RawShard {
    pub(super) chunks: Mutex<FxHashMap<Addr, DirtyChunk>>,
    /// A chunk's write-through has ended.
    pub(super) write_through_done: Condvar,
}

/// The unwritten bytes of a chunk. A read takes waiting bytes first, then bytes in flight, then the storage.
#[derive(Debug, Default)]
pub(super) struct DirtyChunk {
    pub(super) waiting_writes: Option<(MergedWrites, ChunkProxy)>,
    /// The waiting bytes replace elements to which the file leads.
    pub(super) is_waiting_overwrite: bool,
    pub(super) writes_in_flight: Option<(Arc<MergedWrites>, ChunkProxy)>,
    /// Bytes of this chunk are being written by the thread that brought them.
    pub(super) is_written_through: bool,
}

impl DirtyChunk {
    pub(super) fn is_clean(&self) -> bool {
        self.waiting_writes.is_none() && self.writes_in_flight.is_none() && !self.is_written_through
    }
}

/// Raw data of a chunk that a flush has taken.
#[derive(Debug)]
pub struct ChunkFlushWrite {
    pub(super) proxy: ChunkProxy,
    pub(crate) pieces: Arc<MergedWrites>,
    pub(super) is_overwrite: bool,
}

impl ChunkFlushWrite {
    /// Whether it is written over elements to which the file leads.
    pub(crate) fn is_overwrite(&self) -> bool {
        self.is_overwrite
    }

    /// Bytes in memory.
    pub(crate) fn byte_count(&self) -> usize {
        self.pieces.byte_count()
    }

    /// The address of the chunk.
    pub fn chunk(&self) -> Addr {
        self.proxy.chunk
    }

    /// Whether readers may be reading the bytes that are replaced.
    pub(crate) fn is_visible(&self) -> bool {
        self.pieces.visibility == ReplacedBytesVisibility::Visible
    }

    /// Whether what lies between the pieces may be written, too, as it is.
    pub(super) fn may_write_gaps(&self) -> bool {
        self.pieces.visibility == ReplacedBytesVisibility::NoFollowers
    }

    /// The pieces and their addresses.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Addr, &[u8])> {
        let chunk = self.proxy.chunk;
        self.pieces.iter().map(move |(offset, bytes)| (chunk.checked_add(offset).unwrap_or_default(), bytes))
    }
}

impl DirtyRawData {
    pub(crate) fn new(shards: usize) -> Self {
        let shard = || RawShard { chunks: Mutex::new(FxHashMap::default()), write_through_done: Condvar::new() };
        DirtyRawData {
            shards: (0..shards).map(|_| shard()).collect(),
            chunk_count: AtomicUsize::new(0),
            waiting_byte_count: Counter::new(0),
        }
    }

    /// Bytes of memory that waiting writes take.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_byte_count.load(Relaxed)
    }

    pub(super) fn shard_of(&self, chunk: Addr) -> &RawShard {
        crate::metadata::shard_for(&self.shards, chunk)
    }

    /// Changes a chunk's state, which comes into being with it and is dropped when nothing is left of it.
    pub(super) fn with_chunk<R>(&self, addr: Addr, change: impl FnOnce(&mut DirtyChunk) -> R) -> R {
        let mut chunks = self.shard_of(addr).chunks.lock();
        let mut came = false;
        let chunk = chunks.entry(addr).or_insert_with(|| {
            came = true;
            DirtyChunk::default()
        });
        if came {
            self.chunk_count.fetch_add(1, SeqCst);
        }
        let result = change(chunk);
        if chunk.is_clean() {
            chunks.remove(&addr);
            self.chunk_count.fetch_sub(1, SeqCst);
        }
        result
    }

    /// Puts bytes over those of a chunk that wait, each part over the ones before.
    pub(super) fn enqueue_writes<'a>(
        &self,
        chunk: &mut DirtyChunk,
        proxy: impl FnOnce() -> ChunkProxy,
        parts: impl IntoIterator<Item = (u64, Cow<'a, [u8]>), IntoIter: ExactSizeIterator>,
        beneath: ReplacedBytesVisibility,
    ) -> ChunkProxy {
        let (pieces, proxy) = chunk.waiting_writes.get_or_insert_with(|| (MergedWrites::default(), proxy()));
        let before = pieces.memory_bytes();
        pieces.visibility = pieces.visibility.combine(beneath);
        pieces.insert_parts(parts);
        // Pieces that became one may take less.
        self.waiting_byte_count.fetch_add(pieces.memory_bytes().wrapping_sub(before), Relaxed);
        *proxy
    }

    /// Takes the waiting bytes of a chunk into flight. A chunk has at most one flight.
    pub(crate) fn begin_chunk_write(&self, addr: Addr) -> Option<ChunkFlushWrite> {
        self.with_chunk(addr, |chunk| {
            let (pieces, proxy) = chunk.waiting_writes.take()?;
            self.waiting_byte_count.fetch_sub(pieces.memory_bytes(), Relaxed);
            let pieces = Arc::new(pieces);
            chunk.writes_in_flight = Some((Arc::clone(&pieces), proxy));
            Some(ChunkFlushWrite { proxy, pieces, is_overwrite: std::mem::take(&mut chunk.is_waiting_overwrite) })
        })
    }

    /// Ends a write. If its bytes were not `written`, they wait again, below the bytes that have come meanwhile.
    pub(crate) fn end_chunk_write(&self, write: ChunkFlushWrite, written: bool, shared_graph: &SharedGraph) {
        let ChunkFlushWrite { proxy, pieces, is_overwrite: over } = write;
        self.with_chunk(proxy.chunk, |chunk| {
            chunk.writes_in_flight = None;
            if written {
                shared_graph.graph.lock().remove_node(proxy.id);
                return;
            }
            let mut merged = Arc::unwrap_or_clone(pieces);
            let mut before = 0;
            let mut latest = proxy;
            match chunk.waiting_writes.take() {
                None => shared_graph.graph.lock().fail_write(proxy.id),
                Some((newer, newer_proxy)) => {
                    before = newer.memory_bytes();
                    merged.visibility = merged.visibility.combine(newer.visibility);
                    newer.into_iter().for_each(|(offset, bytes)| merged.insert_bytes(offset, bytes));
                    latest = newer_proxy;
                    shared_graph.graph.lock().replace_proxy_by(proxy.id, newer_proxy.id);
                }
            }
            self.waiting_byte_count.fetch_add(merged.memory_bytes().wrapping_sub(before), Relaxed);
            chunk.waiting_writes = Some((merged, latest));
            chunk.is_waiting_overwrite |= over;
        });
    }

    /// Whether nothing of a chunk waits, or is being written.
    pub(crate) fn is_chunk_clean(&self, addr: Addr) -> bool {
        self.chunk_count.load(SeqCst) == 0 || !self.shard_of(addr).chunks.lock().contains_key(&addr)
    }

    pub(crate) fn wait_for_write_through(&self, addr: Addr) {
        let shard = self.shard_of(addr);
        let mut chunks = shard.chunks.lock();
        while chunks.get(&addr).is_some_and(|chunk| chunk.is_written_through) {
            shard.write_through_done.wait(&mut chunks);
        }
    }
}

/// Ends a write-through, also when it fails.
pub(super) struct WriteThroughGuard<'a> {
    pub raw_data: &'a DirtyRawData,
    pub chunk: Addr,
}

impl Drop for WriteThroughGuard<'_> {
    fn drop(&mut self) {
        self.raw_data.with_chunk(self.chunk, |chunk| chunk.is_written_through = false);
        self.raw_data.shard_of(self.chunk).write_through_done.notify_all();
    }
}
