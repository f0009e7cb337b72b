//! The key-value store: chunks and objects. The bare machine is LMDB with the same values.

use std::path::{Path, PathBuf};

use h5live::File;

use crate::lmdb::Lmdb;
use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, READING, Unit, WRITING, Work, bytes, sum, timed};
use crate::{Result, Side};

/// Elements of a chunk: 64 KiB.
const CHUNK_LEN: u64 = 8192;
/// Chunks that become visible together.
const TOGETHER: u64 = 16;
/// No number of chunks has this prime as a factor: its multiples jump to each of them once.
const JUMP: u64 = 31_337;
/// Elements of a small dataset.
const SMALL_LEN: usize = 100;
/// Objects that become visible together.
const OBJECTS_TOGETHER: u64 = 1000;

/// The location of a key-value store in a folder.
pub(super) fn kv(path: &Path) -> String {
    format!("kv:{}", path.display())
}

/// Removes what a side has written: a file, or a folder.
pub(super) fn remove(path: &Path) -> Result<()> {
    if path.is_dir() { Ok(std::fs::remove_dir_all(path)?) } else { Ok(std::fs::remove_file(path)?) }
}

fn chunks(ground: &Ground) -> u64 {
    ground.times(5_000)
}

fn path(ground: &Ground, name: &str, side: Side) -> PathBuf {
    ground.file(&format!("{name}-{side}"))
}

/// Writes all chunks in an order that jumps; the first element of each is its number.
fn write_chunks(side: Side, path: &Path, number: u64) -> Result<Done> {
    let mut values: Vec<u64> = (0..CHUNK_LEN).collect();
    let order = || (0..number).map(|n| (n, n * JUMP % number));
    let done = match side {
        Side::H5live => {
            let file = File::options().create().open(&*kv(path))?;
            let new = file.new_dataset::<u64>().shape(&[number * CHUNK_LEN]).chunk_shape(&[CHUNK_LEN]);
            let data = new.create("data")?;
            timed(number * CHUNK_LEN * 8, || {
                for (n, at) in order() {
                    values[0] = at;
                    data.write_slice(at * CHUNK_LEN..(at + 1) * CHUNK_LEN, &values)?;
                    if n % TOGETHER == TOGETHER - 1 {
                        file.flush()?;
                    }
                }
                // Closing waits for the disk, which nobody else does here.
                Ok(file.flush()?)
            })?
        }
        Side::Libhdf5 => {
            let file = peer::File::create(path)?;
            let make = Make { dims: &[number * CHUNK_LEN], chunk: &[CHUNK_LEN], ..Make::default() };
            let data = file.create_dataset("data", Type::U64, &make)?;
            timed(number * CHUNK_LEN * 8, || {
                for (n, at) in order() {
                    values[0] = at;
                    data.write_block(Type::U64, &[at * CHUNK_LEN], &[CHUNK_LEN], &values)?;
                    if n % TOGETHER == TOGETHER - 1 {
                        file.flush()?;
                    }
                }
                drop(data);
                drop(file);
                Ok(())
            })?
        }
        _ => {
            let lmdb = Lmdb::with_checksums(path)?;
            timed(number * CHUNK_LEN * 8, || {
                let order: Vec<_> = order().collect();
                order.chunks(TOGETHER as usize).try_for_each(|together| {
                    lmdb.write(|batch| {
                        together.iter().try_for_each(|(_, at)| {
                            values[0] = *at;
                            batch.put(&at.to_be_bytes(), bytes(&values))
                        })
                    })
                })
            })?
        }
    };
    Ok(done.0)
}

/// Reads all chunks in another order that jumps, and sums what is in them.
fn read_chunks(side: Side, path: &Path, number: u64) -> Result<Done> {
    let mut values = vec![0u64; CHUNK_LEN as usize];
    let order = || (0..number).map(|n| (n * JUMP + 7) % number);
    let (units, mut total) = (number * CHUNK_LEN * 8, 0u64);
    let mut add = |values: &[u64]| total = total.wrapping_mul(3).wrapping_add(values[0]).wrapping_add(values[9]);
    let done = match side {
        Side::H5live => {
            let data = File::open(&*kv(path))?.dataset("data")?;
            timed(units, || {
                order().try_for_each(|at| {
                    data.read_into(at * CHUNK_LEN..(at + 1) * CHUNK_LEN, &mut values)?;
                    add(&values);
                    Ok(())
                })
            })?
        }
        Side::Libhdf5 => {
            let file = peer::File::open(path)?;
            let data = file.dataset("data", 0)?;
            timed(units, || {
                order().try_for_each(|at| {
                    let slab = peer::Slab { start: &[at * CHUNK_LEN], stride: &[], count: &[CHUNK_LEN] };
                    data.read_slab(Type::U64, &slab, &mut values)?;
                    add(&values);
                    Ok(())
                })
            })?
        }
        _ => {
            let lmdb = Lmdb::with_checksums(path)?;
            timed(units, || {
                let state = lmdb.read()?;
                order().try_for_each(|at| {
                    let found = state.get(&at.to_be_bytes())?.unwrap_or_default();
                    bytemuck::cast_slice_mut(&mut values).copy_from_slice(found);
                    add(&values);
                    Ok(())
                })
            })?
        }
    };
    Ok(done.0.sum(total))
}

