//! Leases: the kernel's word on who has a file open.
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
    linux::request(file, nix::libc::F_RDLCK)
}

/// Whether `file`, which is open for reading and writing, is the only open handle of its file; what has become of it by
/// `dup` or `fork` does not count.
#[cfg(target_os = "linux")]
pub fn is_sole_handle(file: &File) -> bool {
    linux::request(file, nix::libc::F_WRLCK) == Lease::Granted
}

#[cfg(target_os = "linux")]
pub use linux::is_local;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use nix::libc;
    use nix::sys::statfs::{self, BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC};

    use super::Lease;

    /// Not in the libc crate; 10 on every architecture of Linux but PA-RISC, where leases then count as unavailable.
    const F_SETSIG: libc::c_int = 10;

    /// Asks for a lease, and gives it back at once.
    pub fn request(file: &File, kind: libc::c_int) -> Lease {
        let fd = file.as_raw_fd();
        // A process that opens the file during the moment of the lease makes the kernel signal this one, by default
        // with SIGIO, which kills; SIGURG is ignored by default. SAFETY: F_SETSIG on an open descriptor takes an
        // integer and touches no memory.
        if unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) } != 0 {
            return Lease::Unavailable;
        }
        // SAFETY: F_SETLEASE on an open descriptor takes an integer and touches no memory.
        if unsafe { libc::fcntl(fd, libc::F_SETLEASE, kind) } == 0 {
            // SAFETY: as above; the lease is this descriptor's own.
            unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
            return Lease::Granted;
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN) => Lease::Refused,
            _ => Lease::Unavailable,
        }
    }

    /// Whether the file system is known to be this machine's alone, with no other below it (as overlays and FUSE have)
    /// in which the same file may be open.
    pub fn is_local(file: &File) -> bool {
        let known = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC];
        statfs::fstatfs(file).is_ok_and(|system| known.contains(&system.filesystem_type()))
    }
}

/// There are no leases on this system.
#[cfg(not(target_os = "linux"))]
pub fn is_sole_handle(_file: &File) -> bool {
    false
}

/// It is not known of any.
#[cfg(not(target_os = "linux"))]
pub fn is_local(_file: &File) -> bool {
    false
}

/// There are no leases on this system.
#[cfg(not(target_os = "linux"))]
pub fn probe(_file: &File) -> Lease {
    Lease::Unavailable
}
