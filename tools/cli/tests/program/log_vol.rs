//! Files in Log VOL's layout (`log:run.h5?layout=logvol`) on the command line.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::common::manifests::{agree, check_sound_files};
use h5live::{File, Log, LogLayout, UNLIMITED};

use crate::common::{error, new_file, python, run, run_with, shared, text, workspace};

/// Files of the corpus that do not come back as they were, and why. They do not come back from h5live's own layout either.
const EXCEPTIONS: [(&str, &str); 5] = [
    ("generated/filters_scaleoffset.v110.h5", "its filter loses digits each time that values go through it"),
    ("libhdf5/h5copy/tudfilter.h5", "a filter is unknown, and a log has decoded values"),
    ("libhdf5/h5repack/h5repack_layout.UD.h5", "a filter is unknown, and a log has decoded values"),
    ("libhdf5/test/tbogus.h5", "objects in it have messages that are to make programs refuse them"),
    ("libhdf5/tools/filter_fail.h5", "a filter is unknown, and a log has decoded values"),
];

/// What the layout has no form for, as an error says it.
const REFUSED: [&str; 5] = [
    "a dataset with variable-length elements, or with references that lead to a heap,",
    "a null dataspace",
    "a virtual dataset",
    "a dataset in raw files",
    "a reference to a region",
];

/// What a copy may allocate at once: one file has a chunk of 480 MiB (bytes).
const MAX_ALLOCATION: &str = "536870912";

