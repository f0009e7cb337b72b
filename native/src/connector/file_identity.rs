//! Which file is at a path, whatever path leads there.

use std::fs::Metadata;
use std::path::Path;

use h5live_model::StoreIdentity;

use crate::member_files;

/// The identity of the file at a path; `None` if nothing is there.
pub(super) fn identity_of_path(path: &Path) -> Option<StoreIdentity> {
    match path.metadata() {
        Ok(found) => identity_of_metadata(path, &found),
        Err(_) => {
            let first = member_files::first_member_path(path);
            (first != path).then(|| identity_of_metadata(&first, &first.metadata().ok()?))?
        }
    }
}

/// The device and the number of the file on it: the same for every hard link and every mount.
#[cfg(unix)]
fn identity_of_metadata(_: &Path, found: &Metadata) -> Option<StoreIdentity> {
    use std::os::unix::fs::MetadataExt;
    let bytes: Vec<u8> = found.dev().to_le_bytes().into_iter().chain(found.ino().to_le_bytes()).collect();
    Some(StoreIdentity(bytes.into()))
}

/// The path without links.
#[cfg(not(unix))]
fn identity_of_metadata(path: &Path, _: &Metadata) -> Option<StoreIdentity> {
    let path = path.canonicalize().ok()?;
    Some(StoreIdentity(path.as_os_str().as_encoded_bytes().into()))
}
