//! The connector of files with a log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_model::{
    AllocationLimit, Capabilities, Connector, ConnectorOptions, ConnectorRegistry, Error, FileDiagnosis,
    LinkedStoreRole, Location, LocationWatch, Maintenance, Mode, Name, NoFilters, ObjectSpec, OpenError, OpenRequest,
    PathProbe, RepairReport, Store, StoreCheckOptions, StoreCheckReport, StoreIdentity, TrustOrigin, Url,
};

use crate::check::{LogCheck, log_finding};
use crate::error::LogError;
use crate::joining::join_as_writer;
use crate::layout::LogLayout;
use crate::local_multi_writer_files::{LocalMultiWriterFiles, follower_lock_settings, has_multi_writer_files};
use crate::log_file::existing_log_group;
use crate::log_vol_root_attribute::{COUNTERS, LogVolRootAttribute};
use crate::multi_writer_files::MultiWriterFiles;
use crate::names::{LOG_GROUP, LOG_MARK};
use crate::opening::{open_log_vol, open_or_create_log};
use crate::options::Log;
use crate::session::{CONNECTOR, LogOpenRequest, LogSession};
use crate::store::LogStore;
use crate::subfile_opener::is_in_use;

/// The attributes of the root group of a file with a log.
const MARKS: [&str; 2] = [COUNTERS, LOG_MARK];

/// Opens files with a log: `log:run.h5`, and a path that leads to one. The file itself is opened by the connector beneath.
/// A new file gets a log; one that exists and has none is opened as the plain file that it is.
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
        counters: LogVolRootAttribute,
        request: &OpenRequest<'_>,
        log: LogOpenRequest,
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
        let files = (0..counters.subfile_count()).map(subfile).collect::<Result<Vec<_>, _>>()?;
        open_log_vol(inner, counters, &files, log).map_err(OpenError::Store)
    }

    /// The file at a path, to look at it: it may be written meanwhile, and is not locked. `None` if it cannot be opened.
    fn open_to_look(&self, path: &Path) -> Option<Arc<dyn Store>> {
        let mut options = self.inner.options();
        for (name, value) in follower_lock_settings(Mode::SwmrRead) {
            options.set(name, value).ok()?;
        }
        let request = OpenRequest {
            mode: Mode::SwmrRead,
            root: &ObjectSpec::group(),
            options: &*options,
            max_allocation: AllocationLimit::default(),
            filter_engine: Arc::new(NoFilters),
            registry: &ConnectorRegistry::empty(),
        };
        self.inner.open(&Location::Path(path.to_owned()), &request).ok()
    }

    /// Refuses to join a log in Log VOL's layout, before anything of joining is made beside it.
    fn check_joining(&self, path: &Path, layout: LogLayout) -> Result<(), OpenError> {
        // What cannot be opened so is no such file, or says why when it is joined.
        let is_log_vol = || LogVolRootAttribute::read(&*self.open_to_look(path)?).ok()?;
        match layout == LogLayout::LogVol || (!has_multi_writer_files(path) && is_log_vol().is_some()) {
            true => Err(OpenError::Store(Error::Unsupported("joining a log in Log VOL's layout (layout=logvol)"))),
            false => Ok(()),
        }
    }

    /// A session on the file at a location.
    fn open_session(&self, at: &Location, how: &OpenRequest<'_>) -> Result<OpenedFile, OpenError> {
        let options = how.downcast_options::<Log>()?.clone();
        let file = self.file(at, how, &options)?;
        let log = LogOpenRequest {
            filter_engine: how.filter_engine.clone(),
            max_allocation: how.max_allocation,
            ..LogOpenRequest::new(options.clone())
        };
        let mut session = if options.join && how.mode.writes() {
            if let Some(path) = &file.path {
                self.check_joining(path, options.layout)?;
            }
            let no_path = || OpenError::InvalidLocation("only files of this machine are joined".to_owned());
            join_as_writer(file.files.ok_or_else(no_path)?, !is_existing(how.mode), log)?
        } else {
            let request = file.request(how);
            let inner = self.inner.open(&Self::inner_location(at)?, &request)?;
            let counters = LogVolRootAttribute::read(&*inner).map_err(OpenError::Store)?;
            match counters {
                Some(counters) if counters.subfile_count() > 0 => {
                    self.open_log_vol_subfiles(at, inner, counters, &request, log)?
                }
                None if is_existing(how.mode)
                    && !LogSession::has_log_group_or_mark(&*inner).map_err(OpenError::Store)? =>
                {
                    // A plain file, as a log may have links to. It stays one.
                    return Ok(OpenedFile::Plain(inner));
                }
                _ => open_or_create_log(inner, file.files, log)?,
            }
        };
        session.info.location = Some(at.clone());
        Ok(OpenedFile::Log(Box::new(session)))
    }

    /// The file at a location, and how it is opened.
    fn file(&self, at: &Location, how: &OpenRequest<'_>, options: &Log) -> Result<LoggedFile, OpenError> {
        let mut inner_options = self.inner.options();
        let path = self.file_path(at);
        let mut mode = how.mode;
        if path.as_deref().is_some_and(has_multi_writer_files) {
            for (name, value) in follower_lock_settings(mode) {
                inner_options.set(name, value)?;
            }
            // Followers that have no lock may be there.
            mode = if mode == Mode::Write { Mode::SwmrWrite } else { mode };
        }
        let mut file = LoggedFile { path, mode, options: inner_options, files: None };
        file.files = file.path.clone().map(|path| self.joined_files(path, options, &file.request(how)));
        Ok(file)
    }

    /// The subfiles of the main file at a path.
    fn joined_files(&self, main: PathBuf, options: &Log, how: &OpenRequest<'_>) -> Arc<dyn MultiWriterFiles> {
        Arc::new(LocalMultiWriterFiles::new(self.inner.clone(), main, options.patience, how))
    }

    /// The location of the file.
    fn inner_location(at: &Location) -> Result<Location, OpenError> {
        let Location::Url(url) = at else { return Ok(at.clone()) };
        match url.hier_part_as_path()? {
            Some(path) => Ok(Location::Path(path)),
            None => Err(OpenError::InvalidLocation("a file with a log has a path: log:run.h5 is one".to_owned())),
        }
    }
}

