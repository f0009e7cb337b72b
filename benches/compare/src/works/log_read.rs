//! Reading from a log.

use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use h5live::{File, Selection};

use super::log_write::{BLOCK, BLOCK_LEN, blocks, log, make_blocks};
use crate::peer::{self, Slab, Type};
use crate::work::{Done, Ground, Unit, Work, bytes, sum, timed};
use crate::{Result, Side};

/// The location of the log.
fn in_log(ground: &Ground) -> String {
    log(&ground.file("log"))
}

/// The file in which a contiguous dataset has the same elements.
fn plain(ground: &Ground) -> PathBuf {
    ground.file("plain")
}

/// The file that has what was written, one piece after the other, and nothing else: the least that a reader of a log has
/// to bring to its place.
fn pieces(ground: &Ground) -> PathBuf {
    ground.file("pieces")
}

fn prepare_blocks(ground: &Ground) -> Result<()> {
    make_blocks(&in_log(ground), blocks(ground))?;
    make_blocks(&plain(ground).display().to_string(), blocks(ground))?;
    let mut file = BufWriter::new(fs::File::create(pieces(ground))?);
    let mut values: Vec<u64> = (0..BLOCK_LEN as u64).collect();
    for number in 0..blocks(ground).len() {
        values[0] = number;
        file.write_all(bytes(&values))?;
    }
    Ok(file.flush()?)
}

/// Brings the pieces of a file together by one thread: the blocks that were read by one call go to their rows.
fn gather_blocks(ground: &Ground, into: &mut [u64]) -> Result<()> {
    /// Blocks that are read by one call: 1 MiB.
    const AT_ONCE: usize = 256;
    let (square, file) = (blocks(ground), fs::File::open(pieces(ground))?);
    let (columns, side) = (square.shape(BLOCK)[1] as usize, BLOCK[1] as usize);
    let starts: Vec<_> = square.starts(BLOCK).collect();
    let mut read = vec![0u64; AT_ONCE * BLOCK_LEN];
    for (number, starts) in starts.chunks(AT_ONCE).enumerate() {
        let read = &mut read[..starts.len() * BLOCK_LEN];
        file.read_exact_at(bytemuck::cast_slice_mut(read), (number * AT_ONCE * BLOCK_LEN * 8) as u64)?;
        for ([row, column], block) in starts.iter().zip(read.chunks(BLOCK_LEN)) {
            let first = *row as usize * columns + *column as usize;
            for (elements, at) in block.chunks(side).zip((first..).step_by(columns)) {
                into[at..at + side].copy_from_slice(elements);
            }
        }
    }
    Ok(())
}

/// Reads all blocks, one by one, in the order in which they were written.
fn read_blocks(location: &str, ground: &Ground) -> Result<Done> {
    let (square, mut values, mut total) = (blocks(ground), vec![0u64; BLOCK_LEN], 0u64);
    let data = File::open(location)?.dataset("data")?;
    let (done, ()) = timed(square.bytes(BLOCK), || {
        for start in square.starts(BLOCK) {
            data.read_into(Selection::block(&start, &BLOCK), &mut values)?;
            total = total.wrapping_mul(3).wrapping_add(values[0] ^ values[BLOCK_LEN - 1]);
        }
        Ok(())
    })?;
    Ok(done.sum(total))
}

