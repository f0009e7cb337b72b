//! Connectors: what opens the stores of one kind. A store may open another one beneath it, so a request to open has
//! the list of all connectors.

use std::any::Any;
use std::cell::OnceCell;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::setting::ConnectorOptions;
use super::{Location, OpenError};
use crate::{
    AllocationLimit, Capabilities, FileDiagnosis, FilterEngine, Mode, Name, ObjectSpec, ReclaimReport, RepairReport,
    Store, StoreCheckOptions, StoreCheckReport,
};

/// Opens the stores of one kind, and knows what their locations mean.
pub trait Connector: Send + Sync + fmt::Debug + 'static {
    /// The name of the kind; also the first of its schemes.
    fn name(&self) -> &'static str;

    /// The schemes of URLs that it opens, in lower case.
    fn schemes(&self) -> &'static [&'static str];

    /// The most that a session on such a store can do.
    fn capabilities(&self) -> Capabilities;

    /// Its options, all as by default.
    fn options(&self) -> Box<dyn ConnectorOptions>;

    /// Whether what is at a path is a store of this kind. It is not asked about paths if it is the connector that opens
    /// what no other connector claims.
    fn claims(&self, probe: &PathProbe<'_>) -> bool;

    /// Whether the root group of what is at a path has one of these links or attributes, as far as a look at its first bytes
    /// shows it; `None` if that takes more. It is for connectors whose stores are layers on stores of this one: they ask
    /// before they claim a path, which must not make it slower to open all others.
    fn peek_root_has_any(&self, probe: &PathProbe<'_>, links: &[Name], attributes: &[Name]) -> Option<bool> {
        let _ = (probe, links, attributes);
        None
    }

    /// Opens or makes the store at a location.
    ///
    /// # Errors
    /// [`OpenError::InvalidLocation`] if the location names nothing that can be opened, [`OpenError::Store`].
    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError>;

    /// Where a file may be that a store calls `name` in a link, the likeliest location first. The store is at `base`;
    /// `None`: it has no location. The name is taken as it is stored, without any decoding.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, role: LinkedStoreRole) -> Vec<Location>;

    /// The file of this machine that is the store at a location, if it is one file.
    fn file_path(&self, at: &Location) -> Option<PathBuf>;

    /// The location of such a store in a file; `None` if this connector has no stores that are one file, or the name
    /// of the file cannot be part of a location.
    fn file_location(&self, path: &Path) -> Option<Location>;

    /// Whose word is taken for what is at a location.
    fn trust_origin(&self, at: &Location) -> TrustOrigin;

    /// What is equal for two locations of this connector if they lead to the same store; `None` if nothing is there, or
    /// nobody else can be led there.
    fn identity(&self, at: &Location) -> Option<StoreIdentity>;

    /// What finds out in which state a store is, and brings it into order; `None` if such stores need nothing of the
    /// kind.
    fn maintenance(&self) -> Option<&dyn Maintenance>;

    /// Watches what is at a location, from before it is there; `None` if nothing tells of changes.
    fn watch(&self, at: &Location) -> Option<Box<dyn LocationWatch>>;
}

/// Watches what is at a location, from before it is there. [`Connector::watch`] makes it.
///
/// Make the watch first, and then look at what is there; then no change is missed. A wait may also end without a change.
pub trait LocationWatch: Send + fmt::Debug {
    /// Whether something is there to be opened. What has no bytes yet is not.
    fn is_there(&self) -> bool;

    /// Waits until what is there may have changed, at most so long. Returns whether it may have.
    fn wait(&mut self, timeout: Duration) -> bool;
}

/// The connectors at hand. The first one opens the paths that no other one claims.
#[derive(Debug, Clone)]
pub struct ConnectorRegistry {
    pub(super) connectors: Vec<Arc<dyn Connector>>,
    pub(super) missing: Vec<(&'static str, &'static str)>,
}

