//! Raw files beside the HDF5 file that hold a dataset's elements.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use h5live_cache::{FileStorage, Storage};
use h5live_format::messages::ExternalFiles;
use h5live_format::{LocalHeap, LocalHeapData};
use h5live_model::{ExternalPiece, Name};

use crate::header::Header;
use crate::{Error, Result};

/// The variable of libhdf5 that says where raw files are; `${ORIGIN}` in it is the folder of the HDF5 file.
const PREFIX: &str = "HDF5_EXTFILE_PREFIX";

/// The raw files of one dataset, in the order of its elements.
#[derive(Debug)]
pub(super) struct External {
    /// The folder of the HDF5 file.
    folder: PathBuf,
    pieces: Vec<ExternalPiece>,
}

/// The files that the header of a dataset names.
///
/// # Errors
/// If the message or the heap of names cannot be read.
pub(super) fn files(header: &Header) -> Result<Vec<ExternalPiece>> {
    let message: ExternalFiles = header.require("a dataset in raw files says which")?;
    let metadata = header.metadata();
    let prefix_len = LocalHeap::prefix_size(header.widths()) as u64;
    let prefix = metadata.load(message.heap, prefix_len, LocalHeap::default)?.read().clone();
    let names = metadata.load(prefix.data, prefix.size, LocalHeapData::default)?;
    let names = names.read();
    let piece = |file: &h5live_format::messages::ExternalFile| {
        let name = names.text(file.name_offset);
        let name = name.map_err(|source| h5live_cache::Error::Decode { at: message.heap, source })?;
        Ok(ExternalPiece { name: Name::from(name), offset: file.offset, size: file.size })
    };
    message.files.iter().map(piece).collect()
}

impl External {
    /// The pieces of a dataset of the file at `path`.
    pub fn new(pieces: Vec<ExternalPiece>, path: &Path) -> Self {
        External { folder: path.parent().unwrap_or(Path::new("")).to_owned(), pieces }
    }

    /// Where a file may be: in the folder that the variable names; as it is called; beside the HDF5 file.
    fn candidates(&self, name: &Path) -> Vec<PathBuf> {
        let prefix = std::env::var_os(PREFIX).filter(|prefix| !prefix.is_empty() && prefix != ".").map(PathBuf::from);
        let prefix = prefix.map(|prefix| match prefix.strip_prefix("${ORIGIN}") {
            Ok(below) => self.folder.join(below),
            Err(_) => prefix,
        });
        prefix.map(|prefix| prefix.join(name)).into_iter().chain([name.to_owned(), self.folder.join(name)]).collect()
    }

    fn open(&self, name: &Path) -> Result<FileStorage> {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for candidate in self.candidates(name) {
            match File::open(candidate) {
                Ok(file) => return Ok(FileStorage::new(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => failure = error,
            }
        }
        Err(Error::External { file: name.to_owned(), source: failure })
    }

    /// Reads the `into.len()` bytes of the dataset from `at` on. What a file is too short for is zero.
    ///
    /// # Errors
    /// [`Error::External`] if a file is not there or cannot be read, or if the files do not hold all elements.
    pub fn read(&self, mut at: u64, mut into: &mut [u8]) -> Result<()> {
        for piece in &self.pieces {
            if into.is_empty() {
                return Ok(());
            }
            let Some(left) = piece.size.checked_sub(at).filter(|left| *left > 0) else {
                at -= piece.size;
                continue;
            };
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
            let (part, rest) = into.split_at_mut(len);
            let name = path(&piece.name);
            let failed = |source| Error::External { file: name.clone(), source };
            let start = piece.offset.checked_add(at).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            let found = self.open(&name)?.read_at(part, start).map_err(failed)?;
            part.iter_mut().skip(found).for_each(|byte| *byte = 0);
            (at, into) = (0, rest);
        }
        match self.pieces.last().filter(|_| !into.is_empty()) {
            Some(last) => Err(Error::External { file: path(&last.name), source: io::ErrorKind::UnexpectedEof.into() }),
            None => Ok(()),
        }
    }
}

fn path(name: &Name) -> PathBuf {
    PathBuf::from(OsString::from_vec(name.as_bytes().to_vec()))
}
