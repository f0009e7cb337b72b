//! `copy` of files that libhdf5 and others wrote, at several profiles: the copy has the manifest of the original, by a
//! reference program on libhdf5, and `h5dump` reads it to its end.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::manifests::{agree, in_parallel, linked_folders, names_only_losses, sound_manifests};
use crate::common::{python, shared};

/// Longer than any copy, and any reading of one, may take.
const LIMIT: Duration = Duration::from_secs(240);

/// What `h5dump` may print of a file: all of it, but for a few files of many elements, which the manifests compare
/// (bytes).
const MAX_DUMP_BYTES: u64 = 2 << 20;

/// Files that `h5dump` prints for ten seconds each. Manifests compare their copies.
const NOT_DUMPED: [&str; 4] = [
    "libhdf5/h5diff/h5diff_dset1.h5",
    "libhdf5/h5diff/h5diff_dset2.h5",
    "libhdf5/h5diff/h5diff_dset3.h5",
    "libhdf5/h5repack/h5repack_objs.h5",
];

/// What a copy may print (bytes).
const MAX_COPY_OUTPUT_BYTES: u64 = 1 << 20;

/// The files whose copies differ or that are not copied, and why.
const EXCEPTIONS: [(&str, &str); 1] =
    [("libhdf5/test/tbogus.h5", "objects in it have messages that are to make programs refuse them")];

/// Files with chunks that went through filters that h5live does not know: they are copied as they are stored, which
/// ends with exit code 1 unless the copy is told not to verify them.
const UNKNOWN_FILTERS: [&str; 5] = [
    "libhdf5/h5copy/tudfilter.h5",
    "libhdf5/h5repack/h5repack_layout.UD.h5",
    "libhdf5/h5stat/h5stat_filters.h5",
    "libhdf5/tools/filter_fail.h5",
    "libhdf5/tools/tfilters.h5",
];

/// What a copy may allocate at once: a chunk of `realworld/pytables_compressors.h5` has 480 MiB, more than is allowed
/// if nothing is said (bytes).
const MAX_ALLOCATION: &str = "536870912";

/// Files that one process of the manifest program reads, one after the other.
const MANIFESTS_AT_ONCE: usize = 48;

/// Runs the manifest program on many files in children of one process, for it takes long to start. On standard input:
/// lines of a file, a TAB, and where its manifest goes.
const MANIFESTS: &str = r#"
import os, sys, time, importlib.machinery
manifest = importlib.machinery.SourceFileLoader("manifest", sys.argv[1]).load_module()
for line in sys.stdin:
    path, out = line.rstrip("\n").split("\t")
    child = os.fork()
    if child == 0:
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT, 0o600), 1)
        sys.argv = ["manifest.py", path]
        code = manifest.main()
        sys.stdout.flush()
        os._exit(code)
    until = time.monotonic() + 240
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, 9)
        time.sleep(0.002)
"#;

/// Whether a command ends well, `None` if it does not end in time, or prints more than it may; and what it says of
/// errors.
fn ends(command: &mut Command, max_output_bytes: u64) -> (Option<bool>, String) {
    let errors = tempfile::NamedTempFile::new().unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.reopen().unwrap());
    let mut child = command.spawn().unwrap();
    let mut output = child.stdout.take().unwrap().take(max_output_bytes);
    // The pipe is closed behind so much, which ends a program that has more to print.
    let printed = thread::spawn(move || io::copy(&mut output, &mut io::sink()).unwrap());
    let until = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status.success()),
            None if Instant::now() > until => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    let is_whole = printed.join().unwrap() < max_output_bytes;
    (status.filter(|_| is_whole), fs::read_to_string(errors.path()).unwrap_or_default())
}

