//! What an entry is called: its own identity, and that of the object to which it belongs.

use h5live_format::Addr;

/// The identity of an entry or proxy among those of one cache. Never used again, also when the address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(crate) u64);

/// The object to which an entry belongs: the address of its object header. Objects are flushed and refreshed as
/// a whole by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Addr);

impl Owner {
    /// The owner of structures that belong to the whole file (superblock extension, shared heaps).
    pub const FILE: Owner = Owner(Addr::UNDEFINED);

    /// The object with its header at `header`.
    pub const fn new(header: Addr) -> Self {
        Owner(header)
    }

    /// The address of the object header; undefined for [`Owner::FILE`].
    pub const fn object_header_addr(self) -> Addr {
        self.0
    }
}
