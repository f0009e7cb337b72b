//! The file of a request.

use std::hash::Hasher;
use std::sync::Arc;

use axum::http::StatusCode;
use h5live::File;
use h5live::model::{ChunkStore, Layout, ObjectId, Store};
use h5live_served::protocol::ServedErrorKind;
use twox_hash::XxHash3_64;

use crate::fault::Fault;
use crate::sessions::{FileSession, FileStamp};
use crate::state::AppState;

/// The file of a request.
pub(super) struct OpenedFile {
    session: Arc<FileSession>,
    /// Which file of the system it is, and under which name.
    pub incarnation: u64,
}

impl OpenedFile {
    /// Opens what a client names. It sees everything that was published before.
    ///
    /// # Errors
    /// If it is not there.
    pub fn open(state: &AppState, name: &str) -> Result<Self, Fault> {
        let place = state.catalog.find_store(name)?;
        let session = state.sessions.open_or_refresh(&place)?;
        let system = FileStamp::of(&place).map_or((0, 0), |stamp| stamp.device_and_inode());
        let mut hash = XxHash3_64::new();
        hash.write(place.name.as_bytes());
        hash.write_u64(system.0);
        hash.write_u64(system.1);
        hash.write_u128(session.file.root().id().0);
        Ok(OpenedFile { session, incarnation: hash.finish() })
    }

    pub fn file(&self) -> &File {
        &self.session.file
    }

    pub fn follows_writer(&self) -> bool {
        self.session.follows_writer()
    }

    /// The store, if it is the file that the client has opened.
    ///
    /// # Errors
    /// If another file has its place.
    pub fn store_if_incarnation(&self, incarnation: u64) -> Result<&dyn Store, Fault> {
        if incarnation != self.incarnation {
            let fault = Fault::new(StatusCode::GONE, "Another file has taken the place of the one that was opened");
            return Err(fault.with_kind(ServedErrorKind::Replaced));
        }
        Ok(self.file().store())
    }

    /// The chunks of a dataset that has its elements in this file.
    ///
    /// # Errors
    /// If it is not there, or its elements are in raw files.
    pub fn chunk_store(&self, incarnation: u64, dataset: ObjectId) -> Result<Arc<dyn ChunkStore>, Fault> {
        let chunks =
            self.store_if_incarnation(incarnation)?.dataset(dataset).map_err(|error| Fault::of_store(&error))?;
        let spec = chunks.spec().map_err(|error| Fault::of_store(&error))?;
        if matches!(spec.layout, Layout::External(_)) {
            let fault = Fault::new(StatusCode::FORBIDDEN, "The elements lie in raw files, which are not served");
            return Err(fault.with_kind(ServedErrorKind::RawFilesRefused));
        }
        Ok(chunks)
    }
}
