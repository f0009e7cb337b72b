//! A file of the operating system.

#[cfg(target_os = "linux")]
use std::ops::Range;
use std::{fs::File, io, sync::Arc};

#[cfg(unix)]
use h5live_model::FileBackedBytes;
#[cfg(target_os = "linux")]
use parking_lot::Mutex;
use parking_lot::RwLock;

use super::Storage;
use super::file_len::file_len;
#[cfg(target_os = "linux")]
use super::{
    mmap_read::{self, MmapReader},
    mmap_write::MmapWriter,
};

/// A file, read and written at offsets without moving a cursor.
#[derive(Debug)]
pub struct FileStorage {
    /// `None` once it was closed.
    file: RwLock<Option<Arc<File>>>,
    #[cfg(target_os = "linux")]
    mmap_writer: Mutex<MmapWriter>,
    #[cfg(target_os = "linux")]
    mmap_reader: MmapReader,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is mapped there"))]
    by_calls: bool,
}

impl FileStorage {
    /// The bytes of `file`, which must be open for what is asked of it later.
    pub fn new(file: File) -> Self {
        Arc::new(file).into()
    }

    /// The same, which is never mapped to read and write small pieces.
    pub fn without_mmap_io(self) -> Self {
        FileStorage { by_calls: true, ..self }
    }

    /// Lets go of all that is mapped.
    fn unmap(&self) {
        #[cfg(target_os = "linux")]
        {
            self.mmap_writer.lock().unmap_all_windows();
            self.mmap_reader.unmap();
        }
    }

    fn with_file<T>(&self, action: impl FnOnce(&Arc<File>) -> io::Result<T>) -> io::Result<T> {
        match &*self.file.read() {
            Some(file) => action(file),
            None => Err(closed_error()),
        }
    }
}

impl From<Arc<File>> for FileStorage {
    fn from(file: Arc<File>) -> Self {
        FileStorage {
            file: RwLock::new(Some(file)),
            #[cfg(target_os = "linux")]
            mmap_writer: Mutex::default(),
            #[cfg(target_os = "linux")]
            mmap_reader: MmapReader::default(),
            by_calls: false,
        }
    }
}

#[cfg(unix)]
mod at {
    use std::{fs::File, io, os::unix::fs::FileExt};

    pub(super) fn read(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
        file.read_at(into, at)
    }

    pub(super) fn write(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.write_at(bytes, at)
    }
}

#[cfg(windows)]
mod at {
    use std::{fs::File, io, os::windows::fs::FileExt};

    pub(super) fn read(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
        file.seek_read(into, at)
    }

    pub(super) fn write(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.seek_write(bytes, at)
    }
}

fn closed_error() -> io::Error {
    io::Error::other("the file was closed")
}

fn past_end_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the offset does not fit 64 bits")
}

/// Bytes of a page of memory: no page is smaller.
const PAGE: usize = 4 << 10;

/// Whether some of `bytes`, which were read at `offset`, may be what the system has behind the end of a file: zeros,
/// from the end to that of the page. While a file is cut, a read may take them for bytes of the file.
pub(super) fn may_contain_zeros_past_eof(bytes: &[u8], offset: u64) -> bool {
    let first_end = PAGE - 1 - offset as usize % PAGE;
    bytes.last() == Some(&0) || bytes.iter().skip(first_end).step_by(PAGE).any(|last| *last == 0)
}

/// How many of `found` bytes, which were read at `at`, the file has.
fn present_bytes(file: &File, found: usize, at: u64) -> io::Result<usize> {
    let there = file_len(file)?.saturating_sub(at);
    Ok(usize::try_from(there).unwrap_or(usize::MAX).min(found))
}

/// As [`Storage::read_at`].
fn pread_all(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match at::read(file, rest, at.checked_add(done as u64).ok_or_else(past_end_error)?) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    match into.get(..done) {
        Some(read) if may_contain_zeros_past_eof(read, at) => present_bytes(file, done, at),
        _ => Ok(done),
    }
}

impl Storage for FileStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.with_file(|file| {
            #[cfg(target_os = "linux")]
            if into.len() <= mmap_read::MAX_MMAP_READ_BYTES
                && !self.by_calls
                && self.mmap_reader.try_read_resident(file, into, at)
            {
                return Ok(into.len());
            }
            pread_all(file, into, at)
        })
    }

    fn read_zero_padded(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.with_file(|file| {
            #[cfg(target_os = "linux")]
            if into.len() <= mmap_read::MAX_MMAP_READ_BYTES
                && !self.by_calls
                && self.mmap_reader.try_read_zero_padded(file, into, at)
            {
                return Ok(());
            }
            let found = pread_all(file, into, at)?;
            into.iter_mut().skip(found).for_each(|byte| *byte = 0);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.with_file(|file| {
            let mut done = 0;
            while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
                match at::write(file, rest, at.checked_add(done as u64).ok_or_else(past_end_error)?) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(n) => done += n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        })
    }

    #[cfg(target_os = "linux")]
    fn try_store_mapped(&self, bytes: &[u8], at: u64) -> bool {
        if self.by_calls {
            return false;
        }
        let file = self.file.read();
        file.as_ref().is_some_and(|file| self.mmap_writer.lock().try_store_mapped(file, bytes, at))
    }

    #[cfg(target_os = "linux")]
    fn try_store_crash_atomic(&self, image: &[u8], changed: Range<usize>, at: u64) -> bool {
        if self.by_calls {
            return false;
        }
        let file = self.file.read();
        file.as_ref().is_some_and(|file| self.mmap_writer.lock().try_store_crash_atomic(file, image, changed, at))
    }

    fn len(&self) -> io::Result<u64> {
        self.with_file(|file| file_len(file))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let file = self.file.write();
        let file = file.as_ref().ok_or_else(closed_error)?;
        if len < file_len(file)? {
            self.unmap();
        }
        file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.with_file(|file| file.sync_data())
    }

    #[cfg(unix)]
    fn map(&self, at: u64, len: u64) -> io::Result<Option<FileBackedBytes>> {
        self.with_file(|file| {
            let is_there = at.checked_add(len).is_some_and(|end| file_len(file).is_ok_and(|found| end <= found));
            let Some(len) = usize::try_from(len).ok().filter(|len| is_there && *len > 0) else { return Ok(None) };
            super::os::map_shared(file, at, len, !self.by_calls).map(Some)
        })
    }

    /// The system finds a place for new pages one by one, or for many at once.
    fn preferred_prefill_len(&self) -> usize {
        64 << 10
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        use nix::fcntl::{FallocateFlags, fallocate};
        let (Ok(at), Ok(len)) = (at.try_into(), len.try_into()) else { return Err(past_end_error()) };
        self.with_file(|file| Ok(fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, at, len)?))
    }

    #[cfg(target_os = "linux")]
    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        use nix::errno::Errno;
        use nix::unistd::{Whence, lseek};
        let Ok(from) = at.try_into() else { return Ok(None) };
        // The cursor is nobody's: what is read and written says where.
        self.with_file(|file| match lseek(file, from, Whence::SeekData) {
            Ok(found) => Ok(u64::try_from(found).ok()),
            Err(Errno::ENXIO) => Ok(None),
            // A file system that does not know.
            Err(Errno::EINVAL | Errno::EOPNOTSUPP) => Ok(Some(at)),
            Err(error) => Err(error.into()),
        })
    }

    fn close(&self) {
        let mut file = self.file.write();
        self.unmap();
        *file = None;
    }
}
