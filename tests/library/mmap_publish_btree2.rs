//! Chunks of a dataset that grows in both dimensions, each flushed, in a file in which the nodes of the index are
//! stored without calls to the system: who follows sees each chunk whole or not at all, and a writer that is killed
//! among them leaves a whole file.
//!
//! The process that writes is this test program. libhdf5 looks at the files through the Python that `H5LIVE_PYTHON`
//! names.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Child;

use h5live::model::ChunkCoord;
use h5live::{Dataset, File, Mode};

use crate::writer_process::{self, WRITER, passes, start_python, tell, write_calls};

/// Elements of a chunk, and how many chunks there are along each dimension in the end.
const CHUNK: [u64; 2] = [16, 32];
const EDGE: u64 = 48;

/// Bytes of what is in the file before: so many that structures are kept together behind it.
const BEFORE: u64 = 8 << 20;

fn value(row: u64, column: u64) -> u64 {
    ((row << 20 | column) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The chunks in the order in which they are written: those that make a square one larger, for growing squares.
fn order() -> impl Iterator<Item = [u64; 2]> {
    (0..EDGE).flat_map(|n| (0..=n).map(move |i| [n, i]).chain((0..n).map(move |i| [i, n])))
}

fn elements([row, column]: [u64; 2]) -> Vec<u8> {
    let rows = row * CHUNK[0]..(row + 1) * CHUNK[0];
    let columns = column * CHUNK[1]..(column + 1) * CHUNK[1];
    rows.flat_map(|row| columns.clone().flat_map(move |column| value(row, column).to_ne_bytes())).collect()
}

fn write(path: &Path) -> h5live::Result<()> {
    let file = File::options().mode(Mode::Create).eof_headroom(64 << 20).open(path)?;
    let before = file.new_dataset::<u8>().shape(&[BEFORE]).contiguous().create("before")?;
    before.write(&vec![1; BEFORE as usize])?;
    let data = file.new_dataset::<u64>().shape(&[0, 0]).resizable().chunk_shape(&CHUNK).create("data")?;
    file.start_swmr()?;
    tell("\nbegin");
    let before = write_calls();
    for (n, at) in order().enumerate() {
        let edge = at[0].max(at[1]) + 1;
        if at[1] == 0 {
            data.resize(&[edge * CHUNK[0], edge * CHUNK[1]])?;
        }
        data.write_chunk(&ChunkCoord::new(&at), 0, &elements(at))?;
        data.flush()?;
        if (n + 1).is_multiple_of(64) {
            tell(&format!("chunks {}", n + 1));
        }
    }
    let calls = write_calls() - before;
    file.close()?;
    tell(&format!("calls {calls}"));
    Ok(())
}

/// The process that writes.
#[test]
fn writer() {
    if let Some(path) = std::env::var_os(WRITER) {
        write(Path::new(&path)).unwrap();
    }
}

fn start(path: &Path) -> (Child, impl Iterator<Item = String> + use<>) {
    writer_process::start("mmap_publish_btree2::writer", path, &[])
}

/// How many chunks are there, and the first one that is not: each is as it was written, or has nothing but fill values.
fn present(data: &Dataset) -> (u64, Option<[u64; 2]>) {
    let mut shape = [0; 2];
    shape.copy_from_slice(&data.shape().unwrap());
    let (mut present, mut absent) = (0, None);
    for at in order().take_while(|at| at[0] * CHUNK[0] < shape[0] && at[1] * CHUNK[1] < shape[1]) {
        let rows = at[0] * CHUNK[0]..(at[0] + 1) * CHUNK[0];
        let found: Vec<u64> = data.read_slice((rows, at[1] * CHUNK[1]..(at[1] + 1) * CHUNK[1])).unwrap();
        let found: Vec<u8> = found.iter().flat_map(|element| element.to_ne_bytes()).collect();
        if found.iter().all(|byte| *byte == 0) {
            absent.get_or_insert(at);
        } else {
            assert!(found == elements(at), "the chunk at {at:?} is in pieces");
            present += 1;
        }
    }
    (present, absent)
}

/// How many of the first chunks are there; there are no others.
fn first(data: &Dataset) -> u64 {
    let (present, absent) = present(data);
    assert!(absent.is_none_or(|at| order().nth(present as usize) == Some(at)), "{present} chunks without {absent:?}");
    present
}

#[test]
fn who_follows_sees_every_chunk_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("both.h5");
    let (mut child, lines) = start(&path);
    let libhdf5 = start_python("both_ways.py", &["follow".as_ref(), path.as_os_str()]);
    let file = File::options().mode(Mode::SwmrRead).open(&path).unwrap();
    let data = file.dataset("data").unwrap();
    let mut seen = 0;
    while seen < EDGE * EDGE {
        data.refresh().unwrap();
        let (now, _) = present(&data);
        assert!(now >= seen, "from {seen} chunks back to {now}");
        seen = now;
    }
    let calls = lines.filter_map(|line| line.strip_prefix("calls ")?.parse::<u64>().ok()).last().unwrap();
    assert!(child.wait().unwrap().success());
    passes(libhdf5);
    println!("{seen} chunks by {calls} calls that wrote");
}

#[test]
fn a_writer_that_is_killed_among_them_leaves_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for kill in 0..16_u64 {
        let path = folder.path().join(format!("{kill}.h5"));
        let (mut child, mut lines) = start(&path);
        let mut flushed = 0;
        for _ in 0..=kill {
            let line = lines.next().expect("the writer goes on");
            flushed = line.strip_prefix("chunks ").and_then(|chunks| chunks.parse::<u64>().ok()).expect("a count");
        }
        // Somewhere among the next ones.
        (0..kill * 1997).for_each(|n| _ = std::hint::black_box(n));
        child.kill().unwrap();
        child.wait().unwrap();
        // As it is, for libhdf5.
        let copy = folder.path().join(format!("{kill}-as-it-was.h5"));
        std::fs::copy(&path, &copy).unwrap();
        list += &format!("{} {flushed}\n", copy.display());
        for mode in [Mode::SwmrRead, Mode::Read] {
            let file = File::options().mode(mode).open(&path).unwrap();
            let found = first(&file.dataset("data").unwrap());
            assert!(found >= flushed, "{mode:?}: {found} chunks of {flushed}");
        }
        let file = File::options().mode(Mode::SwmrWrite).open(&path).unwrap();
        let data = file.dataset("data").unwrap();
        let found = first(&data);
        if let Some(at) = order().nth(found as usize) {
            data.resize(&[EDGE * CHUNK[0], EDGE * CHUNK[1]]).unwrap();
            data.write_chunk(&ChunkCoord::new(&at), 0, &elements(at)).unwrap();
            file.close().unwrap();
            let file = File::open(&path).unwrap();
            assert_eq!(first(&file.dataset("data").unwrap()), found + 1);
        }
        std::fs::remove_file(&path).unwrap();
    }
    let file = folder.path().join("list");
    std::fs::write(&file, list).unwrap();
    passes(start_python("both_ways.py", &["look".as_ref(), file.as_os_str()]));
}
