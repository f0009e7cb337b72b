//! The publication counter: an attribute that is written after everything that it counts.

use h5live_model::{
    AttributeData, ByteOrder, Dataspace, Datatype, Error as ModelError, Name, ObjectId, ObjectScope, PublishLevel,
    Sign, Store,
};
use parking_lot::Mutex;

/// The name of the attribute.
pub(super) const NAME: &str = "publications";
/// Counts the publications of a session that writes.
#[derive(Debug)]
pub(crate) struct PublicationCounter {
    group: ObjectId,
    count: Mutex<u64>,
}

/// The count that the counter of a group shows; `None` if there is no counter.
pub(super) fn read_count(store: &dyn Store, group: ObjectId) -> Result<Option<u64>, ModelError> {
    let found = store.attribute(group, &NAME.into())?;
    let bytes = found.and_then(|attribute| attribute.value.try_into().ok());
    Ok(bytes.map(u64::from_le_bytes))
}

impl PublicationCounter {
    /// Goes on counting where an earlier session ended.
    pub(crate) fn resume_or_create(store: &dyn Store, group: ObjectId) -> Result<Self, ModelError> {
        let found = read_count(store, group)?;
        let counter = PublicationCounter { group, count: Mutex::new(found.unwrap_or(0)) };
        if found.is_none() {
            counter.store_count(store, 0)?;
        }
        Ok(counter)
    }

    fn store_count(&self, store: &dyn Store, count: u64) -> Result<(), ModelError> {
        let attribute = AttributeData {
            name: Name::from(NAME),
            datatype: Datatype::integer(8, ByteOrder::Little, Sign::Unsigned),
            committed_datatype: None,
            dataspace: Dataspace::Scalar,
            value: count.to_le_bytes().to_vec(),
            creation_order: None,
        };
        store.writer()?.set_attribute(self.group, &attribute)
    }

    /// Counts one more publication, and publishes the counter. What it counts is published already.
    pub(crate) fn increment_and_publish(&self, store: &dyn Store) -> Result<(), ModelError> {
        let mut count = self.count.lock();
        self.store_count(store, *count + 1)?;
        *count += 1;
        store.writer()?.commit(ObjectScope::Objects(&[self.group]), PublishLevel::Visible)
    }
}