/// A file that has a log, or gets one.
struct LoggedFile {
    /// Where it is on this machine.
    path: Option<PathBuf>,
    mode: Mode,
    /// The options of the connector beneath.
    options: Box<dyn ConnectorOptions>,
    /// Its subfiles.
    files: Option<Arc<dyn MultiWriterFiles>>,
}

/// What came of opening a file.
enum OpenedFile {
    /// It has a log.
    Log(Box<LogSession>),
    /// It has none, and gets none.
    Plain(Arc<dyn Store>),
}

impl LoggedFile {
    /// The request to the connector beneath, by one to open the log.
    fn request<'a>(&'a self, how: &OpenRequest<'a>) -> OpenRequest<'a> {
        OpenRequest { mode: self.mode, options: &*self.options, filter_engine: how.filter_engine.clone(), ..*how }
    }
}

/// Whether nobody writes a file that is open to be read.
fn is_at_rest(file: &dyn Store) -> bool {
    file.session().mode == Mode::Read
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

    /// A file with what a log has in the root group. Nearly all others are told from it by their first bytes.
    fn claims(&self, probe: &PathProbe<'_>) -> bool {
        if probe.head().is_empty() {
            return false;
        }
        match self.inner.peek_root_has_any(probe, &[Name::from(LOG_GROUP)], &MARKS.map(Name::from)) {
            Some(false) => false,
            peeked => match self.open_to_look(probe.path()).map(|store| LogSession::is_log_file(&*store)) {
                Some(Ok(is_log)) => is_log,
                // Something is wrong with it, or a process has it for itself: that is said when it is opened.
                _ => peeked.is_some(),
            },
        }
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        Ok(match self.open_session(at, how)? {
            OpenedFile::Log(session) => Arc::new(LogStore::new(*session)),
            OpenedFile::Plain(inner) => inner,
        })
    }

    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, role: LinkedStoreRole) -> Vec<Location> {
        let base = base.and_then(|base| Self::inner_location(base).ok());
        let found = self.inner.linked_store_candidates(base.as_ref(), name, role);
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

    fn trust_origin(&self, at: &Location) -> TrustOrigin {
        Self::inner_location(at).map_or(TrustOrigin::Files, |inner| self.inner.trust_origin(&inner))
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        self.inner.identity(&Self::inner_location(at).ok()?)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        self.inner.maintenance().map(|_| self as &dyn Maintenance)
    }

    fn watch(&self, at: &Location) -> Option<Box<dyn LocationWatch>> {
        self.inner.watch(&Self::inner_location(at).ok()?)
    }
}

