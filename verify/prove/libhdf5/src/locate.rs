//! Finds libhdf5 and h5py.

use std::path::PathBuf;
use std::process::Command;

use crate::library::Library;

/// Names under which systems have it.
const NAMES: &[&str] = &[
    "libhdf5.so",
    "libhdf5.so.320",
    "libhdf5.so.310",
    "libhdf5_serial.so.310",
    "libhdf5_serial.so.103",
    "libhdf5.so.103",
];

/// Prints the libraries that came with h5py.
const OF_H5PY: &str = "import glob, os, h5py\n\
    print(*glob.glob(os.path.join(os.path.dirname(h5py.__file__), '..', 'h5py.libs', 'libhdf5-*')), sep='\\n')";

/// Python with h5py.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("H5LIVE_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    let there = Command::new(&python).args(["-c", "import h5py"]).output().is_ok_and(|done| done.status.success());
    there.then_some(python)
}

/// Those that can be loaded, one of each release.
pub fn libraries() -> Vec<PathBuf> {
    let named = std::env::var("H5LIVE_LIBHDF5").unwrap_or_default();
    let mut all: Vec<PathBuf> = named.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    if let Some(found) = python().and_then(|python| Command::new(python).args(["-c", OF_H5PY]).output().ok()) {
        all.extend(String::from_utf8_lossy(&found.stdout).lines().map(PathBuf::from));
    }
    all.extend(NAMES.iter().map(PathBuf::from));
    let mut releases = Vec::new();
    all.retain(|path| match Library::load(path, 1) {
        Ok(library) if !releases.iter().any(|known| known == library.version()) => {
            releases.push(library.version().to_owned());
            true
        }
        _ => false,
    });
    all
}
