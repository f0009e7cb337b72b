//! The objects and blobs of a container, while it is checked.

use h5live_model::{AllocationError, AllocationLimit, ObjectId};

use crate::layout::BlobId;

/// An object of the container.
#[derive(Debug, Clone)]
pub struct CheckedObject {
    pub id: ObjectId,
    /// Hard links and uses that it states.
    pub stated_ref_count: Option<u64>,
    /// Hard links and uses that were found.
    pub found_ref_count: u64,
    /// Bytes of its keys and values.
    pub record_bytes: u64,
    /// A group that leads to it, by its number in the table, on a path from the root group.
    pub parent_table_index: Option<u32>,
    /// Whether a path leads to it.
    pub is_reachable: bool,
}

/// The objects of a container, by their identity: 64 bytes for each.
#[derive(Debug, Default)]
pub struct CheckedObjectTable(Vec<CheckedObject>);

/// The blobs of a container, by UUID: 17 bytes for each.
#[derive(Debug, Default)]
pub struct CheckedBlobTable {
    ids: Vec<BlobId>,
    is_used: Vec<bool>,
}

impl CheckedObjectTable {
    /// Adds an object.
    ///
    /// # Errors
    /// [`AllocationError`] if the table becomes too large.
    pub fn push_unsorted(&mut self, id: ObjectId, limit: AllocationLimit) -> Result<(), AllocationError> {
        limit.check((self.0.len() as u64 + 1) * size_of::<CheckedObject>() as u64)?;
        let (stated_links, found_links, bytes, parent) = (None, 0, 0, None);
        self.0.push(CheckedObject {
            id,
            stated_ref_count: stated_links,
            found_ref_count: found_links,
            record_bytes: bytes,
            parent_table_index: parent,
            is_reachable: false,
        });
        Ok(())
    }

    /// Brings the objects in order. All are there now.
    pub fn sort(&mut self) {
        self.0.sort_unstable_by_key(|object| object.id);
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The object with a number.
    pub fn get(&self, table_index: usize) -> Option<&CheckedObject> {
        self.0.get(table_index)
    }

    /// The object with a number.
    pub fn get_mut(&mut self, table_index: usize) -> Option<&mut CheckedObject> {
        self.0.get_mut(table_index)
    }

    /// The number of an object.
    pub fn position(&self, id: ObjectId) -> Option<usize> {
        self.0.binary_search_by_key(&id, |object| object.id).ok()
    }

    /// Counts a link to an object, or a use of it. Whether it is there.
    pub fn increment_ref_count(&mut self, id: ObjectId) -> bool {
        let found = self.position(id).and_then(|number| self.0.get_mut(number));
        found.map(|object| object.found_ref_count += 1).is_some()
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = &CheckedObject> {
        self.0.iter()
    }
}

impl CheckedBlobTable {
    /// Adds a blob, behind all others in the order of UUIDs.
    ///
    /// # Errors
    /// [`AllocationError`] if the table becomes too large.
    pub fn push_in_order(&mut self, id: BlobId, limit: AllocationLimit) -> Result<(), AllocationError> {
        limit.check((self.ids.len() as u64 + 1) * (size_of::<BlobId>() as u64 + 1))?;
        self.ids.push(id);
        self.is_used.push(false);
        Ok(())
    }

    /// Says that an element leads to a blob. `None` if it is not there; whether it is the first such element.
    pub fn mark_used(&mut self, id: BlobId) -> Option<bool> {
        let number = self.ids.binary_search(&id).ok()?;
        Some(!std::mem::replace(self.is_used.get_mut(number)?, true))
    }

    /// The blobs to which no element leads.
    pub fn unused(&self) -> impl Iterator<Item = BlobId> {
        self.ids.iter().zip(&self.is_used).filter(|(_, is_used)| !**is_used).map(|(id, _)| *id)
    }
}
