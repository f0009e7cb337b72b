//! The ledger of what is dirty and what must be written before what.
//!
//! Entries that are clean, unpinned and joined to nothing are not in here. Edges are kept at the child only,
//! because a flush starts at the dirty entries and walks up: its cost follows what is dirty, not what is cached.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use h5live_format::Addr;
use smallvec::SmallVec;

use crate::{
    edge::{EdgeKind, EdgeKinds},
    entry::{AnySlot, EntryId, Link, Owner, Proxy, Slot},
    error::Cycle,
    primitive::{Mutex, atomic::AtomicU64, atomic::Ordering::Relaxed},
};

/// The graph, shared by a cache and its handles.
pub(crate) struct Ledger {
    pub(crate) graph: Mutex<Graph>,
    next: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(disabled: EdgeKinds) -> Self {
        Ledger { graph: Mutex::new(Graph { disabled, ..Graph::default() }), next: AtomicU64::new(1) }
    }

    pub(crate) fn next_id(&self) -> EntryId {
        EntryId(self.next.fetch_add(1, Relaxed))
    }
}

/// Which dirty entries to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those of one object, and whatever of other objects must be written before them.
    Owner(Owner),
}

/// What a flush is to take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    Scope(Scope),
    /// Raw data that waits for nothing, and entries until those left weigh no more than this many bytes.
    Excess {
        leave: usize,
    },
}

/// Ids are counted up, so their bits need little mixing.
#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

type ById<V> = HashMap<EntryId, V, BuildHasherDefault<IdHasher>>;

#[derive(Default)]
pub(crate) struct Graph {
    nodes: ById<Node>,
    /// The dirty entries of each owner, in the order in which they became dirty; may name some that are gone.
    dirty: BTreeMap<Owner, Vec<EntryId>>,
    /// Which owners' entries have been children of each owner's.
    across: BTreeMap<Owner, BTreeSet<Owner>>,
    dirty_weight: usize,
    pass: u64,
    disabled: EdgeKinds,
}

struct Node {
    owner: Owner,
    body: Body,
    parents: SmallVec<[(EntryId, EdgeKind); 2]>,
    children: u32,
    pins: u32,
    dirty: bool,
    in_flight: bool,
    /// Bytes in memory, counted while dirty.
    weight: usize,
    /// The pass in which this was last visited.
    visited: u64,
    /// The pass in which something below was found to be written.
    above: u64,
    /// The pass in which this was found to be in scope.
    needed: u64,
}

enum Body {
    /// Held as long as there is a reason to keep the entry in memory: the reference prevents eviction.
    Entry(Option<Arc<dyn AnySlot>>),
    Proxy {
        chunk: Addr,
    },
}

/// Something to be written by a flush.
pub(super) struct Picked {
    pub(super) id: EntryId,
    pub(super) what: What,
    /// Something else that is written must be written before.
    pub(super) waits: bool,
}

pub(super) enum What {
    Entry(Arc<dyn AnySlot>),
    Raw { chunk: Addr },
}

impl Node {
    fn new(owner: Owner, body: Body) -> Self {
        Node {
            owner,
            body,
            parents: SmallVec::new(),
            children: 0,
            pins: 0,
            dirty: false,
            in_flight: false,
            weight: 0,
            visited: 0,
            above: 0,
            needed: 0,
        }
    }

    fn must_stay(&self) -> bool {
        self.dirty || self.in_flight || self.pins > 0 || self.children > 0
    }
}

impl Graph {
    fn of_slot(&mut self, slot: &Arc<dyn AnySlot>) -> &mut Node {
        let head = slot.head();
        let node = self.nodes.entry(head.id).or_insert_with(|| Node::new(head.owner, Body::Entry(None)));
        if let Body::Entry(held @ None) = &mut node.body {
            *held = Some(Arc::clone(slot));
        }
        node
    }

    /// Makes an entry dirty, unless it is gone; returns whether it is dirty now.
    pub(crate) fn soil<T: crate::Entry>(&mut self, slot: &Arc<Slot<T>>, weight: usize) -> bool {
        if slot.as_head().gone.load(Relaxed) {
            return false;
        }
        let erased = Arc::clone(slot) as Arc<dyn AnySlot>;
        let node = self.of_slot(&erased);
        node.weight = if node.dirty { node.weight } else { weight };
        let id = slot.as_head().id;
        self.mark_dirty(id);
        true
    }

    fn mark_dirty(&mut self, id: EntryId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if !node.dirty {
            node.dirty = true;
            self.dirty_weight += node.weight;
            self.dirty.entry(node.owner).or_default().push(id);
        }
    }

    /// Adds a chunk proxy, dirty.
    pub(crate) fn add_proxy(&mut self, proxy: Proxy) {
        self.nodes.insert(proxy.id, Node::new(proxy.owner, Body::Proxy { chunk: proxy.chunk }));
        self.mark_dirty(proxy.id);
    }

