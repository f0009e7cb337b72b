//! Published crates that read or write HDF5 without libhdf5, as far as they can do the works.

use std::path::Path;

use crate::{Error, Result, Side};

pub mod hdf5_pure;
pub mod hdf5_reader;
pub mod rust_hdf5;

/// What the table says of them: what they are left out of, and why.
pub const LEFT_OUT: &str = "\
rust-hdf5 0.7, hdf5-pure 0.47 and hdf5-reader 0.12 on the same works, as far as they can do them.

- hdf5-reader only reads.
- hdf5-pure makes no compact datasets: it creates contiguous ones. It reads only into memory of its own, and lists
  datasets and groups but not links.
- rust-hdf5 waits for the disk with every flush of a live file, which cannot be switched off: it does not append.
- hdf5-pure's appends to a live file are seen at once: there is no flush apart from them.
- Opening a file is part of their time where objects are opened by name and where links are listed, because they may
  look at all of them then.
- Of the filters of hdf5plugin rust-hdf5 has these four, hdf5-reader lz4, and hdf5-pure none.
";

/// The error of a crate.
fn failed(error: impl std::fmt::Display) -> Error {
    Error::Other(error.to_string())
}

/// A dataset of whole numbers of four bytes.
pub trait Reader {
    /// All values: in `warm`, which is taken, if the crate can read into memory that is there.
    fn whole(&self, warm: &mut Vec<i32>) -> Result<Vec<i32>>;

    /// As many values from `at` as there are in `into`.
    fn part(&self, at: u64, into: &mut Vec<i32>) -> Result<()>;
}

/// Datasets by name.
pub trait Names {
    /// The four values of a dataset.
    fn four(&self, name: &str) -> Result<[i32; 4]>;
}

fn cannot<T>(side: Side) -> Result<T> {
    Err(Error::Other(format!("{side} cannot do this")))
}

/// The dataset `data` of a file.
pub fn reader(side: Side, path: &Path) -> Result<Box<dyn Reader>> {
    Ok(match side {
        Side::RustHdf5 => Box::new(rust_hdf5::Data::open(path)?),
        Side::Hdf5Pure => Box::new(hdf5_pure::Data::open(path)?),
        Side::Hdf5Reader => Box::new(hdf5_reader::Data::open(path)?),
        _ => return cannot(side),
    })
}

pub fn names(side: Side, path: &Path) -> Result<Box<dyn Names>> {
    Ok(match side {
        Side::RustHdf5 => Box::new(rust_hdf5::Whole::open(path)?),
        Side::Hdf5Pure => Box::new(hdf5_pure::Whole::open(path)?),
        Side::Hdf5Reader => Box::new(hdf5_reader::Whole::open(path)?),
        _ => return cannot(side),
    })
}

/// Writes a dataset in chunks with deflate(4) and shuffle.
pub fn write_deflate(side: Side, path: &Path, chunk: u64, values: &[i32]) -> Result<()> {
    match side {
        Side::RustHdf5 => rust_hdf5::write_deflate(path, chunk, values),
        Side::Hdf5Pure => hdf5_pure::write_deflate(path, chunk, values),
        _ => cannot(side),
    }
}

/// Makes datasets `dataset 0`, `dataset 1`, ... of four values in the root group.
pub fn create(side: Side, path: &Path, number: u64) -> Result<()> {
    match side {
        Side::RustHdf5 => rust_hdf5::create(path, number),
        Side::Hdf5Pure => hdf5_pure::create(path, number),
        _ => cannot(side),
    }
}
