//! Filtered chunks.

use std::fs;

use h5live::{File, Mode};

use super::alone;
use crate::others;
use crate::peer::{self, Make, Slab, Type};
use crate::work::{Done, Ground, Numbers, READING, Unit, WRITING, Work, bytes, signal, sum, timed};
use crate::{Result, Side};

/// Elements of 4 bytes: chunks of 256 KiB.
const CHUNK: u64 = 64 << 10;
const DEFLATE: &[(i32, &[u32])] = &[(2, &[4]), (1, &[4])];
const PIECE: u64 = 4 << 10;

fn elements(ground: &Ground) -> u64 {
    ground.times(256) * CHUNK
}

fn write(side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (ground.file(&format!("deflate-{side}")), elements(ground));
    let values = signal(len as usize);
    let done = match side {
        Side::H5live => timed(len * 4, || {
            let file = File::options().mode(Mode::Create).open(&path)?;
            let data =
                file.new_dataset::<i32>().shape(&[len]).chunk_shape(&[CHUNK]).shuffle().deflate(4).create("data")?;
            data.write(&values)?;
            Ok(file.close()?)
        })?,
        Side::Bare => return alone::encode(&ground.file("deflate"), CHUNK, &values),
        _ if side.is_crate() => timed(len * 4, || others::write_deflate(side, &path, CHUNK, &values))?,
        _ => timed(len * 4, || {
            let file = peer::File::create(&path)?;
            let make = Make { dims: &[len], chunk: &[CHUNK], filters: DEFLATE, ..Make::default() };
            file.create_dataset("data", Type::I32, &make)?.write_all(Type::I32.id(), &values)
        })?,
    }
    .0;
    let read = File::open(&path)?.dataset("data")?.read::<i32>()?;
    let done = done.size_of(&path, len * 4)?.sum(sum(bytes(&read)));
    fs::remove_file(path)?;
    Ok(done)
}

fn prepare(ground: &Ground) -> Result<()> {
    let len = elements(ground);
    let file = peer::File::create(&ground.file("deflate"))?;
    let make = Make { dims: &[len], chunk: &[CHUNK], filters: DEFLATE, ..Make::default() };
    file.create_dataset("data", Type::I32, &make)?.write_all(Type::I32.id(), &signal(len as usize))
}

fn read(side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (ground.file("deflate"), elements(ground));
    let mut values = vec![0i32; len as usize];
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset("data")?;
            timed(len * 4, || Ok(data.read_into(.., &mut values)?))?
        }
        Side::Bare => (alone::decode(&path, CHUNK, &mut values)?, ()),
        _ if side.is_crate() => {
            let data = others::reader(side, &path)?;
            let (done, read) = timed(len * 4, || data.whole(&mut values))?;
            values = read;
            (done, ())
        }
        _ => {
            let file = peer::File::open(&path)?;
            let data = file.dataset("data", peer::NO_CACHE)?;
            timed(len * 4, || data.read_all(Type::I32.id(), &mut values))?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

fn random(side: Side, ground: &Ground) -> Result<Done> {
    let (path, len, times) = (ground.file("deflate"), elements(ground), ground.times(8_000));
    let mut values = vec![0i32; PIECE as usize];
    let (mut numbers, mut total) = (Numbers::new(), 0u64);
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset("data")?;
            timed(times, || {
                for _ in 0..times {
                    let at = numbers.below(len - PIECE);
                    data.read_into(at..at + PIECE, &mut values)?;
                    total = total.wrapping_add(sum(bytes(&values)));
                }
                Ok(())
            })?
        }
        _ if side.is_crate() => {
            let data = others::reader(side, &path)?;
            timed(times, || {
                for _ in 0..times {
                    data.part(numbers.below(len - PIECE), &mut values)?;
                    total = total.wrapping_add(sum(bytes(&values)));
                }
                Ok(())
            })?
        }
        _ => {
            let file = peer::File::open(&path)?;
            // As much as h5live's own cache of decoded chunks.
            let data = file.dataset("data", 32 << 20)?;
            timed(times, || {
                for _ in 0..times {
                    let at = numbers.below(len - PIECE);
                    data.read_slab(Type::I32, &Slab { start: &[at], stride: &[], count: &[PIECE] }, &mut values)?;
                    total = total.wrapping_add(sum(bytes(&values)));
                }
                Ok(())
            })?
        }
    }
    .0;
    Ok(done.sum(total))
}

/// Those that read whole and from a disk; the codec alone does neither.
const COLD: &[Side] = &[Side::H5live, Side::Libhdf5, Side::RustHdf5, Side::Hdf5Reader];

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "deflate-write",
        title: "write deflate(4)+shuffle, 256 KiB chunks",
        unit: Unit::Bytes,
        aim: 6.0,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare, Side::RustHdf5, Side::Hdf5Pure],
        prepare,
        budget: WRITING,
        run: write,
        ..Work::PLAIN
    };
    let whole = Work {
        name: "deflate-read",
        title: "read deflate(4)+shuffle, whole",
        aim: 4.0,
        budget: READING,
        sides: &Side::ALL,
        prepare,
        run: read,
        ..work
    };
    vec![
        work,
        whole,
        Work {
            name: "deflate-read-cold",
            title: "read deflate(4)+shuffle, whole, cold",
            aim: 1.0,
            cold: true,
            sides: COLD,
            ..whole
        },
        Work {
            name: "deflate-random",
            title: "read deflate(4)+shuffle, random 16 KiB",
            sides: &[Side::H5live, Side::Libhdf5, Side::RustHdf5, Side::Hdf5Pure, Side::Hdf5Reader],
            unit: Unit::Things("reads"),
            aim: 3.0,
            run: random,
            ..whole
        },
    ]
}
