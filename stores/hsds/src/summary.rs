//! The summary of a domain, from which the service says how many objects and bytes a domain has (`.info.json`).
//!
//! The service counts when it has changed a domain; here, a session does that when it ends. The first change of a session deletes
//! the summary, so that a session that dies leaves none. The member `md5_sum` is left out: it is made of tags that only object
//! stores give.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use h5live_model::{Mode, ObjectId, ObjectKind, ObjectKindSpec, Result};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::engine::{ListedObject, ObjectEngine, ObjectPut};
use crate::error::damaged_object_error;
use crate::layout::{DomainId, ElementCodec, INFO_FILE, ObjectDocument, chunk_of_key_suffix, kind};
use crate::session::{HsdsSession, unix_seconds_now};
use crate::state::SessionState;

/// A session counts a domain that it has not made only if it has no more objects than this: counting lists all of them.
const MAX_COUNTED_OBJECTS: u64 = 10_000;
/// Documents of datasets that are read in one wave.
const DOCUMENTS_AT_ONCE: usize = 1024;
/// Most dimensions of a dataset.
const MAX_RANK: usize = 32;

/// What is stored of a dataset.
#[derive(Debug, Default)]
struct DatasetCounts {
    modified: f64,
    chunks: u64,
    stored_bytes: u64,
    logical_bytes: u64,
    linked_chunks: u64,
    linked_bytes: u64,
}

/// What is stored of a domain.
#[derive(Debug, Default)]
struct DomainCounts {
    objects: u64,
    modified: f64,
    groups: u64,
    datatypes: u64,
    metadata_bytes: u64,
    datasets: BTreeMap<ObjectId, DatasetCounts>,
}

/// Writes the summary of a domain that this session has changed and committed.
///
/// # Errors
/// Those of the engine. The domain is complete all the same.
pub fn write_domain_summary_if_countable(session: &HsdsSession, state: &SessionState) -> Result<()> {
    let is_made = matches!(session.session_info.mode, Mode::Create | Mode::CreateNew);
    let start = unix_seconds_now();
    let mut counts = DomainCounts::default();
    let limit = if is_made { u64::MAX } else { MAX_COUNTED_OBJECTS };
    session.engine.for_each_object(&format!("{}/", session.domain.key_prefix_without_slash()), &mut |object| {
        counts.add(session.domain, &object);
        counts.objects <= limit
    })?;
    if counts.objects > limit || !count_elements(session, state, &mut counts)? {
        return Ok(());
    }
    let key = format!("{}/{INFO_FILE}", session.domain.key_prefix_without_slash());
    let bytes = counts.to_json(session.domain, (start, unix_seconds_now())).to_string().into_bytes();
    session.engine.put_many(vec![ObjectPut { key, bytes }]).map(drop)
}

