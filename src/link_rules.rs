//! Rules for following links: how many, and to which files.

use std::fmt;
use std::sync::Arc;

use h5live_model::Location;

/// Soft and external links that one path may lead through (libhdf5's default).
pub const MAX_SYMBOLIC_LINKS_PER_PATH: usize = 16;

/// Most files that are kept open because links led to them, if the user does not say otherwise.
pub(crate) const DEFAULT_MAX_LINKED_FILES: usize = 256;

/// Where external links, sources of virtual datasets and references to other files may lead.
///
/// A file may come from anywhere. So what it says must not make this process ask a server of its author's choice, or
/// open a store of another kind than the file itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LinkedFilePolicy {
    /// To no other file.
    Never,
    /// From files of this machine to other files of this machine, from a file in memory to others in memory, and from a
    /// server to the same server. A URL in a link has a scheme of the store that the link is in.
    #[default]
    SameOrigin,
    /// Anywhere.
    Any,
}

/// What says whether links may lead to a location.
#[derive(Clone)]
pub(crate) struct LinkFilter(pub(crate) Arc<dyn Fn(&Location) -> bool + Send + Sync>);

impl fmt::Debug for LinkFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkFilter")
    }
}
