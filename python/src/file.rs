//! Files.

use std::sync::Arc;
use std::time::Duration;

use h5live::model::{
    CreationOrder, FileSpaceSettings, FileSpaceStrategy, GroupSpec, LinkOrAttributeStorageSpec, ObjectSpec,
};
use h5live::{
    File, FileWaiter, Group, LibVer, Locking, MissingSourcePolicy, Mode, Options, Reference, ReferenceTarget,
};
use pyo3::IntoPyObjectExt;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::datatype::{DatatypeHandle, reference_kind};
use crate::errors::raise;
use crate::process::run;
use crate::selection::SelectionHandle;
use crate::session::{Session, wrap};
use crate::wait::{check_signals, deadline, next_turn};

/// An open file.
#[pyclass(frozen, name = "File", module = "h5live._h5live")]
pub(crate) struct FileHandle {
    pub(crate) session: Arc<Session>,
}

fn mode_of(name: &str) -> PyResult<Mode> {
    Ok(match name {
        "read" => Mode::Read,
        "swmr_read" => Mode::SwmrRead,
        "write" => Mode::Write,
        "swmr_write" => Mode::SwmrWrite,
        "create" => Mode::Create,
        "create_new" => Mode::CreateNew,
        other => return Err(PyValueError::new_err(format!("there is no mode {other:?}"))),
    })
}

fn get<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py>,
{
    let found = options.get_item(name)?.filter(|found| !found.is_none());
    found.map(|found| found.extract().map_err(Into::into)).transpose()
}

/// How a group or the root keeps its links.
pub(crate) fn entry_storage(track_order: bool) -> LinkOrAttributeStorageSpec {
    let order = if track_order { CreationOrder::Indexed } else { CreationOrder::Untracked };
    LinkOrAttributeStorageSpec { order, ..LinkOrAttributeStorageSpec::default() }
}

