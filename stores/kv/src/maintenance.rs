//! The state of stores in folders, their check, and the deletion of what nothing leads to.

use std::fs;
use std::path::Path;

use h5live_model::{
    FileDiagnosis, FileOpenState, Leak, LeakLocation, Location, Maintenance, Mode, OpenError, OpenRequest,
    ReclaimReport, RepairReport, Result, StoreCheckOptions, StoreCheckReport, StoreFinding,
};

use crate::check::check_container;
use crate::connector::{LmdbConnector, folder};
use crate::engine::{Engine, EngineError, LmdbEngine};
use crate::error::KvError;
use crate::layout::{BlobId, key};
use crate::object_edits::{DeletionContext, delete_returning_references, release_references};
use crate::state::{KvState, ref_count};

/// The state of the store in a folder.
fn diagnose(folder: &Path) -> Result<FileDiagnosis> {
    let length = fs::metadata(LmdbEngine::data_file(folder)).map(|found| found.len());
    let is_there = LmdbEngine::has_store(folder);
    let length = length.ok().filter(|_| is_there).ok_or_else(|| EngineError::NoStoreAt(folder.to_owned()))?;
    let open_state = match LmdbEngine::writers_if_locked(folder)? {
        Some(holders) => FileOpenState::OpenForWriting { live: true, holders },
        None if LmdbEngine::is_abandoned_unless_locked(folder) || LmdbEngine::needs_recovery(folder)? => {
            FileOpenState::Abandoned { live: true }
        }
        None => FileOpenState::Closed,
    };
    Ok(FileDiagnosis::without_superblock(open_state, length))
}

/// Deletes objects and blobs to which nothing leads, and takes the uses that they have of others.
fn delete_leaks(state: &mut KvState, leaks: &[Leak], cleanup: &DeletionContext) -> Result<()> {
    let mut held = Vec::new();
    for leak in leaks {
        match leak.place {
            // It may have been deleted with another one.
            LeakLocation::Object(id) if ref_count(&state.view_with_edits(), id)?.is_some() => {
                held.extend(delete_returning_references(state, id, cleanup)?);
            }
            LeakLocation::Blob(uuid) => state.delete(&key::blob(BlobId(uuid))),
            _ => {}
        }
    }
    release_references(state, held, cleanup)
}

impl Maintenance for LmdbConnector {
    fn diagnose(&self, at: &Location) -> std::result::Result<FileDiagnosis, OpenError> {
        diagnose(&folder(at)?).map_err(OpenError::Store)
    }

    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> std::result::Result<RepairReport, OpenError> {
        let before = self.diagnose(at)?;
        // Nothing else is left behind by a writer that died. Of a store that cannot be opened it is not said that it is sound.
        let mode = if before.open_state == FileOpenState::Closed { Mode::Read } else { Mode::Write };
        let request = OpenRequest { mode, filter_engine: how.filter_engine.clone(), ..*how };
        LmdbConnector::open_session(at, &request)?.close().map_err(OpenError::Store)?;
        Ok(RepairReport { before, after: self.diagnose(at)?, unrepaired: Vec::new() })
    }

    fn repair_and_reclaim_unreachable(
        &self,
        at: &Location,
        how: &OpenRequest<'_>,
    ) -> std::result::Result<ReclaimReport, OpenError> {
        let before = self.diagnose(at)?.length;
        let request = OpenRequest { mode: Mode::Write, filter_engine: how.filter_engine.clone(), ..*how };
        let mut objects = Vec::new();
        loop {
            // From the check to the commit, nobody else writes.
            let engine = LmdbConnector::open_engine(at, &request)?;
            let found = check_container(&engine, StoreCheckOptions::default(), &*how.filter_engine, how.max_allocation);
            let found = found.map_err(OpenError::Store)?;
            if let Some(first) = found.findings.first() {
                let (findings, first) = (found.findings.len(), first.to_string());
                return Err(OpenError::Store(KvError::ReclaimRefused { findings, first }.into()));
            }
            if found.leaks.is_empty() {
                engine.close().map_err(|error| OpenError::Store(error.into()))?;
                return Ok(ReclaimReport {
                    deleted_leaks: objects,
                    size_before: before,
                    size_after: self.diagnose(at)?.length,
                });
            }
            let session = LmdbConnector::session_on(engine, at, &request)?;
            let deleted = session.change(|state| delete_leaks(state, &found.leaks, &session.deletion_context));
            deleted.and_then(|()| session.close()).map_err(OpenError::Store)?;
            objects.extend(found.leaks);
        }
    }

    fn check(
        &self,
        at: &Location,
        how: &OpenRequest<'_>,
        what: &StoreCheckOptions,
    ) -> std::result::Result<StoreCheckReport, OpenError> {
        let request = OpenRequest { mode: Mode::Read, filter_engine: how.filter_engine.clone(), ..*how };
        let engine = LmdbConnector::open_engine(at, &request)?;
        let report = check_container(&engine, *what, &*how.filter_engine, how.max_allocation);
        let mut report = report.map_err(OpenError::Store)?;
        match engine.inner().check_pages() {
            Ok(()) => {}
            Err(EngineError::DamagedPage(fault)) => {
                report.findings.push(StoreFinding { object: None, path: None, kind: "page", cause: Box::new(fault) });
            }
            Err(error) => return Err(OpenError::Store(error.into())),
        }
        Ok(report)
    }
}
