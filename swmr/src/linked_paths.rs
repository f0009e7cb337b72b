//! Where the files are that a file names: the rules of libhdf5.

use std::path::{Path, PathBuf};

use h5live_model::LinkedStoreRole;

/// The folders of libhdf5's variable for files that have this role. `folder` is the one of the file that names another.
fn prefix_folders(role: LinkedStoreRole, folder: Option<&Path>) -> Vec<PathBuf> {
    let variable = match role {
        LinkedStoreRole::ExternalLinkOrReference => "HDF5_EXT_PREFIX",
        LinkedStoreRole::VirtualSource => "HDF5_VDS_PREFIX",
    };
    let value = std::env::var_os(variable).unwrap_or_default();
    let at_origin = |prefix: PathBuf| match (prefix.strip_prefix("${ORIGIN}"), folder) {
        (Ok(below), Some(folder)) => folder.join(below),
        _ => prefix,
    };
    std::env::split_paths(&value).filter(|prefix| !prefix.as_os_str().is_empty()).map(at_origin).collect()
}

/// Where a file called `name` may be: as it is called, if that is a whole path; in the folders of the variable; in the
/// folder of the file that names it; and in the current folder.
pub fn linked_file_candidates(folder: Option<&Path>, name: &Path, role: LinkedStoreRole) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut below = name;
    if name.is_absolute() {
        paths.push(name.to_owned());
        below = Path::new(name.file_name().unwrap_or_default());
    }
    paths.extend(prefix_folders(role, folder).iter().map(|prefix| prefix.join(below)));
    paths.extend(folder.map(|folder| folder.join(below)));
    paths.push(below.to_owned());
    paths
}
