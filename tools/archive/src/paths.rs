//! Paths of archives as paths of a file system.

use std::path::PathBuf;

/// The path of an entry below the folder where it is extracted.
///
/// # Errors
/// Why it would lead elsewhere, or nowhere.
pub fn safe_path(path: &[u8]) -> Result<PathBuf, &'static str> {
    if path.starts_with(b"/") {
        return Err("its path is absolute");
    }
    if path.contains(&0) {
        return Err("its path has a zero byte");
    }
    let mut safe = PathBuf::new();
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".") {
        if name == b".." {
            return Err("its path leads out of the folder");
        }
        safe.push(file_name(name)?);
    }
    Ok(safe)
}

#[cfg(unix)]
fn file_name(name: &[u8]) -> Result<&std::ffi::OsStr, &'static str> {
    Ok(std::os::unix::ffi::OsStrExt::from_bytes(name))
}

/// Elsewhere, a drive or a backslash would lead out of the folder.
#[cfg(not(unix))]
fn file_name(name: &[u8]) -> Result<&std::ffi::OsStr, &'static str> {
    let text = std::str::from_utf8(name).map_err(|_| "its path is not UTF-8")?;
    match text.contains(['\\', ':', '<', '>', '"', '|', '?', '*']) {
        true => Err("its path has characters that names of files do not have here"),
        false => Ok(text.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_of_the_folder_are_refused() {
        for path in ["/etc/passwd", "..", "../x", "a/../../x", "a/..", "./../x", "//x", "a\0b"] {
            assert!(safe_path(path.as_bytes()).is_err(), "{path:?}");
        }
        for (path, safe) in [("./a//b/", "a/b"), ("a/./b", "a/b"), ("...", "..."), ("./", "")] {
            assert_eq!(safe_path(path.as_bytes()), Ok(PathBuf::from(safe)));
        }
    }
}
