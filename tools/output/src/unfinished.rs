//! The names of files until they are complete, and what dead processes have left of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::creator_process::CreatorProcess;
use crate::error::{Error, Result};
use crate::signals;

/// How the names of such files end.
pub const ENDING: &str = ".unfinished";

/// A file in folders that stay.
pub const KEPT_MARKER_FILE: &str = "kept";

/// Bytes of a file's name that the name of its unfinished form repeats: the whole of it must not become too long.
const MAX_NAME_BYTES: usize = 120;

/// The files that this process has written, and their places, as errors name them.
static PLACES: Mutex<Vec<[String; 2]>> = Mutex::new(Vec::new());

/// The text of an error, with the places of files instead of the names that they have until they are complete.
pub fn replace_temp_names(text: &str) -> String {
    let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.iter().fold(text.to_owned(), |text, [unfinished, place]| text.replace(unfinished, place))
}

/// The folder of a file or folder that is to be made.
///
/// # Errors
/// [`Error::Create`] if there is none.
pub fn check_parent(path: &Path) -> Result<&Path> {
    let fault = |source| Error::Create { path: path.to_owned(), source };
    let folder = folder_of(path);
    match fs::metadata(folder) {
        Err(error) => Err(fault(error)),
        Ok(found) if !found.is_dir() => Err(fault(io::ErrorKind::NotADirectory.into())),
        Ok(_) => Ok(folder),
    }
}

/// The path of a file or folder until it is complete. It is removed when a signal ends this process.
pub fn register_unfinished_path(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let name = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
    let unfinished = place.with_file_name(format!(".{name}.{}{ENDING}", CreatorProcess::this_process()));
    signals::remove_on_signal(&unfinished);
    let names = [&*unfinished, place].map(|path| path.display().to_string());
    PLACES.lock().unwrap_or_else(PoisonError::into_inner).push(names);
    unfinished
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what killed processes have left in the folder of a file that is going to be written.
pub fn remove_stale_temps_beside(file: &Path) {
    remove_stale_temps(folder_of(file));
}

/// Removes what processes that are dead have left unfinished in a folder.
pub fn remove_stale_temps(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(maker) = name.to_str().and_then(maker_of) else { continue };
        let path = entry.path();
        if !path.join(KEPT_MARKER_FILE).exists() && maker.has_abandoned(&path) {
            // If it cannot be removed, it belongs to another process.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// Which process makes a file of this name, if it is one of these.
fn maker_of(name: &str) -> Option<CreatorProcess> {
    name.strip_prefix('.')?.strip_suffix(ENDING)?.rsplit_once('.')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn only_what_dead_processes_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_child = CreatorProcess::of_process(child.id()).unwrap();
        let file = |maker: &CreatorProcess| folder.path().join(format!(".a.h5.{maker}{ENDING}"));
        let others =
            [".a.h5.unfinished", "a.h5", ".a.h5.12.unfinished", ".hidden"].map(|name| folder.path().join(name));
        others.iter().for_each(|path| fs::write(path, "").unwrap());
        fs::write(file(&of_child), "").unwrap();
        fs::write(file(&CreatorProcess::this_process()), "").unwrap();
        remove_stale_temps(folder.path());
        assert_eq!(names(folder.path()).len(), 6, "they live");
        child.kill().unwrap();
        child.wait().unwrap();
        remove_stale_temps(folder.path());
        assert!(!file(&of_child).exists() && file(&CreatorProcess::this_process()).exists());
        assert!(others.iter().all(|path| path.exists()));
    }
}
