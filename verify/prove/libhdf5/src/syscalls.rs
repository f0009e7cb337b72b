//! The system calls of the program and of the libraries that it loads. The program exports them, so that they come
//! before those of the system's library. The explorer answers some of them ([`virtual_file`]). Others are made one at a
//! time, in a given order ([`call_scheduler`]).
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::{call_scheduler, virtual_file};

/// Makes a call that is a step of the thread, if it concerns the file that is watched.
fn run_as_step<R: Copy + Into<i64>>(
    is_watched: impl FnOnce() -> bool,
    call: &'static str,
    make: impl FnOnce() -> R,
) -> R {
    if !call_scheduler::is_stepped_thread() || !is_watched() {
        return make();
    }
    call_scheduler::wait_for_permit();
    let done = make();
    // SAFETY: the location of this thread's error number is always valid.
    let error = unsafe { *libc::__errno_location() };
    call_scheduler::log_step(call, done.into() >= 0);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
    done
}

fn is_watched_file(fd: c_int) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is room for what the system writes.
    let done = unsafe { libc::syscall(libc::SYS_fstat, fd, found.as_mut_ptr()) };
    // SAFETY: the system has filled it.
    done == 0 && call_scheduler::is_watched_inode(unsafe { found.assume_init() }.st_ino)
}

fn intercept_open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: `open` demands of its caller that the path ends with a zero.
    let is_watched = || unsafe { CStr::from_ptr(path) }.to_bytes().ends_with(call_scheduler::NAME.as_bytes());
    let call =
        if flags & libc::O_ACCMODE == libc::O_RDONLY { call_scheduler::OPEN } else { call_scheduler::OPEN_TO_WRITE };
    // SAFETY: the system checks the arguments of the caller.
    run_as_step(is_watched, call, || unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) }
        as c_int)
}

fn intercept_fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the system checks the arguments of the caller.
    let make = || unsafe { libc::syscall(libc::SYS_fcntl, fd, command, argument) } as c_int;
    match command {
        // A lease is given back at once: the system keeps others waiting meanwhile.
        libc::F_SETLEASE if argument == libc::F_RDLCK as usize => {
            run_as_step(|| is_watched_file(fd), call_scheduler::LEASE, make)
        }
        libc::F_OFD_SETLK | libc::F_OFD_GETLK => {
            run_as_step(|| is_watched_file(fd), call_scheduler::LIVENESS_LOCK, make)
        }
        _ => make(),
    }
}

fn intercept_pwrite(fd: c_int, bytes: *const c_void, len: usize, at: i64) -> isize {
    // SAFETY: the system checks the arguments of the caller.
    let make = || unsafe { libc::syscall(libc::SYS_pwrite64, fd, bytes, len, at) };
    run_as_step(|| is_watched_file(fd), call_scheduler::WRITE, make) as isize
}

fn intercept_ftruncate(fd: c_int, len: i64) -> c_int {
    // SAFETY: the system checks the arguments of the caller.
    run_as_step(
        || is_watched_file(fd),
        call_scheduler::WRITE,
        || unsafe { libc::syscall(libc::SYS_ftruncate, fd, len) } as c_int,
    )
}

fn intercept_pread(fd: c_int, into: *mut c_void, len: usize, at: i64) -> isize {
    run_as_step(|| is_watched_file(fd), call_scheduler::READ, || virtual_file::serve_pread(fd, into, len, at) as i64)
        as isize
}

// The arguments of `open` and `fcntl` that need not be there are passed as all others are.

#[unsafe(no_mangle)]
extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    intercept_open(path, flags, mode)
}

#[unsafe(no_mangle)]
extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    intercept_open(path, flags, mode)
}

#[unsafe(no_mangle)]
extern "C" fn close(fd: c_int) -> c_int {
    // SAFETY: the system checks the arguments of the caller.
    run_as_step(
        || is_watched_file(fd),
        call_scheduler::CLOSE,
        || unsafe { libc::syscall(libc::SYS_close, fd) } as c_int,
    )
}

#[unsafe(no_mangle)]
extern "C" fn flock(fd: c_int, operation: c_int) -> c_int {
    let call = match operation & !libc::LOCK_NB {
        libc::LOCK_EX => call_scheduler::LOCK,
        libc::LOCK_SH => call_scheduler::LOCK_SHARED,
        _ => call_scheduler::UNLOCK,
    };
    // SAFETY: the system checks the arguments of the caller.
    run_as_step(|| is_watched_file(fd), call, || unsafe { libc::syscall(libc::SYS_flock, fd, operation) } as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    intercept_fcntl(fd, command, argument)
}

#[unsafe(no_mangle)]
extern "C" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    intercept_fcntl(fd, command, argument)
}

#[unsafe(no_mangle)]
extern "C" fn pwrite(fd: c_int, bytes: *const c_void, len: usize, at: i64) -> isize {
    intercept_pwrite(fd, bytes, len, at)
}

#[unsafe(no_mangle)]
extern "C" fn pwrite64(fd: c_int, bytes: *const c_void, len: usize, at: i64) -> isize {
    intercept_pwrite(fd, bytes, len, at)
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(fd: c_int, len: i64) -> c_int {
    intercept_ftruncate(fd, len)
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate64(fd: c_int, len: i64) -> c_int {
    intercept_ftruncate(fd, len)
}

#[unsafe(no_mangle)]
extern "C" fn pread(fd: c_int, into: *mut c_void, len: usize, at: i64) -> isize {
    intercept_pread(fd, into, len, at)
}

#[unsafe(no_mangle)]
extern "C" fn pread64(fd: c_int, into: *mut c_void, len: usize, at: i64) -> isize {
    intercept_pread(fd, into, len, at)
}

#[unsafe(no_mangle)]
extern "C" fn fstat(fd: c_int, into: *mut libc::stat) -> c_int {
    virtual_file::serve_fstat(fd, into)
}

#[unsafe(no_mangle)]
extern "C" fn fstat64(fd: c_int, into: *mut libc::stat) -> c_int {
    virtual_file::serve_fstat(fd, into)
}

#[unsafe(no_mangle)]
extern "C" fn __fxstat(_version: c_int, fd: c_int, into: *mut libc::stat) -> c_int {
    virtual_file::serve_fstat(fd, into)
}

#[unsafe(no_mangle)]
extern "C" fn __fxstat64(_version: c_int, fd: c_int, into: *mut libc::stat) -> c_int {
    virtual_file::serve_fstat(fd, into)
}

/// Whether time stands still for this thread: others come further at its calls.
fn has_frozen_clock() -> bool {
    virtual_file::is_served_thread() || call_scheduler::is_stepped_thread()
}

#[unsafe(no_mangle)]
extern "C" fn nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    if has_frozen_clock() {
        return 0;
    }
    // SAFETY: the system checks the arguments of the caller.
    unsafe { libc::syscall(libc::SYS_nanosleep, time, left) as c_int }
}

#[unsafe(no_mangle)]
extern "C" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: c_int,
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    if has_frozen_clock() {
        return 0;
    }
    // SAFETY: the system checks the arguments of the caller.
    let done = unsafe { libc::syscall(libc::SYS_clock_nanosleep, clock, flags, time, left) };
    // It returns its error.
    if done == 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINTR) }
}
