//! Other files that a file names: in external links and in virtual datasets.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use h5live_model::Name;
use parking_lot::Mutex;

use crate::file::FileShared;
use crate::{Error, File, Mode};

/// Every file that was opened on the way from one file to others, so that none is opened twice.
#[derive(Debug, Default)]
pub(crate) struct LinkedFiles {
    files: Mutex<HashMap<PathBuf, Weak<FileShared>>>,
}

/// Where files are looked for first: the variables of libhdf5.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SearchPrefix {
    ExternalLink,
    VirtualSource,
}

impl SearchPrefix {
    fn folders(self, origin: Option<&Path>) -> Vec<PathBuf> {
        let variable = match self {
            SearchPrefix::ExternalLink => "HDF5_EXT_PREFIX",
            SearchPrefix::VirtualSource => "HDF5_VDS_PREFIX",
        };
        let value = std::env::var_os(variable).unwrap_or_else(OsString::new);
        let at_origin = |folder: PathBuf| match (folder.strip_prefix("${ORIGIN}"), origin) {
            (Ok(below), Some(origin)) => origin.join(below),
            _ => folder,
        };
        std::env::split_paths(&value).filter(|folder| !folder.as_os_str().is_empty()).map(at_origin).collect()
    }
}

impl LinkedFiles {
    /// Takes a file in.
    pub(crate) fn add(&self, location: &Path, shared: &Arc<FileShared>) {
        if let Ok(location) = location.canonicalize() {
            self.files.lock().insert(location, Arc::downgrade(shared));
        }
    }
}

/// Where a file called `name` may be: as it is called, if that is a whole path; in the folders of the variable; in the
/// folder of the file that names it; and in the current folder.
fn candidates(from: &File, name: &Path, prefix: SearchPrefix) -> Vec<PathBuf> {
    let origin = from.shared().location.as_deref().and_then(Path::parent);
    let mut candidates = Vec::new();
    let mut below = name;
    if name.is_absolute() {
        candidates.push(name.to_owned());
        below = Path::new(name.file_name().unwrap_or_default());
    }
    candidates.extend(prefix.folders(origin).iter().map(|folder| folder.join(below)));
    candidates.extend(origin.map(|origin| origin.join(below)));
    candidates.push(below.to_owned());
    candidates
}

/// The modes in which another file is opened, one after the other while somebody has it in use. A source of a virtual dataset
/// is only read, and may be read while it is written.
fn modes(mode: Mode, prefix: SearchPrefix) -> &'static [Mode] {
    match (mode, prefix) {
        (Mode::Read, SearchPrefix::ExternalLink) => &[Mode::Read],
        (Mode::Read, SearchPrefix::VirtualSource) => &[Mode::Read, Mode::SwmrRead],
        (Mode::SwmrRead, _) => &[Mode::SwmrRead],
        (_, SearchPrefix::ExternalLink) => &[Mode::Write],
        (_, SearchPrefix::VirtualSource) => &[Mode::Write, Mode::Read, Mode::SwmrRead],
    }
}

/// The file that another one calls `name`; `None` if there is none.
///
/// # Errors
/// As [`Options::open`](crate::Options::open), for a file that is there.
pub(crate) fn open_linked(from: &File, name: &Name, prefix: SearchPrefix) -> Result<Option<File>, Error> {
    let Some(text) = name.as_str().filter(|text| !text.is_empty()) else { return Ok(None) };
    let mut failure = None;
    for candidate in candidates(from, Path::new(text), prefix) {
        let Ok(location) = candidate.canonicalize() else { continue };
        let shared = from.shared();
        if let Some(known) = shared.linked_files.files.lock().get(&location).and_then(Weak::upgrade) {
            return Ok(Some(File::from_shared(known)));
        }
        for mode in modes(shared.options.mode, prefix) {
            match shared.options.clone().mode(*mode).open_linked(&candidate, shared.linked_files.clone()) {
                Ok(file) => {
                    shared.kept_open.lock().push(file.clone());
                    return Ok(Some(file));
                }
                Err(error) => {
                    let is_last = !error.is_in_use();
                    failure = Some(error);
                    if is_last {
                        break;
                    }
                }
            }
        }
    }
    failure.map_or(Ok(None), Err)
}
