//! The state of domains in folders, their check, and the deletion of what nothing leads to.

use h5live_model::{
    Diagnosis, FileCondition, LeakPlace, Location, Mode, OpenError, OpenRequest, Reclaim, Repair, StoreCheck,
    StoreReport, Upkeep,
};

use crate::check::check_domain;
use crate::connector::HsdsConnector;
use crate::error::HsdsError;
use crate::session::HsdsSession;

fn diagnosis(session: &HsdsSession) -> h5live_model::Result<Diagnosis> {
    let listed = session.engine.list(&format!("{}/", session.domain.prefix()))?;
    let length = listed.iter().map(|object| object.bytes).sum();
    let condition = match session.engine.has_writer()? && !session.described.mode.writes() {
        true => FileCondition::OpenForWriting { live: true, holders: Vec::new() },
        false => FileCondition::Closed,
    };
    Ok(Diagnosis { condition, superblock: None, length, announced: length })
}

impl Upkeep for HsdsConnector {
    fn diagnose(&self, at: &Location) -> Result<Diagnosis, OpenError> {
        diagnosis(&HsdsConnector::open_to_look(at)?).map_err(OpenError::Store)
    }

    /// A writer that died has left nothing that has to be put in order.
    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Repair, OpenError> {
        let request = OpenRequest { mode: Mode::Write, unfilter: how.unfilter.clone(), ..*how };
        let session = HsdsConnector::open_session(at, &request)?;
        let found = diagnosis(&session).map_err(OpenError::Store)?;
        session.close().map_err(OpenError::Store)?;
        Ok(Repair { before: found.clone(), after: found })
    }

    fn reclaim(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Reclaim, OpenError> {
        let request = OpenRequest { mode: Mode::Write, unfilter: how.unfilter.clone(), ..*how };
        let session = HsdsConnector::open_session(at, &request)?;
        let before = diagnosis(&session)?.length;
        let found = check_domain(&session, StoreCheck::default())?;
        if let Some(first) = found.findings.first() {
            let (findings, first) = (found.findings.len(), first.to_string());
            return Err(OpenError::Store(HsdsError::Unsound { findings, first }.into()));
        }
        for leak in &found.leaks {
            if let LeakPlace::Object(id) = leak.place {
                session.state.write().delete(id);
            }
        }
        session.commit(h5live_model::Publish::Visible)?;
        let after = diagnosis(&session)?.length;
        session.close()?;
        Ok(Reclaim { objects: found.leaks, before, after })
    }

    fn check(&self, at: &Location, how: &OpenRequest<'_>, what: &StoreCheck) -> Result<StoreReport, OpenError> {
        let request = OpenRequest { mode: Mode::Read, unfilter: how.unfilter.clone(), ..*how };
        let session = HsdsConnector::open_session(at, &request)?;
        check_domain(&session, *what).map_err(OpenError::Store)
    }
}
