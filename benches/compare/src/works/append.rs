//! Appending, mostly to a file that is live.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use h5live::{File, Mode};

use crate::others;
use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, bytes, timed};
use crate::{Result, Side};

const ALL: &[Side] = &[Side::H5live, Side::Libhdf5, Side::Bare];
const UNLIMITED: u64 = u64::MAX;

/// Appends of blocks of `block` elements of 8 bytes, a flush after every `every`.
#[derive(Clone, Copy)]
pub(super) struct Append {
    pub block: u64,
    pub chunk: u64,
    pub every: u64,
    pub times: u64,
    /// Whether others may read the file meanwhile.
    pub is_live: bool,
}

pub(super) const CHUNKS: Append = Append { block: 512, chunk: 512, every: 1, times: 60_000, is_live: true };
const HUNDREDS: Append = Append { every: 100, times: 200_000, ..CHUNKS };
pub(super) const ROWS: Append = Append { block: 8, chunk: 8 * 4096, every: 1, times: 40_000, is_live: true };
const FRAMES: Append = Append { block: 128 << 10, chunk: 128 << 10, every: 1, times: 600, is_live: true };

pub(super) fn run(what: Append, side: Side, ground: &Ground) -> Result<Done> {
    let Append { block, chunk, every, times, is_live } = what;
    let times = ground.times(times);
    let path = ground.file(&format!("append-{block}-{every}-{side}"));
    let mut values: Vec<u64> = (0..block).collect();
    let data = times * block * 8;
    let done = match side {
        Side::H5live => {
            let file = File::options().mode(Mode::Create).open(&path)?;
            let dataset = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[chunk]).create("data")?;
            if is_live {
                file.start_swmr()?;
            }
            timed(times, || {
                for i in 0..times {
                    values[0] = i;
                    dataset.append(&values)?;
                    if (i + 1) % every == 0 {
                        dataset.flush()?;
                    }
                }
                Ok(())
            })?
        }
        Side::Libhdf5 => {
            let file = peer::File::create(&path)?;
            // The cache holds the chunk that grows, and the next.
            let cache = (chunk * 8 * 4).max(1 << 20) as usize;
            let make = Make { dims: &[0], max: &[UNLIMITED], chunk: &[chunk], cache, ..Make::default() };
            let dataset = file.create_dataset("data", Type::U64, &make)?;
            file.start_swmr()?;
            timed(times, || {
                for i in 0..times {
                    values[0] = i;
                    dataset.extend(&[(i + 1) * block])?;
                    if block == chunk {
                        dataset.write_chunk(&[i * block], bytes(&values))?;
                    } else {
                        dataset.write_block(Type::U64, &[i * block], &[block], &values)?;
                    }
                    if (i + 1) % every == 0 {
                        dataset.flush()?;
                    }
                }
                Ok(())
            })?
        }
        Side::Hdf5Pure => {
            let (file, mut data) = others::hdf5_pure::live(&path, chunk)?;
            let done = timed(times, || {
                for i in 0..times {
                    values[0] = i;
                    others::hdf5_pure::append(&mut data, &values)?;
                }
                Ok(())
            })?;
            drop((data, file));
            done
        }
        _ => {
            let file = fs::File::create(&path)?;
            let mut ready = Vec::with_capacity((every * block * 8) as usize);
            let (mut at, mut left) = (0, times);
            timed(times, || {
                while left > 0 {
                    // What is written at once is gathered; a single block is written from where it is.
                    ready.clear();
                    for _ in 0..every.min(left) {
                        values[0] = times - left;
                        left -= 1;
                        if every > 1 {
                            ready.extend_from_slice(bytes(&values));
                        }
                    }
                    let ready = if every > 1 { &ready } else { bytes(&values) };
                    file.write_all_at(ready, at)?;
                    at += ready.len() as u64;
                }
                Ok(())
            })?
        }
    }
    .0;
    let done = done.size_of(&path, data)?;
    let sum = if side == Side::Bare { 0 } else { total(&path)? };
    fs::remove_file(path)?;
    Ok(done.sum(sum))
}

