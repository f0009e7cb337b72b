//! When objects, links and attributes were made. HDF5 knows it of objects, to the second. Domains in the schema of HSDS know it
//! of links and attributes, too, and clients sort by it.

use std::collections::HashMap;

use h5live::Object;

use super::object_parts::info_of;
use super::opened_domain::OpenedDomain;
use crate::fault::Fault;

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
            let exact = documents.times_of(object.id());
            (found.links, found.attributes) = (exact.links, exact.attributes);
            found.created = exact.created.unwrap_or(found.created);
            found.modified = exact.modified.unwrap_or(found.modified);
        }
        found.modified = found.modified.max(found.created);
        Ok(found)
    }

    pub fn link_creation_time(&self, title: &str, order: Option<i64>) -> f64 {
        let known = self.links.get(title).copied();
        known.unwrap_or(self.created + order.unwrap_or_default() as f64 * TICK)
    }

    pub fn attribute_creation_time(&self, name: &str, order: Option<u16>) -> f64 {
        let known = self.attributes.get(name).copied();
        known.unwrap_or(self.created + f64::from(order.unwrap_or_default()) * TICK)
    }
}
