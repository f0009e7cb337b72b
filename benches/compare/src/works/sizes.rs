//! Throughput against the size of chunks, for the plots.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use h5live::File;

use super::append::{self, Append};
use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, bytes, signal, sum, timed};
use crate::{Result, Side};

const ALL: &[Side] = &[Side::H5live, Side::Libhdf5, Side::Bare];
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const DEFLATE: &[(i32, &[u32])] = &[(2, &[4]), (1, &[4])];

/// Whole chunks, a flush after each: as many as make 256 MiB, though not more than 20,000.
fn append(side: Side, ground: &Ground) -> Result<Done> {
    let elements = ground.chunk / 8;
    let times = (256 * MIB / ground.chunk).min(20_000);
    let done = append::run(Append { block: elements, chunk: elements, every: 1, times, is_live: true }, side, ground)?;
    Ok(Done { units: done.units * ground.chunk, ..done })
}

/// Bytes of a dataset of whole chunks, as near to `len` as they come.
fn bytes_of(len: u64, ground: &Ground) -> u64 {
    ground.times(len / ground.chunk) * ground.chunk
}

fn path(name: &str, ground: &Ground) -> PathBuf {
    ground.file(&format!("{name}-{}", ground.chunk))
}

fn make(name: &str, filters: &[(i32, &[u32])], len: u64, ground: &Ground) -> Result<()> {
    let len = bytes_of(len, ground) / 4;
    let make = Make { dims: &[len], chunk: &[ground.chunk / 4], filters, ..Make::default() };
    let file = peer::File::create(&path(name, ground))?;
    file.create_dataset("data", Type::I32, &make)?.write_all(Type::I32.id(), &signal(len as usize))
}

fn read(name: &str, len: u64, side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (path(name, ground), bytes_of(len, ground));
    let mut values = vec![1i32; (len / 4) as usize];
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset("data")?;
            timed(len, || Ok(data.read_into(.., &mut values)?))?
        }
        Side::Libhdf5 => {
            let file = peer::File::open(&path)?;
            // Each chunk is wanted once; it need only fit.
            let data = file.dataset("data", peer::NO_CACHE)?;
            timed(len, || data.read_all(Type::I32.id(), &mut values))?
        }
        _ => {
            let file = fs::File::open(&path)?;
            let into: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
            let skip = file.metadata()?.len().saturating_sub(len);
            timed(len, || {
                let mut pieces = into.chunks_mut(ground.chunk as usize).zip((skip..).step_by(ground.chunk as usize));
                Ok(pieces.try_for_each(|(piece, at)| file.read_exact_at(piece, at))?)
            })?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

const PLAIN: u64 = 256 * MIB;
const FILTERED: u64 = 64 * MIB;

pub fn works() -> Vec<Work> {
    let append = Work {
        name: "append-sizes",
        title: "SWMR append of whole chunks, flush each",
        budget: WRITING,
        chunks: &[KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB],
        sides: ALL,
        unit: Unit::Bytes,
        run: append,
        ..Work::PLAIN
    };
    let read = Work {
        name: "read-sizes",
        title: "read whole, unfiltered chunks, warm",
        unit: Unit::Bytes,
        chunks: &[4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB],
        sides: ALL,
        prepare: |ground| make("sizes", &[], PLAIN, ground),
        run: |side, ground| read("sizes", PLAIN, side, ground),
        ..Work::PLAIN
    };
    let deflate = Work {
        name: "deflate-sizes",
        title: "read whole, deflate(4)+shuffle, warm",
        sides: &[Side::H5live, Side::Libhdf5],
        prepare: |ground| make("deflate-sizes", DEFLATE, FILTERED, ground),
        run: |side, ground| self::read("deflate-sizes", FILTERED, side, ground),
        ..read
    };
    vec![append, read, deflate]
}