/// A sum over the elements of a file that either side wrote.
fn total(path: &Path) -> Result<u64> {
    let dataset = File::open(path)?.dataset("data")?;
    let mut sum = dataset.size()?;
    for value in [0, sum / 2, sum - 1] {
        let row = dataset.shape()?.iter().skip(1).fold(value, |row, n| row / n);
        sum = sum.wrapping_add(dataset.read_slice::<u64>(row..row + 1)?.iter().sum());
    }
    Ok(sum)
}

/// The bytes that make a chunk of a version 2 B-tree visible to readers: the chunk, a leaf and the node above it in places
/// that no reader looks at, and the record that leads there. Nobody computes what is in them.
fn bare_two(times: u64, chunk: &[u8], path: &Path) -> Result<(Done, ())> {
    const NODE_BYTES: u64 = 2048;
    /// Nodes of an index of so many chunks, half of which are in use.
    const NODES: u64 = 4096;
    const ROOT_BYTES: usize = 21;
    let file = fs::File::create(path)?;
    let node = vec![1; NODE_BYTES as usize];
    let nodes = 4096;
    let chunks = nodes + NODES * NODE_BYTES;
    file.set_len(chunks)?;
    timed(times, || {
        (0..times).try_for_each(|n| {
            file.write_all_at(chunk, chunks + n * 4096)?;
            for part in [2 * n, 2 * n + 1] {
                file.write_all_at(&node, nodes + part % NODES * NODE_BYTES)?;
            }
            Ok(file.write_all_at(&node[..ROOT_BYTES], 700)?)
        })
    })
}

/// Chunks of 4 KiB along two dimensions in turns: the grid of chunks stays about square.
fn run_two(side: Side, ground: &Ground) -> Result<Done> {
    const CHUNK: [u64; 2] = [16, 32];
    let edge = (ground.times(60_000) as f64).sqrt() as u64;
    let times = edge * edge;
    let path = ground.file(&format!("two-{side}"));
    let values: Vec<u64> = (0..512).collect();
    // The chunk at (edge, i), (i, edge) for growing edges.
    let order: Vec<[u64; 2]> =
        (0..edge).flat_map(|n| (0..=n).map(move |i| [n, i]).chain((0..n).map(move |i| [i, n]))).collect();
    let done = match side {
        Side::H5live => {
            let file = File::options().mode(Mode::Create).open(&path)?;
            let data = file.new_dataset::<u64>().shape(&[0, 0]).resizable().chunk_shape(&CHUNK).create("data")?;
            file.start_swmr()?;
            let mut dims = [0, 0];
            let timed = timed(times, || {
                for at in &order {
                    let needed = [(at[0] + 1) * CHUNK[0], (at[1] + 1) * CHUNK[1]];
                    if needed[0] > dims[0] || needed[1] > dims[1] {
                        dims = [dims[0].max(needed[0]), dims[1].max(needed[1])];
                        data.resize(&dims)?;
                    }
                    data.write_chunk(&h5live::model::ChunkCoord::new(at), 0, bytes(&values))?;
                    data.flush()?;
                }
                Ok(())
            })?;
            drop(data);
            file.close()?;
            timed
        }
        Side::Bare => bare_two(times, bytes(&values), &path)?,
        _ => {
            let file = peer::File::create(&path)?;
            let make = Make { dims: &[0, 0], max: &[UNLIMITED; 2], chunk: &CHUNK, ..Make::default() };
            let data = file.create_dataset("data", Type::U64, &make)?;
            file.start_swmr()?;
            let mut dims = [0, 0];
            timed(times, || {
                for at in &order {
                    let start = [at[0] * CHUNK[0], at[1] * CHUNK[1]];
                    let needed = [start[0] + CHUNK[0], start[1] + CHUNK[1]];
                    if needed[0] > dims[0] || needed[1] > dims[1] {
                        dims = [dims[0].max(needed[0]), dims[1].max(needed[1])];
                        data.extend(&dims)?;
                    }
                    data.write_chunk(&start, bytes(&values))?;
                    data.flush()?;
                }
                Ok(())
            })?
        }
    }
    .0;
    let done = done.size_of(&path, times * 4096)?;
    let sum = if side == Side::Bare { 0 } else { total(&path)? };
    fs::remove_file(path)?;
    Ok(done.sum(sum))
}

/// Elements of a chunk of those many.
const SMALL: u64 = 8;
/// A file with more chunks than this takes long to make, so all runs append to the same; it hardly grows.
const KEPT: u64 = 1_000_000;

