//! What lies within the folders that are served, after the links of the file system were followed.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use h5live::Location;

/// Folders, without links in their paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServedFolders(Arc<[PathBuf]>);

impl ServedFolders {
    /// These folders; they have no links in their paths.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        ServedFolders(folders.into())
    }

    /// Whether what a path leads to is within one of the folders. What is not there counts as it would be if it were made.
    pub fn contains(&self, path: &Path) -> bool {
        real_path(path).is_ok_and(|real| self.0.iter().any(|folder| real.starts_with(folder)))
    }

    /// Whether a file to which another one leads is within one of the folders.
    pub fn contains_location(&self, location: &Location) -> bool {
        match location {
            Location::Path(path) => self.contains(path),
            // Stores in folders have a path; servers and buckets have none, and are not beside the files.
            Location::Url(url) => {
                !url.has_authority() && matches!(url.hier_part_as_path(), Ok(Some(path)) if self.contains(&path))
            }
        }
    }

    /// A text without the paths of the folders, which are no business of a client.
    pub fn redact_folder_paths(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, folder| {
            let folder = folder.to_string_lossy();
            text.replace(&format!("{folder}/"), "").replace(&*folder, ".")
        })
    }
}

/// A path without links. Names at the end that are not there stay as they are.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        match there.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link to nowhere is there, and may lead somewhere in a moment.
                if there.symlink_metadata().is_ok() {
                    return Err(error);
                }
                let Some(Component::Normal(name)) = there.components().next_back() else { return Err(error) };
                missing.push(name.to_owned());
                there = match there.parent() {
                    Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
                    Some(parent) => parent,
                    None => return Err(error),
                };
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_within_a_folder_after_links_were_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (served, secret) = (root.join("served"), root.join("secret"));
        std::fs::create_dir_all(served.join("sub")).unwrap();
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("a.h5"), "").unwrap();
        let folders = ServedFolders::new(vec![served.clone()]);
        for inside in ["x.h5", "sub/x.h5", "sub", "sub/../x.h5", "new/deep/x.h5"] {
            assert!(folders.contains(&served.join(inside)), "{inside}");
        }
        for outside in ["../secret/a.h5", "..", "sub/../../secret/none.h5", "new/../../x", "/etc/passwd"] {
            assert!(!folders.contains(&served.join(outside)), "{outside}");
        }
        assert!(!folders.contains(&root.join("served2")));
        #[cfg(unix)]
        {
            let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, served.join(name)).unwrap();
            link("../secret", "out");
            link("../secret/none.h5", "dangling");
            link("sub", "in");
            assert!(!folders.contains(&served.join("out/a.h5")));
            assert!(!folders.contains(&served.join("out/new.h5")));
            assert!(!folders.contains(&served.join("dangling")));
            assert!(folders.contains(&served.join("in/x.h5")));
        }
        assert!(!folders.contains_location(&"https://host/x.h5".into()));
        assert!(!folders.contains_location(&"kv:/etc".into()));
        let inside = format!("kv:{}", served.join("sub").display());
        assert!(folders.contains_location(&inside.as_str().into()));
    }
}
