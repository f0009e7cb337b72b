//! Training sets: archives of many files in one file, read by index, by name, and in a shuffled order.
//!
//! `h5live tar import` makes such files of tar archives. `docs/tar.md` describes what is in them. A file of the layout
//! `shredder` that another program made (datasets `image`, `image_offset`, `name`, `name_offset`) is read, too.
//!
//! A *sample* is a file of the archive that has contents. Samples have numbers from 0 on, in the order of the archive.
//!
//! ```
//! use h5live::File;
//! use h5live::archive::Archive;
//!
//! # let file = File::in_memory();
//! # let bytes = |name: &str, values: &[u8]| file.new_dataset::<u8>().create_with_data(name, values);
//! # let offsets = |name: &str, values: &[u64]| file.new_dataset::<u64>().create_with_data(name, values);
//! # bytes("image", b"catdogbird")?;
//! # offsets("image_offset", &[0, 3, 6])?;
//! # bytes("name", b"a/0.txt\0a/1.txt\0b/2.txt\0")?;
//! # offsets("name_offset", &[0, 8, 16])?;
//! let archive = Archive::open(&file)?;
//! assert_eq!(archive.len(), 3);
//! assert_eq!(archive.read(1)?, b"dog");
//! assert_eq!(archive.read_by_name("b/2.txt")?, b"bird");
//! assert_eq!(archive.glob("a/*.txt")?, [0, 1]);
//! // Two workers get different samples, the same ones in each run.
//! let samples = archive.samples().shuffled(42).epoch(0);
//! let mut all: Vec<u64> = samples.clone().worker(0, 2).numbers()?.chain(samples.worker(1, 2).numbers()?).collect();
//! all.sort();
//! assert_eq!(all, [0, 1, 2]);
//! # Ok::<(), h5live::Error>(())
//! ```

mod chunk_runs;
mod contents;
mod epoch_sample_numbers;
mod fault;
mod groups;
pub mod layout;
mod name_index;
mod names;
mod order;
mod prefetch;
mod samples;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use self::contents::SampleContents;
pub use self::epoch_sample_numbers::EpochSampleNumbers;
pub use self::fault::ArchiveFault;
pub use self::groups::SampleGroup;
pub use self::name_index::{NameIndex, normalized_path};
use self::names::Names;
pub use self::order::Permutation;
pub use self::prefetch::PrefetchedSamples;
pub use self::samples::EpochSamples;
use crate::{DatasetViewPart, File, Result};

/// Whether a path matches a pattern, as [`Archive::glob`] has it.
pub fn is_glob_match(pattern: &str, path: &[u8]) -> bool {
    fast_glob::glob_match(normalized_path(pattern.as_bytes()), normalized_path(path))
}

/// A training set in an open file. Clones share what was read of its tables.
#[derive(Debug, Clone)]
pub struct Archive {
    shared: Arc<ArchiveShared>,
}

#[derive(Debug)]
struct ArchiveShared {
    file: File,
    contents: SampleContents,
    /// Read on first use.
    names: OnceLock<Names>,
}

impl Archive {
    /// The training set in a file. What an import under way adds later is not in it; open it again for that, after
    /// [`File::refresh`].
    ///
    /// # Errors
    /// [`ErrorKind::Archive`](crate::ErrorKind::Archive) if the file is none; if its tables cannot be read.
    pub fn open(file: &File) -> Result<Archive> {
        let contents = SampleContents::open(file)?;
        Ok(Archive { shared: Arc::new(ArchiveShared { file: file.clone(), contents, names: OnceLock::new() }) })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.shared.file
    }

