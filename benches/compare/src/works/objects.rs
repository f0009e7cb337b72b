//! Many objects and links.

use std::fs;
use std::os::unix::fs::FileExt;

use h5live::model::LinkTarget;
use h5live::{File, Mode};

use crate::others;
use crate::peer::{self, Dataset, Make, Type};
use crate::work::{Done, Ground, Numbers, READING, Unit, WRITING, Work, timed};
use crate::{Result, Side};

fn datasets(ground: &Ground) -> u64 {
    ground.times(50_000)
}

fn links(ground: &Ground) -> u64 {
    ground.times(1_000_000)
}

/// Bytes that our file has for each dataset: its header, and its link.
const DATASET_BYTES: usize = 283;
/// Bytes that are read at once of a node, of a link and of a header.
const PART_BYTES: usize = 512;

/// What a program does that stores as many bytes for each dataset, one after the other.
fn bare_create(ground: &Ground) -> Result<Done> {
    let (path, number) = (ground.file("create-bare"), datasets(ground));
    let (done, ()) = timed(number, || {
        let file = fs::File::create(&path)?;
        let part = [7u8; DATASET_BYTES];
        (0..number).try_for_each(|i| Ok(file.write_all_at(&part, i * DATASET_BYTES as u64)?))
    })?;
    let done = done.size_of(&path, number * 16)?;
    fs::remove_file(path)?;
    Ok(done)
}

/// What a program does that knows where each dataset is: it reads a node of the index, the link and the header.
fn bare_open(ground: &Ground) -> Result<Done> {
    let (file, times) = (fs::File::open(ground.file("datasets"))?, datasets(ground));
    let end = file.metadata()?.len().saturating_sub(PART_BYTES as u64).max(1);
    let (mut numbers, mut total, mut part) = (Numbers::new(), 0u64, [0u8; PART_BYTES]);
    let (done, ()) = timed(times, || {
        for _ in 0..times * 3 {
            file.read_exact_at(&mut part, numbers.below(end))?;
            total = total.wrapping_mul(3).wrapping_add(u64::from(part[0]));
        }
        Ok(())
    })?;
    Ok(done.sum(total))
}

fn create(side: Side, ground: &Ground) -> Result<Done> {
    if side == Side::Bare {
        return bare_create(ground);
    }
    let (path, number) = (ground.file(&format!("create-{side}")), datasets(ground));
    let done = match side {
        Side::H5live => timed(number, || {
            let file = File::options().mode(Mode::Create).open(&path)?;
            for i in 0..number as i32 {
                file.new_dataset::<i32>().compact().create_with_data(&format!("dataset {i}"), &[i, 1, 2, 3])?;
            }
            Ok(file.close()?)
        })?,
        _ if side.is_crate() => timed(number, || others::create(side, &path, number))?,
        _ => timed(number, || {
            let file = peer::File::create(&path)?;
            for i in 0..number as i32 {
                let make = Make { dims: &[4], compact: true, ..Make::default() };
                let data = file.create_dataset(&format!("dataset {i}"), Type::I32, &make)?;
                data.write_all(Type::I32.id(), &[i, 1, 2, 3])?;
            }
            Ok(())
        })?,
    }
    .0;
    let file = File::open(&path)?;
    let sum = (0..number).step_by(97).map(|i| file.dataset(&format!("dataset {i}"))?.read::<i32>());
    let sum = sum.sum_values()?;
    let done = done.size_of(&path, number * 16)?.sum(sum);
    fs::remove_file(path)?;
    Ok(done)
}

trait SumValues {
    fn sum_values(self) -> Result<u64>;
}

impl<I: Iterator<Item = h5live::Result<Vec<i32>>>> SumValues for I {
    fn sum_values(mut self) -> Result<u64> {
        Ok(self.try_fold(0u64, |sum, values| values.map(|v| sum * 3 + v[0] as u64))?)
    }
}

