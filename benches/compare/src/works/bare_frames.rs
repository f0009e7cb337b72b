//! Frames in a file without any format: their number, and the frames. Who follows waits with inotify, as h5live does.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::followers::{FRAME, add};
use crate::Result;
use crate::work::bytes;

/// Where the first frame is (bytes).
const FIRST: u64 = 4096;

/// Writes frame `n`, and then that there is one more.
pub fn write(file: &File, n: u64, values: &[u64]) -> Result<()> {
    file.write_all_at(bytes(values), FIRST + n * FRAME * 8)?;
    Ok(file.write_all_at(&(n + 1).to_le_bytes(), 0)?)
}

/// A descriptor from which can be read whenever the file was written.
fn watch(path: &Path) -> Result<File> {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(std::io::Error::from)?;
    let check = |result: RawFd| if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) };
    // SAFETY: it takes no pointers.
    let descriptor = check(unsafe { libc::inotify_init1(libc::IN_CLOEXEC) })?;
    // SAFETY: the descriptor is new, and nobody else has it.
    let events = unsafe { File::from_raw_fd(descriptor) };
    // SAFETY: the name ends with a zero.
    check(unsafe { libc::inotify_add_watch(descriptor, name.as_ptr(), libc::IN_MODIFY) })?;
    Ok(events)
}

/// Waits for frames until there are so many. Returns how many it has seen, and their sum.
pub fn follow(path: &Path, frames: u64) -> Result<(u64, u64)> {
    let (file, mut events) = (File::open(path)?, watch(path)?);
    println!("ready");
    let (mut values, mut number, mut some_events) = (vec![0u64; FRAME as usize], [0; 8], [0; 1 << 12]);
    let (mut seen, mut total) = (0, 0);
    while seen < frames {
        let there = file.read_at(&mut number, 0)?;
        if there < number.len() || u64::from_le_bytes(number) <= seen {
            let _ = events.read(&mut some_events)?;
            continue;
        }
        while seen < u64::from_le_bytes(number) {
            file.read_exact_at(bytemuck::cast_slice_mut(&mut values), FIRST + seen * FRAME * 8)?;
            total = add(total, &values);
            seen += 1;
        }
    }
    Ok((seen, total))
}
