//! Writing to a log: blocks and points that jump about in a dataset, and putting them in their places afterwards.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use h5live::{Copier, Dataset, File, Selection};

use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, bytes, sum, timed};
use crate::{Result, Side};

/// Elements of 8 bytes along the sides of a block: 4 KiB.
pub(super) const BLOCK: [u64; 2] = [16, 32];
pub(super) const BLOCK_LEN: usize = (BLOCK[0] * BLOCK[1]) as usize;
/// Bytes that are gathered before the bare machine writes them.
const GATHERED: usize = 1 << 20;
/// No number of blocks or points has this prime as a factor: its multiples jump to each of them once.
const JUMP: u64 = 31_337;

/// The location of a log in a file.
pub(super) fn log(path: &Path) -> String {
    format!("log:{}", path.display())
}

/// Blocks of a square of blocks, in an order that jumps.
#[derive(Clone, Copy)]
pub(super) struct Square {
    pub edge: u64,
}

impl Square {
    pub(super) fn new(blocks: u64) -> Self {
        Square { edge: (blocks as f64).sqrt() as u64 }
    }

    pub(super) fn len(self) -> u64 {
        self.edge * self.edge
    }

    pub(super) fn bytes(self, sides: [u64; 2]) -> u64 {
        self.len() * sides[0] * sides[1] * 8
    }

    pub(super) fn shape(self, sides: [u64; 2]) -> [u64; 2] {
        sides.map(|side| side * self.edge)
    }

    /// The first element of each block.
    pub(super) fn starts(self, [rows, columns]: [u64; 2]) -> impl Iterator<Item = [u64; 2]> {
        let at = move |n: u64| n * JUMP % self.len();
        (0..self.len()).map(move |n| [at(n) / self.edge * rows, at(n) % self.edge * columns])
    }
}

pub(super) fn blocks(ground: &Ground) -> Square {
    Square::new(ground.times(100_000))
}

/// Writes all blocks; the first element of each is its number.
pub(super) fn write_blocks(data: &Dataset, square: Square) -> Result<()> {
    let mut values: Vec<u64> = (0..BLOCK_LEN as u64).collect();
    for (number, start) in square.starts(BLOCK).enumerate() {
        values[0] = number as u64;
        data.write_slice(Selection::block(&start, &BLOCK), &values)?;
    }
    Ok(())
}

/// A file of all blocks, at a location.
pub(super) fn make_blocks(location: &str, square: Square) -> Result<()> {
    let file = File::options().create().open(location)?;
    let data = file.new_dataset::<u64>().shape(&square.shape(BLOCK)).contiguous().create("data")?;
    write_blocks(&data, square)?;
    Ok(file.close()?)
}

/// A sum over all elements of a dataset.
pub(super) fn total(location: &str) -> Result<u64> {
    let data = File::open(location)?.dataset("data")?;
    let rows = data.shape()?[0];
    (0..rows).step_by(256).try_fold(0u64, |total, row| {
        let values = data.read_slice::<u64>((row..rows.min(row + 256), ..))?;
        Ok(total.wrapping_mul(3).wrapping_add(sum(bytes(&values))))
    })
}

fn scatter(side: Side, ground: &Ground) -> Result<Done> {
    let (path, square) = (ground.file(&format!("blocks-{side}")), blocks(ground));
    let (len, shape) = (square.len(), square.shape(BLOCK));
    let mut values: Vec<u64> = (0..BLOCK_LEN as u64).collect();
    let done = match side {
        Side::H5live => {
            let file = File::options().create().open(&*log(&path))?;
            let data = file.new_dataset::<u64>().shape(&shape).contiguous().create("data")?;
            timed(len, || {
                write_blocks(&data, square)?;
                drop(data);
                Ok(file.close()?)
            })?
        }
        Side::Libhdf5 => {
            let file = peer::File::create(&path)?;
            // Of all sizes of chunks and caches, this is fastest: no chunk is written before the end.
            let cache = square.bytes(BLOCK) as usize * 5 / 4;
            let make = Make { dims: &shape, chunk: &[256, 512], cache, ..Make::default() };
            let data = file.create_dataset("data", Type::U64, &make)?;
            timed(len, || {
                let numbered = square.starts(BLOCK).enumerate().map(|(number, start)| (number as u64, start));
                data.write_blocks(Type::U64, &BLOCK, numbered, &mut values)?;
                drop(data);
                drop(file);
                Ok(())
            })?
        }
        _ => {
            let file = fs::File::create(&path)?;
            let mut gathered = Vec::with_capacity(GATHERED + values.len() * 8);
            let mut at = 0;
            timed(len, || {
                for number in 0..len {
                    values[0] = number;
                    gathered.extend_from_slice(bytes(&values));
                    if gathered.len() >= GATHERED || number + 1 == len {
                        file.write_all_at(&gathered, at)?;
                        at += gathered.len() as u64;
                        gathered.clear();
                    }
                }
                Ok(())
            })?
        }
    }
    .0;
    finish(done, side, &path, square.bytes(BLOCK))
}

