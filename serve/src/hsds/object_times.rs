//! When objects, links and attributes were made. HDF5 knows it of objects, to the second. Domains in the schema of HSDS know it
//! of links and attributes, too, and clients sort by it.

use std::collections::HashMap;
use std::path::Path;

use h5live::Object;
use h5live::model::ObjectId;

use super::object_parts::info_of;
use super::opened_domain::OpenedDomain;
use crate::fault::Fault;

/// Bytes of the description of an object that are looked at, at most.
#[cfg(feature = "hsds")]
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;
/// Between links, or attributes, that were made one after the other, where only their order is known (seconds).
const TICK: f64 = 1e-6;

/// When an object was made and changed last, and its links and attributes (seconds).
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectTimes {
    pub created: f64,
    pub modified: f64,
    links: HashMap<String, f64>,
    attributes: HashMap<String, f64>,
}

impl ObjectTimes {
    /// As the domain says it, or else the object, or else the file.
    ///
    /// # Errors
    /// If the object cannot be read.
    pub fn of(domain: &OpenedDomain, object: &Object) -> Result<Self, Fault> {
        let info = info_of(object)?;
        let times = info.times.as_ref();
        let given = |time: Option<i64>, file: f64| time.filter(|time| *time > 0).map_or(file, |time| time as f64);
        let created = given(times.map(|times| times.birth), domain.created);
        let modified = given(times.map(|times| times.modification.max(times.change)), domain.modified);
        let mut found = ObjectTimes { created, modified, ..ObjectTimes::default() };
        if let Some(documents) = &domain.documents {
            documents.add_times(object.id(), &mut found);
        }
        found.modified = found.modified.max(found.created);
        Ok(found)
    }

    pub fn of_link(&self, title: &str, order: Option<i64>) -> f64 {
        let known = self.links.get(title).copied();
        known.unwrap_or(self.created + order.unwrap_or_default() as f64 * TICK)
    }

    pub fn of_attribute(&self, name: &str, order: Option<u16>) -> f64 {
        let known = self.attributes.get(name).copied();
        known.unwrap_or(self.created + f64::from(order.unwrap_or_default()) * TICK)
    }
}

/// The descriptions of the objects of a domain in the schema of HSDS, in a bucket that is a folder.
#[cfg(feature = "hsds")]
#[derive(Debug, Clone)]
pub(super) struct DomainDocuments {
    bucket: std::path::PathBuf,
    id: h5live_hsds::layout::DomainId,
}

#[cfg(feature = "hsds")]
impl DomainDocuments {
    /// Those of the domain whose object is in a folder, with this root group.
    pub fn of(folder: &Path, root: &str) -> Option<Self> {
        let (id, _) = h5live_hsds::layout::DomainId::parse(root).ok()?;
        let bucket = folder.ancestors().find(|bucket| bucket.join(id.prefix()).is_dir())?;
        Some(DomainDocuments { bucket: bucket.to_owned(), id })
    }

    /// Adds what the description of an object says. Nothing, if it cannot be read: the times are then less exact.
    fn add_times(&self, of: ObjectId, times: &mut ObjectTimes) {
        use std::io::Read as _;

        use h5live_hsds::layout::{EntryClass, ObjectDocument};

        let read = || {
            let (file, mut bytes) = (std::fs::File::open(self.bucket.join(self.id.key(of))).ok()?, Vec::new());
            file.take(MAX_DOCUMENT_BYTES).read_to_end(&mut bytes).ok()?;
            ObjectDocument::parse(self.id, of, &bytes).ok()
        };
        let Some(document) = read() else { return };
        let (created, modified) = document.exact_times();
        times.created = created.unwrap_or(times.created);
        times.modified = modified.unwrap_or(times.modified);
        let entries = |class| document.entry_times(class).unwrap_or_default().into_iter().collect();
        (times.links, times.attributes) = (entries(EntryClass::Links), entries(EntryClass::Attributes));
    }
}

/// Without HSDS's schema, there are none.
#[cfg(not(feature = "hsds"))]
#[derive(Debug, Clone)]
pub(super) enum DomainDocuments {}

#[cfg(not(feature = "hsds"))]
impl DomainDocuments {
    pub fn of(_: &Path, _: &str) -> Option<Self> {
        None
    }

    fn add_times(&self, _: ObjectId, _: &mut ObjectTimes) {}
}
