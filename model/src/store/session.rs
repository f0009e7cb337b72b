//! What a session is and what it can do, as data.

use crate::{Capabilities, Location, Mode, ObjectId, Settings, VlenAndReferenceSizes};

/// A session on a store: [`Store::session`](crate::Store::session). It stays the same until the session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The name of the kind of store, as `native`.
    pub connector: &'static str,
    /// Where the store is, if it is anywhere that another process could find it.
    pub location: Option<Location>,
    /// What the session may do.
    pub mode: Mode,
    /// The group from which paths start.
    pub root: ObjectId,
    /// Sizes of elements that lead elsewhere.
    pub vlen_and_reference_sizes: VlenAndReferenceSizes,
    /// What the session can do.
    pub capabilities: Capabilities,
    /// How the container was made: what only stores of the same kind understand.
    pub creation_settings: Settings,
}

impl SessionInfo {
    /// A session that knows only what every session has. `root` is the group from which paths start.
    pub fn new(connector: &'static str, mode: Mode, root: ObjectId, capabilities: Capabilities) -> Self {
        SessionInfo {
            connector,
            location: None,
            mode,
            root,
            vlen_and_reference_sizes: VlenAndReferenceSizes::default(),
            capabilities,
            creation_settings: Settings::default(),
        }
    }
}