/// What became of a file that was copied into the layout and back.
enum Copied {
    /// It came back as it was: the log, and the plain copy of that.
    Equal(PathBuf, PathBuf),
    /// The layout has no form for this.
    Refused(&'static str),
    Bad(String),
}

fn log_and_back(reference: &Path, folder: &Path) -> Copied {
    let file = reference.with_extension("");
    let name = file.file_name().unwrap().to_str().unwrap();
    let (log, back) = (folder.join(format!("log-{name}")), folder.join(format!("back-{name}")));
    let (from, to) = (file.to_str().unwrap(), format!("log:{}?layout=logvol", log.display()));
    let ends = |arguments: &[&str]| {
        let output = run(&[&["--max-allocation", MAX_ALLOCATION], arguments].concat());
        // 1: a copy lacks something, such as times, or a manifest has no values of a dataset that is too large. What is there
        // is compared below, with what is wanted.
        match matches!(output.status.code(), Some(0 | 1)) {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    if let Err(said) = ends(&["copy", "--quiet", "--keep-names", from, &to]) {
        assert!(!log.exists(), "a file that is refused is not there");
        let reason = REFUSED
            .iter()
            .find(|reason| said.contains(&format!("{reason} in Log VOL's layout (layout=logvol) is not supported")));
        return reason.map_or(Copied::Bad(said), |reason| Copied::Refused(reason));
    }
    let (log_location, plain) = (format!("log:{}", log.display()), back.display().to_string());
    if let Err(said) = ends(&["copy", "--quiet", "--keep-names", &log_location, &plain]) {
        return Copied::Bad(said);
    }
    let wanted = std::fs::read_to_string(reference).unwrap();
    for copy in [&log_location, &plain] {
        match ends(&["manifest", copy]) {
            Ok(found) if agree(&wanted, &found) => {}
            Ok(found) => {
                let differ = wanted.lines().zip(found.lines()).find(|(wanted, found)| !agree(wanted, found));
                return Copied::Bad(format!("{copy}: {differ:?}"));
            }
            Err(said) => return Copied::Bad(said),
        }
    }
    Copied::Equal(log, back)
}

/// What a reader that keeps to the rules of Log VOL says of pairs of a log and what it should have: how many datasets have
/// equal values. `None` without h5py.
fn read_by_the_rules(pairs: &[(PathBuf, PathBuf)]) -> Option<u64> {
    let script = workspace().join("tests/python/log_vol_reader.py");
    let arguments = pairs.iter().flat_map(|(log, wanted)| [log, wanted]);
    Some(text(&Command::new(python()?).arg(script).args(arguments).output().unwrap()).trim().parse().unwrap())
}

#[test]
fn files_that_the_layout_can_hold_come_back_as_they_were() {
    let Some(shared) = shared() else { return };
    let (equal, refused) = (Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
    let folder = tempfile::tempdir().unwrap();
    check_sound_files(&shared, folder.path(), &EXCEPTIONS, |reference, folder| match log_and_back(reference, folder) {
        Copied::Equal(log, back) => {
            equal.lock().unwrap().push((log, back));
            Ok(())
        }
        Copied::Refused(reason) => {
            *refused.lock().unwrap().entry(reason).or_insert(0) += 1;
            Ok(())
        }
        Copied::Bad(fault) => Err(fault),
    });
    let (equal, refused) = (equal.into_inner().unwrap(), refused.into_inner().unwrap());
    println!("{} files came back; refused: {refused:?}", equal.len());
    assert!(equal.len() > 280 && refused.values().sum::<i32>() < 90, "{} equal, {refused:?}", equal.len());
    if let Some(compared) = read_by_the_rules(&equal) {
        println!("{compared} datasets have the values that Log VOL's rules find");
        assert!(compared > 500, "{compared} datasets");
    }
}

#[test]
fn the_rules_of_log_vol_find_the_values_of_its_samples() {
    let Some(shared) = shared() else { return };
    let samples: Vec<_> = ["log_sample", "log_sample2_canon", "log_sample2_d"]
        .map(|name| shared.join("samples/log-vol").join(name).display().to_string())
        .map(|name| (PathBuf::from(format!("{name}.h5")), PathBuf::from(format!("{name}.values.json"))))
        .into();
    if let Some(compared) = read_by_the_rules(&samples) {
        assert_eq!(compared, 11);
    }
}

#[test]
fn a_log_in_the_layout_is_made_written_on_and_read_without_naming_the_layout() {
    let (folder, _, name) = new_file();
    text(&run_with(&["record", &name, "rows"], b"v\n1\n2\n"));
    let path = folder.path().join("log.h5");
    let log = format!("log:{}", path.display());
    text(&run(&["copy", "--quiet", &name, &format!("{log}?layout=logvol")]));
    text(&run(&["diff", &name, &log]));
    text(&run(&["set", &log, "rows@_unit", "V"]));
    assert!(text(&run(&["dump", &log, "rows@_unit"])).contains('V'));
    assert!(text(&run(&["check", path.to_str().unwrap()])).contains("sound"));
    let plain = text(&run(&["ls", &format!("native:{}", path.display())]));
    assert!(plain.contains("/_LOG/_ld_0") && plain.contains("/_LOG/_md_0"), "{plain}");
    assert!(!text(&run(&["ls", &log])).contains("_LOG"));
    let info = text(&run(&["log", "info", path.to_str().unwrap()]));
    assert!(info.contains("layout logvol, 1 dataset made"), "{info}");
    let back = folder.path().join("back.h5");
    text(&run(&["log", "replay", path.to_str().unwrap(), back.to_str().unwrap(), "--quiet"]));
    if let Some(compared) = read_by_the_rules(&[(path.clone(), back)]) {
        assert_eq!(compared, 1);
    }
}

#[test]
fn overlapping_writes_and_growth_in_many_flushes_are_what_the_rules_of_log_vol_find() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.h5");
    let log = format!("log:{}", path.display());
    let options = || File::options().with(Log { layout: LogLayout::LogVol, staging: 4096, ..Log::default() });
    let file = options().create().open(log.as_str()).unwrap();
    let table = file.new_dataset::<i32>().shape(&[30, 20]).create("table").unwrap();
    file.create_group("_group").unwrap();
    let rows =
        file.new_dataset::<f64>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[8]).create("_group/rows").unwrap();
    let mut wanted = vec![0; 600];
    // Boxes of all kinds, so that later ones cover earlier ones in part.
    for round in 0..60usize {
        let (top, left) = (round * 7 % 23, round * 11 % 15);
        let (height, width) = (1 + round * 5 % 7, 1 + round * 3 % 5);
        let values = vec![round as i32 + 1; height * width];
        table.write_slice((top..top + height, left..left + width), &values).unwrap();
        for row in top..top + height {
            wanted[row * 20 + left..row * 20 + left + width].fill(round as i32 + 1);
        }
        rows.append(&[round as f64, 0.5]).unwrap();
        if round % 4 == 3 {
            file.flush().unwrap();
        }
    }
    assert_eq!(table.read::<i32>().unwrap(), wanted);
    file.close().unwrap();
    let file = File::open(log.as_str()).unwrap();
    assert_eq!(file.dataset("table").unwrap().read::<i32>().unwrap(), wanted);
    assert_eq!(file.dataset("_group/rows").unwrap().shape().unwrap(), [120]);
    drop(file);
    let back = folder.path().join("back.h5");
    text(&run(&["copy", "--quiet", &log, back.to_str().unwrap()]));
    if let Some(compared) = read_by_the_rules(&[(path, back)]) {
        assert_eq!(compared, 2);
    }
}

#[test]
fn joining_recording_and_filters_are_refused_by_name() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}");
    for query in ["join=yes&layout=logvol", "layout=logvol", "layout=other"] {
        let said = error(&run_with(&["record", &format!("{log}?{query}"), "rows"], b"v\n1\n"));
        assert!(said.contains("logvol"), "{query}: {said}");
        assert!(!path.exists() && !path.with_extension("h5.subfiles").exists(), "{query}");
    }
    let (_other, _, plain) = new_file();
    text(&run_with(&["record", &plain, "rows"], b"v\n1\n"));
    let said = error(&run(&["copy", &plain, &format!("{log}?layout=logvol&filter=zstd")]));
    assert!(said.contains("a filter of entries in Log VOL's layout (layout=logvol)"), "{said}");
    assert!(!path.exists());
    text(&run(&["copy", "--quiet", &plain, &format!("{log}?layout=logvol")]));
    let said = error(&run_with(&["record", &format!("{log}?join=yes"), "rows"], b"v\n1\n"));
    assert!(said.contains("joining a log in Log VOL's layout"), "{said}");
    assert!(!path.with_extension("h5.subfiles").exists());
    text(&run(&["diff", &plain, &log]));
}
