//! Leases: the kernel says which processes have a file open.

use std::fs::File;

#[cfg(target_os = "linux")]
use h5live_cache::FileLeaseKind;

/// The answer to a request for a read lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseProbe {
    /// No process has the file open for writing.
    Granted,
    /// Some process has.
    Refused,
    /// The file system, or the owner of the file, does not allow leases.
    Unavailable,
}

/// Asks for a read lease on `file`, which is open for reading only, and gives it back at once.
#[cfg(target_os = "linux")]
pub fn probe_read_lease(file: &File) -> LeaseProbe {
    linux::probe_file_lease(file, FileLeaseKind::Read)
}

/// Who has a file open beside one handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherHandlePresence {
    /// There is no other open handle, in this process or any other.
    None,
    /// There is one.
    Some,
    /// The system does not tell, or processes on other machines may have the file open.
    Unknown,
}

/// Whether `file` is the only open handle of its file. Copies by `dup` or `fork` do not count.
#[cfg(target_os = "linux")]
pub fn probe_other_handles(file: &File) -> OtherHandlePresence {
    if !is_known_local(file) {
        return OtherHandlePresence::Unknown;
    }
    match linux::probe_file_lease(file, FileLeaseKind::Write) {
        LeaseProbe::Granted => OtherHandlePresence::None,
        LeaseProbe::Refused => OtherHandlePresence::Some,
        LeaseProbe::Unavailable => OtherHandlePresence::Unknown,
    }
}

#[cfg(target_os = "linux")]
pub use linux::is_known_local;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::ErrorKind::WouldBlock;

    use h5live_cache::{FileLeaseKind, probe_lease};
    use nix::sys::statfs::{self, BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC};

    use super::LeaseProbe;

    /// Asks for a lease, and gives it back at once.
    pub fn probe_file_lease(file: &File, kind: FileLeaseKind) -> LeaseProbe {
        match probe_lease(file, kind) {
            Ok(()) => LeaseProbe::Granted,
            Err(error) if error.kind() == WouldBlock => LeaseProbe::Refused,
            Err(_) => LeaseProbe::Unavailable,
        }
    }

    /// Whether the file system is known to be this machine's alone, with no other below it (as overlays and FUSE have)
    /// in which the same file may be open.
    pub fn is_known_local(file: &File) -> bool {
        let known = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC];
        statfs::fstatfs(file).is_ok_and(|system| known.contains(&system.filesystem_type()))
    }
}

/// There are no leases on this system.
#[cfg(not(target_os = "linux"))]
pub fn probe_other_handles(_file: &File) -> OtherHandlePresence {
    OtherHandlePresence::Unknown
}

/// It is not known of any.
#[cfg(not(target_os = "linux"))]
pub fn is_known_local(_file: &File) -> bool {
    false
}

/// There are no leases on this system.
#[cfg(not(target_os = "linux"))]
pub fn probe_read_lease(_file: &File) -> LeaseProbe {
    LeaseProbe::Unavailable
}
