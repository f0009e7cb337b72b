//! Damaged logs: an error, or the values that are there, and never a panic.

use crate::random;

use std::path::PathBuf;
use std::sync::Arc;

use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    AllocationLimit, ByteOrder, ChunkBatch, ChunkCoord, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout,
    LinkTarget, Mode, Name, NewObject, ObjectKind, Shape, Sign, Store, UNLIMITED,
};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions};

use self::random::Random;

/// Mutants of each file.
const MUTANTS: u64 = 5000;
/// The most chunks of a dataset that are read: a damaged extent may have any number.
const MAX_CHUNKS: usize = 64;

fn open(bytes: Vec<u8>, mode: Mode) -> Result<LogStore, h5live_model::Error> {
    open_with_limit(bytes, mode, 1 << 20)
}

fn open_with_limit(bytes: Vec<u8>, mode: Mode, limit: u64) -> Result<LogStore, h5live_model::Error> {
    let options = OpenOptions { mode, ..OpenOptions::default() };
    let file = NativeFile::open_storage(Arc::new(MemoryStorage::from(bytes)), &options)?;
    LogStore::open_or_create(
        Arc::new(file),
        None,
        LogOpenRequest { max_allocation: AllocationLimit::new(limit), ..LogOpenRequest::new(small()) },
    )
}

fn small() -> Log {
    Log { min_log_size: 2048, max_log_size: 2048, ..Log::default() }
}

/// The bytes of a file with a log of boxes, points, growth and a shrink; closed or not.
fn log_file(is_closed: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("log.h5");
    let options = OpenOptions { mode: Mode::SwmrWrite, ..OpenOptions::default() };
    drop(NativeFile::open(&path, &OpenOptions { mode: Mode::CreateNew, ..OpenOptions::default() }).unwrap());
    let file = NativeFile::open(&path, &options).unwrap();
    let store = LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(small())).unwrap();
    let writer = store.writer().unwrap();
    for (name, dims) in [("a", [6u64, 4]), ("b", [0, 8])] {
        let spec = DatasetSpec {
            datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
            dataspace: Dataspace::Simple(Shape::with_max(&dims, &[UNLIMITED, dims[1]]).unwrap()),
            layout: Layout::Chunked(vec![2, 4]),
            ..DatasetSpec::default()
        };
        let name = Name::from(name);
        let id = writer.create(&NewObject::linked(store.session().root, &name, &spec.into())).unwrap();
        let data = store.dataset(id).unwrap();
        for row in 0..12u64 {
            let coord = ChunkCoord::new(&[row / 2, 0]);
            let writes = [
                ChunkWrite::ElementBlock {
                    coord: &coord,
                    start: &[row % 2, 0],
                    count: &[1, 4],
                    bytes: &[row as u8; 8],
                },
                ChunkWrite::ElementBlock { coord: &coord, start: &[0, row % 4], count: &[1, 1], bytes: &[9; 2] },
                ChunkWrite::ElementBlock { coord: &coord, start: &[1, 1], count: &[1, 1], bytes: &[8; 2] },
            ];
            let extent = [if row == 8 { 3 } else { row + 1 }, dims[1]];
            let batch = ChunkBatch { writes: &writes, extent: Some(&extent), ..ChunkBatch::default() };
            data.write(&batch).unwrap();
            if row % 3 == 0 {
                data.publish(h5live_model::PublishLevel::Visible).unwrap();
            }
        }
        data.publish(h5live_model::PublishLevel::Visible).unwrap();
    }
    if is_closed {
        store.close().unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    let _ = store.close();
    bytes
}

/// Reads everything. Returns how many chunks could be read.
fn read_all(store: &LogStore) -> usize {
    let mut read = 0;
    let mut ids = Vec::new();
    let _ = store.for_each_link(store.session().root, &mut |link| {
        if let LinkTarget::Hard(id) = link.target {
            ids.push(id);
        }
        true
    });
    for id in ids {
        if !matches!(store.kind(id), Ok(ObjectKind::Dataset)) {
            continue;
        }
        let Ok(data) = store.dataset(id) else { continue };
        let mut chunks = Vec::new();
        let _ = data.for_each_chunk(&mut |chunk| {
            chunks.push(chunk);
            chunks.len() < MAX_CHUNKS
        });
        for chunk in chunks {
            let mut bytes = vec![0; chunk.size.min(1 << 16) as usize];
            read += usize::from(data.read(&chunk, 0, &mut bytes).is_ok());
        }
    }
    read
}

