//! The entries of a flush, and their order.

use std::{collections::BTreeSet, sync::Arc};

use h5live_format::Addr;
use smallvec::SmallVec;

use super::graph::{DependencyGraph, GraphNode, NodeContent};
use super::owner_deps::OwnerDependencies;
use crate::{
    entry_header::AnySlot,
    entry_id::{EntryId, Owner},
};

/// Which dirty entries to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushScope {
    /// All of them.
    All,
    /// The entries of one object, and everything of other objects that must be written before them.
    Owner(Owner),
}

/// The entries that a flush takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FlushSelection {
    Scope(FlushScope),
    /// Entries until the rest weighs no more than `max_dirty_bytes_left` bytes. With `with_raw`, also raw data that waits for nothing.
    OverBudget {
        max_dirty_bytes_left: usize,
        with_raw: bool,
    },
}

/// Something to be written by a flush.
pub(super) struct FlushItem {
    pub(super) id: EntryId,
    pub(super) kind: FlushItemKind,
    /// Something else that is written must be written before.
    pub(super) has_dependencies: bool,
}

pub(super) enum FlushItemKind {
    Entry(Arc<dyn AnySlot>),
    Raw { chunk: Addr },
}

/// What is next for a node of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkStep {
    /// The walk begins there.
    Start,
    /// It comes there from a node below.
    FromBelow,
    /// Everything above has been visited.
    Leave,
}

impl DependencyGraph {
    /// Takes dirty entries and proxies, children first; they are then in flight.
    pub(super) fn take_dirty(&mut self, take: FlushSelection) -> Vec<FlushItem> {
        if let FlushSelection::OverBudget { max_dirty_bytes_left, with_raw: false } = take
            && let Some(picked) = self.take_independent_dirty(max_dirty_bytes_left)
        {
            return picked;
        }
        let pass = self.begin_pass();
        let scope = match take {
            FlushSelection::Scope(scope) => scope,
            FlushSelection::OverBudget { .. } => FlushScope::All,
        };
        let order = self.ancestors_first(scope);
        if let FlushScope::Owner(owner) = scope {
            self.mark_needed(&order, owner);
        }
        let mut picked = Vec::with_capacity(order.len());
        for id in order.into_iter().rev() {
            let Some(node) = self.nodes.get_mut(&id).filter(|node| node.is_dirty) else { continue };
            let has_dependencies = node.waits_in_pass == pass;
            let wanted = match take {
                FlushSelection::Scope(FlushScope::All) => true,
                FlushSelection::Scope(FlushScope::Owner(_)) => node.needed_in_pass == pass,
                FlushSelection::OverBudget { max_dirty_bytes_left, .. } => {
                    self.dirty_weight > max_dirty_bytes_left
                        || !has_dependencies && matches!(node.content, NodeContent::Proxy { .. })
                }
            };
            if wanted && let Some(kind) = node.begin_write() {
                self.dirty_weight -= node.counted_weight();
                picked.push(FlushItem { id, kind, has_dependencies });
            }
        }
        let is_dirty = |id: EntryId| self.nodes.get(&id).is_some_and(|node| node.is_dirty);
        match scope {
            FlushScope::All => self.dirty_entries.remove_clean(is_dirty),
            FlushScope::Owner(owner) => {
                self.dirty_entries.remove_clean_of_owners(&owners_reached_from(&self.owner_deps, owner), is_dirty)
            }
        }
        picked
    }

    /// Takes entries below which there is nothing at all, until those left weigh no more than `max_dirty_bytes_left`: they need no
    /// order. `None`, and nothing is taken, if there are not enough of them.
    fn take_independent_dirty(&mut self, max_dirty_bytes_left: usize) -> Option<Vec<FlushItem>> {
        // A mutant needs the wrong order.
        if !self.broken_edges.is_empty() {
            return None;
        }
        let mut excess = self.dirty_weight.checked_sub(max_dirty_bytes_left).filter(|excess| *excess > 0)?;
        let mut free = Vec::new();
        for id in self.dirty_entries.all() {
            let node = self.nodes.get(&id).filter(|node| node.is_dirty && node.child_count == 0);
            let Some(node) = node.filter(|node| matches!(node.content, NodeContent::Entry(Some(_)))) else { continue };
            free.push(id);
            excess = excess.saturating_sub(node.counted_weight());
            if excess == 0 {
                break;
            }
        }
        if excess > 0 {
            return None;
        }
        let mut picked = Vec::with_capacity(free.len());
        for id in free {
            // It may be listed twice.
            let Some(node) = self.nodes.get_mut(&id).filter(|node| node.is_dirty) else { continue };
            if let Some(what) = node.begin_write() {
                self.dirty_weight -= node.counted_weight();
                picked.push(FlushItem { id, kind: what, has_dependencies: false });
            }
        }
        let DependencyGraph { dirty_entries: dirty, nodes, .. } = self;
        dirty.remove_clean(|id| nodes.get(&id).is_some_and(|node| node.is_dirty));
        Some(picked)
    }

