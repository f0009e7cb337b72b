//! `h5live dump --bytes OFFSET`: the structure at an offset, field by field.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use h5live_format::dump::{Dump, DumpContext, dump_any};
use h5live_format::{Superblock, Widths};

use crate::error::{Error, FileProblem, Result};

/// Bytes that are read from an offset on: more than nearly any structure has.
const READ_BYTES: usize = 4 << 20;
/// Bytes that are enough for the header of any tree, heap or array.
const MAX_HEADER_BYTES: usize = 1 << 10;

/// A file whose bytes are described.
#[derive(Debug)]
pub struct DumpedFile {
    file: File,
    path: PathBuf,
    len: u64,
    superblock: Superblock,
    /// The base of addresses (bytes).
    base: u64,
}

impl DumpedFile {
    /// Opens a file and finds its superblock.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnsuitableFile`] if there is no superblock.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let unfit = |problem| Error::UnsuitableFile { path: path.to_owned(), problem };
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        for at in Superblock::possible_offsets(len) {
            let window = read(&file, at, Superblock::MAX_SIZE).map_err(io)?;
            if window.starts_with(&Superblock::SIGNATURE) {
                let superblock = Superblock::decode(&window).map_err(|e| unfit(FileProblem::Superblock(e)))?;
                let base = superblock.base.get().unwrap_or(at);
                return Ok(DumpedFile { file, path: path.to_owned(), len, superblock, base });
            }
        }
        Err(unfit(FileProblem::NoSignature))
    }

    fn read(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        read(&self.file, at, len).map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    /// The structure that begins at `offset` (bytes from the start of the file).
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] beyond the end of the file, or if nothing known begins there.
    pub fn structure_at(&self, offset: u64) -> Result<Dump> {
        let unfit = |problem| Error::UnsuitableFile { path: self.path.clone(), problem };
        if offset >= self.len {
            return Err(unfit(FileProblem::BeyondEnd { offset, len: self.len }));
        }
        let window = self.read(offset, READ_BYTES)?;
        let header = self.header_of(&window)?;
        let Superblock { widths, btree_k, .. } = self.superblock;
        let context = DumpContext { widths, btree_k, owner_header: header.as_deref(), ..DumpContext::default() };
        dump_any(&window, &context).ok_or_else(|| unfit(FileProblem::NoStructure(offset)))
    }

    /// The bytes of the header to which a part of an array or a heap refers.
    fn header_of(&self, part: &[u8]) -> Result<Option<Vec<u8>>> {
        // Behind signature and version; in arrays behind the client too.
        let at = match part.first_chunk() {
            Some(b"EAIB" | b"EASB" | b"EADB" | b"FADB") => 6,
            Some(b"FHDB" | b"FHIB" | b"FSSE") => 5,
            _ => return Ok(None),
        };
        let Widths { offset, .. } = self.superblock.widths;
        let address = part.get(at..at + offset.bytes()).unwrap_or_default();
        let address = address.iter().rev().fold(0u64, |a, b| a << 8 | u64::from(*b));
        self.read(self.base.saturating_add(address), MAX_HEADER_BYTES).map(Some)
    }
}

/// At most `len` bytes from `at` (bytes from the start of the file) on.
fn read(file: &File, at: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Beyond what an offset of the system can be, there is nothing.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
