//! Looking up many chunks on a medium where each read waits: reads of the index wait together.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h5live_cache::{BatchReadHints, Storage};
use h5live_model::{
    ByteOrder, ChunkCoord, ChunkReadRequest, DatasetSpec, Dataspace, Datatype, Layout, LibVer, LinkTarget, Mode,
    NewObject, Shape, Sign, Store, UNLIMITED,
};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions};

/// A file in memory whose reads take a while.
#[derive(Debug, Default)]
struct WaitingStorage {
    bytes: MemoryStorage,
    in_flight: AtomicUsize,
    max_in_flight: AtomicUsize,
    reads: AtomicUsize,
    fails: AtomicBool,
}

impl Storage for WaitingStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.max_in_flight.fetch_max(in_flight, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        match self.fails.load(Ordering::Relaxed) {
            true => Err(io::Error::other("a failure was asked for")),
            false => self.bytes.read_at(into, at),
        }
    }

    fn batch_read_hints(&self) -> Option<BatchReadHints> {
        Some(BatchReadHints { preferred_reads_in_flight: 16, max_gap_bytes: 0 })
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        budget: usize,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> io::Result<()> {
        self.bytes.read_ranges(ranges, budget, each)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file with a dataset of 48 x 48 chunks in rows, or of 2304 in a line, but every 100th; each has its number.
fn file(profile: LibVer, rank: usize) -> MemoryStorage {
    let options = OpenOptions { mode: Mode::CreateNew, profile, ..OpenOptions::default() };
    let shared = Arc::new(MemoryStorage::new());
    let file = NativeFile::open_storage(shared.clone(), &options).unwrap();
    let (dims, chunk) = if rank == 1 { (vec![2304], vec![1]) } else { (vec![48, 48], vec![1, 1]) };
    let spec = DatasetSpec {
        datatype: Datatype::integer(4, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&dims, &vec![UNLIMITED; rank]).unwrap()),
        layout: Layout::Chunked(chunk),
        ..DatasetSpec::default()
    };
    let new = (file.session().root, "x".into(), spec.into());
    let id = file.writer().unwrap().create(&NewObject::linked(new.0, &new.1, &new.2)).unwrap();
    let data = file.dataset(id).unwrap();
    for number in (0..2304u32).filter(|number| number % 100 != 99) {
        data.write_whole_chunk(&coord(rank, number), 0, &number.to_le_bytes()).unwrap();
    }
    file.close().unwrap();
    MemoryStorage::from(shared.to_vec())
}

fn coord(rank: usize, number: u32) -> ChunkCoord {
    match rank {
        1 => ChunkCoord::new(&[number.into()]),
        _ => ChunkCoord::new(&[(number / 48).into(), (number % 48).into()]),
    }
}

/// Reads chunks, and returns their numbers.
fn read(file: &NativeFile, rank: usize, numbers: &[u32]) -> Result<Vec<Option<u32>>, h5live_model::Error> {
    let LinkTarget::Hard(id) = file.link(file.session().root, &"x".into())?.unwrap().target else { panic!() };
    let data = file.dataset(id)?;
    let coords: Vec<ChunkCoord> = numbers.iter().map(|number| coord(rank, *number)).collect();
    let wanted: Vec<ChunkReadRequest<'_>> =
        coords.iter().map(|coord| ChunkReadRequest { coord, byte_range: None }).collect();
    let found = Mutex::new(vec![Some(u32::MAX); numbers.len()]);
    data.read_many(&wanted, 1 << 20, &|number, chunk| {
        let value = chunk.map(|chunk| u32::from_le_bytes(chunk.bytes.try_into().unwrap()));
        found.lock().unwrap()[number] = value;
        Ok(())
    })?;
    Ok(found.into_inner().unwrap())
}

#[test]
fn the_structures_of_an_index_are_waited_for_together() {
    let kinds = [(LibVer::Earliest, 1), (LibVer::Earliest, 2), (LibVer::V110, 1), (LibVer::V110, 2)];
    for (profile, rank) in kinds {
        let bytes = file(profile, rank);
        let storage = Arc::new(WaitingStorage { bytes, ..WaitingStorage::default() });
        let file =
            NativeFile::open_storage(storage.clone(), &OpenOptions { mode: Mode::Read, ..OpenOptions::default() });
        let file = file.unwrap();
        let numbers: Vec<u32> = (0..48).map(|row| row * 48 + 15).collect();
        let expected: Vec<Option<u32>> = numbers.iter().map(|at| Some(*at).filter(|at| at % 100 != 99)).collect();
        assert!(expected.contains(&None));
        assert_eq!(read(&file, rank, &numbers).unwrap(), expected);
        let most = storage.max_in_flight.load(Ordering::Relaxed);
        assert!((4..=16).contains(&most), "{profile:?}, {rank} dimensions: {most} reads at a time");
        // What is known needs no reads.
        let reads = storage.reads.load(Ordering::Relaxed);
        assert_eq!(read(&file, rank, &numbers).unwrap(), expected);
        assert_eq!(storage.reads.load(Ordering::Relaxed), reads);
    }
}

#[test]
fn the_structures_of_an_index_are_waited_for_together_before_its_chunks_are_listed() {
    let kinds = [(LibVer::Earliest, 1), (LibVer::Earliest, 2), (LibVer::V110, 1), (LibVer::V110, 2)];
    for (profile, rank) in kinds {
        let bytes = file(profile, rank);
        let storage = Arc::new(WaitingStorage { bytes, ..WaitingStorage::default() });
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        let file = NativeFile::open_storage(storage.clone(), &options).unwrap();
        let LinkTarget::Hard(id) = file.link(file.session().root, &"x".into()).unwrap().unwrap().target else {
            panic!()
        };
        let data = file.dataset(id).unwrap();
        let mut listed = Vec::new();
        data.for_each_chunk(&mut |chunk| {
            listed.push(chunk.coord);
            true
        })
        .unwrap();
        let expected = (0..2304).filter(|number| number % 100 != 99).map(|number| coord(rank, number));
        assert_eq!(listed, expected.collect::<Vec<_>>(), "{profile:?}, {rank} dimensions");
        let most = storage.max_in_flight.load(Ordering::Relaxed);
        assert!((4..=16).contains(&most), "{profile:?}, {rank} dimensions: {most} reads at a time");
    }
}

#[test]
fn a_structure_that_cannot_be_read_is_an_error() {
    let storage = Arc::new(WaitingStorage { bytes: file(LibVer::Earliest, 1), ..WaitingStorage::default() });
    let file = NativeFile::open_storage(storage.clone(), &OpenOptions { mode: Mode::Read, ..OpenOptions::default() });
    let file = file.unwrap();
    assert_eq!(read(&file, 1, &[0, 1]).unwrap(), [Some(0), Some(1)]);
    storage.fails.store(true, Ordering::Relaxed);
    let numbers: Vec<u32> = (0..23).map(|number| number * 100).collect();
    let error = read(&file, 1, &numbers).unwrap_err();
    assert!(format!("{error:?}").contains("a failure was asked for"), "{error:?}");
}
