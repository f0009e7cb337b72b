//! Several processes append rows to one dataset of a log that they have joined, each flushed; and one process to a plain file.

use std::fs;

use h5live::{Dataset, File};

use super::log_join::{joined, write_in_processes};
use super::log_write::{log, total};
use crate::work::{Done, Ground, Unit, WRITING, Work, timed};
use crate::{Result, Side};

/// Elements of 8 bytes in a row.
const COLUMNS: usize = 128;
/// Rows that all processes append together.
const ROWS: u64 = 20_000;
/// Rows of a flush.
const ROWS_OF_A_FLUSH: u64 = 10;
/// Processes that append.
const WRITERS: u64 = 4;
const NAME: &str = "log-append";

/// Appends every `step`th row from `first` on; the first element of each is its number.
fn append_rows(data: &Dataset, ground: &Ground, first: u64, step: usize) -> Result<()> {
    let mut row: Vec<u64> = (0..COLUMNS as u64).collect();
    for (n, number) in (first..ground.times(ROWS)).step_by(step).enumerate() {
        row[0] = number;
        data.append(&row)?;
        if (n as u64 + 1).is_multiple_of(ROWS_OF_A_FLUSH) {
            data.flush()?;
        }
    }
    Ok(())
}

fn make(file: &File) -> Result<Dataset> {
    let rows = file.new_dataset::<u64>().unlimited_rows(&[COLUMNS as u64]).chunk_shape(&[64, COLUMNS as u64]);
    Ok(rows.create("data")?)
}

/// One process, a plain file that others may follow.
fn append_plain(_: Side, ground: &Ground) -> Result<Done> {
    let path = ground.file("rows-plain");
    let file = File::create(&path)?;
    let data = make(&file)?;
    file.start_swmr()?;
    let (done, ()) = timed(ground.times(ROWS), || {
        append_rows(&data, ground, 0, 1)?;
        drop(data);
        Ok(file.close()?)
    })?;
    let sum = total(&path.display().to_string())?;
    fs::remove_file(path)?;
    Ok(done.sum(sum))
}

/// Several processes, a log.
fn append_joined(_: Side, ground: &Ground) -> Result<Done> {
    let path = ground.file("rows-joined");
    if let Some(part) = ground.part {
        let append = || {
            let file = File::options().swmr_write().open(&*joined(&path))?;
            append_rows(&file.dataset("data")?, ground, part, WRITERS as usize)?;
            Ok(file.close()?)
        };
        return Ok(timed(0, append)?.0);
    }
    let remove = || {
        fs::remove_file(&path)?;
        fs::remove_dir_all(ground.file("rows-joined.subfiles"))
    };
    // What a run has left that failed.
    let _ = remove();
    let file = File::options().create().open(&*joined(&path))?;
    make(&file)?;
    file.close()?;
    let (done, peak) = timed(ground.times(ROWS), || write_in_processes(NAME, WRITERS, ground))?;
    let sum = total(&log(&path))?;
    remove()?;
    Ok(Done { peak, ..done }.sum(sum))
}

pub fn works() -> Vec<Work> {
    let native = Work {
        name: "log-append-native",
        title: "rows of 1 KiB appended to a live plain file by one process, a flush for ten",
        unit: Unit::Things("rows"),
        budget: WRITING,
        sides: &[Side::H5live],
        run: append_plain,
        ..Work::PLAIN
    };
    vec![
        native,
        Work {
            name: NAME,
            title: "such rows appended to one dataset by four processes that have joined a log",
            budget: WRITERS * WRITING,
            run: append_joined,
            ..native
        },
    ]
}
