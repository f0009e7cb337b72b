//! Files that appear when they are complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file that is being written, and removed unless it takes its place.
pub struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// A new file in the folder of another one, whose place it can take.
    ///
    /// # Errors
    /// [`Error::Path`] if that folder is not there, or `path` is one.
    pub fn beside(path: &Path) -> Result<Self> {
        let fault = |source| Error::Path { path: path.to_owned(), source };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match fs::metadata(folder) {
            Err(error) => return Err(fault(error)),
            Ok(found) if !found.is_dir() => return Err(fault(io::ErrorKind::NotADirectory.into())),
            Ok(_) if path.is_dir() => return Err(fault(io::ErrorKind::IsADirectory.into())),
            Ok(_) => {}
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Unfinished { path: path.with_file_name(format!(".{name}.{}.unfinished", std::process::id())) })
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
