//! What a session may do.

/// What a session may do.
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
    /// Make a new file in place of what is there.
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