    /// Joins parent and child. A proxy that is gone (its data has been written) or an entry that is gone has
    /// nothing to wait for, and nothing waits for it.
    pub(super) fn depend(&mut self, parent: &Link, child: &Link, kind: EdgeKind) -> Result<(), Cycle> {
        let (up, down) = (parent.id(), child.id());
        if self.nodes.get(&down).is_some_and(|node| node.parents.contains(&(up, kind))) {
            return Ok(());
        }
        if up == down || self.is_above(down, up) {
            return Err(Cycle);
        }
        let live = |link: &Link, graph: &Graph| match link {
            Link::Slot(slot) => !slot.head().gone.load(Relaxed),
            Link::Proxy(id) => graph.nodes.contains_key(id),
        };
        if !live(parent, self) || !live(child, self) {
            return Ok(());
        }
        let parent_owner = match parent {
            Link::Slot(slot) => {
                self.of_slot(slot).children += 1;
                slot.head().owner
            }
            Link::Proxy(_) => self.count_child(up),
        };
        let child_owner = match child {
            Link::Slot(slot) => {
                let node = self.of_slot(slot);
                node.parents.push((up, kind));
                node.owner
            }
            Link::Proxy(_) => self.nodes.get_mut(&down).map_or(parent_owner, |node| {
                node.parents.push((up, kind));
                node.owner
            }),
        };
        if parent_owner != child_owner {
            self.across.entry(parent_owner).or_default().insert(child_owner);
        }
        self.settle(down);
        Ok(())
    }

    fn count_child(&mut self, id: EntryId) -> Owner {
        self.nodes.get_mut(&id).map_or(Owner::FILE, |node| {
            node.children += 1;
            node.owner
        })
    }

    /// Whether `upper` is reached from `lower` by walking up.
    fn is_above(&mut self, upper: EntryId, lower: EntryId) -> bool {
        self.pass += 1;
        let pass = self.pass;
        let mut open: SmallVec<[EntryId; 8]> = SmallVec::from_slice(&[lower]);
        while let Some(id) = open.pop() {
            let Some(node) = self.nodes.get_mut(&id) else { continue };
            if std::mem::replace(&mut node.visited, pass) == pass {
                continue;
            }
            for (parent, _) in &node.parents {
                if *parent == upper {
                    return true;
                }
                open.push(*parent);
            }
        }
        false
    }

    /// Removes all edges between parent and child.
    pub(super) fn undepend(&mut self, parent: EntryId, child: EntryId) {
        let Some(node) = self.nodes.get_mut(&child) else { return };
        let before = node.parents.len();
        node.parents.retain(|(id, _)| *id != parent);
        let removed = before - node.parents.len();
        (0..removed).for_each(|_| self.lose_child(parent));
        self.settle(child);
    }

    pub(super) fn pin(&mut self, slot: &Arc<dyn AnySlot>) {
        if !slot.head().gone.load(Relaxed) {
            self.of_slot(slot).pins += 1;
        }
    }

