//! What is not in the page cache.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::{Error, Result};

/// Makes the system forget what it holds of the files in `folder`, and whatever else it may if we are allowed to ask.
///
/// # Errors
/// [`Error::Usage`] if it does not: on a file system that is itself in memory.
pub fn forget(folder: &Path) -> Result<()> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let files = files.iter().filter(|path| path.is_file()).map(File::open).collect::<io::Result<Vec<_>>>()?;
    for file in &files {
        // Only what has been written can be forgotten.
        file.sync_all()?;
        // SAFETY: the descriptor is open.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    // Where it is refused, the advice alone must do.
    if let Ok(mut caches) = File::options().write(true).open("/proc/sys/vm/drop_caches") {
        let _ = caches.write_all(b"3");
        // What runs is not what is measured.
        io::copy(&mut File::open("/proc/self/exe")?, &mut io::sink())?;
    }
    files.iter().try_for_each(|file| match resident(file)? {
        0 => Ok(()),
        pages => Err(Error::Usage(format!("{pages} pages of what is to be read cold stay in memory: choose --folder"))),
    })
}

/// How many pages of a file are in memory.
fn resident(file: &File) -> Result<usize> {
    let len = file.metadata()?.len() as usize;
    if len == 0 {
        return Ok(0);
    }
    let mut pages = vec![0u8; len.div_ceil(4096)];
    // SAFETY: a new mapping of an open file, which is only asked about and unmapped.
    let failed = unsafe {
        let at = libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        let failed = libc::mincore(at, len, pages.as_mut_ptr());
        libc::munmap(at, len);
        failed
    };
    if failed != 0 {
        return Err(io::Error::last_os_error().into());
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count())
}