fn run_write(side: Side, ground: &Ground) -> Result<Done> {
    let (path, number) = (path(ground, "kv-chunks", side), chunks(ground));
    let done = write_chunks(side, &path, number)?;
    let sum = read_chunks(side, &path, number)?.sum;
    remove(&path)?;
    Ok(done.sum(sum))
}

fn prepare_read(ground: &Ground) -> Result<()> {
    [Side::H5live, Side::Libhdf5, Side::Bare].into_iter().try_for_each(|side| {
        let path = path(ground, "kv-read", side);
        if path.exists() {
            remove(&path)?;
        }
        write_chunks(side, &path, chunks(ground)).map(drop)
    })
}

fn objects(ground: &Ground) -> u64 {
    ground.times(100_000)
}

fn small_values(number: u64) -> Vec<f64> {
    (0..SMALL_LEN).map(|at| (number + at as u64) as f64).collect()
}

/// Creates small datasets with two attributes each.
fn create(side: Side, ground: &Ground) -> Result<Done> {
    let (path, number) = (path(ground, "kv-objects", side), objects(ground));
    let done = match side {
        Side::H5live => timed(number, || {
            let file = File::options().create().open(&*kv(&path))?;
            for n in 0..number {
                let data = file.new_dataset::<f64>().create_with_data(&format!("data {n}"), &small_values(n))?;
                data.new_attribute("number").write_scalar(&n)?;
                data.new_attribute("scale").write_scalar(&0.5)?;
                if n % OBJECTS_TOGETHER == OBJECTS_TOGETHER - 1 {
                    file.flush()?;
                }
            }
            file.flush()?;
            // It is closed afterwards: that waits for the disk, which libhdf5 does not.
            Ok(Some(file))
        })?,
        _ => timed(number, || {
            let file = peer::File::create(&path)?;
            for n in 0..number {
                let make = Make { dims: &[SMALL_LEN as u64], ..Make::default() };
                let data = file.create_dataset(&format!("data {n}"), Type::F64, &make)?;
                data.write_all(Type::F64.id(), &small_values(n))?;
                data.set_attribute("number", Type::U64, &[n])?;
                data.set_attribute("scale", Type::F64, &[0.5])?;
                if n % OBJECTS_TOGETHER == OBJECTS_TOGETHER - 1 {
                    file.flush()?;
                }
            }
            Ok(None)
        })?,
    };
    let (done, open) = done;
    open.map_or(Ok(()), |file: File| file.close())?;
    let file = if side == Side::H5live { File::open(&*kv(&path))? } else { File::open(&path)? };
    let mut total = 0u64;
    for n in (0..number).step_by(97) {
        let data = file.dataset(&format!("data {n}"))?;
        let values = data.read::<f64>()?;
        total = total.wrapping_mul(3).wrapping_add(sum(bytes(&values)));
        total = total.wrapping_add(data.attribute("number")?.read_scalar::<u64>()?);
        total = total.wrapping_add(data.attribute("scale")?.read_scalar::<f64>()?.to_bits());
    }
    drop(file);
    remove(&path)?;
    Ok(done.sum(total))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "kv-write",
        title: "key-value store: 5,000 chunks of 64 KiB put at random, visible after each 16 (bare: LMDB with checksums, the same values)",
        aim: 2.0,
        bare_aim: Some(0.8),
        bare_is_bound: true,
        budget: WRITING,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
        run: run_write,
        ..Work::PLAIN
    };
    vec![
        work,
        Work {
            name: "kv-read",
            title: "the same chunks read at random (bare: LMDB with checksums, copied)",
            aim: 5.0,
            // What LMDB has mapped counts as memory.
            budget: READING + (400 << 20),
            prepare: prepare_read,
            run: |side, ground| read_chunks(side, &path(ground, "kv-read", side), chunks(ground)),
            ..work
        },
        Work {
            name: "kv-create",
            title: "key-value store: create 100,000 datasets of 100 f64 with two attributes, visible after each 1,000",
            unit: Unit::Things("datasets"),
            aim: 3.0,
            bare_aim: None,
            sides: &[Side::H5live, Side::Libhdf5],
            run: create,
            ..work
        },
    ]
}
