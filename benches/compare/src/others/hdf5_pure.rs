//! The crate hdf5-pure.

use std::path::Path;

use hdf5_pure::{Dataset, File, FileAccessProperties, FileBuilder, MaxExtent, SyncPolicy};

use super::{Names, Reader, failed};
use crate::Result;

pub struct Data(Dataset);

impl Data {
    /// Not all of the file into memory beforehand: reading it is what is measured.
    pub fn open(path: &Path) -> Result<Self> {
        File::open_streaming(path).and_then(|file| file.dataset("data")).map(Data).map_err(failed)
    }
}

impl Reader for Data {
    fn whole(&self, _: &mut Vec<i32>) -> Result<Vec<i32>> {
        self.0.read_i32().map_err(failed)
    }

    fn part(&self, at: u64, into: &mut Vec<i32>) -> Result<()> {
        *into = self.0.read_i32_rows(at, into.len() as u64).map_err(failed)?;
        Ok(())
    }
}

pub struct Whole(File);

impl Whole {
    pub fn open(path: &Path) -> Result<Self> {
        File::open_streaming(path).map(Whole).map_err(failed)
    }
}

impl Names for Whole {
    fn four(&self, name: &str) -> Result<[i32; 4]> {
        let values = self.0.dataset(name).and_then(|data| data.read_i32()).map_err(failed)?;
        values.try_into().map_err(|_| failed("not four values"))
    }
}

pub fn write_deflate(path: &Path, chunk: u64, values: &[i32]) -> Result<()> {
    let mut file = FileBuilder::new();
    file.create_dataset("data").with_i32_data(values).with_chunks(&[chunk]).with_shuffle().with_deflate(4);
    file.write(path).map_err(failed)
}

pub fn create(path: &Path, number: u64) -> Result<()> {
    let mut file = FileBuilder::new();
    for i in 0..number as i32 {
        file.create_dataset(&format!("dataset {i}")).with_i32_data(&[i, 1, 2, 3]);
    }
    file.write(path).map_err(failed)
}

/// A live file with an empty dataset `data` that is open for appending, in chunks of `chunk` elements.
pub fn live(path: &Path, chunk: u64) -> Result<(File, Dataset)> {
    let mut file = FileBuilder::new();
    file.create_dataset("data")
        .with_u64_data(&[])
        .with_shape(&[0])
        .with_maxshape(&[MaxExtent::Unlimited])
        .with_chunks(&[chunk]);
    file.write(path).map_err(failed)?;
    // Like everybody else here it does not wait for the disk.
    let properties = FileAccessProperties::new().with_sync_policy(SyncPolicy::OnClose);
    let file = File::open_swmr_writer_with_options(path, properties).map_err(failed)?;
    let data = file.dataset("data").map_err(failed)?;
    Ok((file, data))
}

pub fn append(data: &mut Dataset, values: &[u64]) -> Result<()> {
    data.append(values).map_err(failed)
}
