//! What the facade asks of stores that read in batches, take blocks, or gather writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use h5live_model::memory::{MemoryStore, SimulatedChunkCapabilities};
use h5live_model::{
    ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkReadStrategy, ChunkSink, ChunkStore, ChunkWrite, DatasetSpec,
    Error as ModelError, FileBackedBytes, ObjectId, PartialWrites, Result as ModelResult, Selection,
    SmallWritesStagedBy, Store, StoredChunk,
};
use parking_lot::Mutex;

use super::chunk_cache::ChunkCache;
use super::chunk_reader::DatasetReader;
use crate::dataset::core::DatasetCore;
use crate::dataset::store::DatasetWriter;
use crate::dataset::transfer::{RawSink, RawSource};
use crate::dataset::write::write_selection;
use crate::{Dataset, File, Select};

/// The chunks of a dataset, and what is asked of them.
#[derive(Debug)]
struct RecordingChunkStore {
    chunks: Arc<dyn ChunkStore>,
    /// The number of chunks or parts of each call that reads many.
    calls: Mutex<Vec<usize>>,
    /// Reads of one chunk.
    reads: AtomicUsize,
    /// Calls after which chunks have moved, of which the first half came.
    moves: AtomicUsize,
    /// Boxes that were written: where they begin, and their sides.
    blocks: Mutex<Vec<(Vec<u64>, Vec<u64>)>>,
    /// The number of parts of each call that writes.
    parts: Mutex<Vec<usize>>,
}

