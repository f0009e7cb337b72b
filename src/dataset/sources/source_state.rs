//! The state of a source of a virtual dataset.

use std::fmt;

/// The state of a source of a virtual dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// It is there, and nobody writes its file.
    AtRest,
    /// Its file is being written, and can be followed.
    Live,
    /// Somebody has its file open in such a way that it cannot be read: reading its elements is an error until then, for
    /// which a follower waits.
    InExclusiveUse,
    /// Its file, or the dataset in it, is not there: its elements are fill values ([`MissingSourcePolicy`](crate::MissingSourcePolicy)).
    Missing,
    /// Its file, or the dataset in it, cannot be read for another reason: reading its elements is an error.
    Unreadable,
}

impl fmt::Display for SourceState {
    /// In the words of `h5live ls`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SourceState::AtRest => "closed",
            SourceState::Live => "being written",
            SourceState::InExclusiveUse => "in use",
            SourceState::Missing => "missing",
            SourceState::Unreadable => "unreadable",
        })
    }
}
