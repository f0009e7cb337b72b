//! A writer of a log in Log VOL's layout dies between any two writes to its file: everything that was acknowledged is
//! there, and the next writer goes on. Damaged logs give an error, or the values that are there, and never a panic.

use crate::random;

use std::sync::Arc;

use h5live_cache::{MemoryStorage, RecordingStorage, Storage, StorageOp, replay_operations};
use h5live_log::{Log, LogLayout, LogOpenRequest, LogStore};
use h5live_model::{
    AllocationLimit, ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype,
    Error, Layout, LinkTarget, Mode, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign,
    Store, UNLIMITED,
};
use h5live_native::{NativeFile, OpenOptions};

use self::random::Random;

/// Batches of the writer.
const BATCHES: u16 = 12;
/// Cells of the grid.
const CELLS: u64 = 20;
/// Damaged files that are tried.
const DAMAGED_FILES: u64 = 4000;

fn open(storage: impl Storage + 'static, mode: Mode) -> Result<LogStore, Error> {
    let options = OpenOptions { mode, take_over_if_unknown: true, ..OpenOptions::default() };
    let file = NativeFile::open_storage(Arc::new(storage), &options)?;
    let options = Log { layout: LogLayout::LogVol, staging: 24, ..Log::default() };
    let max_allocation = AllocationLimit::new(1 << 20);
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest { max_allocation, ..LogOpenRequest::new(options) })
}

fn growing() -> DatasetSpec {
    DatasetSpec {
        datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[0], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![1]),
        ..DatasetSpec::default()
    }
}

fn create(store: &LogStore, group: ObjectId, name: &str, spec: impl Into<ObjectSpec>) -> ObjectId {
    store.writer().unwrap().create(&NewObject::linked(group, &Name::from(name), &spec.into())).unwrap()
}

fn put(data: &dyn ChunkStore, at: u64, number: u16) {
    let (coord, bytes) = (ChunkCoord::new(&[at]), number.to_le_bytes());
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &bytes }];
    let extent = [data.spec().unwrap().dataspace.dims()[0].max(at + 1)];
    data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), ..ChunkBatch::default() }).unwrap();
}

/// The cell of the grid that a batch writes.
fn cell(batch: u16) -> u64 {
    u64::from(batch) * 7 % CELLS
}

/// What a writer of batches does to its storage. A mark says how many batches are acknowledged.
fn record() -> Vec<StorageOp> {
    let storage = RecordingStorage::new(MemoryStorage::default());
    let store = open(storage.clone(), Mode::Create).unwrap();
    let root = store.session().root;
    let group = create(&store, root, "group", ObjectSpec::group());
    let rows = store.dataset(create(&store, group, "rows", growing())).unwrap();
    let grid = store.dataset(create(&store, root, "grid", growing())).unwrap();
    grid.set_extent(&[CELLS]).unwrap();
    let writer = store.writer().unwrap();
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    for batch in 0..BATCHES {
        storage.log_mark(batch.to_string());
        put(&*rows, batch.into(), batch + 1);
        put(&*grid, cell(batch), batch + 1);
        if batch % 3 == 0 {
            put(&*store.dataset(create(&store, group, &format!("new{batch}"), growing())).unwrap(), 0, batch + 1);
        }
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    }
    storage.log_mark(BATCHES.to_string());
    store.close().unwrap();
    storage.take_log()
}

fn dataset(store: &LogStore, path: &str) -> Option<Arc<dyn ChunkStore>> {
    let found = path.split('/').try_fold(store.session().root, |group, name| {
        match store.link(group, &Name::from(name)).unwrap()?.target {
            LinkTarget::Hard(id) => Some(id),
            other => panic!("{other:?}"),
        }
    });
    Some(store.dataset(found?).unwrap())
}

fn numbers(store: &LogStore, path: &str) -> Option<Vec<u16>> {
    let data = dataset(store, path)?;
    let read = |at: u64| {
        let mut element = [0; 2];
        if let Some(chunk) = data.locate(&ChunkCoord::new(&[at])).unwrap() {
            data.read(&chunk, 0, &mut element).unwrap();
        }
        u16::from_le_bytes(element)
    };
    Some((0..data.spec().unwrap().dataspace.dims()[0]).map(read).collect())
}

/// Looks at everything. At most one batch is there in part.
fn check(store: &LogStore, acknowledged: u16) {
    let rows = numbers(store, "group/rows").expect("it was acknowledged");
    assert!(rows.len() >= acknowledged.into(), "{} rows of {acknowledged} that were acknowledged", rows.len());
    assert_eq!(rows, (1..=rows.len() as u16).collect::<Vec<_>>(), "no extent before its elements");
    let mut grid = vec![0; CELLS as usize];
    (0..acknowledged).for_each(|batch| grid[cell(batch) as usize] = batch + 1);
    let found = numbers(store, "grid").expect("it was acknowledged");
    let differ: Vec<u64> = (0..CELLS).filter(|at| found[*at as usize] != grid[*at as usize]).collect();
    let next = cell(acknowledged);
    assert!(differ.is_empty() || (differ == [next] && found[next as usize] == acknowledged + 1), "{differ:?}");
    for batch in (0..BATCHES).step_by(3) {
        let found = numbers(store, &format!("group/new{batch}"));
        assert!(found.is_some() || batch >= acknowledged);
        let found = found.filter(|_| batch < acknowledged);
        assert!(found.is_none_or(|found| found == [batch + 1]), "{batch}");
    }
}

