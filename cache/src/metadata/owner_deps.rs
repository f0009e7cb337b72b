//! The owners of entries that are parents and children of each other.

use rustc_hash::FxHashMap;

use crate::entry_id::Owner;

/// Duplicates are removed when there are this many.
const MIN_OWNERS_TO_DEDUPLICATE: usize = 32;

/// Which owners' entries have been children of each owner's.
#[derive(Default)]
pub(super) struct OwnerDependencies(FxHashMap<Owner, ChildOwners>);

/// The owners below one; some may be in it several times.
#[derive(Default)]
pub(super) struct ChildOwners {
    owners: Vec<Owner>,
    /// How many there were when each was in it once.
    deduplicated_count: usize,
}

impl OwnerDependencies {
    pub fn add(&mut self, parent: Owner, child: Owner) {
        let ChildOwners { owners, deduplicated_count } = self.0.entry(parent).or_default();
        if owners.last() == Some(&child) {
            return;
        }
        owners.push(child);
        if owners.len() >= MIN_OWNERS_TO_DEDUPLICATE.max(2 * *deduplicated_count) {
            owners.sort_unstable();
            owners.dedup();
            *deduplicated_count = owners.len();
        }
    }

    pub fn children_of(&self, parent: &Owner) -> Option<&ChildOwners> {
        self.0.get(parent)
    }
}

impl ChildOwners {
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Owner> {
        self.owners.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use h5live_format::Addr;

    use super::*;

    #[test]
    fn notes_each_owner_and_does_not_grow_by_those_it_knows() {
        let owner = |at| Owner::new(Addr::new(at));
        let mut owner_deps = OwnerDependencies::default();
        assert!(owner_deps.children_of(&owner(0)).is_none());
        for n in 0..100_000 {
            owner_deps.add(owner(0), owner(1 + n % 100));
        }
        let below = owner_deps.children_of(&owner(0)).unwrap();
        assert!(!below.is_empty() && below.owners.len() <= 2 * 100);
        let mut all: Vec<_> = below.iter().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (1..=100).map(owner).collect::<Vec<_>>());
    }
}
