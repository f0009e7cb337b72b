//! Names of other files, seen from another folder.

use std::path::{Component, Path, PathBuf};

use h5live::FileNameUse;

use crate::model::Name;

/// How a file in one folder calls the files that a file in another folder names.
#[derive(Debug)]
pub struct MovedNames {
    from: PathBuf,
    to: PathBuf,
    current: Option<PathBuf>,
}

/// The whole path of the folder of a file.
fn folder(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).canonicalize().ok()
}

impl MovedNames {
    /// From the folder of one file to that of another; `None` if it is the same.
    pub fn between(from: &Path, to: &Path) -> Option<Self> {
        let (from, to) = (folder(from)?, folder(to)?);
        let current = std::env::current_dir().ok();
        (from != to).then_some(MovedNames { from, to, current })
    }

    /// The name under which a file is found that the other file calls `name`. A relative name is looked up in the
    /// folder of the file, and then in the current one.
    pub fn renamed(&self, name: &Name, usage: FileNameUse) -> Name {
        let text = name.to_string();
        let path = Path::new(&text);
        let is_itself = usage == FileNameUse::VirtualSource && text == ".";
        if text.is_empty() || is_itself || path.is_absolute() || text.contains("://") {
            return name.clone();
        }
        let current = self.current.as_ref().filter(|folder| folder.join(path).exists());
        let holder = current.filter(|_| !self.from.join(path).exists()).unwrap_or(&self.from);
        let mut prefix = relative(&self.to, holder).to_string_lossy().into_owned();
        if usage == FileNameUse::VirtualSource {
            prefix = prefix.replace('%', "%%");
        }
        if prefix.is_empty() {
            return name.clone();
        }
        [prefix.as_bytes(), b"/", name.as_bytes()].concat().into()
    }
}

/// The way from one folder to another, both whole paths.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        return to.to_owned();
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_name_leads_from_the_new_folder_to_the_old_one() {
        let top = tempfile::tempdir().unwrap();
        let [a, b] = ["a 10%", "b/c"].map(|name| top.path().join(name));
        std::fs::create_dir_all(&a).unwrap();
        std::fs::create_dir_all(&b).unwrap();
        let moved = MovedNames::between(&a.join("x.h5"), &b.join("y.h5")).unwrap();
        let renamed = |name: &str, usage| moved.renamed(&name.into(), usage).to_string();
        assert_eq!(renamed("raw.bin", FileNameUse::RawFile), "../../a 10%/raw.bin");
        assert_eq!(renamed("s-%b.h5", FileNameUse::VirtualSource), "../../a 10%%/s-%b.h5");
        assert_eq!(renamed(".", FileNameUse::VirtualSource), ".");
        assert_eq!(renamed("/data/x.h5", FileNameUse::ExternalLink), "/data/x.h5");
        assert_eq!(renamed("https://host/x.h5", FileNameUse::ExternalLink), "https://host/x.h5");
        assert!(MovedNames::between(&a.join("x.h5"), &a.join("y.h5")).is_none());
    }
}