    /// How many samples there are.
    pub fn len(&self) -> u64 {
        self.shared.contents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a sample.
    ///
    /// # Errors
    /// [`ErrorKind::Archive`](crate::ErrorKind::Archive) if there is no such sample, or the tables are damaged.
    pub fn sample_len(&self, sample: u64) -> Result<u64> {
        self.shared.contents.sample_len(sample)
    }

    /// The contents of a sample.
    ///
    /// # Errors
    /// As [`Archive::sample_len`]; if the contents cannot be read.
    pub fn read(&self, sample: u64) -> Result<Vec<u8>> {
        let mut contents = Vec::new();
        self.read_into(sample, &mut contents)?;
        Ok(contents)
    }

    /// Puts the contents of a sample in the place of what `into` has.
    ///
    /// # Errors
    /// As [`Archive::read`].
    pub fn read_into(&self, sample: u64, into: &mut Vec<u8>) -> Result<()> {
        self.shared.contents.read_into(sample, into)
    }

    /// A range of the bytes of a sample.
    ///
    /// # Errors
    /// As [`Archive::read`]; [`ErrorKind::Selection`](crate::ErrorKind::Selection) if it has fewer.
    pub fn read_sample_range(&self, sample: u64, byte_range: Range<u64>) -> Result<Vec<u8>> {
        self.shared.contents.read_sample_range(sample, byte_range)
    }

    /// The contents of a sample where the file has them, without a copy; `None` if the file has them compressed or in
    /// several pieces, or is not open just to be read.
    ///
    /// # Errors
    /// As [`Archive::sample_len`].
    pub fn view(&self, sample: u64) -> Result<Option<DatasetViewPart<'_, u8>>> {
        self.shared.contents.view(sample)
    }

    /// In how many pieces the file has the contents of all samples; `None` if they cannot be viewed.
    pub fn mapped_piece_count(&self) -> Option<usize> {
        self.shared.contents.pieces()
    }

    /// The path of a sample in the archive.
    ///
    /// # Errors
    /// As [`Archive::sample_len`]; if the names cannot be read.
    pub fn name(&self, sample: u64) -> Result<Vec<u8>> {
        self.names()?.of_sample(sample).map(<[u8]>::to_vec).map_err(|fault| self.error(fault))
    }

    /// The sample with a path. A `./` in front does not count. If several have the path, it is the last one.
    ///
    /// # Errors
    /// If the names cannot be read.
    pub fn find_sample(&self, name: impl AsRef<[u8]>) -> Result<Option<u64>> {
        Ok(self.names()?.find(name.as_ref()))
    }

    /// The contents of the file with a path. A file without contents has none.
    ///
    /// # Errors
    /// [`ArchiveFault::NameNotFound`] if there is none; as [`Archive::read`].
    pub fn read_by_name(&self, name: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        let name = name.as_ref();
        match self.names()?.find_file(name) {
            Some(Some(sample)) => self.read(sample),
            Some(None) => Ok(Vec::new()),
            None => Err(self.error(ArchiveFault::NameNotFound(name.into()))),
        }
    }

    /// The samples whose paths match a pattern: `*` and `?` within a name, `**` over several, `[ab]`, `{jpg,png}`.
    ///
    /// # Errors
    /// If the names cannot be read.
    pub fn glob(&self, pattern: &str) -> Result<Vec<u64>> {
        let names = self.names()?;
        let is_match = |sample: &u64| names.of_sample(*sample).is_ok_and(|name| is_glob_match(pattern, name));
        Ok((0..self.len()).filter(is_match).collect())
    }

    /// The samples in groups, as WebDataset makes them of an archive: files that follow each other and have one path up to
    /// the first dot of their last name.
    ///
    /// # Errors
    /// If the names cannot be read.
    pub fn groups(&self) -> Result<Vec<SampleGroup>> {
        groups::of_names(self.len(), self.names()?).map_err(|fault| self.error(fault))
    }

    fn names(&self) -> Result<&Names> {
        if let Some(names) = self.shared.names.get() {
            return Ok(names);
        }
        let names = Names::read(&self.shared.file, self.len())?;
        Ok(self.shared.names.get_or_init(|| names))
    }

    fn error(&self, fault: ArchiveFault) -> crate::Error {
        self.shared.file.error(None, fault)
    }
}
