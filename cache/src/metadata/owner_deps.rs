//! The owners of entries that are parents and children of each other.

use rustc_hash::FxHashMap;

use crate::identity::Owner;

/// Duplicates are removed when there are this many.
const MIN_DEDUP_LEN: usize = 32;

/// Which owners' entries have been children of each owner's.
#[derive(Default)]
pub(super) struct OwnerDependencies(FxHashMap<Owner, ChildOwners>);

/// The owners below one; some may be in it several times.
#[derive(Default)]
pub(super) struct ChildOwners {
    owners: Vec<Owner>,
    /// How many there were when each was in it once.
    apart: usize,
}

impl OwnerDependencies {
    pub fn add(&mut self, above: Owner, below: Owner) {
        let ChildOwners { owners, apart } = self.0.entry(above).or_default();
        if owners.last() == Some(&below) {
            return;
        }
        owners.push(below);
        if owners.len() >= MIN_DEDUP_LEN.max(2 * *apart) {
            owners.sort_unstable();
            owners.dedup();
            *apart = owners.len();
        }
    }

    pub fn get(&self, above: &Owner) -> Option<&ChildOwners> {
        self.0.get(above)
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
        let mut across = OwnerDependencies::default();
        assert!(across.get(&owner(0)).is_none());
        for n in 0..100_000 {
            across.add(owner(0), owner(1 + n % 100));
        }
        let below = across.get(&owner(0)).unwrap();
        assert!(!below.is_empty() && below.owners.len() <= 2 * 100);
        let mut all: Vec<_> = below.iter().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (1..=100).map(owner).collect::<Vec<_>>());
    }
}
