//! Several processes write the columns of one dataset, each every fourth column, into a log that they have joined.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use h5live::{Dataset, File, Selection};

use super::log_write::{log, total};
use crate::measure::Measure;
use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, timed};
use crate::{Error, Result, Side};

/// Elements of 8 bytes in a column.
const ROWS: u64 = 4096;
/// Columns that several processes write.
const COLUMNS: u64 = 16_384;
/// Columns that one process writes.
const COLUMNS_OF_ONE: u64 = 1024;
/// Processes that write a log.
const WRITERS: u64 = 4;
/// The chunks of the plain files (elements).
const CHUNK: [u64; 2] = [256, 512];
const NAME: &str = "log-join";

fn shape(columns: u64, ground: &Ground) -> [u64; 2] {
    [ROWS, ground.times(columns)]
}

fn bytes_of([rows, columns]: [u64; 2]) -> u64 {
    rows * columns * 8
}

/// Writes every `step`th column from `first` on; the first element of each is its number.
fn write_columns(data: &Dataset, [rows, columns]: [u64; 2], first: u64, step: u64) -> Result<()> {
    let mut values: Vec<u64> = (0..rows).collect();
    for column in (first..columns).step_by(step as usize) {
        values[0] = column;
        data.write_slice(Selection::block(&[0, column], &[rows, 1]), &values)?;
    }
    Ok(())
}

/// A log that is joined.
fn joined(path: &Path) -> String {
    format!("{}?join=yes", log(path))
}

/// What one of several processes does.
fn join(path: &Path, part: u64, ground: &Ground) -> Result<()> {
    let file = File::options().swmr_write().open(&*joined(path))?;
    write_columns(&file.dataset("data")?, shape(COLUMNS, ground), part, WRITERS)?;
    Ok(file.close()?)
}

/// Starts the processes, and waits for them. Returns the most memory that all of them had (bytes).
fn write_in_processes(ground: &Ground) -> Result<u64> {
    let start = |part: u64| {
        Command::new(std::env::current_exe()?)
            .args(["--child", NAME, &Side::H5live.to_string(), "--scale", &ground.scale.to_string()])
            .args(["--part", &part.to_string(), "--folder"])
            .arg(&ground.folder)
            .stdout(Stdio::piped())
            .spawn()
    };
    let children = (0..WRITERS).map(start).collect::<std::io::Result<Vec<_>>>()?;
    let ended = children.into_iter().map(|child| child.wait_with_output()).collect::<std::io::Result<Vec<_>>>()?;
    let peak = |output: &std::process::Output| {
        let found = serde_json::from_slice::<Measure>(&output.stdout).ok().filter(|_| output.status.success());
        found.map(|measure| measure.peak).ok_or_else(|| Error::Child("a writer failed".to_owned()))
    };
    ended.iter().map(peak).sum()
}

/// Writes all columns: h5live by several processes into a log, libhdf5 by one into a plain file.
fn write_joined(side: Side, ground: &Ground) -> Result<Done> {
    let (path, shape) = (ground.file(&format!("columns-{side}")), shape(COLUMNS, ground));
    if side == Side::Libhdf5 {
        return write_plain(COLUMNS, side, ground);
    }
    if let Some(part) = ground.part {
        return Ok(timed(0, || join(&path, part, ground))?.0);
    }
    let remove = || {
        fs::remove_file(&path)?;
        fs::remove_dir_all(ground.file(&format!("columns-{side}.subfiles")))
    };
    // What a run has left that failed.
    let _ = remove();
    let file = File::options().create().open(&*joined(&path))?;
    file.new_dataset::<u64>().shape(&shape).contiguous().create("data")?;
    file.close()?;
    let (done, peak) = timed(bytes_of(shape), || write_in_processes(ground))?;
    let sum = total(&log(&path))?;
    remove()?;
    Ok(Done { peak, ..done }.sum(sum))
}

/// Writes all columns into a plain file, by one process.
fn write_plain(columns: u64, side: Side, ground: &Ground) -> Result<Done> {
    let (path, shape) = (ground.file(&format!("columns-{side}")), shape(columns, ground));
    let (done, ()) = match side {
        Side::H5live => {
            let file = File::create(&path)?;
            let data = file.new_dataset::<u64>().shape(&shape).chunk_shape(&CHUNK).create("data")?;
            timed(bytes_of(shape), || {
                write_columns(&data, shape, 0, 1)?;
                drop(data);
                Ok(file.close()?)
            })?
        }
        _ => {
            let file = peer::File::create(&path)?;
            // No chunk is written before the end.
            let make = Make { dims: &shape, chunk: &CHUNK, cache: bytes_of(shape) as usize * 5 / 4, ..Make::default() };
            let data = file.create_dataset("data", Type::U64, &make)?;
            let mut values: Vec<u64> = (0..ROWS).collect();
            timed(bytes_of(shape), || {
                let numbered = (0..shape[1]).map(|column| (column, [0, column]));
                data.write_blocks(Type::U64, &[ROWS, 1], numbered, &mut values)?;
                drop(data);
                drop(file);
                Ok(())
            })?
        }
    };
    let sum = total(&path.display().to_string())?;
    fs::remove_file(path)?;
    Ok(done.sum(sum))
}

pub fn works() -> Vec<Work> {
    let native = Work {
        name: "log-join-native",
        title: "1024 columns of 32 KiB of a dataset, one after the other, into a plain file",
        unit: Unit::Bytes,
        budget: WRITING,
        sides: &[Side::H5live],
        run: |side, ground| write_plain(COLUMNS_OF_ONE, side, ground),
        ..Work::PLAIN
    };
    vec![
        native,
        Work {
            name: NAME,
            title: "16,384 such columns by four processes that join a log, each every fourth one (libhdf5: one process, chunks that all stay in its cache)",
            aim: 1.5,
            within: Some((native.name, 1.0)),
            budget: WRITERS * WRITING,
            sides: &[Side::H5live, Side::Libhdf5],
            run: write_joined,
            ..native
        },
    ]
}
