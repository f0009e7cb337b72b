//! Files that appear when they are complete, and files that exist only while a command runs.
//!
//! Their names say which process makes them. They are removed when the command ends, also by an error or a signal. The
//! files of a killed process are removed by the next command that writes in the same folder.

#[cfg(feature = "kv")]
mod folder;
mod maker;
mod signals;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use h5live::Location;
use h5live_swmr::FileReplacement;

use crate::error::{Error, Result};
use crate::open;
#[cfg(feature = "kv")]
pub use folder::TempFolder;
use maker::Maker;
pub use signals::heeded;
#[cfg(feature = "hsds")]
pub use signals::{EndAction, at_end};

/// How the names of such files end.
const ENDING: &str = ".unfinished";

/// A file in folders that stay.
const KEPT: &str = "kept";

/// Bytes of a file's name that the name of its unfinished form repeats: the whole of it must not become too long.
const MAX_NAME_BYTES: usize = 120;

/// Whether a command may replace a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub struct ForceArgs {
    /// Replace a file that exists; one that a process is writing is never replaced
    #[arg(short = 'f', long = "force")]
    pub replaces_file: bool,
}

/// The files that this process has written, and their places, as errors name them.
static PLACES: Mutex<Vec<[String; 2]>> = Mutex::new(Vec::new());

/// The text of an error, with the places of files instead of the names that they have until they are complete.
pub fn with_places(text: &str) -> String {
    let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.iter().fold(text.to_owned(), |text, [unfinished, place]| text.replace(unfinished, place))
}

/// A file that is being written, and removed unless it takes its place.
#[derive(Debug)]
pub struct TempOutput {
    path: PathBuf,
    place: PathBuf,
    force: ForceArgs,
    /// The file that will be replaced. No writer can open it meanwhile.
    replaced: Option<FileReplacement>,
}

impl TempOutput {
    /// A new file in the folder of another file, which it can replace.
    ///
    /// # Errors
    /// [`Error::Path`] if that folder does not exist, or `path` is a folder; [`Error::Exists`], or [`Error::Held`] if a
    /// process writes the file that would be replaced.
    pub fn create_for(path: &Path, force: ForceArgs) -> Result<Self> {
        let folder = check_parent(path)?;
        if path.is_dir() {
            return Err(Error::Path { path: path.to_owned(), source: io::ErrorKind::IsADirectory.into() });
        }
        let replaced = claim(path, force)?;
        sweep(folder);
        Ok(TempOutput { path: unfinished_path(path), place: path.to_owned(), force, replaced })
    }

    /// Its present path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the file to its final path.
    ///
    /// # Errors
    /// [`Error::Persist`]; as [`TempOutput::create_for`], if there is a file now that was not there before.
    pub fn persist(mut self) -> Result<()> {
        let failed = |source| Error::Persist { path: self.place.clone(), source };
        fs::File::open(&self.path).and_then(|file| file.sync_all()).map_err(failed)?;
        if self.replaced.is_none() {
            // Unlike a rename, a link replaces nothing that has come to be there.
            match fs::hard_link(&self.path, &self.place) {
                Ok(()) => return Ok(()),
                Err(_) => self.replaced = claim(&self.place, self.force)?,
            }
        }
        if let Some(replaced) = &self.replaced {
            replaced
                .check_still_replaceable()
                .map_err(|source| Error::Held { path: self.place.clone(), source: Box::new(source) })?;
        }
        fs::rename(&self.path, &self.place).map_err(failed)
    }
}

impl Drop for TempOutput {
    fn drop(&mut self) {
        // It may have been moved to its place.
        let _ = fs::remove_file(&self.path);
        signals::is_removed(&self.path);
    }
}

/// The folder of a file or folder that is to be made.
fn check_parent(path: &Path) -> Result<&Path> {
    let fault = |source| Error::Path { path: path.to_owned(), source };
    let folder = folder_of(path);
    match fs::metadata(folder) {
        Err(error) => Err(fault(error)),
        Ok(found) if !found.is_dir() => Err(fault(io::ErrorKind::NotADirectory.into())),
        Ok(_) => Ok(folder),
    }
}

/// The path of a file or folder until it is complete. It is removed when a signal ends this process.
fn unfinished_path(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let name = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
    let unfinished = place.with_file_name(format!(".{name}.{}{ENDING}", Maker::this_process()));
    signals::remove_at_end(&unfinished);
    let names = [&*unfinished, place].map(|path| path.display().to_string());
    PLACES.lock().unwrap_or_else(PoisonError::into_inner).push(names);
    unfinished
}

/// Claims the file at `path`, if there is one and it may be replaced.
///
/// # Errors
/// [`Error::Exists`], [`Error::Held`]; [`Error::Path`] if it is no file.
pub fn claim(path: &Path, force: ForceArgs) -> Result<Option<FileReplacement>> {
    let held = |source| Error::Held { path: path.to_owned(), source: Box::new(source) };
    match (fs::symlink_metadata(path), force.replaces_file) {
        (Err(_), _) => Ok(None),
        (Ok(_), false) => Err(Error::Exists { path: path.to_owned() }),
        (Ok(_), true) if fs::metadata(path).is_ok_and(|found| !found.is_file()) => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file");
            Err(Error::Path { path: path.to_owned(), source })
        }
        (Ok(_), true) => FileReplacement::claim(path).map_err(held),
    }
}

