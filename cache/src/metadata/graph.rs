//! The graph of dirty entries and of their flush dependencies.
//!
//! It has no entries that are clean, unpinned and without edges. Edges are kept at the child only, because a flush
//! starts at the dirty entries and walks up. So its cost depends on the dirty entries, not on the cached ones.

use std::{
    collections::hash_map::Entry,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use h5live_format::Addr;
use smallvec::SmallVec;

use super::{
    dirty_entries::DirtyEntries,
    id_hasher::EntryIdMap,
    mutant_violated_edges::MutantViolatedEdges,
    owner_deps::OwnerDependencies,
    parent_edges::{EdgeLifetime, ParentEdge, ParentEdges},
    revalidate::StaleOwners,
};
use crate::{
    dependency_kind::DependencyKind,
    dependency_node::{ChunkProxy, NodeRef},
    entry_header::AnySlot,
    entry_id::{EntryId, Owner},
    error::DependencyCycle,
    mutant::CacheMutantOptions,
    primitive::Mutex,
};

/// The graph, shared by a cache and its handles.
pub(crate) struct SharedGraph {
    pub(crate) graph: Mutex<DependencyGraph>,
    pub(crate) stale_owners: StaleOwners,
    next_entry_id: AtomicU64,
}

impl SharedGraph {
    pub(crate) fn new(mutant: CacheMutantOptions) -> Self {
        SharedGraph {
            graph: Mutex::new(DependencyGraph {
                broken_edges: MutantViolatedEdges::new(mutant),
                ..DependencyGraph::default()
            }),
            stale_owners: StaleOwners::default(),
            next_entry_id: AtomicU64::new(1),
        }
    }

    pub(crate) fn next_id(&self) -> EntryId {
        EntryId(self.next_entry_id.fetch_add(1, Relaxed))
    }
}

#[derive(Default)]
pub(crate) struct DependencyGraph {
    pub(super) nodes: EntryIdMap<GraphNode>,
    pub(super) dirty_entries: DirtyEntries,
    pub(super) owner_deps: OwnerDependencies,
    pub(super) dirty_weight: usize,
    /// The number of the walk that is under way, or was the last.
    pub(super) pass: u32,
    pub(super) broken_edges: MutantViolatedEdges,
}

pub(super) struct GraphNode {
    pub(super) owner: Owner,
    pub(super) content: NodeContent,
    pub(super) parents: ParentEdges,
    pub(super) child_count: u32,
    pin_count: u32,
    pub(super) is_dirty: bool,
    pub(super) is_in_flight: bool,
    /// Bytes in memory, counted while dirty.
    weight: u32,
    /// The pass in which this was last visited.
    pub(super) visited_in_pass: u32,
    /// The pass in which something below was found to be written.
    pub(super) waits_in_pass: u32,
    /// The pass in which this was found to be in scope.
    pub(super) needed_in_pass: u32,
}

pub(super) enum NodeContent {
    /// Held as long as there is a reason to keep the entry in memory: the reference prevents eviction.
    Entry(Option<Arc<dyn AnySlot>>),
    Proxy {
        chunk: Addr,
    },
}

impl GraphNode {
    fn new(owner: Owner, body: NodeContent) -> Self {
        GraphNode {
            owner,
            content: body,
            parents: ParentEdges::default(),
            child_count: 0,
            pin_count: 0,
            is_dirty: false,
            is_in_flight: false,
            weight: 0,
            visited_in_pass: 0,
            waits_in_pass: 0,
            needed_in_pass: 0,
        }
    }

    /// Bytes in memory, as they are counted while it is dirty.
    pub(super) fn counted_weight(&self) -> usize {
        self.weight as usize
    }

    fn is_retained(&self) -> bool {
        self.is_dirty || self.is_in_flight || self.pin_count > 0 || self.child_count > 0
    }
}

impl DependencyGraph {
    fn node_of(&mut self, slot: &Arc<dyn AnySlot>) -> &mut GraphNode {
        let head = slot.entry_header();
        let node = self.nodes.entry(head.id).or_insert_with(|| GraphNode::new(head.owner, NodeContent::Entry(None)));
        if let NodeContent::Entry(held @ None) = &mut node.content {
            *held = Some(Arc::clone(slot));
        }
        node
    }

    /// Makes an entry dirty, unless it is gone; returns whether it is dirty now.
    pub(crate) fn mark_entry_dirty<S: AnySlot>(&mut self, slot: &Arc<S>, weight: usize) -> bool {
        if slot.entry_header().is_invalidated() {
            return false;
        }
        let erased = Arc::clone(slot) as Arc<dyn AnySlot>;
        let node = self.node_of(&erased);
        if !std::mem::replace(&mut node.is_dirty, true) {
            node.weight = u32::try_from(weight).unwrap_or(u32::MAX);
            let (owner, weight) = (node.owner, node.weight);
            self.count_dirty(owner, slot.entry_header().id, weight);
        }
        true
    }

    fn mark_dirty(&mut self, id: EntryId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if !std::mem::replace(&mut node.is_dirty, true) {
            let (owner, weight) = (node.owner, node.weight);
            self.count_dirty(owner, id, weight);
        }
    }

    fn count_dirty(&mut self, owner: Owner, id: EntryId, weight: u32) {
        self.dirty_weight += weight as usize;
        self.dirty_entries.push_dirty(owner, id);
    }

    /// Adds a chunk proxy, dirty.
    pub(crate) fn add_proxy(&mut self, proxy: ChunkProxy) {
        self.nodes.insert(proxy.id, GraphNode::new(proxy.owner, NodeContent::Proxy { chunk: proxy.chunk }));
        self.mark_dirty(proxy.id);
    }

    /// Whether parent and child are joined already; the edge then lasts as long as the longer of both.
    pub(super) fn extend_edge(
        &mut self,
        parent: EntryId,
        child: EntryId,
        kind: DependencyKind,
        until: EdgeLifetime,
    ) -> bool {
        let found = self.nodes.get_mut(&child).and_then(|node| node.parents.find_mut(parent, kind));
        found.map(|above| above.until = above.until.max(until)).is_some()
    }

    /// Joins parent and child, which [`DependencyGraph::extend_edge`] found not to be. A proxy that is gone (its data
    /// has been written) or an entry that is gone has nothing to wait for, and nothing waits for it.
    pub(super) fn add_edge(
        &mut self,
        parent: &NodeRef,
        child: &NodeRef,
        kind: DependencyKind,
        until: EdgeLifetime,
    ) -> Result<(), DependencyCycle> {
        let (up, down) = (parent.id(), child.id());
        if self.broken_edges.record_if_violated(kind, up, down) {
            return Ok(());
        }
        // Only a node that waits for something is above others.
        let child_waits = self.nodes.get(&down).is_some_and(|node| node.child_count > 0);
        if up == down || child_waits && self.is_reachable_upwards(down, up) {
            return Err(DependencyCycle);
        }
        let live = |link: &NodeRef, graph: &DependencyGraph| match link {
            NodeRef::Slot(slot) => !slot.entry_header().is_invalidated(),
            NodeRef::Proxy(id) => graph.nodes.contains_key(id),
        };
        if !live(parent, self) || !live(child, self) {
            return Ok(());
        }
        let parent_owner = match parent {
            NodeRef::Slot(slot) => {
                self.node_of(slot).child_count += 1;
                slot.entry_header().owner
            }
            NodeRef::Proxy(_) => self.increment_child_count(up),
        };
        let joined = match child {
            NodeRef::Slot(slot) => Some(self.node_of(slot)),
            NodeRef::Proxy(_) => self.nodes.get_mut(&down),
        };
        let (child_owner, stays) = joined.map_or((parent_owner, true), |node| {
            node.parents.push(ParentEdge { parent: up, parent_owner, kind, until });
            (node.owner, node.is_retained())
        });
        if parent_owner != child_owner {
            self.owner_deps.add_edge(parent_owner, child_owner);
        }
        if !stays {
            self.release_if_unused(down);
        }
        Ok(())
    }

    /// Begins a walk, in which no node has been visited yet, and returns its number.
    pub(super) fn begin_pass(&mut self) -> u32 {
        if self.pass == u32::MAX {
            self.pass = 0;
            for node in self.nodes.values_mut() {
                (node.visited_in_pass, node.waits_in_pass, node.needed_in_pass) = (0, 0, 0);
            }
        }
        self.pass += 1;
        self.pass
    }

    fn increment_child_count(&mut self, id: EntryId) -> Owner {
        self.nodes.get_mut(&id).map_or(Owner::FILE, |node| {
            node.child_count += 1;
            node.owner
        })
    }

    /// Whether `upper` is reached from `lower` by walking up. A node that waits for a new entry in flight waits for
    /// nothing that a later flush writes.
    fn is_reachable_upwards(&mut self, upper: EntryId, lower: EntryId) -> bool {
        let pass = self.begin_pass();
        let mut open: SmallVec<[EntryId; 8]> = SmallVec::from_slice(&[lower]);
        while let Some(id) = open.pop() {
            let Some(node) = self.nodes.get_mut(&id) else { continue };
            if std::mem::replace(&mut node.visited_in_pass, pass) == pass {
                continue;
            }
            for ParentEdge { parent, until, .. } in node.parents.as_slice() {
                if *until == EdgeLifetime::Stored && node.is_in_flight {
                    continue;
                }
                if *parent == upper {
                    return true;
                }
                open.push(*parent);
            }
        }
        false
    }

    /// Removes all edges between parent and child.
    pub(super) fn remove_edges(&mut self, parent: EntryId, child: EntryId) {
        let Some(node) = self.nodes.get_mut(&child) else { return };
        let (owner, removed) = (node.owner, node.parents.take_if(|above| above.parent == parent));
        self.end_edges(removed, owner);
        self.release_if_unused(child);
    }

    pub(super) fn pin_entry(&mut self, slot: &Arc<dyn AnySlot>) {
        if !slot.entry_header().is_invalidated() {
            self.node_of(slot).pin_count += 1;
        }
    }

    pub(super) fn unpin_entry(&mut self, id: EntryId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.pin_count = node.pin_count.saturating_sub(1);
            self.release_if_unused(id);
        }
    }

    /// Removes a node with all its edges: the entry was removed or evicted, or the proxy's data was written.
    pub(crate) fn remove_node(&mut self, id: EntryId) {
        let Some(node) = self.nodes.remove(&id) else { return };
        self.broken_edges.remove_parent(id);
        if node.is_dirty {
            self.dirty_weight -= node.counted_weight();
        }
        self.end_edges(node.parents.into_edges(), node.owner);
    }

    /// Lets the parents of edges that were taken from a child of `child_owner` wait for it no more.
    fn end_edges(&mut self, edges: impl IntoIterator<Item = ParentEdge>, child_owner: Owner) {
        for ParentEdge { parent, parent_owner, .. } in edges {
            if parent_owner != child_owner {
                self.owner_deps.remove_edge(parent_owner, child_owner);
            }
            self.decrement_child_count(parent);
        }
    }

    fn decrement_child_count(&mut self, parent: EntryId) {
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.child_count -= 1;
            if !node.is_retained() {
                self.release_if_unused(parent);
            }
        }
    }

    /// Removes a node that is no longer needed.
    fn release_if_unused(&mut self, id: EntryId) {
        let Entry::Occupied(mut place) = self.nodes.entry(id) else { return };
        let node = place.get_mut();
        if node.is_retained() {
            return;
        }
        if let NodeContent::Entry(held) = &mut node.content {
            *held = None;
            if node.parents.is_empty() {
                place.remove();
            }
        }
    }

    pub(crate) fn is_idle(&self, id: EntryId) -> bool {
        self.nodes.get(&id).is_none_or(|node| !node.is_retained())
    }

    pub(crate) fn is_unwritten(&self, id: EntryId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.is_dirty || node.is_in_flight)
    }

    pub(crate) fn dirty_weight(&self) -> usize {
        self.dirty_weight
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty_entries.any(|id| self.nodes.get(&id).is_some_and(|node| node.is_dirty))
    }

    /// The number of dirty entries and proxies.
    pub(crate) fn dirty_count(&self) -> usize {
        self.nodes.values().filter(|node| node.is_dirty).count()
    }

    /// Lets the parents of the proxy `old` wait for the proxy `new`, too.
    pub(crate) fn replace_proxy_by(&mut self, old: EntryId, new: EntryId) {
        let (Some(gone), true) = (self.nodes.remove(&old), self.nodes.contains_key(&new)) else { return };
        for node in self.nodes.values_mut() {
            node.parents.replace_parent(old, new);
        }
        if let Some(node) = self.nodes.get_mut(&new) {
            gone.parents.into_edges().into_iter().for_each(|above| node.parents.push(above));
            node.child_count += gone.child_count;
        }
    }

    /// Ends a write: the node was written.
    pub(crate) fn complete_write(&mut self, id: EntryId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.is_in_flight = false;
        match &node.content {
            NodeContent::Proxy { .. } => return self.remove_node(id),
            NodeContent::Entry(held) => held.iter().for_each(|slot| slot.entry_header().set_in_file()),
        }
        // An entry that has changed meanwhile, and everything that waits for it, waits for the next flush.
        let last = if node.is_dirty { EdgeLifetime::Stored } else { EdgeLifetime::Written };
        let (owner, over) = (node.owner, node.parents.take_if(|above| above.until <= last));
        self.end_edges(over, owner);
        self.release_if_unused(id);
    }

    /// Ends a write: the node was not written, and is dirty again.
    pub(crate) fn fail_write(&mut self, id: EntryId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.is_in_flight = false;
        if let NodeContent::Entry(Some(slot)) = &node.content {
            slot.entry_header().set_not_in_file();
        }
        let new = node.parents.as_slice().iter().filter(|above| above.until == EdgeLifetime::Stored);
        let parents: SmallVec<[EntryId; 2]> = new.map(|above| above.parent).collect();
        self.mark_dirty(id);
        // Meanwhile it may have come to wait for these, as it was thought to be in the file.
        for parent in parents {
            if self.is_reachable_upwards(id, parent) {
                self.remove_edges(parent, id);
            }
        }
    }
}
