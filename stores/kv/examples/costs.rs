//! What checksums and the walk of pages cost: `costs FOLDER [PAIRS]`. Each row is measured without checksums and with them.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use h5live_kv::engine::{Engine, LmdbEngine, LmdbOptions, LongKeyEngine};
use h5live_kv::layout::oid;
use h5live_kv::{KvOpenRequest, KvStore};
use h5live_model::{
    AllocationLimit, ByteOrder, ChunkCoord, DatasetSpec, Dataspace, Datatype, DurabilitySupport, Layout, MapEdit,
    MapKey, MapSpec, Mode, NewObject, NoFilters, ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign,
    Store, StoreWriter, StringPadding, VarLenKind, VarLenType,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const CHUNKS: u64 = 2000;
const CHUNK_BYTES: u64 = 64 << 10;

fn open(folder: &Path, mode: Mode, checksums: bool) -> Result<KvStore> {
    let request = KvOpenRequest {
        mode,
        root: ObjectSpec::group(),
        durability: DurabilitySupport::OnRequest,
        max_allocation: AllocationLimit::default(),
        filter_engine: Arc::new(NoFilters),
        max_uncommitted_bytes: KvOpenRequest::DEFAULT_MAX_UNCOMMITTED_BYTES,
        blob_id_seed: 1,
        checksum_new_container: checksums,
    };
    let engine = LongKeyEngine::new(LmdbEngine::open(folder, mode, &LmdbOptions::default())?);
    Ok(KvStore::open(engine, &request)?)
}

fn make(store: &KvStore, name: &str, body: ObjectKindSpec) -> Result<h5live_model::ObjectId> {
    let spec = ObjectSpec { body, ..ObjectSpec::group() };
    Ok(store.create(&NewObject::linked(oid::ROOT, &name.into(), &spec))?)
}

/// Prints how many of `units` a second were done.
fn timed(what: &str, units: u64, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let begin = Instant::now();
    work()?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("  {what:44} {:14.0} a second, {seconds:.3} s", units as f64 / seconds);
    Ok(())
}

fn chunks(folder: &Path, checksums: bool) -> Result<()> {
    let number = Datatype::integer(1, ByteOrder::Little, Sign::Unsigned);
    let dataspace = Dataspace::Simple(Shape::fixed(&[CHUNKS * CHUNK_BYTES]));
    let layout = Layout::Chunked(vec![CHUNK_BYTES]);
    let spec = DatasetSpec { datatype: number, dataspace, layout, ..DatasetSpec::default() };
    let store = open(folder, Mode::CreateNew, checksums)?;
    let data = store.dataset(make(&store, "data", ObjectKindSpec::Dataset(Box::new(spec)))?)?;
    let mut values: Vec<u8> = (0..CHUNK_BYTES).map(|n| n as u8 | 1).collect();
    timed("MiB of chunks of 64 KiB put, 16 a commit", (CHUNKS * CHUNK_BYTES) >> 20, || {
        for n in 0..CHUNKS {
            values[0] = n as u8;
            data.write_whole_chunk(&ChunkCoord::new(&[n * 997 % CHUNKS]), 0, &values)?;
            if n % 16 == 15 {
                store.commit(ObjectScope::All, PublishLevel::Visible)?;
            }
        }
        Ok(store.commit(ObjectScope::All, PublishLevel::Visible)?)
    })?;
    let locate = |n: u64| data.locate(&ChunkCoord::new(&[n * 991 % CHUNKS]));
    timed("MiB of them read", (CHUNKS * CHUNK_BYTES) >> 20, || {
        (0..CHUNKS).try_for_each(|n| {
            let chunk = locate(n)?.ok_or("there is no chunk")?;
            Ok(data.read(&chunk, 0, &mut values)?)
        })
    })?;
    timed("reads of 8 bytes of them", 10 * CHUNKS, || {
        (0..10 * CHUNKS).try_for_each(|n| {
            let chunk = locate(n)?.ok_or("there is no chunk")?;
            Ok(data.read(&chunk, n % 60_000, &mut values[..8])?)
        })
    })?;
    Ok(store.close()?)
}

fn pairs(folder: &Path, checksums: bool, value: Datatype, count: u64, what: &str) -> Result<()> {
    let key = Datatype::integer(8, ByteOrder::Big, Sign::Unsigned);
    let store = open(folder, Mode::CreateNew, checksums)?;
    let map = make(&store, "map", ObjectKindSpec::Map(Box::new(MapSpec { key_type: key, value_type: value })))?;
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let maps = store.maps().ok_or("there are maps")?;
    timed(&format!("pairs with {what} put, 1,000 a commit"), count, || {
        for first in (0..count).step_by(1000) {
            let keys: Vec<_> = (first..first + 1000).map(key).collect();
            let edits: Vec<_> =
                keys.iter().map(|key| MapEdit::Put { key: MapKey::Bytes(key), value: &[7; 8] }).collect();
            maps.write(map, &edits)?;
            store.commit(ObjectScope::All, PublishLevel::Visible)?;
        }
        Ok(())
    })?;
    timed(&format!("pairs with {what} got"), count, || {
        (0..count).try_for_each(|n| {
            let key = key(n * 997 % count);
            Ok(maps.get(map, &[MapKey::Bytes(&key)], &mut |_, value| assert!(value.is_some()))?)
        })
    })?;
    store.close()?;
    drop(store);
    for (mode, text) in [(Mode::Read, "a reader"), (Mode::Write, "a writer")] {
        let begin = Instant::now();
        let engine = LmdbEngine::open(folder, mode, &LmdbOptions::default())?;
        let seconds = begin.elapsed().as_secs_f64();
        let pages = engine.stat()?.ever_used_pages;
        println!("  {text} opens {pages} pages in {:.2} ms", seconds * 1e3);
        engine.close()?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let folder = Path::new(arguments.first().ok_or("costs FOLDER [PAIRS]")?);
    let count: u64 = arguments.get(1).map_or(Ok(200_000), |count| count.parse())?;
    let number = Datatype::integer(8, ByteOrder::Little, Sign::Unsigned);
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: Default::default() };
    let text = Datatype::VarLen(VarLenType { kind, size: 20, base: Box::default() });
    for checksums in [false, true] {
        println!("{} checksums", if checksums { "with" } else { "without" });
        let place = |name: &str| folder.join(format!("{name}-{checksums}"));
        chunks(&place("chunks"), checksums)?;
        pairs(&place("numbers"), checksums, number.clone(), count, "numbers")?;
        pairs(&place("texts"), checksums, text.clone(), count, "texts")?;
    }
    Ok(())
}