/// A folder for files that are there only while a command runs.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    is_kept: bool,
}

impl Scratch {
    /// A new folder among the temporary files of this machine. A signal that ends this process at once removes it, too,
    /// if `at_signals` says so: commands that end by themselves at a signal need not be ended before.
    ///
    /// # Errors
    /// [`Error::Path`].
    pub fn new(command: &str, at_signals: bool) -> Result<Self> {
        let temporary = std::env::temp_dir();
        sweep(&temporary);
        let path = temporary.join(format!(".h5live-{command}.{}{ENDING}", Maker::this_process()));
        fs::create_dir_all(&path).map_err(|source| Error::Path { path: path.clone(), source })?;
        if at_signals {
            signals::remove_at_end(&path);
        }
        Ok(Scratch { path, is_kept: false })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the folder stay; returns where it is.
    pub fn keep(mut self) -> PathBuf {
        // Without it the next command takes the folder for left behind.
        self.is_kept = fs::write(self.path.join(KEPT), "").is_ok();
        self.path.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nobody needs it any more; the next command tries again.
            let _ = fs::remove_dir_all(&self.path);
        }
        signals::is_removed(&self.path);
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what killed commands have left in the folder of a file that is going to be written.
///
/// # Errors
/// [`Error::Location`] if no store can open the location.
pub fn sweep_beside(location: &Location) -> Result<()> {
    if let Some(path) = open::file_path(location)? {
        sweep(folder_of(&path));
    }
    Ok(())
}

/// Removes what processes that are dead have left unfinished in a folder.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(maker) = name.to_str().and_then(maker_of) else { continue };
        let path = entry.path();
        if !path.join(KEPT).exists() && maker.is_gone(&path) {
            // If it cannot be removed, it belongs to another process.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// Which process makes a file of this name, if it is one of these.
fn maker_of(name: &str) -> Option<Maker> {
    name.strip_prefix('.')?.strip_suffix(ENDING)?.rsplit_once('.')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_FORCE: ForceArgs = ForceArgs { replaces_file: false };

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_does_not_take_its_place_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = TempOutput::create_for(&folder.path().join("new.h5"), NO_FORCE).unwrap();
        fs::write(unfinished.path(), "half").unwrap();
        drop(unfinished);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_file_that_came_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new.h5");
        let unfinished = TempOutput::create_for(&place, NO_FORCE).unwrap();
        fs::write(unfinished.path(), "new").unwrap();
        fs::write(&place, "of somebody else").unwrap();
        assert!(matches!(unfinished.persist(), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&place).unwrap(), b"of somebody else");
        assert_eq!(names(folder.path()), ["new.h5"]);
        assert!(matches!(TempOutput::create_for(&place, NO_FORCE), Err(Error::Exists { .. })));

        let unfinished = TempOutput::create_for(&place, ForceArgs { replaces_file: true }).unwrap();
        fs::write(unfinished.path(), "new").unwrap();
        unfinished.persist().unwrap();
        assert_eq!((fs::read(&place).unwrap(), names(folder.path())), (b"new".to_vec(), vec!["new.h5".to_owned()]));
    }

    #[test]
    fn only_what_dead_processes_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_child = Maker::of_process(child.id()).unwrap();
        let file = |maker: &Maker| folder.path().join(format!(".a.h5.{maker}{ENDING}"));
        let others =
            [".a.h5.unfinished", "a.h5", ".a.h5.12.unfinished", ".hidden"].map(|name| folder.path().join(name));
        others.iter().for_each(|path| fs::write(path, "").unwrap());
        fs::write(file(&of_child), "").unwrap();
        fs::write(file(&Maker::this_process()), "").unwrap();
        sweep(folder.path());
        assert_eq!(names(folder.path()).len(), 6, "they live");
        child.kill().unwrap();
        child.wait().unwrap();
        sweep(folder.path());
        assert!(!file(&of_child).exists() && file(&Maker::this_process()).exists());
        assert!(others.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_folder_is_there_as_long_as_a_command_runs_unless_it_is_kept() {
        let scratch = Scratch::new("test", false).unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(scratch);
        assert!(!path.exists());
        let kept = Scratch::new("test", false).unwrap().keep();
        assert!(kept.exists());
        fs::remove_dir_all(kept).unwrap();
    }

    #[test]
    fn a_name_of_any_length_has_an_unfinished_form() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = TempOutput::create_for(&folder.path().join("ü".repeat(125)), NO_FORCE).unwrap();
        fs::write(unfinished.path(), "").unwrap();
        unfinished.persist().unwrap();
        assert_eq!(names(folder.path()), ["ü".repeat(125)]);
    }
}
