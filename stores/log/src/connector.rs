//! The connector of files with a log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_model::{
    Capabilities, Connector, ConnectorOptions, Diagnosis, Error, Identity, LinkUse, Location, LocationWatch, Mode,
    Name, OpenError, OpenRequest, Origin, PathProbe, Repair, Store, Upkeep, Url,
};

use crate::joined_files::{JoinedFiles, follower_settings, is_shared};
use crate::joining::join;
use crate::layout::LogLayout;
use crate::log_vol_counters::LogVolCounters;
use crate::opening::{open_log, open_log_vol};
use crate::options::Log;
use crate::session::{CONNECTOR, LogRequest, LogSession};
use crate::shared_files::SharedFiles;
use crate::store::LogStore;

/// Opens files with a log: `log:run.h5`. The file itself is opened by the connector beneath. A new file gets a log; one
/// that exists and has none is opened as the plain file that it is.
#[derive(Debug, Clone)]
pub struct LogConnector {
    inner: Arc<dyn Connector>,
}

impl LogConnector {
    /// Logs in files of this connector.
    pub fn new(inner: impl Connector) -> Self {
        LogConnector { inner: Arc::new(inner) }
    }

    /// Opens a file of Log VOL whose log is in subfiles: `F.subfiles/F.0` and so on for a file `F`.
    fn open_log_vol_subfiles(
        &self,
        at: &Location,
        inner: Arc<dyn Store>,
        counters: LogVolCounters,
        request: &OpenRequest<'_>,
        log: LogRequest,
    ) -> Result<LogSession, OpenError> {
        if request.mode.writes() {
            return Err(OpenError::Store(Error::Unsupported("writing a log of Log VOL that is in subfiles")));
        }
        let path = self.file_path(at).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = path.with_file_name(format!("{name}.subfiles"));
        let subfile = |number: usize| {
            let at = Location::Path(folder.join(format!("{name}.{number}")));
            self.inner.open(&at, request)
        };
        let files = (0..counters.subfiles()).map(subfile).collect::<Result<Vec<_>, _>>()?;
        open_log_vol(inner, counters, &files, log).map_err(OpenError::Store)
    }

    /// Refuses to join a log in Log VOL's layout, before anything of joining is made beside it.
    fn check_joining(&self, path: &Path, layout: LogLayout, how: &OpenRequest<'_>) -> Result<(), OpenError> {
        let is_log_vol = || {
            let mut options = self.inner.options();
            for (name, value) in follower_settings(Mode::SwmrRead) {
                options.set(name, value).ok()?;
            }
            let request =
                OpenRequest { mode: Mode::SwmrRead, options: &*options, unfilter: how.unfilter.clone(), ..*how };
            // What cannot be opened so is no such file, or says why when it is joined.
            let store = self.inner.open(&Location::Path(path.to_owned()), &request).ok()?;
            LogVolCounters::read(&*store).ok()?
        };
        match layout == LogLayout::LogVol || (!is_shared(path) && is_log_vol().is_some()) {
            true => Err(OpenError::Store(Error::Unsupported("joining a log in Log VOL's layout (layout=logvol)"))),
            false => Ok(()),
        }
    }

    /// The subfiles of the main file at a path.
    fn joined_files(&self, main: PathBuf, options: &Log, how: &OpenRequest<'_>) -> Arc<dyn SharedFiles> {
        Arc::new(JoinedFiles::new(self.inner.clone(), main, options.patience, how))
    }

    /// The location of the file.
    fn inner_location(at: &Location) -> Result<Location, OpenError> {
        let Location::Url(url) = at else { return Ok(at.clone()) };
        match url.local_path()? {
            Some(path) => Ok(Location::Path(path)),
            None => Err(OpenError::Url("a file with a log has a path: log:run.h5 is one".to_owned())),
        }
    }
}

/// Whether a mode opens what is there.
fn is_existing(mode: Mode) -> bool {
    !matches!(mode, Mode::Create | Mode::CreateNew)
}

