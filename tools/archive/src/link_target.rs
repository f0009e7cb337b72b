//! Where the target of a symbolic link leads, below the folder into which an archive is extracted.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

/// What the text of a link's target may not have.
const OUTSIDE: &str = "its target lies outside of the folder";

/// The target of a symbolic link in the folder `parent` of `root`, if it leads out of `root` neither now nor when other links are
/// made or replaced.
///
/// # Errors
/// Why it may not be made.
pub fn symlink_target_if_inside(root: &Dir, parent: &Path, target: &[u8]) -> Result<PathBuf, &'static str> {
    if target.is_empty() || target.contains(&0) {
        return Err("its target is no path");
    }
    if target.starts_with(b"/") {
        return Err(OUTSIDE);
    }
    let text = as_path(target)?;
    // Folders, all of them: none of these names is a link.
    let (mut folder, mut is_folder) = (parent.to_owned(), true);
    let mut whole = parent.to_owned();
    for name in target.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".") {
        if name == b".." {
            if !is_folder {
                return Err("its target goes up from what may become a link that leads out of the folder");
            }
            if !folder.pop() {
                return Err(OUTSIDE);
            }
            whole.clone_from(&folder);
            continue;
        }
        whole.push(as_path(name)?);
        if is_folder {
            folder.push(as_path(name)?);
            is_folder = root.symlink_metadata(&folder).is_ok_and(|found| found.is_dir());
        }
    }
    // Names that were there before may be links that lead out.
    let leads_to = if whole.as_os_str().is_empty() { Path::new(".") } else { &whole };
    match root.metadata(leads_to) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(OUTSIDE),
        _ => Ok(text),
    }
}

#[cfg(unix)]
fn as_path(bytes: &[u8]) -> Result<PathBuf, &'static str> {
    let text: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(bytes);
    Ok(text.into())
}

#[cfg(not(unix))]
fn as_path(_: &[u8]) -> Result<PathBuf, &'static str> {
    Err("links are not made here")
}