    /// Whether a flush of `owner` would find nothing to write, neither of it nor of others.
    pub(super) fn is_clean(&mut self, owner: Owner) -> bool {
        let is_dirty = |id: &EntryId| self.nodes.get(id).is_some_and(|node| node.is_dirty || node.is_in_flight);
        !self.owner_deps.has_children(owner)
            && !self.dirty_entries.get_mut(&owner).is_some_and(|list| list.iter().any(is_dirty))
    }

    /// The dirty nodes in a scope and everything above them, each before the nodes below it.
    fn ancestors_first(&mut self, scope: FlushScope) -> Vec<EntryId> {
        let pass = self.pass;
        let candidates = match scope {
            FlushScope::All => self.dirty_entries.all(),
            FlushScope::Owner(owner) => self.dirty_entries.of_owners(&owners_reached_from(&self.owner_deps, owner)),
        };
        let mut order = Vec::with_capacity(2 * candidates.len());
        let mut open: SmallVec<[(EntryId, WalkStep); 16]> = SmallVec::new();
        for start in candidates.into_iter().rev() {
            open.push((start, WalkStep::Start));
            while let Some((id, step)) = open.pop() {
                if step == WalkStep::Leave {
                    order.push(id);
                    continue;
                }
                let Some(node) = self.nodes.get_mut(&id) else { continue };
                if step == WalkStep::FromBelow {
                    node.waits_in_pass = pass;
                }
                if std::mem::replace(&mut node.visited_in_pass, pass) == pass {
                    continue;
                }
                open.push((id, WalkStep::Leave));
                // A broken edge turns the order around, as nothing else would be sure to violate it.
                let last = open.len();
                open.extend((0..).map_while(|n| Some((self.broken_edges.nth_child(id, n)?, WalkStep::FromBelow))));
                open[last..].reverse();
                let above = node.parents.as_slice().iter().rev();
                above.for_each(|above| open.push((above.parent, WalkStep::FromBelow)));
            }
        }
        order
    }

    /// Marks the dirty nodes of `owner`, and everything below them.
    fn mark_needed(&mut self, ancestors_first: &[EntryId], owner: Owner) {
        let pass = self.pass;
        for id in ancestors_first {
            let Some(node) = self.nodes.get(id) else { continue };
            let needed = node.is_dirty && node.owner == owner
                || node
                    .parents
                    .as_slice()
                    .iter()
                    .any(|above| self.nodes.get(&above.parent).is_some_and(|node| node.needed_in_pass == pass));
            if needed && let Some(node) = self.nodes.get_mut(id) {
                node.needed_in_pass = pass;
            }
        }
    }
}

impl GraphNode {
    /// Takes a dirty node to be written. It is in flight from then on.
    fn begin_write(&mut self) -> Option<FlushItemKind> {
        let what = match &self.content {
            NodeContent::Entry(Some(slot)) => FlushItemKind::Entry(Arc::clone(slot)),
            NodeContent::Entry(None) => return None,
            NodeContent::Proxy { chunk } => FlushItemKind::Raw { chunk: *chunk },
        };
        self.is_dirty = false;
        self.is_in_flight = true;
        Some(what)
    }
}

fn owners_reached_from(owner_deps: &OwnerDependencies, owner: Owner) -> SmallVec<[Owner; 4]> {
    let mut owners: SmallVec<[Owner; 4]> = SmallVec::from_slice(&[owner]);
    if !owner_deps.has_children(owner) {
        return owners;
    }
    // A group may have any number of them.
    let mut seen = BTreeSet::from([owner]);
    let mut next = 0;
    while let Some(owner) = owners.get(next).copied() {
        next += 1;
        let known = owners.len();
        owners.extend(owner_deps.possible_children_of(owner).filter(|below| seen.insert(*below)));
        owners[known..].sort_unstable();
    }
    owners
}
