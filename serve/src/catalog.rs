//! What clients may name: files and stores in the served folders, and served locations.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use h5live::{ConnectorRegistry, Location, Mode, Options};

use crate::confine::ServedFolders;
use crate::domain_facts::facts_at;
use crate::fault::Fault;

/// Entries of a folder that is a store, that are looked at for links that lead out of it.
const MAX_STORE_ENTRIES: usize = 100_000;

/// What clients may name.
#[derive(Debug)]
pub struct Catalog {
    roots: Vec<(String, Root)>,
    folders: ServedFolders,
    registry: ConnectorRegistry,
}

#[derive(Debug, Clone)]
enum Root {
    /// A folder, without links in its path.
    Folder(PathBuf),
    /// A file or another store.
    Store(Location, Option<PathBuf>),
}

/// A file or another store that a client named.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// As clients name it.
    pub name: String,
    pub location: Location,
    /// Its path, if it is a file or a folder.
    pub path: Option<PathBuf>,
}

impl Place {
    /// The last part of its name.
    pub fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

/// What a client named.
#[derive(Debug)]
pub(crate) enum Named {
    /// The list of all roots.
    Roots,
    /// A folder, by its path.
    Folder(PathBuf),
    Store(Place),
}

impl Catalog {
    /// The catalog of some folders and locations.
    ///
    /// # Errors
    /// If one of them is not there.
    pub fn new(roots: &[Location]) -> io::Result<Self> {
        let registry = Options::built_in_connectors();
        let mut catalog = Catalog { roots: Vec::new(), folders: ServedFolders::default(), registry };
        for location in roots {
            let root = catalog.root_at(location)?;
            let name = catalog.free_name(&root, location);
            catalog.roots.push((name, root));
        }
        let folders = catalog.roots.iter().filter_map(|(_, root)| match root {
            Root::Folder(folder) => Some(folder.clone()),
            // The file itself may name itself, and nothing beside it.
            Root::Store(_, path) => path.clone(),
        });
        catalog.folders = ServedFolders::new(folders.collect());
        Ok(catalog)
    }

    pub(crate) fn folders(&self) -> &ServedFolders {
        &self.folders
    }

    /// The names of the roots; none if there is just one folder, whose contents are named without it.
    pub(crate) fn root_names(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(|(name, _)| &**name)
    }

    fn root_at(&self, location: &Location) -> io::Result<Root> {
        let found = self.registry.resolve(location, Mode::Read);
        let found = found.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let path = match found.location() {
            Location::Path(path) => path.clone(),
            Location::Url(url) => {
                let path = url.hier_part_as_path().ok().flatten().filter(|_| !url.has_authority());
                return Ok(Root::Store(location.clone(), path.and_then(|path| path.canonicalize().ok())));
            }
        };
        let real = path
            .canonicalize()
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        match real.is_dir() && !self.is_store_folder(&real) {
            true => Ok(Root::Folder(real)),
            false => Ok(Root::Store(Location::Path(real.clone()), Some(real))),
        }
    }

    fn free_name(&self, root: &Root, location: &Location) -> String {
        let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = match root {
            Root::Folder(path) | Root::Store(Location::Path(path), _) => last(path),
            Root::Store(..) => None,
        };
        let name = name.unwrap_or_else(|| location.to_string().replace('/', "_"));
        let taken = |name: &str| self.roots.iter().any(|(known, _)| known == name);
        let mut names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}")));
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// Whether a folder is a store.
    fn is_store_folder(&self, folder: &Path) -> bool {
        // A folder of HSDS's domains has an object like that of a domain.
        if facts_at(folder).is_some_and(|facts| facts.is_folder) {
            return false;
        }
        let native = self.registry.default_path_connector().map(|connector| connector.name());
        let found = self.registry.resolve(&Location::Path(folder.to_owned()), Mode::Read);
        found.is_ok_and(|found| Some(found.connector().name()) != native)
    }

    /// What a client names so.
    ///
    /// # Errors
    /// [`Fault::file_not_found`] if it is not there, or not served; [`Fault::file_permission_denied`].
    pub(crate) fn find(&self, name: &str) -> Result<Named, Fault> {
        let parts = || name.split('/').filter(|part| !part.is_empty() && *part != ".");
        let is_name = |part: &str| !part.starts_with('.') && !part.contains(['\0', '\\']);
        if !parts().all(is_name) {
            return Err(Fault::file_not_found());
        }
        let clean = parts().collect::<Vec<_>>().join("/");
        let (root, below) = match &self.roots[..] {
            [(_, root @ Root::Folder(_))] => (root, &*clean),
            _ if clean.is_empty() => return Ok(Named::Roots),
            roots => {
                let (first, below) = clean.split_once('/').unwrap_or((&clean, ""));
                let found = roots.iter().find(|(name, _)| name == first).ok_or_else(Fault::file_not_found)?;
                (&found.1, below)
            }
        };
        match root {
            Root::Store(location, path) if below.is_empty() => {
                Ok(Named::Store(Place { name: clean, location: location.clone(), path: path.clone() }))
            }
            Root::Store(..) => Err(Fault::file_not_found()),
            Root::Folder(folder) => self.find_below(folder, below, &clean),
        }
    }

