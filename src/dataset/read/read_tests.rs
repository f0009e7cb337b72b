use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use h5live_model::memory::MemoryStore;
use h5live_model::{
    Capabilities, ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkReadStrategy, ChunkSink, ChunkStore, DatasetSpec,
    Error as ModelError, FileBackedBytes, ObjectId, Result as ModelResult, Selection, Store, StoredChunk,
    read_chunks_sequentially,
};
use parking_lot::Mutex;

use super::chunk_cache::ChunkCache;
use super::chunk_reader::DatasetReader;
use crate::dataset::core::DatasetCore;
use crate::dataset::stage::StagedChunk;
use crate::dataset::transfer::TypedSink;
use crate::{Dataset, File, H5Type, Options};

/// Chunks that have moved, as often as is said, when some places in them are read.
#[derive(Debug)]
struct MovingChunkStore {
    chunks: Arc<dyn ChunkStore>,
    times: u32,
    /// How often each place was read.
    reads: Mutex<HashMap<u64, u32>>,
    refreshed: AtomicUsize,
    /// Those that have read.
    threads: Mutex<HashSet<ThreadId>>,
}

impl ChunkStore for MovingChunkStore {
    fn id(&self) -> ObjectId {
        self.chunks.id()
    }

    fn spec(&self) -> ModelResult<Arc<DatasetSpec>> {
        self.chunks.spec()
    }

