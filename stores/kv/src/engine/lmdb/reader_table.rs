//! Room for LMDB's table of readers, which it maps and writes: where the disk has no room for a part of it, the mapping
//! ends the process by a signal. So all of it gets its room before LMDB opens it.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::files::LOCK_FILE;
use crate::engine::{EngineError, Result};

/// Bytes of an entry of the table, and of each of the parts before the entries.
const ENTRY_BYTES: u64 = 64;
/// More parts than there are before the entries: LMDB takes the rest for entries.
const HEAD_PARTS: u64 = 7;
/// Bytes of a block, as a file counts those that it has.
const BLOCK_BYTES: u64 = 512;

/// Gives the table of readers of a folder the room that it takes with so many entries. A table that is there keeps its
/// length. What this process may not write stays as it is.
///
/// # Errors
/// [`EngineError::Full`] if the disk has no room for it. A table that was made for this is removed then.
pub fn allocate_reader_table(folder: &Path, max_readers: u32) -> Result<()> {
    let path = folder.join(LOCK_FILE);
    let is_new = !path.exists();
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = match opened {
        // LMDB does without it, or says why not.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            return Ok(());
        }
        opened => opened.map_err(EngineError::io_at("the table of readers cannot be made", &path))?,
    };
    let allocated = fill(&file, max_readers);
    if is_new && allocated.is_err() {
        // The error that is returned says more.
        let _ = fs::remove_file(&path);
    }
    allocated
}

fn fill(file: &File, max_readers: u32) -> Result<()> {
    let context = "the table of readers cannot be made";
    let found = file.metadata().map_err(EngineError::io(context))?;
    let wanted = match found.len() {
        // Nobody has mapped an empty one, and LMDB waits for this lock before it does. It ends when the file is closed.
        0 if lock_alone(file) => (u64::from(max_readers) + HEAD_PARTS) * ENTRY_BYTES,
        len => len,
    };
    if wanted == 0 || wanted == found.len() && found.blocks() * BLOCK_BYTES >= wanted {
        return Ok(());
    }
    match take_room(file, wanted) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            Err(EngineError::Full(error.to_string()))
        }
        // Another error: this file system cannot do it.
        _ => Ok(()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn take_room(file: &File, bytes: u64) -> std::io::Result<()> {
    Ok(nix::fcntl::posix_fallocate(file, 0, bytes as i64)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn take_room(file: &File, bytes: u64) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    // An empty file: nothing is overwritten.
    if file.metadata()?.len() == 0 { file.write_all_at(&vec![0; bytes as usize], 0) } else { Ok(()) }
}

/// Takes the lock that LMDB takes to make the table. Whether nobody else has it.
fn lock_alone(file: &File) -> bool {
    let lock =
        libc::flock { l_type: libc::F_WRLCK as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 1, l_pid: 0 };
    fcntl(file, FcntlArg::F_SETLK(&lock)).is_ok()
}
