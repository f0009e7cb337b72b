//! Names of other files, seen from another folder.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use h5live::{Location, Mode, Options, ReferencedFileRole};

use crate::counted::counted;
use crate::error::{CommandOutcome, Result};
use crate::model::{LinkedStoreRole, Name, ResolvedLocation, StoreIdentity};
use crate::open;

/// The connector of files in the memory of this process.
const MEMORY: &str = "mem";
/// Most names of other files that are shown.
const MAX_SHOWN_NAMES: usize = 8;

/// How a file in one folder calls the files that a file in another folder names.
#[derive(Debug)]
pub struct FileNameRebaser {
    from: PathBuf,
    to: PathBuf,
    current: Option<PathBuf>,
}

/// The whole path of the folder of a file.
fn folder(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).canonicalize().ok()
}

impl FileNameRebaser {
    /// From the folder of one file to that of another; `None` if it is the same.
    pub fn between_files(from: &Path, to: &Path) -> Option<Self> {
        let (from, to) = (folder(from)?, folder(to)?);
        let current = std::env::current_dir().ok();
        (from != to).then_some(FileNameRebaser { from, to, current })
    }

    /// The name under which a file is found that the other file calls `name`. A relative name is looked up in the
    /// folder of the file, and then in the current one; so is the last part of a whole path that leads to nothing.
    pub fn rebase(&self, name: &Name, role: ReferencedFileRole) -> Name {
        let text = name.to_string();
        let path = Path::new(&text);
        let is_itself = role == ReferencedFileRole::VirtualSource && text == ".";
        if text.is_empty() || is_itself || text.contains("://") {
            return name.clone();
        }
        let (path, name) = match path.file_name().filter(|_| path.is_absolute() && !path.exists()) {
            Some(last) if role != ReferencedFileRole::RawFile => (Path::new(last), Name::from(last.as_encoded_bytes())),
            _ => (path, name.clone()),
        };
        let is_in = |folder: &Path| existing_path(&folder.join(path), role).is_some();
        let current = self.current.as_ref().filter(|folder| is_in(folder));
        if Path::new(&text).is_absolute() && (path.is_absolute() || !is_in(&self.from) && current.is_none()) {
            return text.as_bytes().into();
        }
        let holder = current.filter(|_| !is_in(&self.from)).unwrap_or(&self.from);
        let mut prefix = relative(&self.to, holder).to_string_lossy().into_owned();
        if role == ReferencedFileRole::VirtualSource {
            prefix = prefix.replace('%', "%%");
        }
        if prefix.is_empty() {
            return name;
        }
        [prefix.as_bytes(), b"/", name.as_bytes()].concat().into()
    }
}

/// The path that is there, in whose name `%b` stands for the number of a block if it is that of a virtual source.
fn existing_path(path: &Path, role: ReferencedFileRole) -> Option<PathBuf> {
    let numbered = role == ReferencedFileRole::VirtualSource && path.as_os_str().as_encoded_bytes().contains(&b'%');
    let path = if numbered { PathBuf::from(first_block(&path.to_string_lossy())) } else { path.to_owned() };
    path.canonicalize().ok()
}

/// The name of the first block of a virtual source.
fn first_block(name: &str) -> String {
    name.split("%%").map(|part| part.replace("%b", "0")).collect::<Vec<_>>().join("%")
}

/// The names that a copy gives the files that its source names, and those under which nothing is found any more.
#[derive(Debug)]
pub struct ReferencedFileNameMapper {
    from: ResolvedLocation,
    to: ResolvedLocation,
    moved: Option<FileNameRebaser>,
    /// Names that led to something.
    lost: RefCell<BTreeSet<String>>,
}