fn prepare_datasets(ground: &Ground) -> Result<()> {
    let file = peer::File::create(&ground.file("datasets"))?;
    for i in 0..datasets(ground) as i32 {
        let make = Make { dims: &[4], compact: true, ..Make::default() };
        file.create_dataset(&format!("dataset {i}"), Type::I32, &make)?.write_all(Type::I32.id(), &[i, 1, 2, 3])?;
    }
    Ok(())
}

fn open(side: Side, ground: &Ground) -> Result<Done> {
    if side == Side::Bare {
        return bare_open(ground);
    }
    let (path, number, times) = (ground.file("datasets"), datasets(ground), datasets(ground));
    let (mut numbers, mut total, mut values) = (Numbers::new(), 0u64, [0i32; 4]);
    let done = match side {
        Side::H5live => {
            let file = File::open(&path)?;
            timed(times, || {
                for _ in 0..times {
                    let name = format!("dataset {}", numbers.below(number));
                    file.dataset(&name)?.read_into(.., &mut values)?;
                    total = total.wrapping_mul(3).wrapping_add(values[0] as u64);
                }
                Ok(())
            })?
        }
        _ if side.is_crate() => timed(times, || {
            let file = others::names(side, &path)?;
            for _ in 0..times {
                let values = file.four(&format!("dataset {}", numbers.below(number)))?;
                total = total.wrapping_mul(3).wrapping_add(values[0] as u64);
            }
            Ok(())
        })?,
        _ => {
            let file = peer::File::open(&path)?;
            timed(times, || {
                for _ in 0..times {
                    let name = format!("dataset {}", numbers.below(number));
                    Dataset::open_in(file.id(), &name, 0)?.read_all(Type::I32.id(), &mut values)?;
                    total = total.wrapping_mul(3).wrapping_add(values[0] as u64);
                }
                Ok(())
            })?
        }
    }
    .0;
    Ok(done.sum(total))
}

fn prepare_links(ground: &Ground) -> Result<()> {
    let file = peer::File::create(&ground.file("links"))?;
    peer::soft_links(&file.create_group("group")?, links(ground))
}

fn list(side: Side, ground: &Ground) -> Result<Done> {
    let (path, number) = (ground.file("links"), links(ground));
    let (done, sum) = match side {
        Side::H5live => {
            let group = File::open(&path)?.group("group")?;
            timed(number, || {
                Ok(group.links()?.iter().fold(0u64, |sum, link| {
                    let type_ = match link.target {
                        LinkTarget::Hard(_) => 0,
                        LinkTarget::Soft(_) => 1,
                        _ => 64 & 7,
                    };
                    sum + link.name.as_bytes().len() as u64 * 8 + type_
                }))
            })?
        }
        Side::RustHdf5 => timed(number, || others::rust_hdf5::list_links(&path))?,
        _ => {
            let file = peer::File::open(&path)?;
            let group = file.group("group")?;
            timed(number, || peer::list_links(&group))?
        }
    };
    Ok(done.sum(sum))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "create",
        title: "create 50,000 compact datasets in one group",
        unit: Unit::Things("datasets"),
        aim: 3.0,
        budget: WRITING,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare, Side::RustHdf5, Side::Hdf5Pure],
        run: create,
        ..Work::PLAIN
    };
    vec![
        work,
        Work {
            name: "open",
            title: "open by name and read, random, among 50,000",
            aim: 5.0,
            budget: READING,
            sides: &[Side::H5live, Side::Libhdf5, Side::Bare, Side::RustHdf5, Side::Hdf5Pure, Side::Hdf5Reader],
            prepare: prepare_datasets,
            run: open,
            ..work
        },
        Work {
            name: "list",
            title: "list 1,000,000 links with types",
            unit: Unit::Things("links"),
            aim: 5.0,
            budget: READING,
            sides: &[Side::H5live, Side::Libhdf5, Side::RustHdf5],
            prepare: prepare_links,
            run: list,
            ..work
        },
    ]
}
