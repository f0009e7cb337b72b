//! Archives of training sets, imported.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

use h5live_archive::TarLayout;

use super::training::{LARGE, SMALL, TrainingSet, import};
use crate::peer::{self, Dataset, Make, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, timed};
use crate::{Error, Result, Side};

/// Most bytes that the original programs read at once.
const BLOCK_BYTES: usize = 64 << 10;

/// A dataset of one dimension that grows.
struct Growing {
    dataset: Dataset,
    len: u64,
}

impl Growing {
    fn create(file: &peer::File, name: &str, type_: Type, chunk: u64, filters: &[(i32, &[u32])]) -> Result<Self> {
        let make = Make { dims: &[0], max: &[u64::MAX], chunk: &[chunk], filters, ..Make::default() };
        Ok(Growing { dataset: file.create_dataset(name, type_, &make)?, len: 0 })
    }

    fn push<T>(&mut self, type_: Type, values: &[T]) -> Result<()> {
        let (start, count) = (self.len, values.len() as u64);
        self.len += count;
        self.dataset.extend(&[self.len])?;
        self.dataset.write_block(type_, &[start], &[count], values)
    }
}

/// Calls `each` with the path and the contents of each file of an archive, in blocks of 64 KiB; the contents are empty at
/// the end of a file.
fn for_each_block(tar: &Path, mut each: impl FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
    let mut archive = tar::Archive::new(std::io::BufReader::with_capacity(BLOCK_BYTES, fs::File::open(tar)?));
    let mut block = vec![0; BLOCK_BYTES];
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        loop {
            let mut filled = 0;
            while filled < BLOCK_BYTES {
                match entry.read(&mut block[filled..])? {
                    0 => break,
                    read => filled += read,
                }
            }
            each(&path, &block[..filled])?;
            if filled == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// What the program of the document does ("HDF5 Shredder").
fn original_shredder(tar: &Path, path: &Path) -> Result<()> {
    let file = peer::File::create(path)?;
    let mut image_offset = Growing::create(&file, "image_offset", Type::U64, 1 << 17, &[])?;
    let mut name_offset = Growing::create(&file, "name_offset", Type::U64, 1 << 17, &[])?;
    let mut image = Growing::create(&file, "image", Type::U8, 1 << 20, &[])?;
    let mut name = Growing::create(&file, "name", Type::U8, 1 << 20, &[(1, &[6])])?;
    let mut begin = 0;
    for_each_block(tar, |path, contents| {
        if !contents.is_empty() {
            return image.push(Type::U8, contents);
        }
        image_offset.push(Type::U64, &[begin])?;
        begin = image.len;
        name_offset.push(Type::U64, &[name.len])?;
        name.push(Type::U8, &[path.as_bytes(), b"\0"].concat())
    })
}

/// What the program of the document does ("HDF5 Compactor").
fn original_compactor(tar: &Path, path: &Path) -> Result<()> {
    let file = peer::File::create(path)?;
    for_each_block(tar, |path, contents| {
        if contents.is_empty() || contents.len() > 65_520 {
            return Ok(());
        }
        let make = Make { dims: &[contents.len() as u64], compact: true, ..Make::default() };
        file.create_dataset_and_groups(path, Type::U8, &make)?.write_all(Type::U8.id(), contents)
    })
}

/// What the bare machine does.
#[derive(Clone, Copy)]
enum Bare {
    /// The program tar writes a file for each.
    Extract,
    /// All bytes of the archive are read and written.
    Copy,
}

impl Bare {
    fn run(self, tar: &Path, path: &Path) -> Result<()> {
        match self {
            Bare::Copy => {
                let (mut from, mut to) = (fs::File::open(tar)?, fs::File::create(path)?);
                let mut bytes = vec![0; 1 << 20];
                loop {
                    match from.read(&mut bytes)? {
                        0 => break Ok(()),
                        read => to.write_all(&bytes[..read])?,
                    }
                }
            }
            Bare::Extract => {
                fs::create_dir(path)?;
                let status = Command::new("tar").arg("xf").arg(tar).arg("-C").arg(path).status()?;
                if status.success() { Ok(()) } else { Err(Error::Other(format!("tar: {status}"))) }
            }
        }
    }

    fn remove(self, path: &Path) -> Result<()> {
        let removed = match self {
            Bare::Copy => fs::remove_file(path),
            Bare::Extract => fs::remove_dir_all(path),
        };
        Ok(removed?)
    }
}

fn run(set: TrainingSet, layout: TarLayout, bare: Bare, side: Side, ground: &Ground) -> Result<Done> {
    let tar = set.tar(ground)?;
    let path = set.path(ground, &format!("imported-{side}"));
    let bytes = fs::metadata(&tar)?.len();
    let (done, ()) = timed(bytes, || match (side, layout) {
        (Side::H5live, _) => import(&tar, &path, layout),
        (Side::Libhdf5, TarLayout::Shredder) => original_shredder(&tar, &path),
        (Side::Libhdf5, _) => original_compactor(&tar, &path),
        _ => bare.run(&tar, &path),
    })?;
    if side == Side::Bare {
        bare.remove(&path)?;
        return Ok(done);
    }
    let mut contents = 0;
    set.for_each(ground, |_, file| {
        contents += file.len() as u64;
        Ok(())
    })?;
    let done = done.size_of(&path, contents)?;
    fs::remove_file(path)?;
    Ok(done)
}

pub fn works() -> Vec<Work> {
    let work = Work {
        unit: Unit::Bytes,
        aim: 5.0,
        budget: WRITING,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
        ..Work::PLAIN
    };
    vec![
        Work {
            name: "import-shredder",
            title: "import a tar archive of 20,000 files of 16 to 64 KiB, layout shredder (bare: tar x)",
            bare_aim: Some(2.0),
            prepare: |ground| LARGE.tar(ground).map(drop),
            run: |side, ground| run(LARGE, TarLayout::Shredder, Bare::Extract, side, ground),
            ..work
        },
        Work {
            name: "import-shredder-4k",
            title: "the same, 200,000 files of 4 KiB (bare: a copy of the archive)",
            prepare: |ground| SMALL.tar(ground).map(drop),
            run: |side, ground| run(SMALL, TarLayout::Shredder, Bare::Copy, side, ground),
            ..work
        },
        Work {
            name: "import-compactor",
            title: "import 20,000 files of 16 to 64 KiB, layout compactor (bare: a copy of the archive)",
            prepare: |ground| LARGE.tar(ground).map(drop),
            run: |side, ground| run(LARGE, TarLayout::Compactor, Bare::Copy, side, ground),
            ..work
        },
        Work {
            name: "import-compactor-4k",
            title: "the same, 200,000 files of 4 KiB (bare: a copy of the archive)",
            prepare: |ground| SMALL.tar(ground).map(drop),
            run: |side, ground| run(SMALL, TarLayout::Compactor, Bare::Copy, side, ground),
            ..work
        },
    ]
}
