//! `dump --json` and `new` on the files that libhdf5 and others wrote: `diff` finds no difference, or an error says what
//! the description does not hold, or what the new file cannot have.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;

use crate::common;
use crate::common::manifests::{in_parallel, linked_folders, names_only_losses, sound_manifests};
use crate::common::shared;

/// The files whose new ones differ, and why.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("generated/external.earliest.h5", "a raw file is not there, so that its values cannot be compared"),
    ("generated/filters_scaleoffset.v110.h5", "the filter rounds what it has rounded before"),
    ("generated/types_float.earliest.h5", "the padding of a float lies over its mantissa, and is not zero"),
    ("generated/types_float.v108.h5", "the padding of a float lies over its mantissa, and is not zero"),
];

fn program(arguments: &[&str], paths: &[&Path]) -> Output {
    common::h5live().args(arguments).args(paths).output().unwrap()
}

/// What is wrong with the way of a file through its description.
fn fault(file: &Path, folder: &Path) -> Option<String> {
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let name = file.file_name().unwrap().to_str().unwrap();
    let copy = folder.join(format!("made-{name}"));
    let described = program(&["dump", "--json"], &[file]);
    let names_errors = String::from_utf8_lossy(&described.stdout).contains("\"errors\": [");
    match described.status.code() {
        Some(0) if !names_errors => {}
        Some(1) if names_errors => return None,
        // A source that is not there.
        Some(1) if names_only_losses(&said(&described)) => {}
        _ => return Some(said(&described)),
    }
    let description = folder.join(format!("description of {name}.json"));
    fs::write(&description, described.stdout).unwrap();
    let made = program(&["new"], &[&copy, &description]);
    match made.status.code() {
        Some(0) => {}
        // A filter that only reads.
        Some(2) if said(&made).contains("encoding is not supported") => return None,
        _ => return Some(said(&made)),
    }
    let compared = program(&["diff"], &[file, &copy]);
    let differences = String::from_utf8_lossy(&compared.stdout).into_owned();
    let is_equal = compared.status.success()
        || compared.status.code() == Some(1) && differences.is_empty() && names_only_losses(&said(&compared));
    (!is_equal).then(|| format!("{differences}{}", said(&compared)))
}

#[test]
fn every_file_of_the_corpus_is_made_again_from_its_description_or_an_error_says_why_not() {
    let Some(corpus) = shared().map(|shared| shared.join("corpus")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let manifests = sound_manifests(&corpus, true);
    let folders = linked_folders(&manifests, folder.path());
    let bad = Mutex::new(BTreeSet::new());
    in_parallel(manifests, |manifest: PathBuf| {
        let file = manifest.with_extension("");
        if let Some(fault) = fault(&file, &folders[file.parent().unwrap()]) {
            let name = file.strip_prefix(&corpus).unwrap().display().to_string();
            eprintln!("{name}: {fault}");
            bad.lock().unwrap().insert(name);
        }
    });
    let excepted: BTreeSet<_> = EXCEPTIONS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(bad.into_inner().unwrap(), excepted, "files that are made otherwise, and those of which that is known");
}
