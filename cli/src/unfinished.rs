//! Files that appear when they are complete.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file that is being written, and removed unless it takes its place.
pub struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// A new file in the folder of another one.
    pub fn beside(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Unfinished { path: path.with_file_name(format!(".{name}.{}.unfinished", std::process::id())) }
    }

    /// Where it is meanwhile.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file at `path`, in place of what is there.
    ///
    /// # Errors
    /// [`Error::Place`].
    pub fn take_place(self, path: &Path) -> Result<()> {
        let placed =
            fs::File::open(&self.path).and_then(|file| file.sync_all()).and_then(|()| fs::rename(&self.path, path));
        placed.map_err(|source| Error::Place { path: path.to_owned(), source })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It is not there any more once it has taken its place.
        let _ = fs::remove_file(&self.path);
    }
}
