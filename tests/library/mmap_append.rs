//! Rows that follow each other so closely that they are stored without calls to the system: others see them as any
//! other rows, and a writer that is killed among them leaves a whole file.
//!
//! The process that writes is this test program. libhdf5 looks at the files through the Python that `H5LIVE_PYTHON`
//! names.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Child;

use h5live::{File, Mode};

use crate::writer_process::{self, WRITER, passes, start_python, tell, write_calls};

/// Set for the process that writes: how many rows.
const ROWS: &str = "H5LIVE_TEST_ROWS";

/// Values of a row of each dataset, and rows of a chunk.
const DATASETS: [(&str, u64, u64); 3] = [("narrow", 1, 4096), ("wide", 8, 512), ("whole", 64, 1)];

/// Rows between two lines of the writer.
const TOLD: u64 = 256;

fn value(element: u64) -> u64 {
    (element + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn write(path: &Path, rows: u64) -> h5live::Result<()> {
    let file = File::options().mode(Mode::Create).open(path)?;
    let datasets = DATASETS.map(|(name, values, rows)| {
        let row: &[u64] = if values == 1 { &[] } else { &[values] };
        let chunk: Vec<u64> = std::iter::once(rows).chain(row.iter().copied()).collect();
        (file.new_dataset::<u64>().unlimited_rows(row).chunk_shape(&chunk).create(name).unwrap(), values)
    });
    file.start_swmr()?;
    tell("\nbegin");
    let before = write_calls();
    for row in 0..rows {
        for (dataset, values) in &datasets {
            let values: Vec<u64> = (row * values..(row + 1) * values).map(value).collect();
            dataset.append(&values)?;
            dataset.flush()?;
        }
        if (row + 1).is_multiple_of(TOLD) {
            tell(&format!("rows {}", row + 1));
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
    if let (Some(path), Ok(rows)) = (std::env::var_os(WRITER), std::env::var(ROWS)) {
        write(Path::new(&path), rows.parse().unwrap()).unwrap();
    }
}

fn start(path: &Path, rows: u64) -> (Child, impl Iterator<Item = String> + use<>) {
    writer_process::start("mmap_append::writer", path, &[(ROWS, rows.to_string())])
}

fn check(values: &[u64], first: u64) {
    if let Some(at) = (0..values.len()).find(|at| values[*at] != value(first + *at as u64)) {
        panic!("element {} is {:#x}", first + at as u64, values[at]);
    }
}

#[test]
fn who_follows_sees_every_row_and_never_anything_else() {
    const ROWS: u64 = 30_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("brisk.h5");
    let (mut child, lines) = start(&path, ROWS);
    let libhdf5 = start_python("brisk.py", &["follow".as_ref(), path.as_os_str(), ROWS.to_string().as_ref()]);
    let file = File::options().mode(Mode::SwmrRead).open(&path).unwrap();
    let datasets = DATASETS.map(|(name, values, _)| (file.dataset(name).unwrap(), values));
    let mut seen = [0; 3];
    while seen != [ROWS; 3] {
        for ((dataset, values), seen) in datasets.iter().zip(&mut seen) {
            dataset.refresh().unwrap();
            let rows = dataset.shape().unwrap()[0];
            assert!(rows >= *seen, "from {seen} rows back to {rows}");
            let new = match values {
                1 => dataset.read_slice::<u64>(*seen..rows),
                _ => dataset.read_slice::<u64>((*seen..rows, ..)),
            };
            check(&new.unwrap(), *seen * values);
            *seen = rows;
        }
    }
    let calls = lines.filter_map(|line| line.strip_prefix("calls ")?.parse::<u64>().ok()).last().unwrap();
    assert!(child.wait().unwrap().success());
    passes(libhdf5);
    println!("{} rows by {calls} calls that wrote", 3 * ROWS);
}

#[test]
fn a_writer_that_is_killed_among_them_leaves_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for kill in 0..40_u64 {
        let path = folder.path().join(format!("{kill}.h5"));
        let (mut child, mut lines) = start(&path, 1 << 40);
        let mut flushed = 0;
        for _ in 0..=kill % 7 {
            let line = lines.next().expect("the writer goes on");
            flushed = line.strip_prefix("rows ").and_then(|rows| rows.parse::<u64>().ok()).expect("a count");
        }
        // Somewhere among the next ones.
        (0..kill * 997).for_each(|n| _ = std::hint::black_box(n));
        child.kill().unwrap();
        child.wait().unwrap();
        // As it is, for libhdf5.
        let copy = folder.path().join(format!("{kill}-as-it-was.h5"));
        std::fs::copy(&path, &copy).unwrap();
        list += &format!("{} {flushed}\n", copy.display());
        for mode in [Mode::SwmrRead, Mode::Read] {
            let file = File::options().mode(mode).open(&path).unwrap();
            for (name, values, _) in DATASETS {
                let all: Vec<u64> = file.dataset(name).unwrap().read().unwrap();
                assert!(all.len() as u64 >= flushed * values, "{mode:?}: {} values of {name}", all.len());
                check(&all, 0);
            }
        }
        let file = File::options().mode(Mode::SwmrWrite).open(&path).unwrap();
        let narrow = file.dataset("narrow").unwrap();
        let rows = narrow.shape().unwrap()[0];
        narrow.append(&[value(rows)]).unwrap();
        file.close().unwrap();
        let file = File::open(&path).unwrap();
        check(&file.dataset("narrow").unwrap().read::<u64>().unwrap(), 0);
        let whole = file.dataset("whole").unwrap();
        let mut chunks = 0;
        let count = &mut |_| {
            chunks += 1;
            true
        };
        file.store().dataset(whole.id()).unwrap().for_each_chunk(count).unwrap();
        assert_eq!(chunks, whole.shape().unwrap()[0], "chunks that were made ready");
        std::fs::remove_file(&path).unwrap();
    }
    let file = folder.path().join("list");
    std::fs::write(&file, list).unwrap();
    passes(start_python("brisk.py", &["look".as_ref(), file.as_os_str()]));
}