fn options_from(mode: Mode, given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let mut options = File::options().mode(mode).conversion(h5live::ConversionPolicy::Lossy);
    if let Some(libver) = get::<String>(given, "libver")? {
        let libver: LibVer =
            libver.parse().map_err(|error: h5live::UnknownLibVer| PyValueError::new_err(error.to_string()))?;
        options = options.libver(libver);
    }
    if let Some(block) = get::<Vec<u8>>(given, "user_block")? {
        options = options.user_block(&block);
    }
    if get(given, "recover")? == Some(true) {
        options = options.recover(true);
    }
    match get::<String>(given, "locking")?.as_deref() {
        Some("never") => options = options.locking(Locking::Never),
        Some("always") => options = options.locking(Locking::Always),
        Some("best-effort") => options = options.locking(Locking::BestEffort),
        _ => {}
    }
    match get::<String>(given, "missing_sources")?.as_deref() {
        None | Some("fill") => {}
        Some("error") => options = options.missing_sources(MissingSourcePolicy::Error),
        Some(_) => return Err(PyValueError::new_err("missing_sources is 'fill' or 'error'")),
    }
    if get(given, "track_order")? == Some(true) {
        let spec = ObjectSpec::from(GroupSpec { link_storage: entry_storage(true) });
        options = options.root(ObjectSpec { attribute_storage: entry_storage(true), ..spec });
    }
    if let Some(space) = file_space(given)? {
        options = options.file_space(space);
    }
    if let Some(seconds) = get::<f64>(given, "publish_every")? {
        options = options.publish_every(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    if let Some(bytes) = get(given, "chunk_cache_bytes")? {
        options = options.chunk_cache_bytes(bytes);
    }
    let settings = get::<Vec<(String, String)>>(given, "settings")?.unwrap_or_default();
    Ok(settings.iter().fold(options, |options, (name, value)| options.setting(name, value)))
}

fn file_space(given: &Bound<'_, PyDict>) -> PyResult<Option<FileSpaceSettings>> {
    let Some(strategy) = get::<String>(given, "fs_strategy")? else { return Ok(None) };
    let strategy = match strategy.as_str() {
        "fsm" => FileSpaceStrategy::FreeSpace,
        "page" => FileSpaceStrategy::Paged,
        "aggregate" => FileSpaceStrategy::Aggregators,
        "none" => FileSpaceStrategy::None,
        _ => return Err(PyValueError::new_err("Invalid file space strategy type")),
    };
    let mut space = FileSpaceSettings { strategy, ..FileSpaceSettings::default() };
    if let Some(persist) = get(given, "fs_persist")? {
        space.persist = persist;
    }
    if let Some(threshold) = get(given, "fs_threshold")? {
        space.threshold = threshold;
    }
    if let Some(page) = get(given, "fs_page_size")? {
        space.page_size = page;
    }
    Ok(Some(space))
}

/// Waits for a file in short turns, so that Ctrl-C interrupts it; `None` after so many seconds.
fn wait_for(py: Python<'_>, options: &Options, location: &str, seconds: f64) -> PyResult<Option<File>> {
    let until = deadline(Some(seconds));
    let mut waiter = run(py, || FileWaiter::new(options.clone(), location))?.map_err(raise)?;
    loop {
        let turn = next_turn(until);
        let found = run(py, || waiter.wait_for(turn, |file| Ok(file.clone())))?.map_err(raise)?;
        if found.is_some() || turn.is_zero() {
            return Ok(found);
        }
        check_signals(py)?;
    }
}

#[pymethods]
impl FileHandle {
    /// Opens a location.
    #[staticmethod]
    fn open(py: Python<'_>, location: &str, mode: &str, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let wait = get::<f64>(options, "wait")?;
        let options = options_from(mode_of(mode)?, options)?;
        let file = match wait {
            Some(seconds) => wait_for(py, &options, location, seconds)?,
            None => None,
        };
        let file = match file {
            Some(file) => file,
            None => run(py, || options.open(location))?.map_err(raise)?,
        };
        Ok(FileHandle { session: Session::new(file, Some(options.recover(false))) })
    }

    /// A file in memory that nobody else sees, or one with the contents of an image.
    #[staticmethod]
    #[pyo3(signature = (image, mode, options))]
    fn in_memory(py: Python<'_>, image: Option<Vec<u8>>, mode: &str, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = options_from(mode_of(mode)?, options)?;
        let file = match image {
            None => File::in_memory(),
            Some(image) => run(py, || options.open_image(image))?.map_err(raise)?,
        };
        Ok(FileHandle { session: Session::new(file, None) })
    }

    /// Another handle on the same open file, which has objects of its own; `None` if the file is closed for all.
    fn share(&self) -> Option<Self> {
        self.session.share().map(|session| FileHandle { session })
    }

    /// Flushes; objects of this handle hold nothing any more. The file is closed if no other handle has it open.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = || match self.session.close() {
            Some((file, true)) => file.close(),
            Some((file, false)) if file.session().mode.writes() => file.flush(),
            _ => Ok(()),
        };
        run(py, close)?.map_err(raise)
    }

    /// Closes files to which this one led and that nothing else uses.
    fn release_linked(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.session.file()?;
        run(py, || file.release_linked_files())?.map_err(raise)
    }

    #[getter]
    fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// The same for all handles of one open file.
    #[getter]
    fn key(&self) -> u64 {
        self.session.key()
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.session.file()?.name().to_owned())
    }

    #[getter]
    fn mode(&self) -> PyResult<&'static str> {
        Ok(match self.session.file()?.session().mode {
            Mode::Read => "read",
            Mode::SwmrRead => "swmr_read",
            Mode::Write => "write",
            Mode::SwmrWrite => "swmr_write",
            Mode::Create => "create",
            Mode::CreateNew => "create_new",
        })
    }

    /// The name of the kind of store.
    #[getter]
    fn connector(&self) -> PyResult<String> {
        Ok(self.session.file()?.session().connector.to_string())
    }

    /// What the store says of itself.
    fn settings(&self) -> PyResult<Vec<(String, String)>> {
        let file = self.session.file()?;
        Ok(file.session().creation_settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    fn root(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let root: Group = self.session.file()?.root();
        wrap(py, &self.session, h5live::Object::Group(root))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.session.file()?;
        run(py, || file.flush())?.map_err(raise)
    }

    fn flush_durable(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.session.file()?;
        run(py, || file.flush_durable())?.map_err(raise)
    }

    fn start_swmr(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.session.file()?;
        run(py, || file.start_swmr())?.map_err(raise)
    }

    fn is_live(&self, py: Python<'_>) -> PyResult<bool> {
        let file = self.session.file()?;
        run(py, || file.is_live())?.map_err(raise)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.session.file()?;
        run(py, || file.refresh())?.map_err(raise)
    }

    /// A type as elements of this file have it.
    fn stored_type(&self, datatype: &DatatypeHandle) -> PyResult<DatatypeHandle> {
        let forms = self.session.file()?.session().vlen_and_reference_sizes;
        Ok(DatatypeHandle(
            datatype.0.with_vlen_and_reference_sizes(h5live::model::VlenAndReferenceSizes::default(), forms),
        ))
    }

    /// The object to which a reference leads, and the selection or the attribute of which it is; `None` if nothing is there.
    fn referent(&self, py: Python<'_>, kind: &str, bytes: &[u8]) -> PyResult<Py<PyAny>> {
        let file = self.session.file()?;
        let reference = Reference::new(reference_kind(kind)?, bytes);
        match run(py, || file.reference_target(&reference))?.map_err(raise)? {
            None => Ok(py.None()),
            Some(ReferenceTarget::Object(object)) => (wrap(py, &self.session, object)?, py.None()).into_py_any(py),
            Some(ReferenceTarget::Region(dataset, selection)) => {
                let shape = crate::dataset::dataset_and_selection_shape(py, &dataset, &selection)?;
                let handle = SelectionHandle::from(selection);
                let object = wrap(py, &self.session, h5live::Object::Dataset(dataset))?;
                (object, Py::new(py, handle)?, shape).into_py_any(py)
            }
            Some(_) => Err(pyo3::exceptions::PyNotImplementedError::new_err("references of attributes")),
        }
    }
}
