//! The state of domains, their check, and the deletion of what nothing leads to.

use std::sync::Arc;

use h5live_model::{
    FileDiagnosis, FileOpenState, Leak, Location, Maintenance, Mode, OpenError, OpenRequest, PublishLevel,
    ReclaimReport, RepairReport, StoreCheckOptions, StoreCheckReport, StoreErrorKind,
};

use crate::check::{DomainCheckResult, check_domain};
use crate::connector::{HsdsFolderConnector, place_of};
use crate::engine::{FolderEngine, ObjectEngine};
use crate::error::HsdsError;
use crate::layout::DomainId;
use crate::lost_domains::{delete_lost_domains, find_lost_domains};
use crate::options::Hsds;
use crate::session::HsdsSession;

/// The state of the domain of a session.
///
/// # Errors
/// Those of the engine.
pub(crate) fn diagnosis(session: &HsdsSession) -> h5live_model::Result<FileDiagnosis> {
    let listed = session.engine.list(&format!("{}/", session.domain.key_prefix_without_slash()))?;
    let length = listed.iter().map(|object| object.size).sum();
    let open_state = match session.engine.has_writer()? && !session.session_info.mode.writes() {
        true => FileOpenState::OpenForWriting { live: true, holders: Vec::new() },
        false if session.engine.is_abandoned()? => FileOpenState::Abandoned { live: true },
        false => FileOpenState::Closed,
    };
    Ok(FileDiagnosis::without_superblock(open_state, length))
}

/// The same request, for a session in this mode.
pub(crate) fn with_mode<'a>(how: &OpenRequest<'a>, mode: Mode) -> OpenRequest<'a> {
    OpenRequest { mode, filter_engine: how.filter_engine.clone(), ..*how }
}

/// A domain, or what is left in a bucket that has none at the location.
pub(crate) enum UpkeepTarget {
    Domain(Arc<HsdsSession>),
    /// Objects of domains that are not there.
    Lost(Box<dyn ObjectEngine>, Vec<(DomainId, Leak)>),
}

impl UpkeepTarget {
    /// The domain that was opened. If none is there, and objects of lost domains are in the bucket, it is these.
    ///
    /// # Errors
    /// The error of `opened`, and those of the engine.
    pub(crate) fn of(
        opened: Result<HsdsSession, OpenError>,
        bucket: impl FnOnce() -> Result<Box<dyn ObjectEngine>, OpenError>,
    ) -> Result<Self, OpenError> {
        let error = match opened {
            Ok(session) => return Ok(UpkeepTarget::Domain(Arc::new(session))),
            Err(error) => error,
        };
        match &error {
            OpenError::Store(cause) if cause.store_error_kind() == Some(&StoreErrorKind::NotFound) => {}
            _ => return Err(error),
        }
        let engine = bucket()?;
        let lost = find_lost_domains(&*engine, None)?;
        if lost.is_empty() { Err(error) } else { Ok(UpkeepTarget::Lost(engine, lost)) }
    }

    /// Puts it in order. A writer that died has left nothing that has to be, but that it is known to have died. `before` is the
    /// state that the domain was in.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn repair(self, before: Option<FileDiagnosis>) -> Result<RepairReport, OpenError> {
        let found = match self {
            UpkeepTarget::Domain(session) => {
                let found = diagnosis(&session)?;
                session.close()?;
                found
            }
            UpkeepTarget::Lost(engine, lost) => {
                engine.close()?;
                FileDiagnosis::without_superblock(FileOpenState::Closed, bytes_of(&lost))
            }
        };
        Ok(RepairReport { before: before.unwrap_or_else(|| found.clone()), after: found, unrepaired: Vec::new() })
    }

    /// Deletes the objects to which no path leads, the shards that no document names, and the objects of lost domains.
    ///
    /// # Errors
    /// [`HsdsError::ReclaimRefused`], and those of the engine.
    pub(crate) fn reclaim(self) -> Result<ReclaimReport, OpenError> {
        match self {
            UpkeepTarget::Domain(session) => reclaim_domain(&session),
            UpkeepTarget::Lost(engine, lost) => {
                let before = bytes_of(&lost);
                let objects = delete_lost_domains(&*engine, lost)?;
                engine.remove_abandoned_writes()?;
                engine.close()?;
                let after = before.saturating_sub(objects.iter().map(|leak| leak.bytes).sum());
                Ok(ReclaimReport { deleted_leaks: objects, size_before: before, size_after: after })
            }
        }
    }

    /// Checks it.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn check(self, what: StoreCheckOptions) -> Result<StoreCheckReport, OpenError> {
        let (mut report, lost) = match self {
            UpkeepTarget::Domain(session) => {
                let report = check_domain(&session, what)?.report;
                let lost = match what.find_lost_domains {
                    true => find_lost_domains(&session.engine, Some(session.domain))?,
                    false => Vec::new(),
                };
                (report, lost)
            }
            UpkeepTarget::Lost(_, lost) => (StoreCheckReport::default(), lost),
        };
        report.leak_count += lost.len() as u64;
        report.leaks.extend(lost.into_iter().map(|(_, leak)| leak));
        report.leaks.truncate(StoreCheckReport::MAX_FINDINGS);
        Ok(report)
    }
}

