//! The file that libhdf5 reads. The explorer answers the system calls on it.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use h5live_cache::Storage;
use h5live_checker::schedule::ReaderView;

/// The file that is served, by device and inode, and its descriptor once it has been asked for its length.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

thread_local! {
    static VIEW: RefCell<Option<Arc<ReaderView>>> = const { RefCell::new(None) };
    /// Whether a write was half-done at the last read, and at the one before.
    static TORN: Cell<[bool; 2]> = const { Cell::new([false; 2]) };
}

/// From now on the explorer answers for this file.
///
/// # Errors
/// When the system does not know the file.
pub fn serve_file(file: &File) -> std::io::Result<()> {
    let known = file.metadata()?;
    DEVICE.store(known.dev(), Relaxed);
    INODE.store(known.ino(), Relaxed);
    Ok(())
}

/// Runs `reader` on this thread, which sees the file as `view_of_thread` has it.
pub fn with_view<R>(view: &Arc<ReaderView>, reader: impl FnOnce() -> R) -> R {
    VIEW.set(Some(view.clone()));
    TORN.set([false; 2]);
    DESCRIPTOR.store(-1, Relaxed);
    let done = reader();
    VIEW.set(None);
    done
}

/// Whether a write was half-done at one of the last two reads: the library reads some structures in two parts.
pub fn was_torn() -> bool {
    TORN.get().contains(&true)
}

/// Whether the explorer answers this thread.
pub(crate) fn is_served_thread() -> bool {
    view_of_thread().is_some()
}

fn view_of_thread() -> Option<Arc<ReaderView>> {
    VIEW.try_with(|view| view.borrow().clone()).ok().flatten()
}

fn set_io_error() {
    // SAFETY: the location of this thread's error number is always valid.
    unsafe { *libc::__errno_location() = libc::EIO };
}

pub(crate) fn serve_pread(fd: c_int, into: *mut c_void, len: usize, at: i64) -> isize {
    let served = (fd == DESCRIPTOR.load(Relaxed)).then(view_of_thread).flatten();
    let Some((view, at)) = served.zip(u64::try_from(at).ok()) else {
        // SAFETY: the system checks the arguments of the caller.
        return unsafe { libc::syscall(libc::SYS_pread64, fd, into, len, at) as isize };
    };
    // SAFETY: `pread` demands of its caller that `len` bytes can be written there.
    let into = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), len) };
    let done = view.read_at(into, at);
    TORN.set([view.writer_position().is_torn(), TORN.get()[0]]);
    match done {
        Ok(done) => isize::try_from(done).unwrap_or(isize::MAX),
        Err(_) => {
            set_io_error();
            -1
        }
    }
}

pub(crate) fn serve_fstat(fd: c_int, into: *mut libc::stat) -> c_int {
    // SAFETY: the system checks the arguments of the caller.
    let done = unsafe { libc::syscall(libc::SYS_fstat, fd, into) } as c_int;
    let Some(view) = view_of_thread().filter(|_| done == 0) else { return done };
    // SAFETY: the system has just filled it.
    let found = unsafe { &mut *into };
    if (found.st_dev, found.st_ino) != (DEVICE.load(Relaxed), INODE.load(Relaxed)) {
        return done;
    }
    DESCRIPTOR.store(fd, Relaxed);
    match view.len() {
        Ok(len) => {
            found.st_size = i64::try_from(len).unwrap_or(i64::MAX);
            done
        }
        Err(_) => {
            set_io_error();
            -1
        }
    }
}