fn error_text(error: &h5live_model::Error) -> String {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    chain.map(|error| error.to_string()).collect::<Vec<_>>().join(": ")
}

/// Where entries begin, in the log or in the index table.
fn heads(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(48)).filter(|at| bytes[*at..].starts_with(b"LENT")).collect()
}

/// Changes the head of an entry, and makes its checksum fit.
fn forge_head(bytes: &mut [u8], at: usize, random: &mut Random) {
    let head_len = u32::from_le_bytes(bytes[at + 44..at + 48].try_into().unwrap()) as usize;
    let end = (at + head_len.clamp(48, 4096)).min(bytes.len());
    let field = at + 8 + 4 * random.below((end - at - 8) as u64 / 4) as usize;
    let last = (field + 4 * (1 + random.below(2) as usize)).min(end);
    match random.below(3) {
        0 => bytes[field] = random.below(256) as u8,
        1 => bytes[field..last].fill(0xFF),
        _ => bytes[last - 1] = 0x7F,
    }
    let crc = crc32c::crc32c(&bytes[at + 8..end]);
    bytes[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn no_damage_makes_it_panic() {
    for (is_closed, seed) in [(true, 27_001), (false, 27_002)] {
        println!("seed {seed}");
        let sound = log_file(is_closed);
        let whole = read_all(&open(sound.clone(), Mode::Read).unwrap());
        assert!(whole >= 8, "{whole}");
        let (mut random, heads) = (Random(seed), heads(&sound));
        let (mut opened, mut complete) = (0, 0);
        for _ in 0..MUTANTS {
            let mut bytes = sound.clone();
            if random.below(2) == 0 {
                forge_head(&mut bytes, heads[random.below(heads.len() as u64) as usize], &mut random);
            }
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => bytes[at] = random.below(256) as u8,
                    _ => {
                        let end = bytes.len().min(at + 8);
                        bytes[at..end].fill([0, 0xFF, 0x7F][random.below(3) as usize]);
                    }
                }
            }
            if random.below(20) == 0 {
                bytes.truncate(random.below(sound.len() as u64) as usize);
            }
            if let Ok(store) = open(bytes, Mode::Read) {
                opened += 1;
                complete += usize::from(read_all(&store) == whole);
            }
        }
        println!("closed {is_closed}: {opened} of {MUTANTS} opened, {complete} read as a whole");
        assert!(opened > 0 && complete < MUTANTS as usize);
    }
}

#[test]
fn no_more_of_the_skip_list_is_read_than_may_be_allocated() {
    let bytes = log_file(true);
    // Two datasets have 32 bytes.
    let error = open_with_limit(bytes.clone(), Mode::Read, 31).err().unwrap();
    let text = error_text(&error);
    assert!(text.contains("max_allocation is 31 bytes"), "{text}");
    open_with_limit(bytes, Mode::Read, 32).unwrap();
}

/// An entry that the table has twice, as it would be where a file stores one chunk of the table as many: of such a table,
/// more would be read than the file has.
#[test]
fn a_table_that_has_an_entry_twice_is_damaged() {
    // Each write makes three entries: a box, points, and growth.
    const ENTRIES: usize = 3;
    const PLACE_BYTES: usize = 32;
    let mut bytes = log_file(true);
    let heads = heads(&bytes);
    let row_len = |at: usize| u32::from_le_bytes(bytes[at + 44..at + 48].try_into().unwrap()) as usize + PLACE_BYTES;
    let dataset = |at: usize| &bytes[at + 48..at + 56];
    let are_rows = |heads: &&[usize]| {
        let is_followed =
            |pair: &[usize]| pair[1] - pair[0] == row_len(pair[0]) && dataset(pair[0]) == dataset(pair[1]);
        heads.windows(2).all(is_followed) && heads[ENTRIES] - heads[0] == heads[2 * ENTRIES] - heads[ENTRIES]
    };
    let rows = heads.windows(2 * ENTRIES + 1).rev().find(are_rows).unwrap();
    bytes.copy_within(rows[0]..rows[ENTRIES], rows[ENTRIES]);
    let store = open(bytes, Mode::Read).unwrap();
    let names = ["a", "b"].map(Name::from);
    let found = names.map(|name| match store.link(store.session().root, &name).unwrap().unwrap().target {
        LinkTarget::Hard(id) => store.dataset(id).err().map(|error| error_text(&error)),
        _ => None,
    });
    let text = found.into_iter().flatten().next().unwrap();
    assert!(text.contains("the index table of the log is damaged") && text.contains("its place"), "{text}");
}
