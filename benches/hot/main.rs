//! Does one thing a number of times: what `make counts` counts the instructions of.
//!
//! `hot NAME TIMES`, in a temporary folder; without arguments, the names.

use h5live::model::{ChunkCoord, UNLIMITED};
use h5live::{File, Mode, Result, Selection};

/// The number of times something is done.
type Times = u64;
type Work = fn(&std::path::Path, Times) -> Result<()>;

const WORKS: [(&str, Work); 12] = [
    ("append-4k", |path, times| append(path, times, (512, 512), 1)),
    ("append-4k-100", |path, times| append(path, times, (512, 512), 100)),
    ("append-row", |path, times| append(path, times, (8, 8 * 4096), 1)),
    ("append-two", append_two),
    ("write-two", write_two),
    ("create", create),
    ("open", open),
    ("read-random", |path, times| read_random(path, times, false)),
    ("read-deflate", |path, times| read_random(path, times, true)),
    ("read-sheet", |path, times| read_cube(path, times, false)),
    ("read-points", |path, times| read_cube(path, times, true)),
    ("refresh", refresh),
];

fn live(path: &std::path::Path) -> Result<File> {
    File::options().mode(Mode::Create).open(path)
}

/// Appends of `block` values to chunks of `chunk`, with a flush after each `together` of them.
fn append(path: &std::path::Path, times: Times, (block, chunk): (u64, u64), together: Times) -> Result<()> {
    let file = live(path)?;
    let dataset = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[chunk]).create("data")?;
    file.start_swmr()?;
    let values: Vec<u64> = (0..block).collect();
    (1..=times).try_for_each(|n| {
        dataset.append(&values)?;
        if n.is_multiple_of(together) { dataset.flush() } else { Ok(()) }
    })
}

/// Chunks of a dataset with two unlimited dimensions, with a flush each.
fn append_two(path: &std::path::Path, times: Times) -> Result<()> {
    let file = live(path)?;
    let dataset =
        file.new_dataset::<u64>().shape(&[0, 32]).max_shape(&[UNLIMITED; 2]).chunk_shape(&[16, 32]).create("data")?;
    file.start_swmr()?;
    let values: Vec<u64> = (0..512).collect();
    (0..times).try_for_each(|_| {
        dataset.append(&values)?;
        dataset.flush()
    })
}

/// Chunks along both edges of a dataset that grows in both dimensions, with a flush each.
fn write_two(path: &std::path::Path, times: Times) -> Result<()> {
    let file = live(path)?;
    let dataset = file.new_dataset::<u64>().shape(&[0, 0]).resizable().chunk_shape(&[16, 32]).create("data")?;
    file.start_swmr()?;
    let values = [1; 4096];
    let order = (0..).flat_map(|n| (0..=n).map(move |i| [n, i]).chain((0..n).map(move |i| [i, n])));
    let mut edge = 0;
    order.take(times as usize).try_for_each(|at| {
        if at[0].max(at[1]) >= edge {
            edge += 1;
            dataset.resize(&[edge * 16, edge * 32])?;
        }
        dataset.write_chunk(&ChunkCoord::new(&at), 0, &values)?;
        dataset.flush()
    })
}

fn create(path: &std::path::Path, times: Times) -> Result<()> {
    let file = File::create(path)?;
    (0..times).try_for_each(|n| {
        file.new_dataset::<i32>().shape(&[4]).compact().create(&format!("{n:08}"))?.write(&[1, 2, 3, 4])
    })?;
    file.close()
}

/// Finds and reads some of 5,000 datasets.
fn open(path: &std::path::Path, times: Times) -> Result<()> {
    create(path, 5000)?;
    let file = File::open(path)?;
    (0..times).try_for_each(|n| file.dataset(&format!("{:08}", n * 7919 % 5000))?.read::<i32>().map(drop))
}

/// Reads 16 KiB of 64 MiB in chunks of 1 MiB, or 256 KiB if they are compressed.
fn read_random(path: &std::path::Path, times: Times, deflate: bool) -> Result<()> {
    let len: u64 = 16 << 20;
    let file = File::create(path)?;
    let new = file.new_dataset::<u32>().shape(&[len]);
    let new = if deflate { new.chunk_shape(&[64 << 10]).shuffle().deflate(4) } else { new.chunk_shape(&[256 << 10]) };
    new.create("data")?.write(&(0..len as u32).collect::<Vec<_>>())?;
    file.close()?;
    let file = File::open(path)?;
    let dataset = file.dataset("data")?;
    let mut values = vec![0u32; 4096];
    (0..times).try_for_each(|n| {
        let at = n * 7919 % 4096 * 4096;
        dataset.read_into(at..at + 4096, &mut values)
    })
}

/// Reads of a cube a sheet of 64 x 64 elements across the order of storage, or 512 points.
fn read_cube(path: &std::path::Path, times: Times, is_points: bool) -> Result<()> {
    let file = File::create(path)?;
    let dataset = file.new_dataset::<i32>().shape(&[64; 3]).chunk_shape(&[32, 32, 16]).create("data")?;
    dataset.write(&(0..1 << 18).collect::<Vec<_>>())?;
    let points: Vec<_> = (0..512u64).map(|n| (0..3).map(|dim| ((n * 7919) >> (2 * dim)) & 63).collect()).collect();
    let points = Selection::Points(points);
    let mut values = vec![0i32; 4096];
    (0..times).try_for_each(|n| match is_points {
        true => dataset.read_into(&points, &mut values[..512]),
        false => dataset.read_into((.., .., n % 64), &mut values),
    })
}

/// Follows appends of 64 rows.
fn refresh(path: &std::path::Path, times: Times) -> Result<()> {
    let file = live(path)?;
    let written = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[512]).create("data")?;
    file.start_swmr()?;
    let reading = File::options().swmr_read().open(path)?;
    let read = reading.dataset("data")?;
    let values: Vec<u64> = (0..64).collect();
    (0..times).try_for_each(|n| {
        written.append(&values)?;
        written.flush()?;
        read.refresh()?;
        read.read_slice::<u64>(n * 64..(n + 1) * 64).map(drop)
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, times] = &arguments[..] else {
        WORKS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let work = WORKS.iter().find(|(known, _)| known == name).ok_or("no such work")?.1;
    let folder = tempfile::tempdir()?;
    Ok(work(&folder.path().join("hot.h5"), times.parse()?)?)
}