impl Maintenance for LogConnector {
    fn diagnose(&self, at: &Location) -> Result<FileDiagnosis, OpenError> {
        let none = || OpenError::InvalidLocation("the file beneath the log has no maintenance".to_owned());
        self.inner.maintenance().ok_or_else(none)?.diagnose(&Self::inner_location(at)?)
    }

    fn repair(&self, at: &Location, how: &OpenRequest<'_>) -> Result<RepairReport, OpenError> {
        let none = || OpenError::InvalidLocation("the file beneath the log has no maintenance".to_owned());
        let options = self.inner.options();
        let request = OpenRequest { options: &*options, filter_engine: how.filter_engine.clone(), ..*how };
        self.inner.maintenance().ok_or_else(none)?.repair(&Self::inner_location(at)?, &request)
    }

    fn check(
        &self,
        at: &Location,
        how: &OpenRequest<'_>,
        what: &StoreCheckOptions,
    ) -> Result<StoreCheckReport, OpenError> {
        let options = how.downcast_options::<Log>()?;
        let in_mode = |mode: Mode| {
            let how = OpenRequest { mode, filter_engine: how.filter_engine.clone(), ..*how };
            let file = self.file(at, &how, options)?;
            let opened = self.inner.open(&Self::inner_location(at)?, &file.request(&how))?;
            Ok::<_, OpenError>((opened, file))
        };
        let (main, file) = match in_mode(Mode::Read) {
            // A process writes it, and may let others follow.
            Err(error) if is_in_use(&error) => in_mode(Mode::SwmrRead)?,
            opened => opened?,
        };
        let limit = how.max_allocation;
        let check = LogCheck {
            check_data_with: what.verify_data.then_some(&*how.filter_engine),
            is_at_rest: is_at_rest(&*main),
            limit,
        };
        let is_log_vol = LogVolRootAttribute::read(&*main).is_ok_and(|counters| counters.is_some());
        if let (false, Some(files)) = (is_log_vol, &file.files) {
            if !LogSession::has_log_group_or_mark(&*main)? {
                return Err(Error::from(LogError::NoLog).into());
            }
            return Ok(match existing_log_group(&*main) {
                Ok(group) => check.run_h5live(main, &**files, group),
                Err(error) => {
                    StoreCheckReport { findings: vec![log_finding("log", error)], ..StoreCheckReport::default() }
                }
            });
        }
        drop(main);
        let request = OpenRequest { mode: Mode::Read, filter_engine: how.filter_engine.clone(), ..*how };
        match self.open_session(at, &request) {
            Ok(OpenedFile::Log(session)) => Ok(check.run_log_vol(&session)),
            Ok(OpenedFile::Plain(_)) => Err(Error::from(LogError::NoLog).into()),
            Err(error) => {
                Ok(StoreCheckReport { findings: vec![log_finding("log", error)], ..StoreCheckReport::default() })
            }
        }
    }
}
