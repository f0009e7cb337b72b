//! What space is for, and how it is aligned.

/// The unit in which the operating system writes: a block within one page is not torn by the death of a process.
pub(super) const OS_PAGE_BYTES: u64 = 4096;

/// Structures begin at multiples of this, so that their fields of up to eight bytes are written at once.
pub(super) const METADATA_ALIGNMENT: u64 = 8;

/// The purpose of space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceKind {
    /// A structure. One that is smaller than a page does not cross the border of one.
    Metadata,
    /// Raw data. Aligned to pages if its size is a multiple of them; else, if it is longer than one, to eight bytes if
    /// its size is a multiple of those.
    Raw,
}

/// A section that was freed: first byte, length (bytes), and its former purpose.
pub(super) type FreedSection = (u64, u64, SpaceKind);
