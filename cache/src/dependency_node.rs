//! What flush dependencies join: entries, and proxies of raw data.

use std::sync::Arc;

use h5live_format::Addr;

use crate::{
    entry_header::AnySlot,
    entry_id::{EntryId, Owner},
};

/// A chunk proxy: stands among the entries for raw data that is not yet written. It is dirty until the data has
/// been written, and then ceases to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkProxy {
    pub(crate) id: EntryId,
    pub(crate) owner: Owner,
    pub(crate) chunk: Addr,
}

impl ChunkProxy {
    /// The proxy's identity.
    pub fn id(&self) -> EntryId {
        self.id
    }

    /// The address of the raw data, in bytes from the base address.
    pub fn chunk(&self) -> Addr {
        self.chunk
    }
}

/// Something that flush dependencies can join: a [`Handle`](crate::Handle) or a [`ChunkProxy`].
pub trait DependencyNode: sealed::Sealed {
    /// Its identity.
    fn id(&self) -> EntryId;
}

/// An entry or a proxy as a node of the graph of flush dependencies.
pub(crate) enum NodeRef {
    Slot(Arc<dyn AnySlot>),
    Proxy(EntryId),
}

impl NodeRef {
    pub(crate) fn id(&self) -> EntryId {
        match self {
            NodeRef::Slot(slot) => slot.entry_header().id,
            NodeRef::Proxy(id) => *id,
        }
    }
}

pub(crate) mod sealed {
    pub trait Sealed {
        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn node_ref(&self) -> super::NodeRef;
    }
}

impl sealed::Sealed for ChunkProxy {
    #[allow(private_interfaces)]
    fn node_ref(&self) -> NodeRef {
        NodeRef::Proxy(self.id)
    }
}

impl DependencyNode for ChunkProxy {
    fn id(&self) -> EntryId {
        self.id
    }
}