    pub(super) fn unpin(&mut self, id: EntryId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.pins = node.pins.saturating_sub(1);
            self.settle(id);
        }
    }

    /// Removes a node with all its edges: the entry was removed or evicted, or the proxy's data was written.
    pub(crate) fn forget(&mut self, id: EntryId) {
        let Some(node) = self.nodes.remove(&id) else { return };
        if node.dirty {
            self.dirty_weight -= node.weight;
        }
        node.parents.iter().for_each(|(parent, _)| self.lose_child(*parent));
    }

    fn lose_child(&mut self, parent: EntryId) {
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.children -= 1;
            self.settle(parent);
        }
    }

    /// Lets go of what has no reason to be kept.
    fn settle(&mut self, id: EntryId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.must_stay() {
            return;
        }
        if let Body::Entry(held) = &mut node.body {
            *held = None;
            if node.parents.is_empty() {
                self.nodes.remove(&id);
            }
        }
    }

    pub(crate) fn is_idle(&self, id: EntryId) -> bool {
        self.nodes.get(&id).is_none_or(|node| !node.must_stay())
    }

    pub(crate) fn dirty_weight(&self) -> usize {
        self.dirty_weight
    }

    /// The number of dirty entries and proxies.
    pub(crate) fn dirty_count(&self) -> usize {
        self.nodes.values().filter(|node| node.dirty).count()
    }

    /// Takes dirty entries and proxies, children first; they are then in flight.
    pub(super) fn take(&mut self, take: Take) -> Vec<Picked> {
        self.pass += 1;
        let pass = self.pass;
        let scope = match take {
            Take::Scope(scope) => scope,
            Take::Excess { .. } => Scope::All,
        };
        let order = self.ancestors_first(scope);
        if let Scope::Owner(owner) = scope {
            self.find_needed(&order, owner);
        }
        let mut picked = Vec::with_capacity(order.len());
        for id in order.into_iter().rev() {
            let Some(node) = self.nodes.get_mut(&id).filter(|node| node.dirty) else { continue };
            let waits = node.above == pass;
            let wanted = match take {
                Take::Scope(Scope::All) => true,
                Take::Scope(Scope::Owner(_)) => node.needed == pass,
                Take::Excess { leave } => {
                    self.dirty_weight > leave || !waits && matches!(node.body, Body::Proxy { .. })
                }
            };
            let what = match &node.body {
                Body::Entry(Some(slot)) => What::Entry(Arc::clone(slot)),
                Body::Entry(None) => continue,
                Body::Proxy { chunk } => What::Raw { chunk: *chunk },
            };
            if wanted {
                node.dirty = false;
                node.in_flight = true;
                self.dirty_weight -= node.weight;
                picked.push(Picked { id, what, waits });
            }
        }
        match scope {
            Scope::All => self.dirty.retain(|_, list| Self::keep_dirty(&self.nodes, list)),
            Scope::Owner(owner) => {
                for owner in self.owners_below(owner) {
                    if let Some(list) = self.dirty.get_mut(&owner) {
                        Self::keep_dirty(&self.nodes, list);
                    }
                }
            }
        }
        picked
    }

    fn keep_dirty(nodes: &ById<Node>, list: &mut Vec<EntryId>) -> bool {
        list.retain(|id| nodes.get(id).is_some_and(|node| node.dirty));
        !list.is_empty()
    }

    /// The dirty nodes that a scope may concern and everything above them, each before what is below it.
    fn ancestors_first(&mut self, scope: Scope) -> Vec<EntryId> {
        let pass = self.pass;
        let candidates: Vec<EntryId> = match scope {
            Scope::All => self.dirty.values().flatten().copied().collect(),
            Scope::Owner(owner) => {
                let owners = self.owners_below(owner);
                owners.iter().filter_map(|owner| self.dirty.get(owner)).flatten().copied().collect()
            }
        };
        let mut order = Vec::with_capacity(candidates.len());
        let mut path: Vec<(EntryId, usize)> = Vec::new();
        for start in candidates.into_iter().rev() {
            if self.visit(start) {
                path.push((start, 0));
            }
            while let Some((id, next)) = path.last_mut() {
                let id = *id;
                let parent = self.nodes.get(&id).and_then(|node| node.parents.get(*next)).copied();
                *next += 1;
                let Some((parent, kind)) = parent else {
                    order.push(id);
                    path.pop();
                    continue;
                };
                if self.disabled.contains(kind) {
                    continue;
                }
                if let Some(node) = self.nodes.get_mut(&parent) {
                    node.above = pass;
                }
                if self.visit(parent) {
                    path.push((parent, 0));
                }
            }
        }
        order
    }

    fn visit(&mut self, id: EntryId) -> bool {
        let pass = self.pass;
        self.nodes.get_mut(&id).is_some_and(|node| std::mem::replace(&mut node.visited, pass) != pass)
    }

    fn owners_below(&self, owner: Owner) -> SmallVec<[Owner; 4]> {
        let mut owners: SmallVec<[Owner; 4]> = SmallVec::from_slice(&[owner]);
        let mut next = 0;
        while let Some(owner) = owners.get(next).copied() {
            next += 1;
            for below in self.across.get(&owner).into_iter().flatten() {
                if !owners.contains(below) {
                    owners.push(*below);
                }
            }
        }
        owners
    }

    /// Marks the dirty nodes of `owner`, and everything below them.
    fn find_needed(&mut self, ancestors_first: &[EntryId], owner: Owner) {
        let pass = self.pass;
        for id in ancestors_first {
            let Some(node) = self.nodes.get(id) else { continue };
            let needed = node.dirty && node.owner == owner
                || node.parents.iter().any(|(parent, kind)| {
                    !self.disabled.contains(*kind) && self.nodes.get(parent).is_some_and(|node| node.needed == pass)
                });
            if needed && let Some(node) = self.nodes.get_mut(id) {
                node.needed = pass;
            }
        }
    }

    /// What the proxy `old` stood for now waits with what `new` stands for.
    pub(crate) fn merge_proxy(&mut self, old: EntryId, new: EntryId) {
        let (Some(gone), true) = (self.nodes.remove(&old), self.nodes.contains_key(&new)) else { return };
        for node in self.nodes.values_mut() {
            node.parents.iter_mut().filter(|(id, _)| *id == old).for_each(|(id, _)| *id = new);
        }
        if let Some(node) = self.nodes.get_mut(&new) {
            node.parents.extend(gone.parents);
            node.children += gone.children;
        }
    }

    /// What was in flight has been written.
    pub(crate) fn written(&mut self, id: EntryId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.in_flight = false;
        match node.body {
            Body::Proxy { .. } => self.forget(id),
            Body::Entry(_) => self.settle(id),
        }
    }

    /// What was in flight has not been written: it is dirty again.
    pub(crate) fn failed(&mut self, id: EntryId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.in_flight = false;
            self.mark_dirty(id);
        }
    }
}
