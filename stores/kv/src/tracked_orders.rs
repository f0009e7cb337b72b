//! At which objects orders of creation are kept, as far as a session knows.

use std::collections::HashMap;

use h5live_model::{CreationOrder, ObjectId, ObjectKindSpec, ObjectSpec};

/// Objects that are known at a time.
const MAX_KNOWN_OBJECTS: usize = 4096;

/// Whether an order of creation is kept.
pub fn is_tracked(order: CreationOrder) -> bool {
    order != CreationOrder::Untracked
}

/// Whether orders of creation are kept at an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackedOrders {
    /// That of its links.
    pub links: bool,
    /// That of its attributes.
    pub attributes: bool,
}

impl TrackedOrders {
    /// Those of an object with this description.
    pub fn of(spec: &ObjectSpec) -> Self {
        let links = matches!(&spec.body, ObjectKindSpec::Group(group) if is_tracked(group.link_storage.order));
        TrackedOrders { links, attributes: is_tracked(spec.attribute_storage.order) }
    }
}

/// What is known of objects that are there. It never changes, and identities are given once.
#[derive(Debug, Default)]
pub struct TrackedOrderCache(HashMap<ObjectId, TrackedOrders>);

impl TrackedOrderCache {
    /// What is known of an object.
    pub fn get(&self, id: ObjectId) -> Option<TrackedOrders> {
        self.0.get(&id).copied()
    }

    /// Takes up what an object is like.
    pub fn insert(&mut self, id: ObjectId, orders: TrackedOrders) {
        if self.0.len() >= MAX_KNOWN_OBJECTS {
            self.0.clear();
        }
        self.0.insert(id, orders);
    }

    /// Forgets an object.
    pub fn remove(&mut self, id: ObjectId) {
        self.0.remove(&id);
    }
}
