//! Folders for files that exist only while a process runs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::creator_process::CreatorProcess;
use crate::error::{Error, Result};
use crate::signals;
use crate::unfinished::{ENDING, KEPT_MARKER_FILE, remove_stale_temps};

/// A folder for files that are there only while a command runs.
#[derive(Debug)]
pub struct ScratchFolder {
    path: PathBuf,
    is_kept: bool,
}

impl ScratchFolder {
    /// A new folder among the temporary files of this machine. A signal that ends this process at once removes it, too,
    /// if `remove_on_signal` says so: commands that end by themselves at a signal need not be ended before.
    ///
    /// # Errors
    /// [`Error::Create`].
    pub fn new(command: &str, remove_on_signal: bool) -> Result<Self> {
        let temporary = std::env::temp_dir();
        remove_stale_temps(&temporary);
        let path = temporary.join(format!(".h5live-{command}.{}{ENDING}", CreatorProcess::this_process()));
        fs::create_dir_all(&path).map_err(|source| Error::Create { path: path.clone(), source })?;
        if remove_on_signal {
            signals::remove_on_signal(&path);
        }
        Ok(ScratchFolder { path, is_kept: false })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the folder stay; returns where it is.
    pub fn keep(mut self) -> PathBuf {
        // Without it the next command takes the folder for left behind.
        self.is_kept = fs::write(self.path.join(KEPT_MARKER_FILE), "").is_ok();
        self.path.clone()
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nobody needs it any more; the next command tries again.
            let _ = fs::remove_dir_all(&self.path);
        }
        signals::cancel_remove_on_signal(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_as_long_as_a_command_runs_unless_it_is_kept() {
        let scratch = ScratchFolder::new("test", false).unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(scratch);
        assert!(!path.exists());
        let kept = ScratchFolder::new("test", false).unwrap().keep();
        assert!(kept.exists());
        fs::remove_dir_all(kept).unwrap();
    }
}