fn has_h5dump() -> bool {
    Command::new("h5dump").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// What is wrong with the copies of the whole corpus at a profile.
fn faults(profile: &str, dumped: bool) -> Option<BTreeSet<String>> {
    let (corpus, python) = (shared()?, python()?);
    let (corpus, program) = (corpus.join("corpus"), corpus.join("oracle/manifest.py"));
    let folder = tempfile::tempdir().unwrap();
    let references = sound_manifests(&corpus, profile == "latest");
    let bad = Mutex::new(BTreeSet::new());
    let name = |reference: &Path| reference.with_extension("").strip_prefix(&corpus).unwrap().display().to_string();
    let fault = |reference: &Path, what: String| {
        eprintln!("{profile}: {}: {what}", name(reference));
        bad.lock().unwrap().insert(name(reference));
    };
    let copies = Mutex::new(Vec::new());
    let folders = linked_folders(&references, folder.path());
    in_parallel(references, |reference: PathBuf| {
        let file = reference.with_extension("");
        let name = format!("copied-{}", file.file_name().unwrap().to_str().unwrap());
        let copy = folders[file.parent().unwrap()].join(name);
        let mut command = common::h5live();
        command
            .args(["--max-allocation", MAX_ALLOCATION, "copy", "--keep-names", "--profile", profile])
            .args(UNKNOWN_FILTERS.iter().any(|name| file.ends_with(name)).then_some("--no-verify"))
            .args([&file, &copy])
            .env("HDF5_USE_FILE_LOCKING", "FALSE");
        match ends(&mut command, MAX_COPY_OUTPUT_BYTES) {
            (Some(false), said) if names_only_losses(&said) => {
                copies.lock().unwrap().push((reference, file, copy));
            }
            (Some(true), _) => copies.lock().unwrap().push((reference, file, copy)),
            (Some(false), error) => fault(&reference, error),
            (None, _) => fault(&reference, "the copy takes too long".to_owned()),
        }
    });
    let copies = copies.into_inner().unwrap();
    in_parallel(copies.chunks(MANIFESTS_AT_ONCE).collect(), |copies| {
        let mut command = Command::new(&python);
        command.args(["-c", MANIFESTS]).arg(&program).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        for (_, _, copy) in copies {
            writeln!(input, "{}\t{}.lines", copy.display(), copy.display()).unwrap();
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    });
    in_parallel(copies, |(reference, file, copy)| {
        let wanted = fs::read_to_string(&reference).unwrap();
        let found = fs::read_to_string(format!("{}.lines", copy.display())).unwrap_or_default();
        if !agree(&wanted, &found) {
            let differ = wanted.lines().zip(found.lines()).find(|(wanted, found)| !agree(wanted, found));
            fault(&reference, format!("{} and {} lines; {differ:?}", wanted.lines().count(), found.lines().count()));
        }
        let dump = |file: &Path| {
            let mut command = Command::new("h5dump");
            let folder = copy.parent().unwrap();
            command.arg(file).env("HDF5_VDS_PREFIX", folder).env("HDF5_EXTFILE_PREFIX", folder);
            ends(command.current_dir(folder), MAX_DUMP_BYTES)
        };
        if dumped
            && !NOT_DUMPED.iter().any(|name| file.ends_with(name))
            && let (Some(false), error) = dump(&copy)
            && let (Some(true), _) = dump(&file)
        {
            fault(&reference, format!("h5dump: {error}"));
        }
    });
    Some(bad.into_inner().unwrap())
}

#[track_caller]
fn check(profile: &str, dumped: bool) {
    let Some(found) = faults(profile, dumped && has_h5dump()) else { return };
    let excepted: BTreeSet<_> = EXCEPTIONS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, excepted, "files that are not copied as they are, and those of which that is known");
}

#[test]
fn copies_for_hdf5_1_10_have_the_manifests_of_their_originals() {
    check("v110", true);
}

#[test]
fn copies_in_the_latest_format_have_the_manifests_of_their_originals() {
    check("latest", false);
}

#[test]
fn copies_for_every_release_have_the_manifests_of_their_originals() {
    check("earliest", true);
}
