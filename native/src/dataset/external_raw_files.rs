//! Raw files beside the HDF5 file that hold a dataset's elements.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use h5live_cache::{FileStorage, Storage};
use h5live_format::messages::ExternalFiles;
use h5live_format::{LocalHeapData, LocalHeapPrefix};
use h5live_model::{ExternalPiece, Name};
use h5live_swmr::{ReplacementLock, locate_and_rebase_superblock};

use crate::header::CachedHeader;
use crate::{Error, Result};

/// The variable of libhdf5 that says where raw files are; `${ORIGIN}` in it is the folder of the HDF5 file.
const PREFIX_VARIABLE: &str = "HDF5_EXTFILE_PREFIX";

/// The raw files of one dataset, in the order of its elements.
#[derive(Debug, Clone)]
pub(crate) struct ExternalRawFiles {
    /// The folder of the HDF5 file; `None` if that is no file of this machine.
    folder: Option<PathBuf>,
    pieces: Vec<ExternalPiece>,
}

/// The files that the header of a dataset names.
///
/// # Errors
/// If the message or the heap of names cannot be read.
pub(super) fn external_pieces(header: &CachedHeader) -> Result<Vec<ExternalPiece>> {
    let message: ExternalFiles = header.require_message("a dataset in raw files says which")?;
    let metadata = header.metadata();
    let prefix_len = LocalHeapPrefix::prefix_size(header.widths()) as u64;
    let prefix = metadata.load(message.heap, prefix_len, LocalHeapPrefix::default)?.read().clone();
    let names = metadata.load(prefix.data, prefix.data_size, LocalHeapData::default)?;
    let names = names.read();
    let piece = |file: &h5live_format::messages::ExternalFileSlot| {
        let name = names.string_bytes(file.name_offset);
        let name = name.map_err(|source| h5live_cache::Error::Decode { at: message.heap, source })?;
        Ok(ExternalPiece { name: Name::from(name), offset: file.data_offset, size: file.data_size })
    };
    message.slots.iter().map(piece).collect()
}

/// The paths at which a file may be: in the folder that the environment variable names, at its own path, and beside
/// the HDF5 file.
fn candidate_paths(folder: &Path, name: &Path) -> Vec<PathBuf> {
    let prefix =
        std::env::var_os(PREFIX_VARIABLE).filter(|prefix| !prefix.is_empty() && prefix != ".").map(PathBuf::from);
    let prefix = prefix.map(|prefix| match prefix.strip_prefix("${ORIGIN}") {
        Ok(below) => folder.join(below),
        Err(_) => prefix,
    });
    prefix.map(|prefix| prefix.join(name)).into_iter().chain([name.to_owned(), folder.join(name)]).collect()
}

/// Where the raw file is that a dataset of the HDF5 file at `hdf5_file` calls `name`; `None` if it is not there.
#[must_use]
pub fn existing_raw_file(hdf5_file: &Path, name: &Name) -> Option<PathBuf> {
    let candidates = candidate_paths(hdf5_file.parent()?, &path_of_name(name));
    candidates.into_iter().find(|candidate| candidate.exists())
}

impl ExternalRawFiles {
    /// The pieces of a dataset of the file at `path_of_name`.
    pub fn new(pieces: Vec<ExternalPiece>, hdf5_file: &Path) -> Self {
        let folder = hdf5_file.parent().map(Path::to_owned);
        ExternalRawFiles { folder, pieces }
    }

    /// Opens the first file that exists. If it will be written, creates the one that libhdf5 would create.
    fn open_file(&self, name: &Path, write: bool) -> Result<FileStorage> {
        let Some(folder) = &self.folder else {
            let rule = "the HDF5 file is not in the file system, so the files that it names are not opened";
            let source = io::Error::new(io::ErrorKind::Unsupported, rule);
            return Err(Error::ExternalRawFile { file: name.to_owned(), source });
        };
        let candidates = candidate_paths(folder, name);
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for candidate in &candidates {
            match options.open(candidate) {
                Ok(file) => {
                    let file = FileStorage::new(file);
                    return if write { refuse_live_hdf5(name, candidate, &file).map(|()| file) } else { Ok(file) };
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => failure = error,
            }
        }
        if let (true, io::ErrorKind::NotFound, Some(first)) = (write, failure.kind(), candidates.first()) {
            match options.create(true).open(first) {
                Ok(file) => return Ok(FileStorage::new(file)),
                Err(error) => failure = error,
            }
        }
        Err(Error::ExternalRawFile { file: name.to_owned(), source: failure })
    }

    /// Calls `each` with the files that hold `len` bytes of the dataset from `at` on: the file, where the bytes are in
    /// it, and which of the bytes they are.
    fn for_each_file_range(
        &self,
        mut at: u64,
        len: usize,
        write: bool,
        mut each: impl FnMut(FileStorage, u64, Range<usize>) -> io::Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        for piece in self.pieces.iter() {
            if done == len {
                return Ok(());
            }
            let Some(left) = piece.size.checked_sub(at).filter(|left| *left > 0) else {
                at -= piece.size;
                continue;
            };
            let end = done.saturating_add(usize::try_from(left).unwrap_or(usize::MAX)).min(len);
            let name = path_of_name(&piece.name);
            let failed = |source| Error::ExternalRawFile { file: name.clone(), source };
            let start = piece.offset.checked_add(at).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            each(self.open_file(&name, write)?, start, done..end).map_err(failed)?;
            (at, done) = (0, end);
        }
        match self.pieces.last().filter(|_| done < len) {
            Some(last) => Err(Error::ExternalRawFile {
                file: path_of_name(&last.name),
                source: io::ErrorKind::UnexpectedEof.into(),
            }),
            None => Ok(()),
        }
    }

    /// Reads `into.len()` bytes of the dataset from `at` on. Bytes beyond the end of a file are zero.
    ///
    /// # Errors
    /// [`Error::ExternalRawFile`] if a file does not exist or cannot be read, or if the files do not hold all
    /// elements.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.for_each_file_range(at, into.len(), false, |file, start, range| {
            let part = &mut into[range];
            let found = file.read_at(part, start)?;
            part.iter_mut().skip(found).for_each(|byte| *byte = 0);
            Ok(())
        })
    }

    /// Writes bytes of the dataset from `at` on. Files that are not there are made.
    ///
    /// # Errors
    /// [`Error::ExternalRawFile`] if a file cannot be written, or if the files have no room for all elements;
    /// [`Error::RawFileIsLiveHdf5`] if a process writes one of them as an HDF5 file.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.for_each_file_range(at, bytes.len(), true, |file, start, range| file.write_at(&bytes[range], start))
    }
}

/// Refuses to write elements into an HDF5 file that a process writes, or the one that this session writes.
fn refuse_live_hdf5(name: &Path, path: &Path, file: &FileStorage) -> Result<()> {
    match locate_and_rebase_superblock(file) {
        Err(h5live_swmr::Error::NotHdf5) => Ok(()),
        _ => match ReplacementLock::acquire_if_exists(path) {
            Err(source) => Err(Error::RawFileIsLiveHdf5 { file: name.to_owned(), source }),
            Ok(_) => Ok(()),
        },
    }
}

fn path_of_name(name: &Name) -> PathBuf {
    PathBuf::from(OsString::from_vec(name.as_bytes().to_vec()))
}
