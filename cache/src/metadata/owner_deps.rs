//! The owners of entries that are parents and children of each other.

use rustc_hash::FxHashMap;

use crate::entry_id::Owner;

/// Edges that have ended are sorted out when there are this many.
const MIN_ENDED_TO_SORT_OUT: usize = 32;

/// Which owners' entries are children of each owner's, by edges between entries of two owners.
#[derive(Default)]
pub(super) struct OwnerDependencies(FxHashMap<Owner, ChildOwners>);

/// The owners below one, by edges.
#[derive(Default)]
struct ChildOwners {
    /// The owner of each child to which an edge was made.
    begun: Vec<Owner>,
    /// Those of `begun` whose edges have ended.
    ended: Vec<Owner>,
}

impl OwnerDependencies {
    /// Counts an edge.
    pub fn add_edge(&mut self, parent: Owner, child: Owner) {
        self.0.entry(parent).or_default().begun.push(child);
    }

    /// Counts an edge no more.
    pub fn remove_edge(&mut self, parent: Owner, child: Owner) {
        let Some(below) = self.0.get_mut(&parent) else { return };
        below.ended.push(child);
        if below.ended.len() == below.begun.len() {
            self.0.remove(&parent);
        } else if below.ended.len() >= MIN_ENDED_TO_SORT_OUT.max(below.begun.len() / 2) {
            below.sort_out_ended();
        }
    }

    /// Whether an entry of `parent` has a child of another owner.
    pub fn has_children(&self, parent: Owner) -> bool {
        self.0.contains_key(&parent)
    }

    /// The owners of the children of the entries of `parent`. Some may be there several times, and of some, the edges may
    /// have ended: not more than there are others.
    pub fn possible_children_of(&self, parent: Owner) -> impl Iterator<Item = Owner> {
        self.0.get(&parent).into_iter().flat_map(|below| below.begun.iter().copied())
    }
}

impl ChildOwners {
    fn sort_out_ended(&mut self) {
        self.begun.sort_unstable();
        self.ended.sort_unstable();
        let mut ended = self.ended.drain(..).peekable();
        self.begun.retain(|child| {
            while ended.next_if(|ended| ended < child).is_some() {}
            ended.next_if_eq(child).is_none()
        });
    }
}

#[cfg(test)]
mod tests {
    use h5live_format::Addr;

    use super::*;

    #[test]
    fn an_owner_is_below_another_one_as_long_as_there_is_an_edge() {
        let owner = |at| Owner::new(Addr::new(at));
        let mut owner_deps = OwnerDependencies::default();
        assert!(!owner_deps.has_children(owner(0)));
        for n in 0..1000 {
            owner_deps.add_edge(owner(0), owner(1 + n % 100));
        }
        for n in 0..900 {
            owner_deps.remove_edge(owner(0), owner(1 + n % 100));
        }
        let mut below: Vec<_> = owner_deps.possible_children_of(owner(0)).collect();
        assert!(below.len() <= 2 * 100, "{}", below.len());
        below.sort_unstable();
        below.dedup();
        assert_eq!(below, (1..=100).map(owner).collect::<Vec<_>>());
        for n in 0..100 {
            assert!(owner_deps.has_children(owner(0)), "{n}");
            owner_deps.remove_edge(owner(0), owner(1 + n));
        }
        assert!(!owner_deps.has_children(owner(0)));
        owner_deps.remove_edge(owner(0), owner(1));
    }

    #[test]
    fn owners_whose_edges_have_ended_do_not_stay() {
        let owner = |at| Owner::new(Addr::new(at));
        let mut owner_deps = OwnerDependencies::default();
        owner_deps.add_edge(owner(0), owner(7));
        for n in 0..100_000 {
            owner_deps.add_edge(owner(0), owner(8 + n));
            owner_deps.remove_edge(owner(0), owner(8 + n));
        }
        assert!(owner_deps.possible_children_of(owner(0)).count() <= 2 * MIN_ENDED_TO_SORT_OUT);
        assert!(owner_deps.possible_children_of(owner(0)).any(|child| child == owner(7)));
    }
}
