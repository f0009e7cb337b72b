//! One of the two files that are compared.

use std::collections::BTreeMap;

use h5live::model::ObjectId;
use h5live::{Dataset, File, Object, Value};

use crate::manifest::{Listing, ListingEntry};

/// One of the two files.
pub struct DiffSide {
    /// The file.
    pub file: File,
    /// What is in it.
    pub listing: Listing,
}

impl DiffSide {
    /// Lists what is in a file, from an object on, which is called `path`.
    pub fn new(file: File, start: ObjectId, path: &[u8]) -> Self {
        let listing = Listing::from_file(&file, start, path, None);
        DiffSide { file, listing }
    }

    /// What it has, by path.
    pub fn entries_by_path(&self) -> BTreeMap<&str, &ListingEntry> {
        self.listing.lines.iter().map(|line| (line.escaped_path.as_str(), &line.entry)).collect()
    }

    /// The dataset that was listed; `None` if it has become something else meanwhile.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn dataset(&self, id: ObjectId) -> h5live::Result<Option<Dataset>> {
        let path = self.listing.first_paths.get(&id).map(|path| String::from_utf8_lossy(path)).unwrap_or_default();
        match self.file.root().object_by_id(id, &path)? {
            Object::Dataset(dataset) => Ok(Some(dataset)),
            _ => Ok(None),
        }
    }

    /// The path of the object that a reference leads to.
    pub fn referenced_path(&self, value: &Value) -> Option<&[u8]> {
        let Value::Reference(reference) = value else { return None };
        let object = self.file.dereference(reference).ok()??;
        self.listing.first_paths.get(&object.id()).map(Vec::as_slice)
    }
}
