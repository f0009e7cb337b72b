//! The connector of native files.

mod file_check;
mod file_identity;
mod options;
mod root_names;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_model::{
    Capabilities, Connector, ConnectorOptions, FileDiagnosis, LinkedStoreRole, Location, LocationWatch, Maintenance,
    Mode, Name, OpenError, OpenRequest, PathProbe, ReclaimReport, RepairReport, Store, StoreCheckOptions,
    StoreCheckReport, StoreIdentity, TrustOrigin, path_from_bytes,
};
use h5live_swmr::{PathWatch, linked_file_candidates};

pub use options::{Locking, Native};

use crate::session_description::{CONNECTOR, MAX_CAPABILITIES};
use crate::{LockPolicy, MemoryStorage, NativeFile, OpenOptions};

/// Opens native HDF5 files: paths, `native:run.h5`, and `file:///data/run.h5`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeConnector;

/// The schemes; the first one is the connector's name.
const SCHEMES: [&str; 2] = [CONNECTOR, "file"];

impl NativeConnector {
    /// The path of the file at a location.
    ///
    /// # Errors
    /// [`OpenError::InvalidLocation`] if it names another machine, or another store.
    pub fn path(at: &Location) -> Result<PathBuf, OpenError> {
        let url = match at {
            Location::Path(path) => return Ok(path.clone()),
            Location::Url(url) if SCHEMES.contains(&url.scheme()) => url,
            Location::Url(url) => {
                return Err(OpenError::InvalidLocation(format!("{:?} is no scheme of a native file", url.scheme())));
            }
        };
        let rest = url.decoded_hier_part()?;
        let Some(after) = rest.strip_prefix(b"//") else { return Ok(path_from_bytes(&rest)) };
        if url.scheme() == "file" && !after.starts_with(b"/") {
            return match after.strip_prefix(b"localhost/") {
                Some(path) => Ok(path_from_bytes(&[b"/", path].concat())),
                None => Err(OpenError::InvalidLocation(
                    "a file on another machine: file:///PATH is one on this machine".to_owned(),
                )),
            };
        }
        Ok(path_from_bytes(after))
    }

    /// Opens a file whose bytes are in memory.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub fn open_image(bytes: Vec<u8>, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let storage = Arc::new(MemoryStorage::from(bytes));
        Ok(Arc::new(NativeFile::open_storage(storage, &open_options(how)?).map_err(store_error)?))
    }
}

/// The options of this crate for a request.
fn open_options(how: &OpenRequest<'_>) -> Result<OpenOptions, OpenError> {
    let native: &Native = how.downcast_options()?;
    Ok(OpenOptions {
        mode: how.mode,
        root: how.root.clone(),
        max_allocation: how.max_allocation,
        filter_engine: how.filter_engine.clone(),
        ..native.open_options()
    })
}

fn store_error(error: crate::Error) -> OpenError {
    OpenError::Store(error.into())
}

impl Connector for NativeConnector {
    fn name(&self) -> &'static str {
        CONNECTOR
    }

    fn schemes(&self) -> &'static [&'static str] {
        &SCHEMES
    }

    fn capabilities(&self) -> Capabilities {
        MAX_CAPABILITIES
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(Native::default())
    }

    fn claims(&self, probe: &PathProbe<'_>) -> bool {
        probe.head().starts_with(&h5live_format::Superblock::SIGNATURE)
    }

    fn peek_root_has_any(&self, probe: &PathProbe<'_>, links: &[Name], attributes: &[Name]) -> Option<bool> {
        root_names::peek_root_has_any(probe.head(), links, attributes)
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let file = NativeFile::open(&NativeConnector::path(at)?, &open_options(how)?).map_err(store_error)?;
        Ok(Arc::new(file))
    }

    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, role: LinkedStoreRole) -> Vec<Location> {
        let base = base.and_then(|base| NativeConnector::path(base).ok());
        let paths =
            linked_file_candidates(base.as_deref().and_then(Path::parent), &path_from_bytes(name.as_bytes()), role);
        paths.into_iter().map(Location::Path).collect()
    }

    fn file_path(&self, at: &Location) -> Option<PathBuf> {
        NativeConnector::path(at).ok()
    }

    fn file_location(&self, path: &Path) -> Option<Location> {
        Some(Location::Path(path.to_owned()))
    }

    fn trust_origin(&self, _: &Location) -> TrustOrigin {
        TrustOrigin::Files
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        file_identity::identity_of_path(&NativeConnector::path(at).ok()?)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn watch(&self, at: &Location) -> Option<Box<dyn LocationWatch>> {
        Some(Box::new(PathWatch::new(&NativeConnector::path(at).ok()?)))
    }
}

impl Maintenance for NativeConnector {
    fn diagnose(&self, at: &Location) -> Result<FileDiagnosis, OpenError> {
        h5live_swmr::diagnose_open_state(&NativeConnector::path(at)?).map_err(|error| store_error(error.into()))
    }

    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<RepairReport, OpenError> {
        let options = OpenOptions { mode: Mode::Write, ..open_options(how)? };
        crate::repair(&NativeConnector::path(at)?, &options).map_err(store_error)
    }

    fn check(
        &self,
        at: &Location,
        how: &OpenRequest<'_>,
        what: &StoreCheckOptions,
    ) -> Result<StoreCheckReport, OpenError> {
        file_check::check(&NativeConnector::path(at)?, how, *what).map_err(store_error)
    }

    fn repair_and_reclaim_unreachable(&self, at: &Location, how: &OpenRequest<'_>) -> Result<ReclaimReport, OpenError> {
        crate::repair_and_reclaim_unreachable(&NativeConnector::path(at)?, &open_options(how)?).map_err(store_error)
    }
}

impl From<Locking> for LockPolicy {
    fn from(locking: Locking) -> Self {
        match locking {
            Locking::Environment | Locking::Always => LockPolicy::On,
            Locking::BestEffort => LockPolicy::BestEffort,
            Locking::Never => LockPolicy::Off,
        }
    }
}

#[cfg(test)]
mod tests;
