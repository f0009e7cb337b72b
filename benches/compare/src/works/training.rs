//! The archives of the rows about training sets, and what is made of them.

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use h5live::File;
use h5live_archive::{ImportOptions, Importer, TarLayout, TarSource};

use crate::work::{Ground, Numbers, bytes};
use crate::{Error, Result};

/// The files of an archive. Their contents cannot be compressed, as those of images.
#[derive(Clone, Copy)]
pub(super) struct TrainingSet {
    pub name: &'static str,
    files: u64,
    /// Bytes of a file: at least the first, and less than the second more than that.
    min_bytes: u64,
    more_bytes: u64,
}

/// 20,000 files of 16 to 64 KiB.
pub(super) const LARGE: TrainingSet =
    TrainingSet { name: "large", files: 20_000, min_bytes: 16 << 10, more_bytes: (48 << 10) - 1 };
/// 200,000 files of 4 KiB.
pub(super) const SMALL: TrainingSet = TrainingSet { name: "small", files: 200_000, min_bytes: 4096, more_bytes: 1 };

pub(super) fn failed(error: impl std::fmt::Display) -> Error {
    Error::Other(error.to_string())
}

pub(super) fn file_name(number: u64) -> String {
    format!("train/{:03}/{number:07}.jpg", number / 1000)
}

impl TrainingSet {
    pub fn len(self, ground: &Ground) -> u64 {
        ground.times(self.files)
    }

    /// A path that belongs to this archive.
    pub fn path(self, ground: &Ground, kind: &str) -> PathBuf {
        ground.file(&format!("{}.{kind}", self.name))
    }

    /// Calls `each` with the number and the contents of each file.
    pub fn for_each(self, ground: &Ground, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let (mut lengths, mut numbers) = (Numbers::new(), Numbers::new());
        let mut contents = vec![0u64; (self.min_bytes + self.more_bytes).div_ceil(8) as usize];
        for number in 0..self.len(ground) {
            let len = self.min_bytes + lengths.below(self.more_bytes);
            let words = &mut contents[..len.div_ceil(8) as usize];
            words.iter_mut().for_each(|word| *word = numbers.below(u64::MAX));
            each(number, &bytes(words)[..len as usize])?;
        }
        Ok(())
    }

    /// Makes the archive, if it is not there. Returns its path.
    pub fn tar(self, ground: &Ground) -> Result<PathBuf> {
        let path = self.path(ground, "tar");
        if path.exists() {
            return Ok(path);
        }
        let mut archive = tar::Builder::new(BufWriter::with_capacity(1 << 20, fs::File::create(&path)?));
        self.for_each(ground, |number, contents| {
            let mut header = tar::Header::new_gnu();
            header.set_size(contents.len() as u64);
            header.set_mode(0o644);
            header.set_mtime(1_700_000_000);
            Ok(archive.append_data(&mut header, file_name(number), contents)?)
        })?;
        archive.into_inner()?.into_inner().map_err(failed)?;
        Ok(path)
    }

    /// Imports the archive, if that was not done. Returns the path of the file.
    pub fn imported(self, ground: &Ground, layout: TarLayout) -> Result<PathBuf> {
        let path = self.path(ground, layout.name());
        if !path.exists() {
            import(&self.tar(ground)?, &path, layout)?;
        }
        Ok(path)
    }
}

pub(super) fn import(tar: &Path, path: &Path, layout: TarLayout) -> Result<()> {
    let source = TarSource::open_file_or_stdin(tar).map_err(failed)?;
    let options = ImportOptions { layout, ..ImportOptions::default() };
    let importer = Importer::create_file_for_swmr(path, File::options(), options).map_err(failed)?;
    importer.import(source, &mut |_| {}).map_err(failed)?;
    Ok(())
}