/// How a store is to be opened.
#[derive(Debug)]
pub struct OpenRequest<'a> {
    /// What the session may do.
    pub mode: Mode,
    /// What the root group of a new store is like.
    pub root: &'a ObjectSpec,
    /// The options of the connector: of the type that [`Connector::options`] has.
    pub options: &'a dyn ConnectorOptions,
    /// Most bytes that are allocated at once for a length that the store states.
    pub max_allocation: AllocationLimit,
    /// What undoes filters below the seam.
    pub filter_engine: Arc<dyn FilterEngine>,
    /// Where a store finds the connector of a store beneath it.
    pub registry: &'a ConnectorRegistry,
}

impl OpenRequest<'_> {
    /// The options as the connector's own type.
    ///
    /// # Errors
    /// [`OpenError::ForeignOptions`] if they are another connector's.
    pub fn downcast_options<T: ConnectorOptions>(&self) -> Result<&T, OpenError> {
        let options: &dyn Any = self.options;
        options.downcast_ref().ok_or(OpenError::ForeignOptions(self.options.connector()))
    }
}

/// What a store is opened for that another one names in a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkedStoreRole {
    /// An external link, or a reference, leads to an object in it.
    ExternalLinkOrReference,
    /// It is a source of a virtual dataset.
    VirtualSource,
}

/// Whose word is taken for what is at a location. Links lead to the origin from which they come, unless more is
/// allowed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TrustOrigin {
    /// The file systems of this machine.
    Files,
    /// Something else: the memory of this process, a host, a bucket.
    Named(String),
}

/// What is equal for two locations that lead to the same store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreIdentity(pub Box<[u8]>);

/// What finds out in which state a store is, and brings it into order.
pub trait Maintenance {
    /// The state of a store, which is not changed.
    ///
    /// # Errors
    /// As [`Connector::open`].
    fn diagnose(&self, at: &Location) -> Result<FileDiagnosis, OpenError>;

    /// Brings a store into order whose writer died.
    ///
    /// # Errors
    /// As [`Connector::open`].
    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<RepairReport, OpenError>;

    /// Brings a store into order, and deletes the objects to which no path leads.
    ///
    /// # Errors
    /// As [`Maintenance::repair`]; [`crate::Error::Unsupported`] if the store cannot do this.
    fn repair_and_reclaim_unreachable(&self, at: &Location, how: &OpenRequest<'_>) -> Result<ReclaimReport, OpenError> {
        let _ = (at, how);
        Err(crate::Error::Unsupported("deleting unreachable objects of such a store").into())
    }

    /// Checks whether everything in a store is accounted for. The store is not changed, and others may write it
    /// meanwhile. Native files are checked by a crate of its own, which uses nothing of the code that writes them.
    ///
    /// # Errors
    /// As [`Connector::open`]; [`crate::Error::Unsupported`] if the store cannot do this.
    fn check(
        &self,
        at: &Location,
        how: &OpenRequest<'_>,
        what: &StoreCheckOptions,
    ) -> Result<StoreCheckReport, OpenError> {
        let _ = (at, how, what);
        Err(crate::Error::Unsupported("a check of such a store").into())
    }
}

/// Bytes that a connector may look at to know its own.
const PROBED_BYTES: u64 = 4096;

/// What is at a path, read when a connector asks.
#[derive(Debug)]
pub struct PathProbe<'a> {
    path: &'a Path,
    is_dir: OnceCell<bool>,
    head: OnceCell<Vec<u8>>,
}

impl<'a> PathProbe<'a> {
    /// What is at this path.
    pub fn new(path: &'a Path) -> Self {
        PathProbe { path, is_dir: OnceCell::new(), head: OnceCell::new() }
    }

    /// The path.
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        *self.is_dir.get_or_init(|| self.path.is_dir())
    }

    /// The first bytes of a regular file, up to 4 KiB; none if there is no such file.
    pub fn head(&self) -> &[u8] {
        self.head.get_or_init(|| {
            let mut bytes = Vec::new();
            // Whoever opens it meets the error.
            // Opening a pipe would wait for its other end.
            if self.path.metadata().is_ok_and(|found| found.is_file())
                && let Ok(file) = File::open(self.path)
            {
                let _ = file.take(PROBED_BYTES).read_to_end(&mut bytes);
            }
            bytes
        })
    }
}
