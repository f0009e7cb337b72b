//! The crate rust-hdf5.

use std::path::Path;

use rust_hdf5::{H5Dataset, H5File, LinkClass};

use super::{Names, Reader, failed};
use crate::Result;

pub struct Data(H5Dataset);

impl Data {
    pub fn open(path: &Path) -> Result<Self> {
        H5File::open(path).and_then(|file| file.dataset("data")).map(Data).map_err(failed)
    }
}

impl Reader for Data {
    fn whole(&self, warm: &mut Vec<i32>) -> Result<Vec<i32>> {
        self.0.read_raw_into(warm).map_err(failed)?;
        Ok(std::mem::take(warm))
    }

    fn part(&self, at: u64, into: &mut Vec<i32>) -> Result<()> {
        let count = into.len();
        self.0.read_slice_into(into, &[at as usize], &[count]).map_err(failed)
    }
}

pub struct Whole(H5File);

impl Whole {
    pub fn open(path: &Path) -> Result<Self> {
        H5File::open(path).map(Whole).map_err(failed)
    }
}

impl Names for Whole {
    fn four(&self, name: &str) -> Result<[i32; 4]> {
        let mut values = [0; 4];
        let data = self.0.dataset(name).map_err(failed)?;
        data.read_raw_into(&mut values).map_err(failed)?;
        Ok(values)
    }
}

pub fn write_deflate(path: &Path, chunk: u64, values: &[i32]) -> Result<()> {
    let write = || {
        let file = H5File::create(path)?;
        let made = file.new_dataset::<i32>().shape([values.len()]).chunk(&[chunk as usize]).shuffle_deflate(4);
        made.create("data")?.write_raw(values)?;
        file.close_no_sync()
    };
    write().map_err(failed)
}

pub fn create(path: &Path, number: u64) -> Result<()> {
    let make = || {
        let file = H5File::create(path)?;
        for i in 0..number as i32 {
            let made = file.new_dataset::<i32>().shape([4]).compact().create(&format!("dataset {i}"))?;
            made.write_raw(&[i, 1, 2, 3])?;
        }
        file.close_no_sync()
    };
    make().map_err(failed)
}

/// Lists all links of `group` with their types: a sum over them, as [`crate::peer::list_links`] has it.
pub fn list_links(path: &Path) -> Result<u64> {
    let list = || {
        let group = H5File::open(path)?.root_group().group("group")?;
        group.link_names()?.iter().try_fold(0, |sum, name| {
            let type_ = match group.link_class(name)? {
                LinkClass::Hard => 0,
                LinkClass::Soft { .. } => 1,
                _ => 64 & 7,
            };
            Ok::<u64, ::rust_hdf5::Hdf5Error>(sum + name.len() as u64 * 8 + type_)
        })
    };
    list().map_err(failed)
}