fn bytes_of(lost: &[(DomainId, Leak)]) -> u64 {
    lost.iter().map(|(_, leak)| leak.bytes).sum()
}

fn reclaim_domain(session: &Arc<HsdsSession>) -> Result<ReclaimReport, OpenError> {
    let DomainCheckResult { report: found, leaked_objects: unlinked, stray_shard_keys: stray_shards } =
        check_domain(session, StoreCheckOptions::default())?;
    if let Some(first) = found.findings.first() {
        let (findings, first) = (found.findings.len(), first.to_string());
        return Err(OpenError::Store(HsdsError::ReclaimRefused { findings, first }.into()));
    }
    let lost = find_lost_domains(&session.engine, Some(session.domain))?;
    let before = diagnosis(session)?.length + bytes_of(&lost);
    for id in unlinked {
        session.state.write().delete(id);
    }
    session.commit(PublishLevel::Visible)?;
    if !stray_shards.is_empty() {
        session.engine.delete_many(&stray_shards)?;
    }
    let all_lost = bytes_of(&lost);
    let deleted = delete_lost_domains(&session.engine, lost)?;
    session.engine.remove_abandoned_writes()?;
    let left = all_lost.saturating_sub(deleted.iter().map(|leak| leak.bytes).sum());
    let after = diagnosis(session)?.length + left;
    session.close()?;
    Ok(ReclaimReport {
        deleted_leaks: found.leaks.into_iter().chain(deleted).collect(),
        size_before: before,
        size_after: after,
    })
}

impl HsdsFolderConnector {
    /// The domain at a location, or what lost domains have left in its bucket.
    ///
    /// # Errors
    /// As [`h5live_model::Connector::open`].
    fn open_for_upkeep(at: &Location, how: &OpenRequest<'_>) -> Result<UpkeepTarget, OpenError> {
        UpkeepTarget::of(HsdsFolderConnector::open_session(at, how), || {
            let place = place_of(at, how.downcast_options::<Hsds>()?)?;
            Ok(Box::new(FolderEngine::open(&place.bucket, &place.domain, how.mode)?))
        })
    }
}

impl Maintenance for HsdsFolderConnector {
    fn diagnose(&self, at: &Location) -> Result<FileDiagnosis, OpenError> {
        diagnosis(&HsdsFolderConnector::open_read_only(at)?).map_err(OpenError::Store)
    }

    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<RepairReport, OpenError> {
        let before = self.diagnose(at).ok();
        HsdsFolderConnector::open_for_upkeep(at, &with_mode(how, Mode::Write))?.repair(before)
    }

    fn repair_and_reclaim_unreachable(&self, at: &Location, how: &OpenRequest<'_>) -> Result<ReclaimReport, OpenError> {
        HsdsFolderConnector::open_for_upkeep(at, &with_mode(how, Mode::Write))?.reclaim()
    }

    fn check(
        &self,
        at: &Location,
        how: &OpenRequest<'_>,
        what: &StoreCheckOptions,
    ) -> Result<StoreCheckReport, OpenError> {
        HsdsFolderConnector::open_for_upkeep(at, &with_mode(how, Mode::Read))?.check(*what)
    }
}
