//! Selections in two and three dimensions.

use h5live::model::Hyperslab;
use h5live::{File, Selection};

use crate::peer::{self, Make, Slab, Type};
use crate::work::{Done, Ground, Numbers, Unit, Work, bytes, sum, timed};
use crate::{Result, Side};

/// A square of 4-byte elements in chunks of 64 KiB.
const SQUARE: [u64; 2] = [4096, 4096];
const CUBE: [u64; 3] = [256, 256, 256];

fn prepare(ground: &Ground) -> Result<()> {
    let file = peer::File::create(&ground.file("select"))?;
    let values: Vec<i32> = (0..SQUARE.iter().product::<u64>() as i32).collect();
    let make = Make { dims: &SQUARE, chunk: &[128, 128], ..Make::default() };
    file.create_dataset("square", Type::I32, &make)?.write_all(Type::I32.id(), &values)?;
    let make = Make { dims: &CUBE, chunk: &[32, 32, 16], ..Make::default() };
    file.create_dataset("cube", Type::I32, &make)?.write_all(Type::I32.id(), &values)
}

/// What is selected, as both sides say it.
struct Choice {
    name: &'static str,
    start: &'static [u64],
    stride: &'static [u64],
    count: &'static [u64],
}

/// Every third column of every second row.
const STRIDED: Choice = Choice { name: "square", start: &[1, 1], stride: &[2, 3], count: &[2000, 1300] };
/// Every second element along each side.
const STRIDED_CUBE: Choice = Choice { name: "cube", start: &[0, 1, 0], stride: &[2, 2, 2], count: &[128, 127, 128] };
/// Columns: against the order in which elements lie.
const COLUMNS: Choice = Choice { name: "square", start: &[0, 100], stride: &[1, 1], count: &[4096, 16] };
/// A sheet of the cube, across the order.
const SHEET: Choice = Choice { name: "cube", start: &[0, 0, 77], stride: &[1, 1, 1], count: &[256, 256, 1] };

fn slab(choice: &Choice, times: u64, side: Side, ground: &Ground) -> Result<Done> {
    let (path, times) = (ground.file("select"), ground.times(times));
    let len = choice.count.iter().product::<u64>();
    let mut values = vec![0i32; len as usize];
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset(choice.name)?;
            let (start, stride, count) = (choice.start.into(), choice.stride.into(), choice.count.into());
            let ones = choice.count.iter().map(|_| 1).collect();
            let selection = Selection::Hyperslab(Hyperslab { start, stride, count, block: ones });
            timed(times * len, || (0..times).try_for_each(|_| Ok(data.read_into(&selection, &mut values)?)))?
        }
        _ => {
            let file = peer::File::open(&path)?;
            let data = file.dataset(choice.name, 64 << 20)?;
            let slab = Slab { start: choice.start, stride: choice.stride, count: choice.count };
            timed(times * len, || (0..times).try_for_each(|_| data.read_slab(Type::I32, &slab, &mut values)))?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

fn points(dims: &[u64], name: &str, side: Side, ground: &Ground) -> Result<Done> {
    let (path, len, times) = (ground.file("select"), 100_000, ground.times(10));
    let mut numbers = Numbers::new();
    let coordinates: Vec<u64> =
        (0..len).flat_map(|_| dims.iter().map(|n| numbers.below(*n)).collect::<Vec<_>>()).collect();
    let mut values = vec![0i32; len];
    let done = match side {
        Side::H5live => {
            let data = File::open(&path)?.dataset(name)?;
            timed(times * len as u64, || {
                (0..times).try_for_each(|_| {
                    let points = coordinates.chunks(dims.len()).map(Into::into).collect();
                    Ok(data.read_into(Selection::Points(points), &mut values)?)
                })
            })?
        }
        _ => {
            let file = peer::File::open(&path)?;
            let data = file.dataset(name, 64 << 20)?;
            timed(times * len as u64, || {
                (0..times).try_for_each(|_| data.read_points(Type::I32, &coordinates, &mut values))
            })?
        }
    }
    .0;
    Ok(done.sum(sum(bytes(&values))))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "strided-2d",
        title: "strided selection, 2-D",
        unit: Unit::Things("elements"),
        aim: 2.0,
        prepare,
        run: |side, ground| slab(&STRIDED, 5, side, ground),
        ..Work::PLAIN
    };
    vec![
        work,
        Work {
            name: "strided-3d",
            title: "strided selection, 3-D",
            run: |side, ground| slab(&STRIDED_CUBE, 5, side, ground),
            ..work
        },
        Work {
            name: "columns-2d",
            title: "columns, against the order of storage, 2-D",
            run: |side, ground| slab(&COLUMNS, 50, side, ground),
            ..work
        },
        Work {
            name: "sheet-3d",
            title: "sheet, against the order of storage, 3-D",
            run: |side, ground| slab(&SHEET, 50, side, ground),
            ..work
        },
        Work {
            name: "points-2d",
            title: "100,000 points, 2-D",
            run: |side, ground| points(&SQUARE, "square", side, ground),
            ..work
        },
        Work {
            name: "points-3d",
            title: "100,000 points, 3-D",
            run: |side, ground| points(&CUBE, "cube", side, ground),
            ..work
        },
    ]
}
