//! Conversion on the way to memory.

use h5live::{File, H5Type};
use rayon::prelude::*;

use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, Work, bytes, sum, timed};
use crate::{Result, Side};

/// Elements that a thread converts at once.
const PIECE: usize = 64 << 10;

fn elements(ground: &Ground) -> u64 {
    ground.times(16 << 20)
}

fn prepare(ground: &Ground) -> Result<()> {
    let len = elements(ground);
    let file = peer::File::create(&ground.file("convert"))?;
    let make = Make { dims: &[len], ..Make::default() };
    let values: Vec<u32> = (0..len).map(|i| (i as f32 / 7.0).to_bits().to_be()).collect();
    file.create_dataset("f32be", Type::F32Be, &make)?.write_all(Type::F32Be.id(), &values)?;
    let values: Vec<i16> = (0..len).map(|i| i as i16).collect();
    file.create_dataset("i16", Type::I16, &make)?.write_all(Type::I16.id(), &values)?;
    // Records of 32 bytes, of which two fields are read.
    let records = len / 8;
    let whole = peer::compound(
        32,
        &[("a", 0, Type::F64), ("b", 8, Type::I32), ("c", 12, Type::F32), ("d", 16, Type::F64), ("e", 24, Type::U64)],
    )?;
    let values: Vec<u64> = (0..records * 4).collect();
    let make = Make { dims: &[records], ..Make::default() };
    peer::Dataset::create_in(file.id(), "records", whole.0, &make)?.write_all(whole.0, &values)
}

fn number<T: H5Type + bytemuck::Pod + Default>(name: &str, type_: Type, side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (ground.file("convert"), elements(ground));
    let mut values = vec![T::default(); len as usize];
    // The memory is there before the clock runs.
    values.fill(bytemuck::Zeroable::zeroed());
    bytemuck::cast_slice_mut::<T, u8>(&mut values).iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset(name)?;
            timed(len, || Ok(data.read_into(.., &mut values)?))?
        }
        _ => {
            let file = peer::File::open(&path)?;
            let data = file.dataset(name, 0)?;
            timed(len, || data.read_all(type_.id(), &mut values))?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

/// What all cores do who convert as many numbers that are in memory already, in pieces that their caches hold.
fn bare_i16(ground: &Ground) -> Result<Done> {
    let len = elements(ground);
    let source: Vec<i16> = (0..len).map(|i| i as i16).collect();
    let mut values = vec![1f32; len as usize];
    rayon::broadcast(|_| ());
    let (done, ()) = timed(len, || {
        let pieces = values.par_chunks_mut(PIECE).zip(source.par_chunks(PIECE));
        pieces.for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(to, from)| *to = f32::from(*from)));
        Ok(())
    })?;
    Ok(done.sum(sum(bytes(&values))))
}

/// The two fields that are read.
#[derive(Debug, Clone, Copy, Default, H5Type)]
#[repr(C)]
struct Pair {
    b: i32,
    d: f64,
}

fn subset(side: Side, ground: &Ground) -> Result<Done> {
    let (path, len) = (ground.file("convert"), elements(ground) / 8);
    let mut values = vec![Pair { b: 1, d: 1.0 }; len as usize];
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset("records")?;
            timed(len, || Ok(data.read_into(.., &mut values)?))?
        }
        _ => {
            let file = peer::File::open(&path)?;
            let data = file.dataset("records", 0)?;
            let wanted = peer::compound(16, &[("b", 0, Type::I32), ("d", 8, Type::F64)])?;
            timed(len, || data.read_all(wanted.0, &mut values))?
        }
    }
    .0;
    Ok(done.sum(values.iter().fold(0, |sum, pair| sum.rotate_left(1) ^ pair.b as u64 ^ pair.d.to_bits())))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "f32be-f64",
        title: "conversion on read, f32be to f64",
        unit: Unit::Things("elements"),
        aim: 3.0,
        prepare,
        run: |side, ground| number::<f64>("f32be", Type::F64, side, ground),
        ..Work::PLAIN
    };
    vec![
        work,
        Work {
            name: "i16-f32",
            title: "conversion on read, i16 to f32",
            sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
            run: |side, ground| match side {
                Side::Bare => bare_i16(ground),
                _ => number::<f32>("i16", Type::F32, side, ground),
            },
            ..work
        },
        Work { name: "subset", title: "conversion on read, two of five fields of a compound", run: subset, ..work },
    ]
}
