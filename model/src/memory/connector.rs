//! `mem:`: files in the memory of this process, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::file::{MemoryAccess, MemoryFile, SCHEME};
use super::{MemoryState, MemoryStore, SimulatedChunkCapabilities};
use crate::{
    Capabilities, Connector, ConnectorOptions, Error, FileHolderProcess, LinkedStoreRole, Location, LocationWatch,
    Maintenance, Mode, Name, OpenError, OpenRequest, PathProbe, Store, StoreErrorKind, StoreIdentity, TrustOrigin, Url,
};

/// Opens files in memory: `mem:` makes one that nobody else can open, `mem:name` one that links and further sessions of
/// this process find by its name.
///
/// A named file stays until it is replaced or removed ([`MemoryConnector::remove_file`]), or the last clone of the connector
/// is gone. A clone has the same files.
#[derive(Debug, Clone, Default)]
pub struct MemoryConnector {
    files: Arc<Mutex<BTreeMap<Vec<u8>, NamedFile>>>,
}

#[derive(Debug)]
struct NamedFile {
    file: Arc<MemoryFile>,
    /// The sessions that read it and do not expect it to change.
    readers: Vec<Weak<MemoryAccess>>,
}

/// Why a file in memory could not be opened.
#[derive(Debug, thiserror::Error)]
enum MemoryOpenError {
    #[error("there is no file of this name in the memory of this process")]
    NotThere,
    #[error("the file exists")]
    Exists,
    #[error("this process has the file open for writing")]
    Written,
    #[error("this process has the file open for reading")]
    Read,
}

impl From<MemoryOpenError> for OpenError {
    fn from(error: MemoryOpenError) -> Self {
        let kind = match error {
            MemoryOpenError::NotThere => StoreErrorKind::NotFound,
            MemoryOpenError::Exists => StoreErrorKind::AlreadyExists,
            MemoryOpenError::Written | MemoryOpenError::Read => {
                StoreErrorKind::InUse(vec![FileHolderProcess::this_process()])
            }
        };
        Error::store(kind, error).into()
    }
}

crate::settings! {
    connector "mem";
    /// The options of a file in memory: there are none.
    struct MemoryOptions {}
}

/// The name of a file.
fn file_name(at: &Location) -> Result<Vec<u8>, OpenError> {
    let Location::Url(url) = at else {
        return Err(OpenError::InvalidLocation("a file in memory has no path: mem:NAME is one".to_owned()));
    };
    let rest = url.decoded_hier_part()?;
    Ok(rest.strip_prefix(b"//").unwrap_or(&rest).to_vec())
}

impl NamedFile {
    fn new(file: Arc<MemoryFile>) -> Self {
        NamedFile { file, readers: Vec::new() }
    }

    fn check_unwritten(&self) -> Result<(), MemoryOpenError> {
        if self.file.state.lock().has_writer { Err(MemoryOpenError::Written) } else { Ok(()) }
    }

    fn check_unused(&mut self) -> Result<(), MemoryOpenError> {
        self.check_unwritten()?;
        self.readers.retain(|reader| reader.upgrade().is_some_and(|reader| !reader.is_closed()));
        if self.readers.is_empty() { Ok(()) } else { Err(MemoryOpenError::Read) }
    }

    fn open(&mut self, at: &Location, mode: Mode) -> Result<MemoryStore, MemoryOpenError> {
        match mode {
            Mode::SwmrRead => Ok(MemoryStore::open_at(Some(at), self.file.clone(), mode)),
            Mode::Read => {
                self.check_unwritten()?;
                let store = MemoryStore::open_at(Some(at), self.file.clone(), mode);
                self.readers.push(Arc::downgrade(&store.session.access));
                Ok(store)
            }
            Mode::CreateNew => Err(MemoryOpenError::Exists),
            Mode::Write | Mode::SwmrWrite | Mode::Create => {
                self.check_unused()?;
                self.file.state.lock().has_writer = true;
                Ok(MemoryStore::open_at(Some(at), self.file.clone(), mode))
            }
        }
    }
}

impl MemoryConnector {
    /// A connector without files.
    pub fn new() -> Self {
        MemoryConnector::default()
    }

    /// Forgets a file; sessions that have it open keep it. Returns whether there was one.
    pub fn remove_file(&self, name: &str) -> bool {
        self.files.lock().remove(name.as_bytes()).is_some()
    }

    /// The names of the files.
    pub fn file_names(&self) -> Vec<Name> {
        self.files.lock().keys().map(|name| Name::from(&**name)).collect()
    }
}

impl Connector for MemoryConnector {
    fn name(&self) -> &'static str {
        SCHEME
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[SCHEME]
    }

    fn capabilities(&self) -> Capabilities {
        super::capabilities(SimulatedChunkCapabilities::default(), Mode::Create)
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(MemoryOptions {})
    }

    fn claims(&self, _: &PathProbe<'_>) -> bool {
        false
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let name = file_name(at)?;
        let mut files = self.files.lock();
        let known = files.get_mut(&name);
        if !matches!(how.mode, Mode::Create | Mode::CreateNew) {
            return Ok(Arc::new(known.ok_or(MemoryOpenError::NotThere)?.open(at, how.mode)?));
        }
        match known {
            Some(_) if how.mode == Mode::CreateNew => return Err(MemoryOpenError::Exists.into()),
            Some(known) => known.check_unused()?,
            None => {}
        }
        let state = MemoryState::new(how.root).into();
        let file = Arc::new(MemoryFile { max_allocation: how.max_allocation, state, ..MemoryFile::default() });
        if name.is_empty() {
            return Ok(Arc::new(MemoryStore::open(file, how.mode)));
        }
        files.insert(name, NamedFile::new(file.clone()));
        Ok(Arc::new(MemoryStore::open_at(Some(at), file, how.mode)))
    }

    /// A file beside the one that names it, then one of just that name.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, _: LinkedStoreRole) -> Vec<Location> {
        let Some(name) = name.as_str() else { return Vec::new() };
        let base = base.and_then(|base| String::from_utf8(file_name(base).ok()?).ok()).unwrap_or_default();
        let folder = base.rsplit_once('/').map(|(folder, _)| format!("{folder}/{name}"));
        let names = folder.into_iter().chain([name.to_owned()]);
        names.map(|name| Url::literal(SCHEME, &name).into()).collect()
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn trust_origin(&self, _: &Location) -> TrustOrigin {
        TrustOrigin::Named(SCHEME.to_owned())
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        let name = file_name(at).ok()?;
        self.files.lock().contains_key(&name).then(|| StoreIdentity(name.into()))
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    fn watch(&self, _: &Location) -> Option<Box<dyn LocationWatch>> {
        None
    }
}
