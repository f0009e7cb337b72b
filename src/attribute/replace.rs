//! Changes of attributes, after which nothing leads to the variable-length data of the old values.

use h5live_model::{self as model, Name, ObjectId};

use crate::File;
use crate::superseded_blobs::blobs_in;

impl File {
    /// Replaces or removes an attribute by `change`, and gives up the variable-length data of the old value.
    ///
    /// # Errors
    /// Those of `change`, and of the store.
    pub(crate) fn replace_attribute(
        &self,
        object: ObjectId,
        name: &Name,
        change: impl FnOnce(&dyn model::StoreWriter) -> model::Result<()>,
    ) -> model::Result<()> {
        let blobs = &self.shared().blobs;
        let writer = self.writer()?;
        let _only = blobs.lock_attributes();
        // An old value that cannot be read leads nowhere.
        let old = self.store().attribute(object, name).ok().flatten();
        let old = old.filter(|old| !blobs.cannot_reclaim(&old.datatype));
        let old = old.map_or_else(Default::default, |old| blobs_in(&old.datatype, &old.value, self.store()));
        change(&*writer)?;
        blobs.remove(self.store(), old)
    }
}
