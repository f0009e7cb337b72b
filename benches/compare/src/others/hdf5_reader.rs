//! The crate hdf5-reader.

use std::path::Path;

use hdf5_reader::{Dataset, Hdf5File, OpenOptions, SliceInfo, SliceInfoElem};

use super::{Names, Reader, failed};
use crate::Result;

pub struct Data(Dataset);

impl Data {
    pub fn open(path: &Path) -> Result<Self> {
        // As many bytes of decoded chunks as the others keep.
        let options = OpenOptions::default().with_chunk_cache_bytes(32 << 20);
        let open = Hdf5File::open_with_options(path, options).and_then(|file| file.dataset("data"));
        open.map(Data).map_err(failed)
    }
}

impl Reader for Data {
    fn whole(&self, warm: &mut Vec<i32>) -> Result<Vec<i32>> {
        self.0.read_into(warm).map_err(failed)?;
        Ok(std::mem::take(warm))
    }

    fn part(&self, at: u64, into: &mut Vec<i32>) -> Result<()> {
        let range = SliceInfoElem::Slice { start: at, end: at + into.len() as u64, step: 1 };
        let read = self.0.read_slice::<i32>(&SliceInfo { selections: vec![range] }).map_err(failed)?;
        *into = read.into_raw_vec_and_offset().0;
        Ok(())
    }
}

pub struct Whole(Hdf5File);

impl Whole {
    pub fn open(path: &Path) -> Result<Self> {
        Hdf5File::open(path).map(Whole).map_err(failed)
    }
}

impl Names for Whole {
    fn four(&self, name: &str) -> Result<[i32; 4]> {
        let mut values = [0; 4];
        self.0.dataset(name).and_then(|data| data.read_into(&mut values)).map_err(failed)?;
        Ok(values)
    }
}
