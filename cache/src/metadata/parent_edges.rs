//! The edges from an entry to what waits for it.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dependency_kind::DependencyKind;
use crate::entry_id::{EntryId, Owner};

/// Edges that are looked through one by one.
const MAX_SEARCHED: usize = 16;

/// An edge, as its child keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParentEdge {
    pub(super) parent: EntryId,
    pub(super) parent_owner: Owner,
    pub(super) kind: DependencyKind,
    pub(super) until: EdgeLifetime,
}

/// When an edge ends, if its child is not gone before; the longer the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EdgeLifetime {
    /// Until the child, which is new, is in the file, in any state.
    Stored,
    /// Until the present state of the child was written.
    Written,
    /// When it is undone.
    Removed,
}

/// The edges of a child, in the order in which they were made. One that has many is found without looking at each.
#[derive(Debug, Default)]
pub(super) struct ParentEdges {
    edges: SmallVec<[ParentEdge; 2]>,
    /// Where they are in the list. Made when there are many, and forgotten when some end.
    places: Option<Box<FxHashMap<(EntryId, DependencyKind), usize>>>,
}

impl ParentEdges {
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    pub fn as_slice(&self) -> &[ParentEdge] {
        &self.edges
    }

    pub fn push(&mut self, edge: ParentEdge) {
        if let Some(places) = &mut self.places {
            places.insert((edge.parent, edge.kind), self.edges.len());
        }
        self.edges.push(edge);
    }

    pub fn find_mut(&mut self, parent: EntryId, kind: DependencyKind) -> Option<&mut ParentEdge> {
        if self.edges.len() <= MAX_SEARCHED {
            return self.edges.iter_mut().find(|edge| edge.parent == parent && edge.kind == kind);
        }
        let edges = &self.edges;
        let places = self.places.get_or_insert_with(|| {
            Box::new(edges.iter().enumerate().map(|(at, edge)| ((edge.parent, edge.kind), at)).collect())
        });
        places.get(&(parent, kind)).and_then(|at| self.edges.get_mut(*at))
    }

    /// Takes the edges of which `ends` says so.
    pub fn take_if(&mut self, mut ends: impl FnMut(&ParentEdge) -> bool) -> SmallVec<[ParentEdge; 2]> {
        let ending = self.edges.iter().filter(|edge| ends(edge)).count();
        if ending == self.edges.len() {
            return std::mem::take(self).edges;
        }
        let mut taken = SmallVec::new();
        if ending == 0 {
            return taken;
        }
        self.edges.retain(|edge| {
            let ends = ends(edge);
            taken.extend(ends.then_some(*edge));
            !ends
        });
        self.places = None;
        taken
    }

    pub fn into_edges(self) -> SmallVec<[ParentEdge; 2]> {
        self.edges
    }

    /// Lets the edges that led to `old` lead to `new`.
    pub fn replace_parent(&mut self, old: EntryId, new: EntryId) {
        let mut changed = self.edges.iter_mut().filter(|edge| edge.parent == old).map(|edge| edge.parent = new);
        if changed.by_ref().count() > 0 {
            self.places = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use h5live_format::Addr;

    use super::*;

    #[test]
    fn edges_are_found_however_many_there_are() {
        let edge = |n: u64| ParentEdge {
            parent: EntryId(n),
            parent_owner: Owner::new(Addr::new(0)),
            kind: DependencyKind::Link,
            until: EdgeLifetime::Stored,
        };
        let mut edges = ParentEdges::default();
        let found = |edges: &mut ParentEdges, n| edges.find_mut(EntryId(n), DependencyKind::Link).map(|found| *found);
        for n in 0..100 {
            assert_eq!(found(&mut edges, n), None, "{n}");
            edges.push(edge(n));
            assert_eq!(found(&mut edges, n), Some(edge(n)));
            assert!(edges.find_mut(EntryId(n), DependencyKind::MetadataGlobalHeap).is_none());
        }
        assert_eq!(edges.take_if(|edge| edge.parent.0 % 2 == 0).len(), 50);
        edges.replace_parent(EntryId(99), EntryId(7000));
        for n in 0..100 {
            assert_eq!(found(&mut edges, n).is_some(), n % 2 == 1 && n != 99, "{n}");
        }
        assert!(found(&mut edges, 7000).is_some());
        assert_eq!(edges.into_edges().len(), 50);
    }
}
