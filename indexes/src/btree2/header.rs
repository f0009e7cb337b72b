//! The header of a version 2 B-tree as a cached structure.

use std::sync::Arc;

use h5live_cache::Entry;
use h5live_format::{Addr, Btree2Geometry, Btree2Header, EncodeError, Widths, append_encoded, encode};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::node::CachedBtree2Node;

/// Most bytes of new nodes that a tree keeps in memory.
const MAX_FRESH_NODE_BYTES: usize = 1 << 20;

/// The header, and what is known about the nodes to which it leads.
#[derive(Debug)]
pub(super) struct CachedBtree2Header {
    pub header: Btree2Header,
    /// The shape of nodes that follows from it, if they hold records at all.
    pub geometry: Option<Arc<Btree2Geometry>>,
    /// The fresh nodes: created since the header was last taken to be written. Nothing in the file leads to them, so
    /// they may be changed in place. Those that are kept in memory stay in the cache, and the header waits for them.
    fresh: Mutex<FxHashMap<Addr, Option<CachedBtree2Node>>>,
    /// Held shared to read nodes, and alone to change them.
    lock: Arc<RwLock<()>>,
}

impl CachedBtree2Header {
    pub fn new(header: Btree2Header, widths: Widths) -> Self {
        let geometry = Btree2Geometry::from_header(&header, widths).ok().map(Arc::new);
        CachedBtree2Header { header, geometry, fresh: Mutex::default(), lock: Arc::default() }
    }

    /// Replaces the header by another one of the same tree.
    pub fn set_header(&mut self, header: Btree2Header, widths: Widths) {
        if header.depth != self.header.depth {
            self.geometry = Btree2Geometry::from_header(&header, widths).ok().map(Arc::new);
        }
        self.header = header;
    }

    pub fn tree_lock(&self) -> Arc<RwLock<()>> {
        self.lock.clone()
    }

    pub fn is_fresh_node(&self, node: Addr) -> bool {
        self.fresh.lock().contains_key(&node)
    }

    /// Whether a node is fresh, and the node itself if it is in memory.
    pub fn fresh_node(&self, node: Addr) -> Option<Option<CachedBtree2Node>> {
        let fresh = self.fresh.lock().get(&node)?.clone();
        Some(fresh.filter(|node| !node.is_invalidated()))
    }

    /// Notes a fresh node, for which the header waits.
    pub fn add_fresh_node(&self, addr: Addr, node: CachedBtree2Node) {
        let mut fresh = self.fresh.lock();
        let is_held = fresh.len() < MAX_FRESH_NODE_BYTES / self.header.node_size.max(1) as usize;
        fresh.insert(addr, is_held.then_some(node));
    }

    pub fn forget_fresh_node(&self, node: Addr) {
        self.fresh.lock().remove(&node);
    }
}

impl Entry for CachedBtree2Header {
    fn encode_image(&self, widths: Widths) -> Result<Vec<u8>, EncodeError> {
        self.fresh.lock().clear();
        encode(&self.header, widths)
    }

    fn append_image(&mut self, widths: Widths, images: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.fresh.get_mut().clear();
        append_encoded(&mut self.header, widths, images)
    }

    fn weight(&self) -> usize {
        let fresh = self.fresh.lock().len();
        size_of::<Self>().saturating_add(fresh.saturating_mul(4 * size_of::<Addr>())).saturating_add(256)
    }
}
