//! Where files and interpreters are that tests use, if they are there.

use std::path::{Path, PathBuf};

/// The folder of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the folder of the workspace is there")
}

fn skipped<T>(what: &str, where_to: &str) -> Option<T> {
    println!("skipped: {what} is not there ({where_to})");
    None
}

/// The shared test material: `H5LIVE_SHARED`, else `shared` beside the repository or in it.
pub fn shared() -> Option<PathBuf> {
    let said = std::env::var_os("H5LIVE_SHARED").map(PathBuf::from);
    let default = || vec![workspace().join("../shared"), workspace().join("shared")];
    let found = said.map_or_else(default, |shared| vec![shared]).into_iter().find(|shared| shared.is_dir());
    found.or_else(|| skipped("the shared material", "H5LIVE_SHARED"))
}

/// The corpus of files in the shared material.
pub fn corpus() -> Option<PathBuf> {
    let found = shared()?.join("corpus");
    if found.is_dir() { Some(found) } else { skipped("the corpus of files", "H5LIVE_SHARED") }
}

/// The files that `make corpus` makes: `H5LIVE_CORPUS`, else those in `target/corpus`.
pub fn made_corpus() -> Option<PathBuf> {
    let default = || workspace().join("target/corpus");
    let found = std::env::var_os("H5LIVE_CORPUS").map_or_else(default, PathBuf::from);
    if found.is_dir() { Some(found) } else { skipped("the corpus that `make corpus` makes", "H5LIVE_CORPUS") }
}

/// Python with h5py: `H5LIVE_PYTHON`, else the one that `make setup` installs.
pub fn python() -> Option<PathBuf> {
    let default = || workspace().join(".venv/bin/python");
    let found = std::env::var_os("H5LIVE_PYTHON").map_or_else(default, PathBuf::from);
    if found.is_file() { Some(found) } else { skipped("a Python with h5py", "H5LIVE_PYTHON; `make setup`") }
}

/// All files below a folder, in the order of their paths.
///
/// # Panics
/// If a folder cannot be listed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    entries.sort();
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.into_iter().flat_map(below).collect()
}

/// The files below a folder of the corpus, without the texts that say what is in them.
///
/// # Panics
/// As [`files_below`].
pub fn corpus_files(folder: &Path) -> Vec<PathBuf> {
    let is_text =
        |path: &PathBuf| ["manifest", "error", "md"].iter().any(|ext| path.extension().is_some_and(|e| e == *ext));
    files_below(folder).into_iter().filter(|path| !is_text(path)).collect()
}
