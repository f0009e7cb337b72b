//! `manifest` on files that libhdf5 and others wrote, against what a reference program says of each.
//!
//! Both agree in every line of every file, but for [`EXCEPTIONS`].

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::manifests::{agree, files, in_parallel};
use crate::common::{corpus, shared};
use sha2::{Digest, Sha256};

/// Longer than any file may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Memory that the program may take, whatever is in a file (KiB).
const MEMORY_KIB: u64 = 2 << 20;

/// What the program may allocate at once: a chunk of `realworld/pytables_compressors.h5` has 480 MiB, more than is
/// allowed if nothing is said (bytes).
const MAX_ALLOCATION: &str = "536870912";

/// The files on which the reference program is wrong, and why.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("generated/sizes.earliest.h5", "references of 4 bytes: it reads the next member of the compound with them"),
    ("generated/sizes.latest.h5", "references of 4 bytes: it reads the next member of the compound with them"),
];

/// The manifest of a file, or `None` if the program does not end in time.
fn manifest(file: &Path) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {MEMORY_KIB} && exec \"$@\"")).arg("sh").arg(env!("CARGO_BIN_EXE_h5live"));
    command.args(["--max-allocation", MAX_ALLOCATION]);
    command.arg("manifest").arg(file).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.stdout(fs::File::create(&out).unwrap()).spawn().unwrap();
    let until = Instant::now() + LIMIT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    Some(Output { stdout: fs::read(out).unwrap(), ..output })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn manifests_agree_with_the_reference() {
    let Some(corpus) = shared().map(|shared| shared.join("corpus")) else { return };
    let differing = Mutex::new(BTreeSet::new());
    let references: Vec<_> =
        files(&corpus, "manifest").into_iter().filter(|path| !path.starts_with(corpus.join("malformed"))).collect();
    let total = references.len();
    in_parallel(references, |reference| {
        let file = reference.with_extension("");
        let wanted = fs::read_to_string(&reference).unwrap();
        // What it cannot read, or is not there, it says.
        let is_told = |output: &Output| output.status.code() == Some(i32::from(!output.stderr.is_empty()));
        let output = manifest(&file).filter(is_told);
        let found = output.and_then(|output| String::from_utf8(output.stdout).ok());
        if !found.is_some_and(|found| agree(&wanted, &found)) {
            differing.lock().unwrap().insert(file.strip_prefix(&corpus).unwrap().display().to_string());
        }
    });
    println!("{total} manifests");
    let excepted = EXCEPTIONS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(differing.into_inner().unwrap(), excepted, "files whose manifests differ, and those that may");
}

#[test]
fn no_file_makes_the_program_panic_or_hang() {
    let Some(corpus) = shared().map(|shared| shared.join("corpus")) else { return };
    let references = [files(&corpus, "manifest"), files(&corpus, "error")].concat();
    let bad = Mutex::new(Vec::new());
    in_parallel(references, |reference| {
        let file = reference.with_extension("");
        let fate = match manifest(&file) {
            None => "hangs".to_owned(),
            // 1: something in it cannot be read.
            Some(output) if matches!(output.status.code(), Some(0..=2)) => return,
            Some(output) => format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
        };
        bad.lock().unwrap().push((file, fate));
    });
    let bad = bad.into_inner().unwrap();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn values_are_those_that_h5py_wrote() {
    let Some(corpus) = corpus() else { return };
    let bad = Mutex::new(BTreeSet::new());
    let right = AtomicU32::new(0);
    in_parallel(files(&corpus, "values"), |reference| {
        let file = reference.with_extension("h5");
        for line in fs::read_to_string(&reference).unwrap().lines() {
            match dataset_fault(file.to_str().unwrap(), line) {
                None => right.fetch_add(1, Relaxed),
                Some(fault) => u32::from(bad.lock().unwrap().insert(format!("{}: {line}: {fault}", file.display()))),
            };
        }
    });
    println!("{right:?} datasets are right");
    let bad = bad.into_inner().unwrap();
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(right.into_inner() > 0);
}

/// What is wrong with a dataset, of which a line says path, shape, and hash of the values.
fn dataset_fault(file: &str, line: &str) -> Option<String> {
    let [path, shape, hash] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let listed = common::run(&["ls", "--json", file, path]);
    let spec = listed.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Ok(spec) = serde_json::from_slice::<serde_json::Value>(spec) else {
        return Some(String::from_utf8_lossy(&listed.stderr).into_owned());
    };
    let found = match spec["shape"].as_array() {
        _ if spec["space"] == "null" => "null".to_owned(),
        Some(dims) => dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        None => return Some(spec.to_string()),
    };
    if found != shape {
        return Some(format!("the shape is {found}"));
    }
    let raw = common::run(&["dump", "--raw", file, path]);
    let right = hash == "-" || hex(&Sha256::digest(&raw.stdout)) == hash;
    (!right).then(|| format!("other values {}", String::from_utf8_lossy(&raw.stderr)))
}
