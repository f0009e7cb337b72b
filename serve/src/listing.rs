//! Lists of files, for the page: `GET /api/files?folder=`.

use std::fs::{self, DirEntry, File, Metadata};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use crate::catalog::{Named, Place};
use crate::domain_facts::is_objects_folder;
use crate::fault::Fault;
use crate::state::AppState;
use crate::writers::WriterState;

/// With these ends, a file is shown without a look into it.
const EXTENSIONS: [&str; 14] =
    ["h5", "hdf5", "hdf", "he5", "h5ad", "loom", "nc", "nc4", "nx", "nxs", "nx5", "nexus", "cxi", "mat"];
/// The signature of an HDF5 file, and the first places where it may be.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
const SIGNATURE_PLACES: [usize; 4] = [0, 512, 1024, 2048];
/// Files that were written longer ago are not asked for their writer.
const MAX_WRITTEN_AGE: Duration = Duration::from_secs(3600);
/// Files of one list that are asked for their writer.
const MAX_ASKED: usize = 200;

/// The list of a folder, or of all roots.
///
/// # Errors
/// If it is not there or is no folder.
pub(crate) fn list(state: &AppState, folder: &str) -> Result<Json, Fault> {
    let mut entries = match state.catalog.find(folder)? {
        Named::Roots => {
            let roots: Vec<_> = state.catalog.root_names().collect();
            roots.into_iter().filter_map(|name| root_entry(state, name)).collect()
        }
        Named::Folder(path) => folder_entries(state, folder, &path)?,
        Named::Store(_) => return Err(Fault::file_not_found()),
    };
    let is_cut = entries.len() > state.limits.max_listed_entries;
    entries.truncate(state.limits.max_listed_entries);
    Ok(json!({ "folder": folder, "entries": entries, "is_cut": is_cut }))
}

fn root_entry(state: &AppState, name: &str) -> Option<Json> {
    match state.catalog.find(name).ok()? {
        Named::Folder(_) => Some(json!({ "name": name, "path": name, "kind": "folder" })),
        Named::Store(place) => Some(store_entry(state, name, &place, true)),
        Named::Roots => None,
    }
}

fn folder_entries(state: &AppState, folder: &str, path: &Path) -> Result<Vec<Json>, Fault> {
    let mut asked = 0;
    let shown = shown_in(state, folder, path)?.map(|(name, below, named)| match named {
        Named::Store(place) => {
            asked += 1;
            store_entry(state, &name, &place, asked <= MAX_ASKED)
        }
        _ => json!({ "name": name, "path": below, "kind": "folder" }),
    });
    Ok(shown.take(state.limits.max_listed_entries + 1).collect())
}

/// What is shown of a folder: the name of each entry, its name from the root on, and what it is.
fn shown_in<'a>(
    state: &'a AppState,
    folder: &'a str,
    path: &Path,
) -> Result<impl Iterator<Item = (String, String, Named)> + 'a, Fault> {
    let mut names: Vec<_> = fs::read_dir(path)
        .map_err(|_| Fault::file_permission_denied())?
        .filter_map(|entry| Some((entry.as_ref().ok()?.file_name().into_string().ok()?, entry.ok()?)))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(names.into_iter().filter_map(move |(name, entry)| {
        let below = if folder.is_empty() { name.clone() } else { format!("{}/{name}", folder.trim_end_matches('/')) };
        // By the rule of all requests: links that lead out are not shown.
        let named = state.catalog.find(&below).ok()?;
        let is_shown = match &named {
            Named::Folder(path) => !is_objects_folder(path),
            Named::Store(place) => is_shown(state, &name, place, &entry),
            Named::Roots => false,
        };
        is_shown.then_some((name, below, named))
    }))
}

/// What is shown of a folder or of all roots, by names from the root on.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn named_in(state: &AppState, folder: &str, named: &Named) -> Result<Vec<(String, Named)>, Fault> {
    match named {
        Named::Roots => {
            let roots = state.catalog.root_names().map(str::to_owned);
            Ok(roots.filter_map(|name| Some((name.clone(), state.catalog.find(&name).ok()?))).collect())
        }
        Named::Folder(path) => {
            let shown = shown_in(state, folder, path)?.take(state.limits.max_listed_entries);
            Ok(shown.map(|(_, below, named)| (below, named)).collect())
        }
        Named::Store(_) => Ok(Vec::new()),
    }
}

fn is_shown(state: &AppState, name: &str, place: &Place, entry: &DirEntry) -> bool {
    let has_extension = name.rsplit_once('.').is_some_and(|(_, end)| EXTENSIONS.contains(&&*end.to_ascii_lowercase()));
    let is_file = place.path.as_ref().is_some_and(|path| path.is_file());
    match is_file {
        true => has_extension || has_signature(&entry.path()),
        false => state.catalog.is_store(&entry.path()),
    }
}

fn has_signature(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    read.is_ok() && SIGNATURE_PLACES.iter().any(|at| head.get(*at..).is_some_and(|bytes| bytes.starts_with(SIGNATURE)))
}

fn store_entry(state: &AppState, name: &str, place: &Place, is_asked: bool) -> Json {
    let found = place.path.as_ref().and_then(|path| path.metadata().ok());
    let modified = found.as_ref().and_then(|found| found.modified().ok());
    let is_new =
        modified.and_then(|at| SystemTime::now().duration_since(at).ok()).is_none_or(|age| age < MAX_WRITTEN_AGE);
    let writer = match is_asked && is_new {
        true => WriterState::of(place, state.sessions.open_options()).json(),
        false => Json::Null,
    };
    json!({
        "name": name,
        "path": place.name,
        "kind": if found.as_ref().is_some_and(Metadata::is_file) { "file" } else { "store" },
        "size": found.as_ref().filter(|found| found.is_file()).map(Metadata::len),
        "modified": modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|at| at.as_millis() as u64),
        "writer": writer,
    })
}
