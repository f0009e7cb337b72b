//! One of the two files that are compared.

use std::collections::BTreeMap;

use h5live::{Dataset, File, Location, Object};

use crate::error::Result;
use crate::escaped_path;
use crate::manifest::listing::{Listing, ListingEntry};
use crate::model::ObjectId;
use crate::open;
use crate::value::Value;

/// One of the two files.
pub struct DiffSide {
    /// The file.
    pub file: File,
    /// What is in it.
    pub listing: Listing,
}

impl DiffSide {
    /// Opens it, and lists what is below a path.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn open(path: &Location, start: &str) -> Result<Self> {
        let file = open::for_reading(path)?;
        let (object, path) = escaped_path::object(&file, start)?;
        // Shown as it was asked for.
        let path = if start.starts_with('/') { &path } else { path.strip_prefix(b"/").unwrap_or(&path) };
        let listing = Listing::from_file(&file, object.id(), path, None);
        Ok(DiffSide { file, listing })
    }

    /// What it has, by path.
    pub fn lines(&self) -> BTreeMap<&str, &ListingEntry> {
        self.listing.lines.iter().map(|line| (line.path.as_str(), &line.entry)).collect()
    }

    /// The dataset that was listed; `None` if it has become something else meanwhile.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn dataset(&self, id: ObjectId) -> h5live::Result<Option<Dataset>> {
        let path = self.listing.paths.get(&id).map(|path| String::from_utf8_lossy(path)).unwrap_or_default();
        match self.file.root().object_by_id(id, &path)? {
            Object::Dataset(dataset) => Ok(Some(dataset)),
            _ => Ok(None),
        }
    }

    /// The path of the object that a reference leads to.
    pub fn target(&self, value: &Value) -> Option<&[u8]> {
        let Value::Reference(reference) = value else { return None };
        let object = self.file.dereference(reference).ok()??;
        self.listing.paths.get(&object.id()).map(Vec::as_slice)
    }
}