/// Notes what a side has written, and removes it.
fn finish(done: Done, side: Side, path: &Path, data: u64) -> Result<Done> {
    let done = done.size_of(path, data)?;
    let sum = match side {
        Side::Bare => 0,
        Side::H5live => total(&log(path))?,
        _ => total(&path.display().to_string())?,
    };
    fs::remove_file(path)?;
    Ok(done.sum(sum))
}

/// Writes single elements; libhdf5 into chunks of these sides that all stay in its cache, or a contiguous dataset.
fn points(chunk: &[u64], side: Side, ground: &Ground) -> Result<Done> {
    // One point in each cell of so many elements.
    const CELL: [u64; 2] = [8, 8];
    let (path, square) = (ground.file(&format!("points-{side}")), Square::new(ground.times(1_000_000)));
    let (len, shape) = (square.len(), square.shape(CELL));
    let done = match side {
        Side::H5live => {
            let file = File::options().create().open(&*log(&path))?;
            let data = file.new_dataset::<u64>().shape(&shape).contiguous().create("data")?;
            timed(len, || {
                for (number, [row, column]) in square.starts(CELL).enumerate() {
                    data.write_slice((row, column), &[number as u64])?;
                }
                drop(data);
                Ok(file.close()?)
            })?
        }
        _ => {
            let file = peer::File::create(&path)?;
            let cache = square.bytes(CELL) as usize * 5 / 4;
            let make = Make { dims: &shape, chunk, cache, ..Make::default() };
            let data = file.create_dataset("data", Type::U64, &make)?;
            timed(len, || {
                let numbered = square.starts(CELL).enumerate().map(|(number, start)| (number as u64, start));
                data.write_blocks(Type::U64, &[1, 1], numbered, &mut [0])?;
                drop(data);
                drop(file);
                Ok(())
            })?
        }
    }
    .0;
    finish(done, side, &path, len * 8)
}

/// Copies everything of a location to a plain file.
fn replay(from: &str, to: &Path) -> Result<()> {
    let (from, to) = (File::open(from)?, File::create(to)?);
    let mut copy = Copier::new(&from, &to);
    copy.contents(&from.root(), &to.root())?;
    copy.copy_data_and_finish()?;
    Ok(to.close()?)
}

fn run_replay(side: Side, ground: &Ground) -> Result<Done> {
    let (path, square) = (ground.file(&format!("replayed-{side}")), blocks(ground));
    let (done, ()) = timed(square.bytes(BLOCK), || match side {
        Side::H5live => replay(&log(&ground.file("log")), &path),
        _ => Ok(fs::copy(ground.file("plain"), &path).map(drop)?),
    })?;
    let sum = total(&path.display().to_string())?;
    fs::remove_file(path)?;
    Ok(done.sum(sum))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "log-blocks",
        title: "100,000 blocks of 4 KiB, scattered over a dataset of two dimensions, into a log",
        unit: Unit::Things("blocks"),
        aim: 10.0,
        bare_aim: Some(0.8),
        bare_is_bound: true,
        budget: WRITING,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
        run: scatter,
        ..Work::PLAIN
    };
    vec![
        work,
        Work {
            name: "log-points",
            title: "1,000,000 points of 8 bytes, scattered over a dataset of 512 MB, into a log, each by a call of its own (libhdf5: contiguous)",
            unit: Unit::Things("points"),
            aim: 20.0,
            bare_aim: None,
            sides: &[Side::H5live, Side::Libhdf5],
            run: |side, ground| points(&[], side, ground),
            ..work
        },
        Work {
            name: "log-points-cached",
            title: "the same, libhdf5 with chunks of 32 KiB that all stay in its cache",
            aim: 1.0,
            bare_aim: None,
            unit: Unit::Things("points"),
            sides: &[Side::H5live, Side::Libhdf5],
            run: |side, ground| points(&[64, 64], side, ground),
            ..work
        },
        Work {
            name: "log-replay",
            title: "copy of a log of 100,000 blocks to a plain file (bare: copy of that file)",
            unit: Unit::Bytes,
            bare_aim: Some(0.5),
            sides: &[Side::H5live, Side::Bare],
            prepare: |ground| {
                make_blocks(&log(&ground.file("log")), blocks(ground))?;
                replay(&log(&ground.file("log")), &ground.file("plain"))
            },
            run: run_replay,
            ..work
        },
    ]
}