impl Connector for LogConnector {
    fn name(&self) -> &'static str {
        CONNECTOR
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[CONNECTOR]
    }

    fn capabilities(&self) -> Capabilities {
        LogLayout::H5live.capabilities(&self.inner.capabilities())
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(Log::default())
    }

    fn claims(&self, _: &PathProbe<'_>) -> bool {
        false
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let options = how.typed_options::<Log>()?.clone();
        let mut inner_options = self.inner.options();
        let path = self.file_path(at);
        let mut mode = how.mode;
        if path.as_deref().is_some_and(is_shared) {
            for (name, value) in follower_settings(mode) {
                inner_options.set(name, value)?;
            }
            // Followers that have no lock may be there.
            mode = if mode == Mode::Write { Mode::SwmrWrite } else { mode };
        }
        let request = OpenRequest { mode, options: &*inner_options, unfilter: how.unfilter.clone(), ..*how };
        let log = LogRequest {
            unfilter: how.unfilter.clone(),
            max_allocation: how.max_allocation,
            ..LogRequest::new(options.clone())
        };
        if options.join
            && how.mode.writes()
            && let Some(path) = &path
        {
            self.check_joining(path, options.layout, how)?;
        }
        let files = path.map(|path| self.joined_files(path, &options, &request));
        if options.join && how.mode.writes() {
            let no_path = || OpenError::Url("only files of this machine are joined".to_owned());
            let mut session = join(files.ok_or_else(no_path)?, !is_existing(how.mode), log)?;
            session.described.location = Some(at.clone());
            return Ok(Arc::new(LogStore::new(session)));
        }
        let inner = self.inner.open(&Self::inner_location(at)?, &request)?;
        let counters = LogVolCounters::read(&*inner).map_err(OpenError::Store)?;
        let mut session = match counters {
            Some(counters) if counters.subfiles() > 0 => {
                self.open_log_vol_subfiles(at, inner, counters, &request, log)?
            }
            None if is_existing(how.mode) && !LogSession::has_log(&*inner).map_err(OpenError::Store)? => {
                // A plain file, as a log may have links to. It stays one.
                return Ok(inner);
            }
            _ => open_log(inner, files, log)?,
        };
        session.described.location = Some(at.clone());
        Ok(Arc::new(LogStore::new(session)))
    }

    fn linked_locations(&self, base: Option<&Location>, name: &Name, link: LinkUse) -> Vec<Location> {
        let base = base.and_then(|base| Self::inner_location(base).ok());
        let found = self.inner.linked_locations(base.as_ref(), name, link);
        let as_log = |location: Location| {
            let log = location.as_path().and_then(|path| self.file_location(path));
            log.unwrap_or(location)
        };
        found.into_iter().map(as_log).collect()
    }

    fn file_path(&self, at: &Location) -> Option<PathBuf> {
        self.inner.file_path(&Self::inner_location(at).ok()?)
    }

    fn file_location(&self, path: &Path) -> Option<Location> {
        Some(Url::literal(CONNECTOR, path.to_str()?).into())
    }

    fn origin(&self, at: &Location) -> Origin {
        Self::inner_location(at).map_or(Origin::Files, |inner| self.inner.origin(&inner))
    }

    fn identity(&self, at: &Location) -> Option<Identity> {
        self.inner.identity(&Self::inner_location(at).ok()?)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        self.inner.upkeep().map(|_| self as &dyn Upkeep)
    }

    fn watch(&self, at: &Location) -> Option<Box<dyn LocationWatch>> {
        self.inner.watch(&Self::inner_location(at).ok()?)
    }
}

impl Upkeep for LogConnector {
    fn diagnose(&self, at: &Location) -> Result<Diagnosis, OpenError> {
        let none = || OpenError::Url("the file beneath the log has no upkeep".to_owned());
        self.inner.upkeep().ok_or_else(none)?.diagnose(&Self::inner_location(at)?)
    }

    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Repair, OpenError> {
        let none = || OpenError::Url("the file beneath the log has no upkeep".to_owned());
        let options = self.inner.options();
        let request = OpenRequest { options: &*options, unfilter: how.unfilter.clone(), ..*how };
        self.inner.upkeep().ok_or_else(none)?.repair(&Self::inner_location(at)?, &request)
    }
}
