//! What is known of how far a virtual dataset reaches.

use std::sync::Arc;

use h5live_model::Name;

use crate::dims::CoreDims;

/// What is known of the extent of a virtual dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum VirtualExtent {
    /// Nothing: its sources have not been looked at.
    #[default]
    Unknown,
    /// It is the stored one.
    Stored,
    /// It follows from the sources.
    FromSources {
        extent: CoreDims,
        /// The sources that are not there.
        missing: Arc<[(Name, Name)]>,
        /// Whether there are sources whose writers let nobody read them yet. They count as not there for those who follow.
        awaits_writers: bool,
    },
}

impl VirtualExtent {
    /// The extent, unless it is the stored one.
    pub(super) fn dims(&self) -> Option<&CoreDims> {
        match self {
            VirtualExtent::FromSources { extent, .. } => Some(extent),
            VirtualExtent::Unknown | VirtualExtent::Stored => None,
        }
    }
}
