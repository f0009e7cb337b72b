//! The file that a request names as its domain.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use h5live::model::ObjectKind;
use h5live::{Dataset, File, Group, Object};

use super::call::Call;
use super::faults::{bad_request, not_found};
use super::object_ids::{ClientId, ObjectIds, collection_name};
use crate::answer::Answer;
use crate::catalog::{Named, Place};
use crate::domain_facts::DomainDocuments;
use crate::fault::Fault;
use crate::sessions::{FileSession, FileStamp};
use crate::state::AppState;

/// An open file.
pub(super) struct OpenedDomain {
    session: Arc<FileSession>,
    pub ids: ObjectIds,
    pub name: String,
    pub created: f64,
    pub modified: f64,
    /// Where its objects are described, if it is a domain of HSDS.
    pub documents: Option<DomainDocuments>,
    publication: Option<u64>,
}

/// When a file of the system was made and changed last (seconds).
pub(super) fn times_of(place: &Place) -> (f64, f64) {
    let found = place.path.as_ref().and_then(|path| path.metadata().ok());
    let seconds = |time: Option<SystemTime>| {
        time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0.0, |time| time.as_secs_f64())
    };
    let modified = seconds(found.as_ref().and_then(|found| found.modified().ok()));
    let created = seconds(found.as_ref().and_then(|found| found.created().ok()));
    (if created > 0.0 { created.min(modified) } else { modified }, modified)
}

impl OpenedDomain {
    /// Opens what a request names.
    ///
    /// # Errors
    /// If it is not there, or no file.
    pub fn open_for_call(state: &AppState, call: &Call) -> Result<Self, Fault> {
        let name = call.domain()?;
        match state.catalog.find(name)? {
            Named::Store(place) => OpenedDomain::open(state, name, &place),
            Named::Folder(_) | Named::Roots => Err(bad_request(format!("{name} is a folder"))),
        }
    }

    pub fn open(state: &AppState, name: &str, place: &Place) -> Result<Self, Fault> {
        let session = state.sessions.open_or_refresh(place)?;
        let publication = session.file.publication_count().ok();
        let system = FileStamp::of(place).map_or((0, 0), |stamp| stamp.device_and_inode());
        let ids = ObjectIds::new(&place.name, system, &session.file);
        let (created, modified) = times_of(place);
        let documents = place.path.as_deref().and_then(DomainDocuments::at);
        Ok(OpenedDomain { session, ids, name: name.to_owned(), created, modified, documents, publication })
    }

    pub fn file(&self) -> &File {
        &self.session.file
    }

    /// The object that a client names so.
    ///
    /// # Errors
    /// If it is not there.
    pub fn object(&self, id: &str) -> Result<Object, Fault> {
        let of = ClientId::parse(id)?;
        let root = self.file().root();
        let mut why = String::new();
        for candidate in self.ids.candidates(of) {
            match root.object_by_id(candidate, id) {
                Ok(Object::Group(group)) if of.kind == ObjectKind::Group => return Ok(Object::Group(group)),
                Ok(Object::Dataset(dataset)) if of.kind == ObjectKind::Dataset => return Ok(Object::Dataset(dataset)),
                Ok(Object::Datatype(named)) if of.kind == ObjectKind::Datatype => return Ok(Object::Datatype(named)),
                Ok(_) => {}
                Err(error) if error.is_in_use() => return Err(error.into()),
                Err(error) => {
                    // An identity that is none of the file leads to bytes that are no object.
                    let fault = Fault::from(error);
                    if fault.is_transient || fault.status == StatusCode::FORBIDDEN {
                        return Err(fault);
                    }
                    if fault.status != StatusCode::NOT_FOUND {
                        why = format!(": {}", fault.message);
                    }
                }
            }
        }
        Err(not_found(format!("There is no object {id} in {}{why}", self.name)))
    }

    /// The object with the identity of a request, which is of this kind.
    ///
    /// # Errors
    /// If it is not there, or of another kind.
    pub fn requested_object(&self, call: &Call, kind: ObjectKind) -> Result<Object, Fault> {
        let id = call.object_id()?;
        if ClientId::parse(id)?.kind != kind {
            return Err(bad_request(format!("Invalid id: {id} is none of {}", collection_name(kind))));
        }
        self.object(id)
    }

    pub fn group(&self, id: &str) -> Result<Group, Fault> {
        match self.object(id)? {
            Object::Group(group) => Ok(group),
            _ => Err(bad_request(format!("Invalid group id: {id}"))),
        }
    }

    pub fn requested_dataset(&self, call: &Call) -> Result<Dataset, Fault> {
        match self.requested_object(call, ObjectKind::Dataset)? {
            Object::Dataset(dataset) => {
                // The extent of a virtual dataset follows from its sources, which nothing else takes up.
                if matches!(dataset.spec()?.layout, h5live::model::Layout::Virtual(_)) {
                    dataset.refresh()?;
                }
                Ok(dataset)
            }
            _ => Err(bad_request("Invalid dataset id")),
        }
    }

    /// The answer with an object in JSON.
    pub fn json_answer(&self, text: String) -> Answer {
        self.binary_answer(super::faults::JSON_TYPE, text.into_bytes())
    }

    pub fn binary_answer(&self, content_type: &'static str, bytes: Vec<u8>) -> Answer {
        Answer { publication: self.publication, ..Answer::new(content_type, bytes) }
    }
}
