//! Read leases: the kernel's word that no process has a file open for writing.
#![cfg_attr(target_os = "linux", allow(unsafe_code, reason = "leases have no safe wrapper"))]

use std::fs::File;

/// The answer to a request for a read lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// No process has the file open for writing.
    Granted,
    /// Some process has.
    Refused,
    /// The file system, or the owner of the file, does not allow leases.
    Unavailable,
}

/// Asks for a read lease on `file`, which is open for reading only, and gives it back at once.
#[cfg(target_os = "linux")]
pub fn probe(file: &File) -> Lease {
    use std::os::fd::AsRawFd;

    use nix::libc;

    /// Not in the libc crate; 10 on every architecture of Linux but PA-RISC, where leases then count as unavailable.
    const F_SETSIG: libc::c_int = 10;

    let fd = file.as_raw_fd();
    // A process that opens the file during the moment of the lease makes the kernel signal this one, by default with
    // SIGIO, which kills; SIGURG is ignored by default.
    // SAFETY: F_SETSIG on an open descriptor takes an integer and touches no memory.
    if unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) } != 0 {
        return Lease::Unavailable;
    }
    // SAFETY: F_SETLEASE on an open descriptor takes an integer and touches no memory.
    if unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
        // SAFETY: as above; the lease is this descriptor's own.
        unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
        return Lease::Granted;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Lease::Refused,
        _ => Lease::Unavailable,
    }
}

/// There are no leases on this system.
#[cfg(not(target_os = "linux"))]
pub fn probe(_file: &File) -> Lease {
    Lease::Unavailable
}