impl ChunkStore for RecordingChunkStore {
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
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.chunks.read(chunk, at, into)
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> ModelResult<()> {
        self.chunks.read_block(chunk, start, count, into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> ModelResult<()> {
        self.calls.lock().push(wanted.len());
        let moves = self.moves.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |moves| moves.checked_sub(1));
        if moves.is_ok() {
            self.chunks.read_many(&wanted[..wanted.len() / 2], budget, each)?;
            return Err(ModelError::Moved);
        }
        self.chunks.read_many(wanted, budget, each)
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> ModelResult<Option<u64>> {
        self.chunks.next_data(chunk, at)
    }

    fn map(&self, chunk: &StoredChunk, len: u64) -> ModelResult<Option<FileBackedBytes>> {
        self.chunks.map(chunk, len)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> ModelResult<()> {
        self.parts.lock().push(batch.writes.len());
        for write in batch.writes {
            if let ChunkWrite::ElementBlock { start, count, .. } = write {
                self.blocks.lock().push((start.to_vec(), count.to_vec()));
            }
        }
        self.chunks.write(batch)
    }

    fn refresh(&self) -> ModelResult<bool> {
        self.chunks.refresh()
    }
}

const GAP: u64 = 4;

fn batched() -> SimulatedChunkCapabilities {
    SimulatedChunkCapabilities {
        reads: ChunkReadStrategy::Batched { preferred_reads_in_flight: 3, max_gap_bytes: GAP },
        ..SimulatedChunkCapabilities::default()
    }
}

/// A table of `u8`, 12 rows of 10, in chunks of 3 by 5. The elements count up.
fn table(behavior: SimulatedChunkCapabilities, deflate: bool) -> (MemoryStore, File, Dataset) {
    let store = MemoryStore::with_capabilities(behavior);
    let file = File::with_store(Arc::new(store.clone()), "file", File::options()).unwrap();
    let builder = file.new_dataset::<u8>().shape(&[12, 10]).chunk_shape(&[3, 5]).fill(7u8);
    let builder = if deflate { builder.deflate(1) } else { builder };
    let data = builder.create("data").unwrap();
    data.write_slice(0..9, &(0..90).collect::<Vec<u8>>()).unwrap();
    file.flush().unwrap();
    (store, file, data)
}

fn watch(store: &MemoryStore, data: &Dataset) -> (Arc<RecordingChunkStore>, Arc<DatasetCore>) {
    let recording = Arc::new(RecordingChunkStore {
        chunks: store.dataset(data.id()).unwrap(),
        calls: Mutex::default(),
        reads: AtomicUsize::new(0),
        moves: AtomicUsize::new(0),
        blocks: Mutex::default(),
        parts: Mutex::default(),
    });
    let options = File::options();
    let core =
        DatasetCore::open(recording.clone(), &store.session().capabilities, &options, Arc::default(), Arc::default())
            .unwrap();
    (recording, core)
}

/// Reads a selection, and compares it with what is written: numbers that count up, and below row 9 the fill value.
fn check(store: &MemoryStore, core: &DatasetCore, cache: &ChunkCache, selection: impl Select) {
    let view = core.spec_snapshot().unwrap();
    let selected = selection.resolve(&view.extent).unwrap().into_bound(&view.extent).unwrap();
    let mut bytes = vec![0xEE; selected.element_count() as usize];
    let reader = DatasetReader { core, view: &view, store, cache };
    reader.read(&selected, RawSink { bytes: &mut bytes, size: 1 }).unwrap();
    let mut want = Vec::new();
    selected.for_each_run(|run| {
        want.extend((run.offset_in_chunk..run.offset_in_chunk + run.len).map(|at| if at < 90 { at as u8 } else { 7 }))
    });
    assert_eq!(bytes, want);
}

#[test]
fn a_slice_of_many_chunks_is_read_by_one_call() {
    for deflate in [false, true] {
        let (store, _file, data) = table(batched(), deflate);
        let (recording, core) = watch(&store, &data);
        let cache = ChunkCache::new(1 << 20);
        check(&store, &core, &cache, ..);
        assert_eq!(std::mem::take(&mut *recording.calls.lock()), [8], "two of them were never written");
        check(&store, &core, &cache, (1..11, 2..9));
        assert_eq!(recording.calls.lock().len(), 1);
        recording.calls.lock().clear();
        check(&store, &core, &cache, (2..9, 4..6));
        // What is decoded is kept. Of the other chunks, only those are missing that were never written.
        let want: &[usize] = if deflate { &[] } else { &[6] };
        assert_eq!(*recording.calls.lock(), want);
        check(&store, &core, &cache, 3);
        assert_eq!(recording.reads.load(Ordering::Relaxed), 0, "no chunk is read by itself");
    }
}

#[test]
fn parts_of_a_chunk_are_read_as_one_if_they_are_near() {
    let (store, _file, data) = table(batched(), false);
    let (recording, core) = watch(&store, &data);
    let cache = ChunkCache::new(0);
    // Rows of a chunk are 5 bytes apart, so one column leaves gaps of 4 bytes.
    check(&store, &core, &cache, (0..9, 1));
    assert_eq!(*recording.calls.lock(), [3]);
    let rows = Selection::Blocks(
        [0u64, 2]
            .map(|row| h5live_model::Block { start: [row, 0].as_slice().into(), count: [1, 5].as_slice().into() })
            .into(),
    );
    check(&store, &core, &cache, rows);
    assert_eq!(*recording.calls.lock(), [3, 2], "a row of 5 bytes lies between them");
}

#[test]
fn those_that_moved_are_asked_for_again() {
    for deflate in [false, true] {
        let (store, _file, data) = table(batched(), deflate);
        let (recording, core) = watch(&store, &data);
        recording.moves.store(2, Ordering::Relaxed);
        check(&store, &core, &ChunkCache::new(0), ..);
        assert_eq!(*recording.calls.lock(), [8, 4, 2]);
        recording.moves.store(usize::MAX, Ordering::Relaxed);
        check(&store, &core, &ChunkCache::new(0), ..);
        assert!(recording.calls.lock().len() < 20, "not for ever");
    }
}

#[test]
fn a_box_is_written_as_it_is() {
    let behavior = SimulatedChunkCapabilities {
        partial_writes: PartialWrites::ElementBlocks,
        ..SimulatedChunkCapabilities::default()
    };
    let (store, _file, data) = table(behavior, false);
    let (recording, core) = watch(&store, &data);
    let cache = ChunkCache::new(0);
    let selected = Selection::block(&[1, 3], &[3, 4]).bind(&[12, 10]).unwrap();
    let elements: Vec<u8> = (1..4).flat_map(|row| (3..7).map(move |column| 10 * row + column)).collect();
    write_selection(
        &DatasetWriter::begin(&core, &store, &cache).unwrap(),
        &selected,
        &RawSource { bytes: &elements, size: 1 },
    )
    .unwrap();
    let block = |start: [u64; 2], count: [u64; 2]| (start.to_vec(), count.to_vec());
    let want = [block([1, 3], [2, 2]), block([1, 0], [2, 2]), block([0, 3], [1, 2]), block([0, 0], [1, 2])];
    assert_eq!(*recording.blocks.lock(), want, "one for each chunk");
    assert!(!core.has_staged());
    check(&store, &core, &cache, ..);
}

#[test]
fn the_runs_of_a_chunk_are_written_by_one_call() {
    let (store, _file, data) = table(SimulatedChunkCapabilities::default(), false);
    let (recording, core) = watch(&store, &data);
    let cache = ChunkCache::new(0);
    let write = |selection: &Selection, elements: &[u8]| {
        let selected = selection.bind(&[12, 10]).unwrap();
        write_selection(
            &DatasetWriter::begin(&core, &store, &cache).unwrap(),
            &selected,
            &RawSource { bytes: elements, size: 1 },
        )
        .unwrap();
        std::mem::take(&mut *recording.parts.lock())
    };
    // One run is kept for those that may follow.
    assert_eq!(write(&Selection::block(&[0, 1], &[1, 3]), &[0xEE; 3]), [0usize; 0]);
    let column: Vec<u8> = (0..9).map(|row| 10 * row + 3).collect();
    assert_eq!(write(&Selection::block(&[0, 3], &[9, 1]), &column), [1, 3, 3, 3], "first what was kept of that chunk");
    assert_eq!(write(&Selection::block(&[0, 1], &[1, 2]), &[1, 2]), [0usize; 0]);
    DatasetWriter::begin(&core, &store, &cache).unwrap().store_staged().unwrap();
    check(&store, &core, &cache, ..);
}

#[test]
fn whole_chunks_are_written_by_one_call_where_each_waits_for_a_network() {
    let elements: Vec<u8> = (0..90).collect();
    let selected = Selection::block(&[0, 0], &[9, 10]).bind(&[12, 10]).unwrap();
    for (behavior, calls) in [(SimulatedChunkCapabilities::default(), [1; 6].as_slice()), (batched(), &[6])] {
        for is_overwritten in [false, true] {
            let (store, _file, data) = table(behavior, false);
            let (recording, core) = watch(&store, &data);
            let cache = ChunkCache::new(0);
            let writer = || DatasetWriter::begin(&core, &store, &cache).unwrap();
            if is_overwritten {
                write_selection(&writer(), &selected, &RawSource { bytes: &[0xEE; 90], size: 1 }).unwrap();
                recording.parts.lock().clear();
            }
            write_selection(&writer(), &selected, &RawSource { bytes: &elements, size: 1 }).unwrap();
            assert_eq!(*recording.parts.lock(), calls);
            check(&store, &core, &cache, ..);
        }
    }
}

#[test]
fn staged_chunks_are_written_by_one_call_where_each_waits_for_a_network() {
    let (store, _file, data) =
        table(SimulatedChunkCapabilities { partial_writes: PartialWrites::Whole, ..batched() }, false);
    let (recording, core) = watch(&store, &data);
    let cache = ChunkCache::new(0);
    let column = Selection::block(&[0, 3], &[9, 1]).bind(&[12, 10]).unwrap();
    let elements: Vec<u8> = (0..9).map(|row| 10 * row + 3).collect();
    write_selection(
        &DatasetWriter::begin(&core, &store, &cache).unwrap(),
        &column,
        &RawSource { bytes: &elements, size: 1 },
    )
    .unwrap();
    DatasetWriter::begin(&core, &store, &cache).unwrap().store_staged().unwrap();
    assert_eq!(*recording.parts.lock(), [3]);
    check(&store, &core, &cache, ..);
}

#[test]
fn rows_go_down_at_once_to_a_store_that_gathers_them() {
    for parts in [
        PartialWrites::Bytes { multiple_of: 1 },
        PartialWrites::Bytes { multiple_of: 16 },
        PartialWrites::ElementBlocks,
        PartialWrites::Whole,
    ] {
        let store = MemoryStore::with_capabilities(SimulatedChunkCapabilities {
            partial_writes: parts,
            staging: SmallWritesStagedBy::Store,
            ..batched()
        });
        let file = File::with_store(Arc::new(store.clone()), "file", File::options()).unwrap();
        let data = file.new_dataset::<u16>().unlimited_rows(&[2]).chunk_shape(&[4, 2]).create("data").unwrap();
        file.flush().unwrap();
        let reader = store.open_reader();
        let [here, there] = [&store, &reader].map(|store| store.dataset(data.id()).unwrap());
        let rows = |chunks: &Arc<dyn ChunkStore>| {
            chunks.refresh().unwrap();
            chunks.spec().unwrap().dataspace.dims()[0]
        };
        for row in 0..10u16 {
            data.append(&[row, row]).unwrap();
            assert_eq!((rows(&here), rows(&there)), (u64::from(row) + 1, 0), "{parts:?}");
            assert_eq!(
                here.locate(&ChunkCoord::new(&[u64::from(row) / 4, 0])).unwrap().map(|found| found.size),
                Some(16)
            );
            assert_eq!(data.read::<u16>().unwrap().len(), 2 * (usize::from(row) + 1), "{parts:?}");
        }
        assert_eq!(there.locate(&ChunkCoord::new(&[0, 0])).unwrap(), None, "{parts:?}");
        data.write_slice((3, 1), &[77u16]).unwrap();
        data.flush().unwrap();
        assert_eq!(rows(&there), 10);
        let other = File::with_store(Arc::new(reader), "reader", File::options()).unwrap();
        let want: Vec<u16> = (0..10).flat_map(|row| [row, if row == 3 { 77 } else { row }]).collect();
        assert_eq!(other.dataset("data").unwrap().read::<u16>().unwrap(), want, "{parts:?}");
    }
}

#[test]
fn a_store_that_gathers_is_told_what_is_published_first() {
    let store = MemoryStore::with_capabilities(SimulatedChunkCapabilities {
        staging: SmallWritesStagedBy::Store,
        ..SimulatedChunkCapabilities::default()
    });
    let file = File::with_store(Arc::new(store.clone()), "file", File::options()).unwrap();
    let make = |name: &str| file.new_dataset::<u8>().unlimited_rows(&[]).create(name).unwrap();
    let (frames, times) = (make("frames"), make("times"));
    times.publish_after(&frames).unwrap();
    file.flush().unwrap();
    let reader = store.open_reader();
    frames.append(&[1]).unwrap();
    times.append(&[2]).unwrap();
    times.flush().unwrap();
    for data in [&times, &frames] {
        let seen = reader.dataset(data.id()).unwrap();
        assert_eq!(seen.spec().unwrap().dataspace.dims(), [1]);
    }
}

#[test]
fn a_copy_reads_together_no_more_than_may_be_allocated_at_once() {
    let open = |options: crate::Options| {
        let store = MemoryStore::with_capabilities(batched());
        File::with_store(Arc::new(store), "file", options).unwrap()
    };
    let elements: Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
    for (limit, is_enough) in [(1 << 20, true), (1500, true), (500, false)] {
        let from = open(File::options());
        let data = from.new_dataset::<u8>().shape(&[10_000]).chunk_shape(&[1000]).create("data").unwrap();
        data.write(&elements).unwrap();
        from.flush().unwrap();
        let store = from.shared().store.clone();
        let from = File::with_store(store, "file", File::options().max_allocation(limit)).unwrap();
        let to = open(File::options());
        let copied = from.object("data").unwrap().copy_to(&to.root(), "data");
        assert_eq!(copied.is_ok(), is_enough, "{limit}: {copied:?}");
        if is_enough {
            assert_eq!(to.dataset("data").unwrap().read::<u8>().unwrap(), elements);
        }
    }
}
