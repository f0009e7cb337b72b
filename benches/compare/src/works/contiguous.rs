//! Unfiltered data.

use std::fs;
use std::os::unix::fs::FileExt;

use h5live::File;

use crate::others;
use crate::peer::{self, Make, Slab, Type};
use crate::work::{Done, Ground, Numbers, Unit, Work, bytes, sum, timed};
use crate::{Result, Side};

/// Elements of 4 bytes: chunks of 1 MiB.
const CHUNK: u64 = 256 << 10;
const PIECE: u64 = 4 << 10;

fn elements(ground: &Ground) -> u64 {
    ground.times(1024) * CHUNK
}

fn make(ground: &Ground, name: &str, chunk: &[u64]) -> Result<()> {
    let len = elements(ground);
    let file = peer::File::create(&ground.file(name))?;
    let data = file.create_dataset("data", Type::I32, &Make { dims: &[len], chunk, ..Make::default() })?;
    let mut block: Vec<i32> = (0..CHUNK as i32).collect();
    for at in (0..len).step_by(CHUNK as usize) {
        block[0] = at as i32;
        data.write_block(Type::I32, &[at], &[CHUNK], &block)?;
    }
    Ok(())
}

fn whole(side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (ground.file("contiguous"), elements(ground));
    let mut values = vec![1i32; len as usize];
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset("data")?;
            timed(len * 4, || Ok(data.read_into(.., &mut values)?))?
        }
        Side::Libhdf5 => {
            let file = peer::File::open(&path)?;
            let data = file.dataset("data", 0)?;
            timed(len * 4, || data.read_all(Type::I32.id(), &mut values))?
        }
        _ if side.is_crate() => {
            let data = others::reader(side, &path)?;
            let (done, read) = timed(len * 4, || data.whole(&mut values))?;
            values = read;
            (done, ())
        }
        _ => {
            let file = fs::File::open(&path)?;
            let skip = file.metadata()?.len() - len * 4;
            let into: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
            timed(len * 4, || Ok(file.read_exact_at(into, skip)?))?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

/// Sums one element of each page, where it is or after reading all.
fn view(side: Side, ground: &Ground) -> Result<Done> {
    const STEP: usize = 1024;
    let (path, len) = (ground.file("contiguous"), elements(ground));
    let total = |values: &[i32]| values.iter().step_by(STEP).fold(0u64, |sum, value| sum.wrapping_add(*value as u64));
    let (done, sum) = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset("data")?;
            timed(len * 4, || {
                let view = data.view::<i32>()?;
                // SAFETY: nobody changes the file of this run.
                Ok(total(unsafe { view.as_slice() }))
            })?
        }
        _ => {
            let file = peer::File::open(&path)?;
            let data = file.dataset("data", 0)?;
            let mut values = vec![1i32; len as usize];
            timed(len * 4, || data.read_all(Type::I32.id(), &mut values).map(|()| total(&values)))?
        }
    };
    Ok(done.sum(sum))
}

/// Reads pieces at so many random places; libhdf5 with so many bytes of chunk cache.
fn random((times, cache): (u64, usize), side: Side, ground: &Ground) -> Result<Done> {
    let (path, len, times) = (ground.file("chunks"), elements(ground), ground.times(times));
    let mut values = vec![0i32; PIECE as usize];
    let (mut numbers, mut total) = (Numbers::new(), 0u64);
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset("data")?;
            timed(times, || {
                for _ in 0..times {
                    let at = numbers.below(len - PIECE);
                    data.read_into(at..at + PIECE, &mut values)?;
                    total = total.wrapping_add(values[0] as u64 ^ values[PIECE as usize - 1] as u64);
                }
                Ok(())
            })?
        }
        Side::Libhdf5 => {
            let file = peer::File::open(&path)?;
            let data = file.dataset("data", cache)?;
            timed(times, || {
                for _ in 0..times {
                    let at = numbers.below(len - PIECE);
                    data.read_slab(Type::I32, &Slab { start: &[at], stride: &[], count: &[PIECE] }, &mut values)?;
                    total = total.wrapping_add(values[0] as u64 ^ values[PIECE as usize - 1] as u64);
                }
                Ok(())
            })?
        }
        _ if side.is_crate() => {
            let data = others::reader(side, &path)?;
            timed(times, || {
                for _ in 0..times {
                    data.part(numbers.below(len - PIECE), &mut values)?;
                    total = total.wrapping_add(values[0] as u64 ^ values[PIECE as usize - 1] as u64);
                }
                Ok(())
            })?
        }
        _ => {
            let file = fs::File::open(&path)?;
            timed(times, || {
                for _ in 0..times {
                    let at = numbers.below(len - PIECE);
                    file.read_exact_at(bytemuck::cast_slice_mut(&mut values), at * 4)?;
                }
                Ok(())
            })?
        }
    }
    .0;
    Ok(done.sum(total))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "contiguous",
        title: "read contiguous 1 GiB into a warm buffer",
        unit: Unit::Bytes,
        aim: 1.0,
        sides: &Side::ALL,
        prepare: |ground| make(ground, "contiguous", &[]),
        run: whole,
        ..Work::PLAIN
    };
    let random = Work {
        name: "chunks-random",
        title: "random 16 KiB from unfiltered 1 MiB chunks",
        unit: Unit::Things("reads"),
        aim: 10.0,
        bare_is_bound: true,
        prepare: |ground| make(ground, "chunks", &[CHUNK]),
        // Pieces of chunks that are not kept are read from where they are: nothing is faster for libhdf5.
        run: |side, ground| random((100_000, peer::NO_CACHE), side, ground),
        ..work
    };
    vec![
        work,
        Work { name: "contiguous-cold", title: "read contiguous 1 GiB, cold", cold: true, ..work },
        Work {
            name: "view",
            title: "one element of each page of contiguous 1 GiB, as a view (libhdf5: read)",
            sides: &[Side::H5live, Side::Libhdf5],
            run: view,
            ..work
        },
        random,
        Work {
            name: "chunks-random-cold",
            title: "random 16 KiB from unfiltered 1 MiB chunks, cold",
            aim: 1.0,
            cold: true,
            run: |side, ground| self::random((4_000, peer::NO_CACHE), side, ground),
            ..random
        },
        Work {
            name: "chunks-random-cached",
            title: "random 16 KiB from unfiltered 1 MiB chunks, libhdf5 with 32 chunks in its cache",
            sides: &[Side::H5live, Side::Libhdf5],
            // What the manual advises for chunks of which parts are wanted again, and what most programs have.
            run: |side, ground| self::random((20_000, 32 << 20), side, ground),
            ..random
        },
    ]
}
