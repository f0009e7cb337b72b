//! The collections of global heaps that were visited.

use std::collections::HashMap;

use h5live_format::{GlobalHeapCollection, GlobalHeapId};

/// An object of a collection.
#[derive(Debug)]
pub(super) struct CollectionObjectUse {
    pub index: u16,
    pub len: u64,
    pub used: bool,
}

/// The collections that were visited.
#[derive(Debug, Default)]
pub(super) struct VisitedCollections {
    /// Collections by address; `None` for an address without a collection. Entries are sorted by index.
    pub known: HashMap<u64, Option<Vec<CollectionObjectUse>>>,
    /// The collection that was last read.
    pub last: Option<(u64, GlobalHeapCollection)>,
}

impl VisitedCollections {
    /// The object to which an ID leads.
    pub fn object_use_mut(&mut self, place: GlobalHeapId) -> Option<&mut CollectionObjectUse> {
        let list = self.known.get_mut(&place.collection.get()?)?.as_mut()?;
        let found = list.binary_search_by_key(&place.index, |entry| entry.index.into()).ok()?;
        list.get_mut(found)
    }
}