/// Reads all of the dataset by one call.
fn read_whole(side: Side, ground: &Ground) -> Result<Done> {
    let square = blocks(ground);
    let mut values = vec![1u64; square.len() as usize * BLOCK_LEN];
    let done = match side {
        Side::H5live => {
            let data = File::open(&*in_log(ground))?.dataset("data")?;
            timed(square.bytes(BLOCK), || Ok(data.read_into(.., &mut values)?))?
        }
        Side::Bare => timed(square.bytes(BLOCK), || gather_blocks(ground, &mut values))?,
        _ => {
            let file = peer::File::open(&plain(ground))?;
            let data = file.dataset("data", 0)?;
            timed(square.bytes(BLOCK), || data.read_all(Type::U64.id(), &mut values))?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

/// Elements of 8 bytes of a column; columns of the dataset; rows that one call reads.
const COLUMN: u64 = 4000;
const COLUMNS: u64 = 5000;
const ROWS: u64 = 64;

fn prepare_columns(ground: &Ground) -> Result<()> {
    let columns = ground.times(COLUMNS);
    let mut pieces = BufWriter::new(fs::File::create(pieces(ground))?);
    for column in 0..columns {
        let values: Vec<u64> = (0..COLUMN).map(|row| row * columns + column).collect();
        pieces.write_all(bytes(&values))?;
    }
    pieces.flush()?;
    for location in [in_log(ground), plain(ground).display().to_string()] {
        let file = File::options().create().open(&*location)?;
        let data = file.new_dataset::<u64>().shape(&[COLUMN, columns]).contiguous().create("data")?;
        for column in 0..columns {
            let values: Vec<u64> = (0..COLUMN).map(|row| row * columns + column).collect();
            data.write_slice((.., column), &values)?;
        }
        file.close()?;
    }
    Ok(())
}

/// Reads rows of what was written by columns.
fn read_rows(side: Side, ground: &Ground) -> Result<Done> {
    let columns = ground.times(COLUMNS);
    let mut values = vec![1u64; (ROWS * columns) as usize];
    let mut total = 0u64;
    let mut note = |values: &[u64]| total = total.wrapping_mul(3).wrapping_add(values[0] ^ values[values.len() - 1]);
    let done = match side {
        Side::H5live => {
            let data = File::open(&*in_log(ground))?.dataset("data")?;
            timed(COLUMN * columns * 8, || {
                for row in (0..COLUMN).step_by(ROWS as usize) {
                    let rows = ROWS.min(COLUMN - row);
                    let values = &mut values[..(rows * columns) as usize];
                    data.read_into((row..row + rows, ..), values)?;
                    note(values);
                }
                Ok(())
            })?
        }
        Side::Bare => {
            let (file, mut piece) = (fs::File::open(pieces(ground))?, [0u64; ROWS as usize]);
            timed(COLUMN * columns * 8, || {
                for row in (0..COLUMN).step_by(ROWS as usize) {
                    let rows = ROWS.min(COLUMN - row) as usize;
                    let values = &mut values[..rows * columns as usize];
                    for column in 0..columns {
                        let piece = &mut piece[..rows];
                        file.read_exact_at(bytemuck::cast_slice_mut(piece), (column * COLUMN + row) * 8)?;
                        let places = (column as usize..).step_by(columns as usize);
                        piece.iter().zip(places).for_each(|(value, at)| values[at] = *value);
                    }
                    note(values);
                }
                Ok(())
            })?
        }
        _ => {
            let file = peer::File::open(&plain(ground))?;
            let data = file.dataset("data", 0)?;
            timed(COLUMN * columns * 8, || {
                for row in (0..COLUMN).step_by(ROWS as usize) {
                    let count = [ROWS.min(COLUMN - row), columns];
                    let values = &mut values[..(count[0] * columns) as usize];
                    data.read_slab(Type::U64, &Slab { start: &[row, 0], stride: &[], count: &count }, values)?;
                    note(values);
                }
                Ok(())
            })?
        }
    }
    .0;
    Ok(done.sum(total))
}

/// Datasets of a file, entries of each, and elements of an entry.
const DATASETS: u64 = 10_000;
const ENTRIES: u64 = 100;
const ENTRY_LEN: u64 = 8;

fn prepare_datasets(ground: &Ground) -> Result<()> {
    let file = File::options().create().open(&*in_log(ground))?;
    let datasets = (0..ground.times(DATASETS)).map(|number| {
        let new = file.new_dataset::<u64>().shape(&[ENTRIES * ENTRY_LEN]).contiguous();
        Ok(new.create(&number.to_string())?)
    });
    let datasets = datasets.collect::<Result<Vec<_>>>()?;
    for entry in 0..ENTRIES {
        for (number, data) in datasets.iter().enumerate() {
            let at = entry * ENTRY_LEN;
            data.write_slice(at..at + ENTRY_LEN, &[number as u64 * ENTRIES + entry; ENTRY_LEN as usize])?;
        }
    }
    Ok(file.close()?)
}

/// Opens the file and reads some of its datasets, one for each opening or all at once.
fn open(at_once: bool, ground: &Ground) -> Result<Done> {
    let (location, datasets) = (in_log(ground), ground.times(DATASETS));
    let times = if at_once { 1 } else { datasets.min(50) };
    let mut total = 0u64;
    let (done, ()) = timed(times, || {
        for time in 0..times {
            let file = File::open(&*location)?;
            let numbers = if at_once { 0..datasets } else { time * 199 % datasets..time * 199 % datasets + 1 };
            for number in numbers {
                let values = file.dataset(&number.to_string())?.read::<u64>()?;
                total = total.wrapping_mul(3).wrapping_add(values.iter().sum());
            }
        }
        Ok(())
    })?;
    Ok(done.sum(total))
}

pub fn works() -> Vec<Work> {
    let native = Work {
        name: "log-read-native",
        title: "read 100,000 blocks of 4 KiB of a contiguous dataset, in the order in which they were written",
        unit: Unit::Bytes,
        prepare: prepare_blocks,
        sides: &[Side::H5live],
        run: |_, ground| read_blocks(&plain(ground).display().to_string(), ground),
        ..Work::PLAIN
    };
    let open_all = Work {
        name: "log-open-all",
        title: "open a log of 1,000,000 entries, and read all its 10,000 datasets",
        unit: Unit::Things("files"),
        sides: &[Side::H5live],
        prepare: prepare_datasets,
        run: |_, ground| open(true, ground),
        ..Work::PLAIN
    };
    vec![
        native,
        Work {
            name: "log-read",
            title: "the same of a log",
            within: Some((native.name, 1.0 / 0.7)),
            run: |_, ground| read_blocks(&in_log(ground), ground),
            ..native
        },
        Work {
            name: "log-read-whole",
            title: "read all of these blocks of a log by one call, as rows (libhdf5: contiguous dataset; bare: the blocks \
                    alone brought to their rows by one thread)",
            aim: 0.5,
            bare_aim: Some(0.9),
            sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
            run: read_whole,
            ..native
        },
        Work {
            name: "log-rows",
            title: "read 64 rows at a time of what was written to a log by columns (libhdf5: contiguous dataset; bare: the \
                    columns alone, each piece by a call of one thread)",
            aim: 0.5,
            bare_aim: Some(0.9),
            sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
            prepare: prepare_columns,
            run: read_rows,
            ..native
        },
        open_all,
        Work {
            name: "log-open",
            title: "the same log, one dataset of 100 entries each time it is opened",
            within: Some((open_all.name, 0.05)),
            peak_aim: Some(100 << 20),
            run: |_, ground| open(false, ground),
            ..open_all
        },
    ]
}