/// Counts the elements of all datasets, and their chunks in native files. `false` if they cannot be counted.
fn count_elements(session: &HsdsSession, state: &SessionState, counts: &mut DomainCounts) -> Result<bool> {
    let mut unknown = Vec::new();
    for (id, dataset) in &mut counts.datasets {
        match state.cached_document(*id) {
            Some(Ok(document)) if !dataset.add_elements(&document) => return Ok(false),
            Some(_) => {}
            None => unknown.push(*id),
        }
    }
    for ids in unknown.chunks(DOCUMENTS_AT_ONCE) {
        let keys: Vec<String> = ids.iter().map(|id| session.domain.document_key(*id)).collect();
        let found = Mutex::new(Vec::new());
        session.engine.get_many(&keys, &|number, object| {
            let (Some(id), Some(key), Some(object)) = (ids.get(number), keys.get(number), object) else {
                return Ok(());
            };
            let document =
                ObjectDocument::parse(session.domain, *id, &object.bytes).map_err(damaged_object_error(key))?;
            found.lock().push((*id, document));
            Ok(())
        })?;
        for (id, document) in found.into_inner() {
            if !counts.datasets.get_mut(&id).is_none_or(|dataset| dataset.add_elements(&document)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

impl DomainCounts {
    fn add(&mut self, domain: DomainId, object: &ListedObject) {
        self.objects += 1;
        let modified = object.modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or_else(unix_seconds_now, |since| since.as_secs_f64());
        let document = domain.object_of_document_key(&object.key);
        let chunk = || {
            let rest = object.key.strip_prefix(&format!("{}/d/", domain.key_prefix_without_slash()))?;
            let (digits, name) = rest.split_once('/')?;
            let is_chunk = (0..=MAX_RANK).any(|rank| chunk_of_key_suffix(name, rank).is_some());
            domain
                .object_of_document_key(&format!("{}/d/{digits}/.dataset.json", domain.key_prefix_without_slash()))
                .filter(|_| is_chunk)
        };
        // The service does not count what it does not know.
        let Some(id) = document.or_else(chunk) else { return };
        self.modified = self.modified.max(modified);
        if document.is_some() {
            self.metadata_bytes = self.metadata_bytes.saturating_add(object.size);
        }
        match kind(id) {
            Some(ObjectKind::Group) => self.groups += 1,
            Some(ObjectKind::Datatype) => self.datatypes += 1,
            _ => {
                let dataset = self.datasets.entry(id).or_default();
                dataset.modified = dataset.modified.max(modified);
                if document.is_none() {
                    dataset.chunks += 1;
                    dataset.stored_bytes = dataset.stored_bytes.saturating_add(object.size);
                }
            }
        }
    }

    fn sum(&self, of: impl Fn(&DatasetCounts) -> u64) -> u64 {
        self.datasets.values().map(of).fold(0, u64::saturating_add)
    }

    fn to_json(&self, domain: DomainId, (start, end): (f64, f64)) -> Value {
        let datasets: Map<_, _> =
            self.datasets.iter().map(|(id, counts)| (domain.object_id_text(*id), counts.to_json())).collect();
        json!({
            "lastModified": self.modified,
            "num_groups": self.groups,
            "num_datatypes": self.datatypes,
            "datasets": datasets,
            "num_chunks": self.sum(|dataset| dataset.chunks),
            "allocated_bytes": self.sum(|dataset| dataset.stored_bytes),
            "metadata_bytes": self.metadata_bytes,
            "num_linked_chunks": self.sum(|dataset| dataset.linked_chunks),
            "linked_bytes": self.sum(|dataset| dataset.linked_bytes),
            "logical_bytes": self.sum(|dataset| dataset.logical_bytes),
            "scan_start": start,
            "scan_complete": end,
        })
    }
}

impl DatasetCounts {
    /// Adds what a document says. `false` if the places of its chunks are in a table, which would have to be read.
    fn add_elements(&mut self, document: &ObjectDocument) -> bool {
        if document.chunk_table().is_some() {
            return false;
        }
        let Ok(ObjectKindSpec::Dataset(spec)) = document.spec().map(|spec| spec.body) else { return true };
        let element_bytes = ElementCodec::new(&spec.datatype).stored_element_size();
        let elements = spec.dataspace.element_count().unwrap_or(u64::MAX);
        // Elements of variable length are as long as they are stored, as in the service.
        self.logical_bytes = element_bytes.map_or(self.stored_bytes, |bytes| elements.saturating_mul(bytes as u64));
        let Some(layout) = document.creation_layout() else { return true };
        let size_of = |chunk: &Value| chunk.get(1).and_then(Value::as_u64).unwrap_or_default();
        match layout.get("class").and_then(Value::as_str) {
            Some("H5D_CONTIGUOUS_REF") => {
                self.linked_chunks = 1;
                self.linked_bytes = layout.get("size").and_then(Value::as_u64).unwrap_or_default();
            }
            Some("H5D_CHUNKED_REF") => {
                let chunks = layout.get("chunks").and_then(Value::as_object);
                self.linked_chunks = chunks.map_or(0, |chunks| chunks.len() as u64);
                self.linked_bytes =
                    chunks.into_iter().flatten().map(|(_, chunk)| size_of(chunk)).fold(0, u64::saturating_add);
            }
            _ => {}
        }
        true
    }

    fn to_json(&self) -> Value {
        json!({
            "lastModified": self.modified,
            "num_chunks": self.chunks,
            "allocated_bytes": self.stored_bytes,
            "logical_bytes": self.logical_bytes,
            "num_linked_chunks": self.linked_chunks,
            "linked_bytes": self.linked_bytes,
        })
    }
}
