//! The state of domains, their check, and the deletion of what nothing leads to.

use h5live_model::{
    Diagnosis, FileCondition, Location, Mode, OpenError, OpenRequest, Reclaim, Repair, StoreCheck, StoreReport, Upkeep,
};

use crate::check::{CheckedStore, check_domain};
use crate::connector::HsdsConnector;
use crate::error::HsdsError;
use crate::session::HsdsSession;

/// The state of the domain of a session.
///
/// # Errors
/// Those of the engine.
pub(crate) fn diagnosis(session: &HsdsSession) -> h5live_model::Result<Diagnosis> {
    let listed = session.engine.list(&format!("{}/", session.domain.prefix()))?;
    let length = listed.iter().map(|object| object.bytes).sum();
    let condition = match session.engine.has_writer()? && !session.described.mode.writes() {
        true => FileCondition::OpenForWriting { live: true, holders: Vec::new() },
        false => FileCondition::Closed,
    };
    Ok(Diagnosis { condition, superblock: None, length, announced: length })
}

/// The same request, for a session in this mode.
pub(crate) fn with_mode<'a>(how: &OpenRequest<'a>, mode: Mode) -> OpenRequest<'a> {
    OpenRequest { mode, unfilter: how.unfilter.clone(), ..*how }
}

/// Puts a domain in order. A writer that died has left nothing that has to be.
///
/// # Errors
/// Those of the engine.
pub(crate) fn repair(session: HsdsSession) -> Result<Repair, OpenError> {
    let found = diagnosis(&session).map_err(OpenError::Store)?;
    session.close().map_err(OpenError::Store)?;
    Ok(Repair { before: found.clone(), after: found })
}

/// Deletes the objects to which no path leads, and the shards that no document names.
///
/// # Errors
/// [`HsdsError::Unsound`], and those of the engine.
pub(crate) fn reclaim(session: HsdsSession) -> Result<Reclaim, OpenError> {
    let before = diagnosis(&session)?.length;
    let CheckedStore { report: found, unlinked, stray_shards } = check_domain(&session, StoreCheck::default())?;
    if let Some(first) = found.findings.first() {
        let (findings, first) = (found.findings.len(), first.to_string());
        return Err(OpenError::Store(HsdsError::Unsound { findings, first }.into()));
    }
    for id in unlinked {
        session.state.write().delete(id);
    }
    session.commit(h5live_model::Publish::Visible)?;
    if !stray_shards.is_empty() {
        session.engine.delete_many(&stray_shards)?;
    }
    let after = diagnosis(&session)?.length;
    session.close()?;
    Ok(Reclaim { objects: found.leaks, before, after })
}

impl Upkeep for HsdsConnector {
    fn diagnose(&self, at: &Location) -> Result<Diagnosis, OpenError> {
        diagnosis(&HsdsConnector::open_to_look(at)?).map_err(OpenError::Store)
    }

    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Repair, OpenError> {
        repair(HsdsConnector::open_session(at, &with_mode(how, Mode::Write))?)
    }

    fn reclaim(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Reclaim, OpenError> {
        reclaim(HsdsConnector::open_session(at, &with_mode(how, Mode::Write))?)
    }

    fn check(&self, at: &Location, how: &OpenRequest<'_>, what: &StoreCheck) -> Result<StoreReport, OpenError> {
        let session = HsdsConnector::open_session(at, &with_mode(how, Mode::Read))?;
        Ok(check_domain(&session, *what).map_err(OpenError::Store)?.report)
    }
}