impl ReferencedFileNameMapper {
    /// For a copy from one location to another.
    ///
    /// # Errors
    /// [`Error::OpenFailed`](crate::error::Error::OpenFailed) if no store can open them.
    pub fn between(from: &Location, to: &Location) -> Result<Self> {
        let moved = match (open::file_or_folder_path(from)?, open::file_or_folder_path(to)?) {
            (Some(from), Some(to)) => FileNameRebaser::between_files(&from, &to),
            _ => None,
        };
        Ok(ReferencedFileNameMapper {
            from: open::resolve(from)?,
            to: open::resolve_new(to)?,
            moved,
            lost: RefCell::default(),
        })
    }

    /// The name in the copy of a file that the source calls `file_name`. Notes a name under which nothing is found any
    /// more.
    pub fn rename_and_record_lost(&self, file_name: &Name, role: ReferencedFileRole) -> Name {
        let renamed = self.moved.as_ref().map_or_else(|| file_name.clone(), |moved| moved.rebase(file_name, role));
        let is_itself = role == ReferencedFileRole::VirtualSource && file_name.as_bytes() == b".";
        // Nobody finds anything from a file in the memory of this process when this process has ended.
        let is_lasting = self.to.connector().name() != MEMORY;
        if is_lasting
            && !is_itself
            && found(&self.from, file_name, role).is_some_and(|before| {
                let after = found(&self.to, &renamed, role);
                // A domain is found where a domain is, which may well be a copy of the file.
                after.is_none() || self.moved.is_some() && after != Some(before)
            })
        {
            self.lost.borrow_mut().insert(file_name.to_string());
        }
        renamed
    }

    /// Names under which nothing is found any more are a finding.
    pub fn outcome(&self) -> CommandOutcome {
        if self.lost.borrow().is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings }
    }

    /// Under which names nothing is found from the copy, in lines.
    pub fn lost_name_messages(&self) -> Vec<String> {
        let lost = self.lost.borrow();
        let mut lines = Vec::new();
        for name in lost.iter().take(MAX_SHOWN_NAMES) {
            let what = "of another file, which does not lead there from the copy";
            lines.push(format!("left as it is: the name {name:?} {what}"));
        }
        let more = lost.len().saturating_sub(MAX_SHOWN_NAMES);
        if more > 0 {
            lines.push(format!("left as they are: {} more of other files", counted(more, "name")));
        }
        lines
    }
}

/// What a store at a location leads to under a name.
fn found(base: &ResolvedLocation, name: &Name, role: ReferencedFileRole) -> Option<StoreIdentity> {
    let store_role = match role {
        ReferencedFileRole::VirtualSource => LinkedStoreRole::VirtualSource,
        _ => LinkedStoreRole::ExternalLinkOrReference,
    };
    let name = match role {
        ReferencedFileRole::VirtualSource => Name::from(first_block(name.as_str()?).as_bytes()),
        _ => name.clone(),
    };
    let identity = |location| Options::built_in_connectors().resolve(&location, Mode::Read).ok()?.identity();
    let locations = base.connector().linked_store_candidates(Some(base.location()), &name, store_role);
    locations.into_iter().find_map(identity)
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
        let moved = FileNameRebaser::between_files(&a.join("x.h5"), &b.join("y.h5")).unwrap();
        let renamed = |name: &str, role| moved.rebase(&name.into(), role).to_string();
        assert_eq!(renamed("raw.bin", ReferencedFileRole::RawFile), "../../a 10%/raw.bin");
        assert_eq!(renamed("s-%b.h5", ReferencedFileRole::VirtualSource), "../../a 10%%/s-%b.h5");
        assert_eq!(renamed(".", ReferencedFileRole::VirtualSource), ".");
        assert_eq!(renamed("/data/x.h5", ReferencedFileRole::ExternalLink), "/data/x.h5");
        assert_eq!(renamed("https://host/x.h5", ReferencedFileRole::ExternalLink), "https://host/x.h5");
        assert!(FileNameRebaser::between_files(&a.join("x.h5"), &a.join("y.h5")).is_none());
    }
}
