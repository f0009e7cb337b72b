//! Manifests of many files, and whether two of them agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

/// The files below a folder with this extension.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Files with 500 MiB to 2 GiB of elements. They cost more than all others together.
const LARGE_FILES: [&str; 5] = [
    "generated/sparse_big.earliest.h5",
    "generated/sparse_big.latest.h5",
    "jhdf/tiny_huge_1d_over_maxint.hdf5",
    "libhdf5/h5diff/h5diff_hyper2.h5",
    "realworld/pytables_compressors.h5",
];

/// The manifests of the sound files of the corpus. Those of [`LARGE_FILES`] are there only if `H5LIVE_LARGE_FILES` is set,
/// as `make large-files` does, or if `with_large` wants them.
pub fn sound_manifests(corpus: &Path, with_large: bool) -> Vec<PathBuf> {
    let with_large = with_large || std::env::var_os("H5LIVE_LARGE_FILES").is_some();
    let is_large = |manifest: &Path| LARGE_FILES.iter().any(|name| manifest.with_extension("").ends_with(name));
    let mut manifests = files(corpus, "manifest");
    manifests.retain(|path| !path.starts_with(corpus.join("malformed")));
    if !with_large && manifests.iter().any(|path| is_large(path)) {
        println!("skipped: {} (make large-files takes it too)", LARGE_FILES.join(", "));
        manifests.retain(|path| !is_large(path));
    }
    manifests
}

/// For each folder of `files`, one in which links lead to all that is there, so that a copy finds beside it what the
/// original names. A link costs more than a copy: each folder is made once for all of its files.
pub fn linked_folders(files: &[PathBuf], within: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let folders: BTreeSet<_> = files.iter().map(|file| file.parent().unwrap().to_owned()).collect();
    let linked = |(i, of): (usize, PathBuf)| {
        let folder = within.join(i.to_string());
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(&of).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "manifest") {
                std::os::unix::fs::symlink(&path, folder.join(path.file_name().unwrap())).unwrap();
            }
        }
        (of, folder)
    };
    folders.into_iter().enumerate().map(linked).collect()
}

/// Runs `each` on all items, on as many threads as there are processors.
pub fn in_parallel<T: Send>(items: Vec<T>, each: impl Fn(T) + Sync) {
    let items = Mutex::new(items);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(item) = { items.lock().unwrap().pop() } {
                    each(item);
                }
            });
        }
    });
}

/// Runs `check` on the manifests of all sound files of the corpus, each with a folder for copies within `folder`, which
/// has what the file links to. Checks that those which fail are the `exceptions`; these have names and reasons.
pub fn check_sound_files(
    shared: &Path,
    folder: &Path,
    exceptions: &[(&str, &str)],
    check: impl Fn(&Path, &Path) -> Result<(), String> + Sync,
) {
    let corpus = shared.join("corpus");
    let references = sound_manifests(&corpus, false);
    let folders = linked_folders(&references, folder);
    let bad = Mutex::new(BTreeSet::new());
    in_parallel(references, |reference: PathBuf| {
        if let Err(fault) = check(&reference, &folders[reference.parent().unwrap()]) {
            let name = reference.with_extension("").strip_prefix(&corpus).unwrap().display().to_string();
            eprintln!("{name}: {fault}");
            bad.lock().unwrap().insert(name);
        }
    });
    let excepted: BTreeSet<_> = exceptions.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(bad.into_inner().unwrap(), excepted, "files that do not come back, and those of which that is known");
}

/// Whether the lines agree. What the reference program cannot read, it says nothing about.
pub fn agree(wanted: &str, found: &str) -> bool {
    let errors: Vec<&str> = wanted
        .lines()
        .filter(|line| line.split('\t').nth(1) == Some("error"))
        .filter_map(|l| l.split('\t').next())
        .collect();
    let said = |line: &&str| {
        let path = line.split('\t').next().unwrap_or_default();
        !errors.iter().any(|e| {
            path == *e
                || path.strip_prefix(*e).is_some_and(|rest| e.ends_with(['/', '@']) || rest.starts_with(['/', '@']))
        })
    };
    let (wanted, found) = (wanted.lines().filter(said), found.lines().filter(said));
    let (wanted, found): (Vec<_>, Vec<_>) = (wanted.collect(), found.collect());
    wanted.len() == found.len() && wanted.iter().zip(&found).all(|(wanted, found)| line_agrees(wanted, found))
}

fn line_agrees(wanted: &str, found: &str) -> bool {
    let (wanted, found): (Vec<_>, Vec<_>) = (wanted.split('\t').collect(), found.split('\t').collect());
    let free =
        |column: usize, text: &str| text == "unreadable" || (column == 5 && matches!(text, "unsupported" | "skipped"));
    wanted.len() == found.len() && wanted.iter().zip(&found).enumerate().all(|(i, (w, f))| w == f || free(i, w))
}

#[test]
fn agreement_forgives_only_what_the_reference_cannot_read() {
    let line = |path: &str, sha: &str| format!("{path}\tdataset\tu8\tscalar\tcompact\t{sha}");
    assert!(agree(&line("/a", "x"), &line("/a", "x")));
    assert!(!agree(&line("/a", "x"), &line("/a", "y")));
    assert!(agree(&line("/a", "unreadable"), &line("/a", "y")));
    assert!(!agree(&line("/a", "x"), &line("/a", "unreadable")));
    assert!(!agree(&line("/a", "x"), ""));
    let error = "/b\terror\t-\t-\t-\t-";
    assert!(agree(&format!("{}\n{error}", line("/a", "x")), &format!("{}\n{}", line("/a", "x"), line("/b/c", "y"))));
    assert!(!agree(error, &line("/bb", "y")));
}

/// What a copy may allocate at once: one file has a chunk of 480 MiB (bytes).
pub const MAX_ALLOCATION: &str = "536870912";

/// Whether all that is said names what a copy has not, or what was read as fill values: then the exit code is 1, and the
/// manifests say whether the rest is there.
pub fn names_only_losses(said: &str) -> bool {
    let is_loss = |line: &str| {
        line.starts_with("left out: ")
            || line.starts_with("rounded again: ")
            || line.ends_with("is not there: its elements are fill values")
            || line.ends_with("as --max-dataset says")
            || line.contains("cannot read the raw file no such file.raw")
            || line.ends_with(" is not available")
    };
    !said.is_empty() && said.lines().all(is_loss)
}

/// Runs the program with room for the largest chunk of the corpus; what it printed, or the error that it ended
/// with. What a copy names as left out is no error.
pub fn run_large(arguments: &[&str]) -> Result<String, String> {
    let output = super::run(&[&["--max-allocation", MAX_ALLOCATION], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let is_named = said.is_empty() || names_only_losses(&said);
    match output.status.success() || output.status.code() == Some(1) && is_named {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{arguments:?}: {said}")),
    }
}

/// Compares the manifest of a copy with the one that is wanted, and names the first line that differs.
pub fn same_manifest(copy: &str, wanted: &str, found: &str) -> Result<(), String> {
    match agree(wanted, found) {
        true => Ok(()),
        false => {
            let differ = wanted.lines().zip(found.lines()).find(|(wanted, found)| !agree(wanted, found));
            Err(format!("{copy}: {differ:?}"))
        }
    }
}