#[test]
fn a_writer_that_dies_leaves_what_was_acknowledged() {
    let (mut image, mut acknowledged, mut moments) = (Vec::new(), None, 0);
    for operation in &record() {
        replay_operations(&mut image, [operation]).unwrap();
        match operation {
            StorageOp::Mark(batches) => acknowledged = Some(batches.parse::<u16>().unwrap()),
            StorageOp::Write { .. } | StorageOp::SetLen(_) => {
                let Some(acknowledged) = acknowledged else { continue };
                check(&open(MemoryStorage::from(image.clone()), Mode::Read).unwrap(), acknowledged);
                let successor = open(MemoryStorage::from(image.clone()), Mode::Write).unwrap();
                check(&successor, acknowledged);
                // It goes on where the other one was: neither numbers nor names are in its way.
                let data = create(&successor, successor.session().root, "after", growing());
                put(&*successor.dataset(data).unwrap(), 0, 7);
                successor.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                check(&successor, acknowledged);
                assert_eq!(numbers(&successor, "after"), Some(vec![7]));
                moments += 1;
            }
            StorageOp::Sync => {}
        }
    }
    println!("{moments} moments");
    assert!(moments > 4 * u32::from(BATCHES));
}

/// Where metadata logs are in a file, begin and end.
fn metadata_logs(image: &[u8]) -> Vec<(usize, usize)> {
    let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let file = NativeFile::open_storage(Arc::new(MemoryStorage::from(image.to_vec())), &options).unwrap();
    let hard = |link: Option<h5live_model::Link>| match link?.target {
        LinkTarget::Hard(id) => Some(id),
        _ => None,
    };
    let group = hard(file.link(file.session().root, &Name::from("_LOG")).unwrap()).unwrap();
    let member = |number: u32| hard(file.link(group, &Name::from(format!("_md_{number}").as_str())).unwrap());
    let place = |id| {
        let chunk = file.dataset(id).unwrap().locate(&ChunkCoord::origin(1)).unwrap().unwrap();
        let begin = chunk.file_offset.unwrap() as usize;
        (begin, begin + chunk.size as usize)
    };
    (0..).map_while(member).map(place).collect()
}

/// Reads everything that can be read. Says how many datasets can be read as a whole.
fn read_all(store: &LogStore) -> usize {
    let paths = ["grid", "group/rows", "group/new0", "group/new3", "group/new6", "group/new9"];
    let read = |path: &&str| -> Option<()> {
        let id = path.split('/').try_fold(store.session().root, |group, name| {
            match store.link(group, &Name::from(name)).ok()??.target {
                LinkTarget::Hard(id) => Some(id),
                _ => None,
            }
        })?;
        let data = store.dataset(id).ok()?;
        let mut chunks = Vec::new();
        data.for_each_chunk(&mut |chunk| {
            chunks.push(chunk);
            chunks.len() < 64
        })
        .ok()?;
        let mut bytes = vec![0; 1 << 10];
        chunks.iter().try_for_each(|chunk| {
            let len = chunk.size.min(1 << 10) as usize;
            data.read(chunk, 0, &mut bytes[..len]).ok()
        })
    };
    paths.iter().filter_map(read).count()
}

#[test]
fn no_damage_makes_it_panic() {
    let mut sound = Vec::new();
    replay_operations(&mut sound, &record()).unwrap();
    let (places, mut random) = (metadata_logs(&sound), Random(31_001));
    println!("seed 31001");
    assert_eq!(places.len(), usize::from(BATCHES));
    let whole = read_all(&open(MemoryStorage::from(sound.clone()), Mode::Read).unwrap());
    assert_eq!(whole, 6);
    let (mut opened, mut complete) = (0, 0);
    for _ in 0..DAMAGED_FILES {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.below(3) {
            let (begin, end) = places[random.below(places.len() as u64) as usize];
            // A number of four bytes in a metadata log, or any byte of the file.
            let field = begin + 4 * random.below((end - begin) as u64 / 4) as usize;
            match random.below(4) {
                0 => bytes[field] = random.below(64) as u8,
                1 => bytes[field..field + 4].fill(0xFF),
                2 => bytes[field + 3] = 0x7F,
                _ => {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << random.below(8);
                }
            }
        }
        for mode in [Mode::Read, Mode::Write] {
            if let Ok(store) = open(MemoryStorage::from(bytes.clone()), mode) {
                opened += 1;
                complete += u64::from(read_all(&store) == whole);
            }
        }
    }
    println!("{opened} of {} opened, {complete} read as a whole", 2 * DAMAGED_FILES);
    assert!(opened > 0 && complete > 0 && complete < opened && opened < 2 * DAMAGED_FILES);
}
