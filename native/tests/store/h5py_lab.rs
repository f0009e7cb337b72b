//! A file that h5live and h5py change in turns.

use std::path::{Path, PathBuf};
use std::process::Command;

use h5live_native::{Mode, NativeFile, OpenOptions};

/// A file that two programs change.
pub struct H5pyLab {
    python: PathBuf,
    folder: tempfile::TempDir,
    /// The script in `tests/python` by which h5py changes it.
    script: &'static str,
}

impl H5pyLab {
    /// No file yet; `None` without h5py.
    pub fn new(script: &'static str) -> Option<Self> {
        let python = h5live_test_support::python()?;
        Some(H5pyLab { python, folder: tempfile::tempdir().unwrap(), script })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("lab.h5")
    }

    /// Runs the script on the file.
    pub fn python(&self, args: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(self.script);
        let status = Command::new(&self.python).arg(script).arg(self.path()).args(args).status().unwrap();
        assert!(status.success(), "{} {args:?}", self.script);
    }

    pub fn open(&self, mode: Mode) -> NativeFile {
        NativeFile::open(&self.path(), &OpenOptions { mode, ..Default::default() }).unwrap()
    }
}
