//! Filters beside deflate: those of hdf5plugin, which libhdf5 loads from the folder that `HDF5_PLUGIN_PATH` names.

use std::fs;
use std::path::Path;

use h5live::model::FilterSpec;
use h5live::{File, Mode};

use super::alone;
use crate::others;
use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, bytes, signal, sum, timed};
use crate::{Error, Result, Side};

/// Elements of 4 bytes: chunks of 256 KiB.
const CHUNK: u64 = 64 << 10;

/// hdf5-reader says itself which of these filters it has not.
const READERS: &[Side] = &[Side::H5live, Side::Libhdf5, Side::Bare, Side::RustHdf5, Side::Hdf5Reader];
const SIDES: &[Side] = &[Side::H5live, Side::Libhdf5, Side::Bare];

/// A filter with the parameters that a program gives; each side completes them from the dataset.
#[derive(Clone, Copy)]
struct Codec {
    name: &'static str,
    id: u16,
    parameters: &'static [u32],
}

/// Level 3.
const ZSTD: Codec = Codec { name: "zstd", id: 32015, parameters: &[3] };
/// A chunk is a block.
const LZ4: Codec = Codec { name: "lz4", id: 32004, parameters: &[0] };
/// Blocks as large as the filter chooses; then LZ4.
const BITSHUFFLE: Codec = Codec { name: "bitshuffle", id: 32008, parameters: &[0, 2] };
/// Level 5, bytes shuffled, LZ4.
const BLOSC: Codec = Codec { name: "blosc", id: 32001, parameters: &[0, 0, 0, 0, 5, 1, 1] };

fn elements(ground: &Ground) -> u64 {
    ground.times(256) * CHUNK
}

fn with_libhdf5(codec: Codec, path: &Path, values: &[i32]) -> Result<()> {
    let file = peer::File::create(path)?;
    let filters = [(i32::from(codec.id), codec.parameters)];
    let make = Make { dims: &[values.len() as u64], chunk: &[CHUNK], filters: &filters, ..Make::default() };
    file.create_dataset("data", Type::I32, &make)?.write_all(Type::I32.id(), values)
}

fn write(codec: Codec, side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (ground.file(&format!("{}-{side}", codec.name)), elements(ground));
    let values = signal(len as usize);
    let (done, sum) = match side {
        Side::H5live => {
            let filter = FilterSpec { id: codec.id, params: codec.parameters.to_vec(), ..FilterSpec::default() };
            let (done, ()) = timed(len * 4, || {
                let file = File::options().mode(Mode::Create).open(&path)?;
                let data =
                    file.new_dataset::<i32>().shape(&[len]).chunk_shape(&[CHUNK]).filter(filter).create("data")?;
                data.write(&values)?;
                Ok(file.close()?)
            })?;
            // What one has written the other must be able to read.
            let mut read = vec![0i32; len as usize];
            peer::File::open(&path)?.dataset("data", 0)?.read_all(Type::I32.id(), &mut read)?;
            (done, sum(bytes(&read)))
        }
        Side::Bare => (alone::encode(&ground.file(codec.name), CHUNK, &values)?, 0),
        _ => {
            peer::load_filter(codec.id)?;
            let (done, ()) = timed(len * 4, || with_libhdf5(codec, &path, &values))?;
            (done, sum(bytes(&File::open(&path)?.dataset("data")?.read::<i32>()?)))
        }
    };
    if side == Side::Bare {
        return Ok(done);
    }
    let done = done.size_of(&path, len * 4)?.sum(sum);
    fs::remove_file(path)?;
    Ok(done)
}

fn prepare(codec: Codec, ground: &Ground) -> Result<()> {
    if std::env::var_os("HDF5_PLUGIN_PATH").is_none() {
        return Err(Error::Usage("HDF5_PLUGIN_PATH must name the folder of hdf5plugin's filters".to_owned()));
    }
    with_libhdf5(codec, &ground.file(codec.name), &signal(elements(ground) as usize))
}

fn read(codec: Codec, side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (ground.file(codec.name), elements(ground));
    let mut values = vec![1i32; len as usize];
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
            peer::load_filter(codec.id)?;
            let file = peer::File::open(&path)?;
            let data = file.dataset("data", peer::NO_CACHE)?;
            timed(len * 4, || data.read_all(Type::I32.id(), &mut values))?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

/// The works of one codec.
macro_rules! of {
    ($codec:ident, $write:literal, $written:literal, $read:literal, $was_read:literal) => {
        [
            Work {
                name: $write,
                title: $written,
                unit: Unit::Bytes,
                aim: 1.5,
                sides: SIDES,
                budget: WRITING,
                prepare: |ground| prepare($codec, ground),
                run: |side, ground| write($codec, side, ground),
                ..Work::PLAIN
            },
            Work {
                name: $read,
                title: $was_read,
                unit: Unit::Bytes,
                aim: 1.5,
                sides: READERS,
                prepare: |ground| prepare($codec, ground),
                run: |side, ground| read($codec, side, ground),
                ..Work::PLAIN
            },
        ]
    };
}

pub fn works() -> Vec<Work> {
    [
        of!(ZSTD, "zstd-write", "write zstd(3), 256 KiB chunks", "zstd-read", "read zstd, whole"),
        of!(LZ4, "lz4-write", "write lz4, 256 KiB chunks", "lz4-read", "read lz4, whole"),
        of!(
            BITSHUFFLE,
            "bitshuffle-write",
            "write bitshuffle-lz4, 256 KiB chunks",
            "bitshuffle-read",
            "read bitshuffle-lz4, whole"
        ),
        of!(
            BLOSC,
            "blosc-write",
            "write blosc(lz4, 5)+shuffle, 256 KiB chunks",
            "blosc-read",
            "read blosc(lz4, 5)+shuffle, whole"
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