/// A dataset of `before` chunks, made by the side that is going to append to it.
fn fill(before: u64, side: Side, path: &Path) -> Result<()> {
    let values = vec![7u64; (SMALL << 12) as usize];
    if side == Side::H5live {
        let file = File::options().mode(Mode::Create).open(path)?;
        let data = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[SMALL]).create("data")?;
        let mut left = before * SMALL;
        while left > 0 {
            let part = left.min(values.len() as u64);
            data.append(&values[..part as usize])?;
            left -= part;
        }
        drop(data);
        return Ok(file.close()?);
    }
    let file = peer::File::create(path)?;
    let make = Make { dims: &[before * SMALL], max: &[UNLIMITED], chunk: &[SMALL], ..Make::default() };
    let data = file.create_dataset("data", Type::U64, &make)?;
    (0..before).try_for_each(|i| data.write_chunk(&[i * SMALL], bytes(&values[..SMALL as usize])))
}

/// Appends of chunks, one flush each, to a dataset that has `before` chunks already.
fn run_long(before: u64, side: Side, ground: &Ground) -> Result<Done> {
    let times = ground.times(20_000);
    let path = ground.file(&format!("long-{before}-{side}"));
    let before = ground.times(before);
    if !path.exists() {
        fill(before, side, &path)?;
    }
    let done = match side {
        Side::H5live => {
            let file = File::options().swmr_write().open(&path)?;
            let data = file.dataset("data")?;
            timed(times, || {
                for i in 0..times {
                    data.append(&[i; SMALL as usize])?;
                    data.flush()?;
                }
                Ok(())
            })?
        }
        _ => {
            let file = peer::File::open_to_write(&path)?;
            let data = file.dataset("data", 0)?;
            file.start_swmr()?;
            let there = data.dims()?[0];
            timed(times, || {
                for i in 0..times {
                    let start = there + i * SMALL;
                    data.extend(&[start + SMALL])?;
                    data.write_chunk(&[start], bytes(&[i; SMALL as usize]))?;
                    data.flush()?;
                }
                Ok(())
            })?
        }
    }
    .0;
    let sum = total(&path)?;
    if before < KEPT {
        fs::remove_file(path)?;
    }
    Ok(done.sum(sum))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "append-4k",
        title: "SWMR append of a 4 KiB chunk, flush each",
        unit: Unit::Things("chunks"),
        aim: 5.0,
        budget: WRITING,
        sides: ALL,
        run: |side, ground| run(CHUNKS, side, ground),
        ..Work::PLAIN
    };
    let chunks = Work { sides: &[Side::H5live, Side::Libhdf5, Side::Bare, Side::Hdf5Pure], ..work };
    let both: &[Side] = &[Side::H5live, Side::Libhdf5];
    vec![
        chunks,
        Work {
            name: "append-4k-100",
            title: "SWMR append of 4 KiB chunks, flush per 100",
            aim: 2.0,
            bare_aim: Some(0.8),
            run: |side, ground| run(HUNDREDS, side, ground),
            ..work
        },
        Work {
            name: "append-row",
            title: "SWMR append of a 64-byte row into 4,096-row chunks, flush each",
            unit: Unit::Things("rows"),
            aim: 20.0,
            run: |side, ground| run(ROWS, side, ground),
            ..work
        },
        Work {
            name: "append-frame",
            title: "SWMR append of 1 MiB frames, flush each",
            unit: Unit::Things("frames"),
            aim: 1.0,
            bare_aim: Some(0.9),
            run: |side, ground| run(FRAMES, side, ground),
            ..work
        },
        Work {
            name: "append-two",
            title: "appends to a dataset with two unlimited dimensions, flush each (bare: the chunk and the nodes of its index)",
            aim: 3.0,
            size_aim: Some(1.1),
            run: run_two,
            ..work
        },
        Work {
            name: "append-10k",
            title: "append at 10,000 chunks",
            aim: 1.0,
            sides: both,
            run: |side, ground| run_long(10_000, side, ground),
            ..work
        },
        Work {
            name: "append-10m",
            title: "append at 10 million chunks",
            aim: 1.0,
            sides: both,
            within: Some(("append-10k", 1.3)),
            run: |side, ground| run_long(10_000_000, side, ground),
            ..work
        },
    ]
}
