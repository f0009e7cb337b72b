//! The access mode of a session.

/// The access mode of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Read; nobody may write meanwhile.
    #[default]
    Read,
    /// Read while another process writes.
    SwmrRead,
    /// Read and write what exists; nobody else may have it open.
    Write,
    /// Read and write what exists, while other processes read it.
    SwmrWrite,
    /// Create a new file, and replace an existing one. A native file that somebody may have open keeps its bytes for them:
    /// it loses its name, and the new file gets the name and the permissions.
    Create,
    /// Make a new file; one that exists is an error.
    CreateNew,
}

impl Mode {
    /// Whether a session of this mode may change anything.
    pub const fn writes(self) -> bool {
        !matches!(self, Mode::Read | Mode::SwmrRead)
    }
}