    fn find_below(&self, folder: &Path, below: &str, name: &str) -> Result<Named, Fault> {
        let real = folder.join(below).canonicalize().map_err(|error| fault_of(&error))?;
        if !real.starts_with(folder) {
            return Err(Fault::file_not_found());
        }
        let found = real.metadata().map_err(|error| fault_of(&error))?;
        let store = |path: PathBuf| Place { name: name.to_owned(), location: path.clone().into(), path: Some(path) };
        if found.is_file() {
            return Ok(Named::Store(store(real)));
        }
        // A pipe or a device would let the server wait.
        if !found.is_dir() {
            return Err(Fault::file_not_found());
        }
        match self.is_store_folder(&real) {
            true if leads_out(&real) => Err(Fault::file_not_found()),
            true => Ok(Named::Store(store(real))),
            false => Ok(Named::Folder(real)),
        }
    }

    /// The file or the store that a client names so.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub(crate) fn find_store(&self, name: &str) -> Result<Place, Fault> {
        match self.find(name)? {
            Named::Store(place) => Ok(place),
            Named::Roots | Named::Folder(_) => Err(Fault::file_not_found()),
        }
    }

    /// Whether what is at this path, in a served folder, is a store.
    pub(crate) fn is_store(&self, path: &Path) -> bool {
        self.is_store_folder(path)
    }
}

fn fault_of(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Fault::file_permission_denied(),
        _ => Fault::file_not_found(),
    }
}

/// Whether a folder has symbolic links in it, or so much that it cannot be looked through.
fn leads_out(folder: &Path) -> bool {
    let mut left = MAX_STORE_ENTRIES;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { return true };
        for entry in entries {
            let Some(kind) = entry.as_ref().ok().and_then(|entry| entry.file_type().ok()) else { return true };
            left = left.saturating_sub(1);
            if kind.is_symlink() || left == 0 {
                return true;
            }
            if kind.is_dir() {
                folders.extend(entry.map(|entry| entry.path()));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        folder
    }

    #[test]
    fn names_lead_nowhere_but_below_the_root() {
        let outside = folder_with(&["secret.h5", "served/a.h5", "served/sub/b.h5", "served/.hidden.h5"]);
        let root = outside.path().join("served");
        let catalog = Catalog::new(&[root.clone().into()]).unwrap();
        for name in ["a.h5", "/a.h5", "./a.h5", "sub//b.h5", "sub/./b.h5"] {
            assert!(catalog.find_store(name).is_ok(), "{name}");
        }
        let absolute = outside.path().join("secret.h5");
        for name in
            ["../secret.h5", "sub/../../secret.h5", "sub/../a.h5", "..", ".hidden.h5", "sub", "", "a.h5/x", "a\0"]
        {
            assert_eq!(catalog.find_store(name).unwrap_err(), Fault::file_not_found(), "{name:?}");
        }
        assert_eq!(catalog.find_store(absolute.to_str().unwrap()).unwrap_err(), Fault::file_not_found());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret.h5", root.join("out.h5")).unwrap();
            std::os::unix::fs::symlink("a.h5", root.join("in.h5")).unwrap();
            assert_eq!(catalog.find_store("out.h5").unwrap_err().status, StatusCode::NOT_FOUND);
            assert!(catalog.find_store("in.h5").is_ok());
        }
    }

    #[test]
    fn several_roots_have_names() {
        let folder = folder_with(&["one/a.h5", "two/one/b.h5", "c.h5"]);
        let at = |name: &str| Location::Path(folder.path().join(name));
        let catalog = Catalog::new(&[at("one"), at("two/one"), at("c.h5")]).unwrap();
        assert_eq!(catalog.root_names().collect::<Vec<_>>(), ["one", "one-2", "c.h5"]);
        assert!(catalog.find_store("one/a.h5").is_ok() && catalog.find_store("one-2/b.h5").is_ok());
        assert!(catalog.find_store("c.h5").is_ok() && catalog.find_store("c.h5/x").is_err());
        assert!(matches!(catalog.find("").unwrap(), Named::Roots));
        assert!(!catalog.folders().contains(&folder.path().join("d.h5")));
        assert!(Catalog::new(&[at("none")]).is_err());
    }
}
