//! Many of what the other stores have.

use h5live::{File, Map};

use crate::axes::Outcome;
use crate::names::jumping;
use crate::phases::Phases;

/// Keys that are put, and looked up, at once.
const BATCH: u64 = 1000;

/// Keys of a map in a key-value store.
pub fn keys(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.location("kv", "keys").as_str())?;
    let map: Map<u64, u64> = file.new_map().create("m")?;
    let batches = || (0..count).step_by(BATCH as usize).map(|first| first..count.min(first + BATCH));
    phases.phase("put", count, || {
        batches().try_for_each(|keys| {
            let pairs: Vec<(u64, u64)> = keys.map(|n| (n * 7919 % count, n)).collect();
            map.put_many(&pairs)?;
            map.flush()
        })
    })?;
    phases.phase("get", count, || batches().try_for_each(|keys| map.get_many(&keys.collect::<Vec<_>>()).map(drop)))?;
    phases.phase("range", count, || map.iter().try_for_each(|pair| pair.map(drop)))?;
    phases.phase("close", count, || file.close())
}

/// Entries of a log: blocks that are written all over a dataset.
pub fn entries(phases: &mut Phases, count: u64) -> Outcome {
    let location = phases.location("log", "entries.h5");
    let file = File::create(location.as_str())?;
    let dataset = file.new_dataset::<u64>().shape(&[count * 8]).create("d")?;
    phases.phase("write", count, || {
        jumping(count).try_for_each(|n| dataset.write_slice(n * 8..n * 8 + 8, &[n; 8]))?;
        file.flush()
    })?;
    phases.phase("close", count, || file.close())?;
    let file = phases.phase("open", count, || File::open(location.as_str()))?;
    let dataset = file.dataset("d")?;
    let mut values = [0u64; 8];
    phases.phase("read blocks", count, || {
        jumping(count).try_for_each(|n| dataset.read_into(n * 8..n * 8 + 8, &mut values))
    })
}

/// Batches that writers of a log commit, however many there are. Each writer sees each of them once, so the work grows with
/// the writers.
const BATCHES: u64 = 640;

/// A log with this many writers.
fn join(phases: &mut Phases, count: u64) -> Outcome<Vec<File>> {
    let location = phases.location("log", "joined.h5");
    let file = File::create(location.as_str())?;
    file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1024]).create("d")?;
    file.close()?;
    let joining = format!("{location}?join=yes");
    phases.phase("join", count, || {
        (0..count).map(|_| File::options().swmr_write().open(joining.as_str())).collect::<h5live::Result<Vec<_>>>()
    })
}

fn append_by(writer: &File, value: u64) -> h5live::Result<()> {
    writer.dataset("d")?.append(&[value; 8])?;
    writer.flush()
}

/// Writers of one log that append by turns.
pub fn joined(phases: &mut Phases, count: u64) -> Outcome {
    let writers = join(phases, count)?;
    phases.phase("append", BATCHES, || {
        (0..BATCHES).zip(writers.iter().cycle()).try_for_each(|(number, writer)| append_by(writer, number))
    })?;
    phases.phase("leave", count, || writers.iter().try_for_each(File::close))
}

/// Writers of one log of which one appends, and the others do nothing.
pub fn joined_idle(phases: &mut Phases, count: u64) -> Outcome {
    let writers = join(phases, count)?;
    let active = &writers[0];
    phases.phase("append", count * 10, || (0..count * 10).try_for_each(|number| append_by(active, number)))?;
    phases.phase("leave", count, || writers.iter().try_for_each(File::close))
}

/// Datasets of an object store, with a chunk each.
pub fn objects(phases: &mut Phases, count: u64) -> Outcome {
    let location = phases.location("hsds", "bucket");
    let file = File::create(location.as_str())?;
    phases.phase("create", count, || {
        (0..count).try_for_each(|n| {
            let dataset = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[16]).create(&format!("{n}"))?;
            dataset.append(&[n; 16])
        })
    })?;
    phases.phase("close", count, || file.close())?;
    let file = File::open(location.as_str())?;
    phases.phase("read", count, || (0..count).try_for_each(|n| file.dataset(&format!("{n}"))?.read::<u64>().map(drop)))
}

/// Elements of a chunk here: many of them fit what a session keeps.
const SMALL_CHUNK: u64 = 4;

/// Chunks of a dataset of an object store that are read one by one, and again.
pub fn object_chunks(phases: &mut Phases, count: u64) -> Outcome {
    let location = phases.location("hsds", "bucket");
    let file = File::create(location.as_str())?;
    let dataset = file.new_dataset::<u64>().shape(&[count * SMALL_CHUNK]).chunk_shape(&[SMALL_CHUNK]).create("d")?;
    phases.phase("write", count, || dataset.write(&vec![7; (count * SMALL_CHUNK) as usize]))?;
    phases.phase("close", count, || file.close())?;
    let dataset = File::open(location.as_str())?.dataset("d")?;
    let mut value = [0u64];
    for phase in ["read", "read again"] {
        phases.phase(phase, count, || {
            jumping(count).try_for_each(|n| dataset.read_into(n * SMALL_CHUNK..n * SMALL_CHUNK + 1, &mut value))
        })?;
    }
    Ok(())
}

/// Texts that are appended to a dataset of an object store, and read again from its chunks.
pub fn object_texts(phases: &mut Phases, count: u64) -> Outcome {
    let location = phases.location("hsds", "bucket");
    let file = File::create(location.as_str())?;
    let dataset = file.new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[SMALL_CHUNK]).create("d")?;
    phases.phase("append", count, || {
        (0..count).try_for_each(|n| {
            dataset.append(&[format!("text {n}")])?;
            if n % 10 == 0 { file.flush() } else { Ok(()) }
        })
    })?;
    phases.phase("close", count, || file.close())?;
    let dataset = File::open(location.as_str())?.dataset("d")?;
    phases.phase("read", count, || jumping(count).try_for_each(|n| dataset.read_slice::<String>(n..n + 1).map(drop)))
}
