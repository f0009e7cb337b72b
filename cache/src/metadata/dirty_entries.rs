//! The dirty entries, by owner.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::entry_id::{EntryId, Owner};

/// Empty lists are kept for later if there are no more than these.
const MAX_SPARE_LISTS: usize = 64;

/// Room for lists that is given up when they are few.
const SHRINK_CAPACITY: usize = 16 * MAX_SPARE_LISTS;

/// Some dirty entries of one owner, in the order in which they became dirty.
pub(super) type DirtyList = SmallVec<[EntryId; 2]>;

/// The dirty entries of each owner, in the order in which they became dirty; may name some that are gone.
#[derive(Default)]
pub(super) struct DirtyEntries {
    lists: FxHashMap<Owner, DirtyList>,
    /// The entries that became dirty last, of any owner. They go into the lists when one of these is needed. A program
    /// that creates many objects never needs one.
    latest: Vec<(Owner, EntryId)>,
}

impl DirtyEntries {
    pub fn push_dirty(&mut self, owner: Owner, id: EntryId) {
        self.latest.push((owner, id));
    }

    fn distribute_to_owners(&mut self) {
        for (owner, id) in self.latest.drain(..) {
            self.lists.entry(owner).or_default().push(id);
        }
    }

    pub fn get_mut(&mut self, owner: &Owner) -> Option<&mut DirtyList> {
        self.distribute_to_owners();
        self.lists.get_mut(owner)
    }

    /// Those of `owners`, one after the other.
    pub fn of_owners(&mut self, owners: &[Owner]) -> Vec<EntryId> {
        self.distribute_to_owners();
        owners.iter().filter_map(|owner| self.lists.get(owner)).flatten().copied().collect()
    }

    /// All of them, by owner.
    pub fn all(&self) -> Vec<EntryId> {
        let listed = self.lists.iter().flat_map(|(owner, list)| list.iter().map(|id| (*owner, *id)));
        let mut all: Vec<_> = listed.chain(self.latest.iter().copied()).collect();
        all.sort_by_key(|(owner, _)| *owner);
        all.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether one of them `is_dirty`.
    pub fn any(&self, is_dirty: impl Fn(EntryId) -> bool) -> bool {
        let listed = self.lists.values().flatten().copied();
        listed.chain(self.latest.iter().map(|(_, id)| *id)).any(is_dirty)
    }

    /// Keeps those that `is_dirty`.
    pub fn remove_clean(&mut self, is_dirty: impl Fn(EntryId) -> bool) {
        self.latest.retain(|(_, id)| is_dirty(*id));
        self.latest.shrink_to(SHRINK_CAPACITY);
        let few = self.lists.len() <= MAX_SPARE_LISTS;
        self.lists.retain(|_, list| {
            list.retain(|id| is_dirty(*id));
            few || !list.is_empty()
        });
        // Later walks over the lists must not pay for the many that there were.
        if self.lists.capacity() > SHRINK_CAPACITY && self.lists.len() < self.lists.capacity() / 8 {
            self.lists.shrink_to(SHRINK_CAPACITY / 8);
        }
    }

    /// Keeps those of `owners` that `is_dirty`, and those of others.
    pub fn remove_clean_of_owners(&mut self, owners: &[Owner], is_dirty: impl Fn(EntryId) -> bool) {
        self.distribute_to_owners();
        for owner in owners {
            if let Some(list) = self.lists.get_mut(owner) {
                list.retain(|id| is_dirty(*id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use h5live_format::Addr;

    use super::*;

    fn owner(at: u64) -> Owner {
        Owner::new(Addr::new(at))
    }

    #[test]
    fn tells_them_by_owner_in_the_order_in_which_they_came() {
        let mut dirty = DirtyEntries::default();
        for (at, id) in [(2, 1), (1, 2), (2, 3)] {
            dirty.push_dirty(owner(at), EntryId(id));
        }
        let ids = |ids: &[u64]| ids.iter().copied().map(EntryId).collect::<Vec<_>>();
        assert_eq!(dirty.all(), ids(&[2, 1, 3]));
        assert_eq!(dirty.get_mut(&owner(2)).unwrap().to_vec(), ids(&[1, 3]));
        assert!(dirty.get_mut(&owner(3)).is_none());
        // Some are in lists now, and others come.
        for (at, id) in [(1, 4), (3, 5), (2, 6)] {
            dirty.push_dirty(owner(at), EntryId(id));
        }
        assert_eq!(dirty.all(), ids(&[2, 4, 1, 3, 6, 5]));
        assert_eq!(dirty.of_owners(&[owner(3), owner(1)]), ids(&[5, 2, 4]));
    }

    #[test]
    fn forgets_those_that_are_written() {
        let mut dirty = DirtyEntries::default();
        for id in 0..4 {
            dirty.push_dirty(owner(id % 2), EntryId(id));
        }
        dirty.remove_clean_of_owners(&[owner(1)], |_| false);
        assert_eq!(dirty.all(), [EntryId(0), EntryId(2)]);
        dirty.push_dirty(owner(1), EntryId(5));
        dirty.remove_clean(|id| id != EntryId(2));
        assert_eq!(dirty.all(), [EntryId(0), EntryId(5)]);
        dirty.remove_clean(|_| false);
        assert_eq!(dirty.all(), []);
        // Few empty lists stay, many do not.
        assert_eq!(dirty.lists.len(), 2);
        let many: Vec<_> = (0..2 * MAX_SPARE_LISTS as u64).map(owner).collect();
        many.iter().for_each(|owner| dirty.push_dirty(*owner, EntryId(7)));
        assert_eq!(dirty.of_owners(&many).len(), many.len());
        dirty.remove_clean(|_| false);
        assert_eq!(dirty.lists.len(), 0);
    }
}
