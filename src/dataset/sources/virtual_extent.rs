//! What is known of the sources of a virtual dataset, and of how far it reaches.

use std::sync::Arc;

use h5live_model::Name;
use parking_lot::Mutex;

use super::source_index::CachedSourceIndex;
use crate::dims::CoreDims;

/// What is known of the sources of a virtual dataset.
#[derive(Debug, Default)]
pub(crate) struct SourcesState {
    /// The extent, which follows from them.
    pub(crate) extent: Mutex<VirtualExtent>,
    /// The folder in which their files are looked for first.
    pub(super) folder: Mutex<Option<Arc<str>>>,
    /// Where their elements are.
    pub(super) index: CachedSourceIndex,
}

/// What is known of the extent of a virtual dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum VirtualExtent {
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
    pub(crate) fn dims(&self) -> Option<&CoreDims> {
        match self {
            VirtualExtent::FromSources { extent, .. } => Some(extent),
            VirtualExtent::Unknown | VirtualExtent::Stored => None,
        }
    }
}