    fn locate(&self, coord: &ChunkCoord) -> ModelResult<Option<StoredChunk>> {
        self.chunks.locate(coord)
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> ModelResult<()> {
        self.chunks.for_each_chunk(each)
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> ModelResult<()> {
        self.threads.lock().insert(thread::current().id());
        if (at / PLACES).is_multiple_of(4) {
            let mut reads = self.reads.lock();
            let read = reads.entry(at).or_default();
            *read += 1;
            if *read <= self.times {
                return Err(ModelError::Moved);
            }
        }
        self.chunks.read(chunk, at, into)
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> ModelResult<()> {
        self.chunks.read_block(chunk, start, count, into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> ModelResult<()> {
        read_chunks_sequentially(self, wanted, budget, each)
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> ModelResult<Option<u64>> {
        self.chunks.next_data(chunk, at)
    }

    fn map(&self, chunk: &StoredChunk, len: u64) -> ModelResult<Option<FileBackedBytes>> {
        self.chunks.map(chunk, len)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> ModelResult<()> {
        self.chunks.write(batch)
    }

    fn refresh(&self) -> ModelResult<bool> {
        self.refreshed.fetch_add(1, Ordering::Relaxed);
        self.chunks.refresh()
    }
}

const LEN: u64 = 3 << 20;
/// Of so many bytes, every fourth.
const PLACES: u64 = 48 << 10;

/// A contiguous dataset of `i16`, each its own place, whose chunk moves so often wherever it is read.
fn moving(store: &MemoryStore, times: u32, options: &Options) -> (File, Arc<MovingChunkStore>, Arc<DatasetCore>) {
    let file = File::with_store(Arc::new(store.clone()), "file", File::options()).unwrap();
    let data = file.new_dataset::<i16>().shape(&[LEN]).create("data").unwrap();
    moving_of(data, file, store, times, options)
}

/// The same of a dataset of so many elements.
fn moving_of(
    data: Dataset,
    file: File,
    store: &MemoryStore,
    times: u32,
    options: &Options,
) -> (File, Arc<MovingChunkStore>, Arc<DatasetCore>) {
    data.write(&(0..LEN).map(|i| i as i16).collect::<Vec<_>>()).unwrap();
    file.flush().unwrap();
    let chunks = store.dataset(data.id()).unwrap();
    let (reads, threads) = (Mutex::default(), Mutex::default());
    let moving = MovingChunkStore { chunks, times, reads, refreshed: AtomicUsize::new(0), threads };
    let moving = Arc::new(moving);
    let atomic = if options.mode == crate::Mode::SwmrRead { LEN * 2 } else { 0 };
    let capabilities =
        Capabilities { reads: ChunkReadStrategy::Direct { atomic_read_bytes: atomic }, ..store.session().capabilities };
    let core = DatasetCore::open(moving.clone(), &capabilities, options, Arc::default(), Arc::default()).unwrap();
    (file, moving, core)
}

fn read<T: H5Type>(
    store: &MemoryStore,
    core: &DatasetCore,
    values: &mut [T],
    from: u64,
) -> Result<(), crate::dataset::error::DatasetError> {
    let view = core.spec_snapshot().unwrap();
    let decoder = T::decoder(&view.spec.datatype).unwrap();
    let selected = Selection::block(&[from], &[values.len() as u64]).bind(&[LEN]).unwrap();
    let reader = DatasetReader { core, view: &view, store, cache: &ChunkCache::new(0) };
    reader.read(
        &selected,
        TypedSink { values, decoder: &decoder, size: view.size, conversion: Default::default(), first: 0 },
    )
}

#[test]
fn a_long_run_is_converted_in_shares_each_of_which_is_read_again_if_the_chunk_moved() {
    let store = MemoryStore::new();
    let (_file, moving, core) = moving(&store, 1, &File::options());
    let staged = StagedChunk { offset: 1000, bytes: Arc::new(vec![1; 1 << 20]), is_dirty: true, is_rewritten: false };
    core.stage.lock().chunks.stage_chunk(&ChunkCoord::new(&[0]), staged);
    for from in [0, 7, LEN - 1, LEN - 2_000_000] {
        let mut values = vec![-1.0f32; (LEN - from) as usize];
        moving.reads.lock().clear();
        read(&store, &core, &mut values, from).unwrap();
        let want = |i: u64| if (500..500 + (1 << 19)).contains(&i) { 0x0101 } else { i as i16 };
        assert!(values.iter().zip(from..).all(|(value, i)| *value == f32::from(want(i))), "from {from}");
    }
    assert!(moving.refreshed.load(Ordering::Relaxed) > 0);
}

#[test]
fn who_follows_reads_at_once_what_is_not_to_be_mixed() {
    for (options, reads) in [(File::options().swmr_read(), 1..2), (File::options(), 8..u32::MAX)] {
        let store = MemoryStore::new();
        let (_file, moving, core) = moving(&store, 0, &options);
        let mut values = vec![-1.0f32; LEN as usize];
        read(&store, &core, &mut values, 0).unwrap();
        assert!(values.iter().zip(0..).all(|(value, i)| *value == f32::from(i as i16)));
        let read: u32 = moving.reads.lock().values().sum();
        assert!(reads.contains(&read), "{read} reads");
    }
}

#[test]
fn a_chunk_that_moves_for_ever_is_an_error() {
    let store = MemoryStore::new();
    let (_file, _, core) = moving(&store, u32::MAX, &File::options());
    let failure = read(&store, &core, &mut vec![0.0f64; LEN as usize], 0).unwrap_err();
    assert!(failure.is_moved());
}

#[test]
fn a_short_piece_of_two_plain_chunks_is_read_by_one_thread_and_a_long_one_by_others() {
    let store = MemoryStore::new();
    let file = File::with_store(Arc::new(store.clone()), "file", File::options()).unwrap();
    let data = file.new_dataset::<i16>().shape(&[LEN]).chunk_shape(&[LEN / 4]).create("data").unwrap();
    let (_file, moving, core) = moving_of(data, file, &store, 0, &File::options());
    let here = HashSet::from([thread::current().id()]);
    let read_by = |len: u64| {
        let (mut values, from) = (vec![-1i16; len as usize], LEN / 4 - len / 2);
        read(&store, &core, &mut values, from).unwrap();
        assert!(values.iter().zip(from..).all(|(value, i)| *value == i as i16));
        std::mem::take(&mut *moving.threads.lock())
    };
    assert_eq!(read_by(8 << 10), here);
    assert!(read_by(LEN / 2).is_disjoint(&here));
}

#[test]
fn more_chunks_than_are_listed_at_a_time_come_back() {
    let file = File::in_memory();
    let values: Vec<u32> = (0..70_000).collect();
    let make = |name: &str, shape: &[u64], chunk: &[u64]| {
        let data = file.new_dataset::<u32>().shape(shape).chunk_shape(chunk).shuffle().deflate(1).create(name).unwrap();
        data.write(&values).unwrap();
        data
    };
    let line = make("line", &[70_000], &[20]);
    let rows = make("rows", &[3500, 20], &[3, 20]);
    let tiles = make("tiles", &[700, 100], &[7, 7]);
    for data in [line, rows, tiles] {
        assert!(data.stored_chunks().unwrap().len() > 1100);
        assert_eq!(data.read::<u32>().unwrap(), values);
        let doubles = data.read::<f64>().unwrap();
        assert!(doubles.iter().zip(&values).all(|(found, want)| *found == f64::from(*want)));
    }
}

#[test]
fn long_runs_are_read_by_several_threads_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.h5");
    // Some shares, and a last one that is shorter.
    let values: Vec<u32> = (0..(9 << 20) + 5).map(|n: u32| n.wrapping_mul(0x9e37_79b9)).collect();
    let file = File::create(&path).unwrap();
    file.new_dataset::<u32>().create_with_data("data", &values).unwrap();
    file.close().unwrap();
    let data = File::open(&path).unwrap().dataset("data").unwrap();
    assert!(data.read::<u32>().unwrap() == values);
    let part = 3..values.len() as u64 - 1;
    assert!(data.read_slice::<u32>(part.clone()).unwrap() == values[part.start as usize..part.end as usize]);
}
