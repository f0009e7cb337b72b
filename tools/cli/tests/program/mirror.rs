//! Recordings that are mirrored to an object store.
#![cfg(all(unix, feature = "hsds"))]

use std::io::Write;
use std::path::Path;
use std::process::ChildStdin;

use h5live::File;

use crate::common::{error, run, run_with, start, text, until};

/// A folder, the path of a file in it, and the location of a mirror in it.
fn places() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.h5").display().to_string();
    let mirror = format!("hsds:{}", folder.path().join("mirror").display());
    (folder, file, mirror)
}

/// The numbers in the rows of a store, which are 0, 1, 2, and so on; `None` if nobody sees it yet.
fn rows(store: &str) -> Option<u64> {
    let file = File::open(store).ok()?;
    // Others see the dataset as soon as they see the store.
    let values = file.dataset("rows").unwrap().read_values(..).unwrap();
    for (number, value) in values.iter().enumerate() {
        assert_eq!(value.to_string(), format!("{{v: {number}}}"));
    }
    Some(values.len() as u64)
}

fn write_rows(input: &mut ChildStdin, numbers: std::ops::Range<u64>) {
    let text: String = numbers.map(|number| format!("{number}\n")).collect();
    input.write_all(text.as_bytes()).unwrap();
}

/// The summary of a recording that has ended.
fn summary(output: &[u8]) -> serde_json::Value {
    serde_json::from_slice(output).unwrap()
}

#[test]
fn a_reader_of_a_mirror_finds_more_and_more_of_the_rows_in_their_order() {
    let (folder, file, mirror) = places();
    let options = ["--mirror-every", "0.01", "--chunk", "64", "--json", "--types", "v=i64"];
    let mut writer = start(&[&["record", &file, "rows", "--mirror", &mirror], options.as_slice()].concat());
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n").unwrap();
    let mut seen = 0;
    for step in 1..=10 {
        write_rows(&mut input, (step - 1) * 333..step * 333);
        until("the rows in the mirror", || {
            let found = rows(&mirror).unwrap_or_default();
            assert!(found >= seen, "{found} rows after {seen}");
            seen = found;
            seen == step * 333
        });
        assert!(rows(&file).is_none_or(|rows| rows >= seen), "the file has them first");
    }
    let watch = start(&["watch", "--json", &mirror, "rows"]);
    write_rows(&mut input, 3330..5000);
    drop(input);
    let output = writer.wait_with_output().unwrap();
    assert!(output.status.success());
    let mirrored = &summary(&output.stdout)["mirror"];
    assert_eq!((&mirrored["rows"], &mirrored["complete"]), (&5000.into(), &true.into()), "{mirrored}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("mirror: complete, with 5000 rows"), "{said}");
    assert_eq!(text(&watch.wait_with_output().unwrap()).lines().count(), 5000);
    check_equal(folder.path(), &file, &mirror);
}

/// The mirror has all that the file has.
fn check_equal(folder: &Path, file: &str, mirror: &str) {
    text(&run(&["diff", file, mirror]));
    let back = folder.join("back.h5").display().to_string();
    text(&run(&["copy", "--quiet", "--force", mirror, &back]));
    assert_eq!(text(&run(&["manifest", file])), text(&run(&["manifest", &back])));
    let checked = text(&run(&["check", "--data", "--leaks", mirror]));
    assert!(checked.contains("sound") && !checked.contains("leak"), "{checked}");
}

#[test]
fn texts_keys_attributes_and_what_was_there_before_are_mirrored() {
    let (folder, file, mirror) = places();
    let old = File::create(&file).unwrap();
    old.new_dataset::<u8>().shape(&[3]).create_with_data("before/a", &[1, 2, 3]).unwrap();
    old.root().set_attribute("note", &"as it was".to_owned()).unwrap();
    old.close().unwrap();
    let lines =
        "{\"t\":\"2026-01-02T03:04:05Z\",\"s\":\"one\"}\n{\"t\":\"2026-01-02T03:04:06Z\",\"s\":\"\",\"more\":1.5}\n";
    let record = ["record", &file, "g/rows", "--on-new-key", "dataset", "--infer-rows", "1", "--deflate", "3"];
    let mut writer = start(&[&record[..], &["--mirror", &mirror, "--mirror-every", "0.01"]].concat());
    let mut input = writer.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    let count = |path: &str| File::open(mirror.as_str()).ok()?.dataset(path).ok()?.shape().ok()?.first().copied();
    until("the first rows", || count("g/rows") == Some(2) && count("g/rows.more") == Some(1));
    input.write_all(b"{\"t\":\"2026-01-02T03:04:07Z\",\"s\":\"three\",\"more\":2,\"even\":7}\n").unwrap();
    until("a row of a new key", || count("g/rows") == Some(3) && count("g/rows.even") == Some(1));
    drop(input);
    text(&writer.wait_with_output().unwrap());
    check_equal(folder.path(), &file, &mirror);
    // Another recording makes its mirror anew, and on request only.
    let refused = error(&run_with(&[&record[..], &["--mirror", &mirror]].concat(), lines.as_bytes()));
    assert!(refused.contains("exists"), "{refused}");
    assert_eq!(File::open(&file).unwrap().dataset("g/rows").unwrap().shape().unwrap(), [3], "nothing was recorded");
    text(&run_with(&[&record[..], &["--mirror", &mirror, "--replace-mirror"]].concat(), lines.as_bytes()));
    assert_eq!(count("g/rows"), Some(5));
    check_equal(folder.path(), &file, &mirror);
}

#[test]
fn what_a_mirror_does_not_have_as_the_file_has_it_is_said_and_is_a_finding() {
    let (folder, file, mirror) = places();
    File::create(folder.path().join("other.h5")).unwrap().new_dataset::<u8>().create_with_data("x", &[1]).unwrap();
    let old = File::create(&file).unwrap();
    old.root().link_external("away", "other.h5", "/x").unwrap();
    old.close().unwrap();
    let output = run_with(&["record", &file, "rows", "--json", "--mirror", &mirror], b"{\"v\":0}\n{\"v\":1}\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("all of 2 rows, but not all of the rest"), "{said}");
    assert!(said.contains("left as it is: the name \"other.h5\" of another file"), "{said}");
    let summary = summary(&output.stdout);
    assert_eq!(summary["mirror"]["complete"], false);
    assert_eq!(summary["mirror"]["losses"].as_array().unwrap().len(), 1);
    assert_eq!(rows(&mirror), Some(2));
}

#[test]
fn a_recording_without_rows_leaves_no_mirror() {
    let (folder, file, mirror) = places();
    text(&run_with(&["record", &file, "rows", "--mirror", &mirror], b"v\n"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let refused = error(&run_with(&["record", &file, "rows", "--mirror", &file], b"v\n1\n"));
    assert!(refused.contains("a mirror is a domain of an object store"), "{refused}");
    let refused = error(&run_with(&["record", &mirror, "rows", "--mirror", &mirror], b"v\n1\n"));
    assert!(refused.contains("only a file is mirrored"), "{refused}");
    std::fs::write(&file, "no HDF5").unwrap();
    error(&run_with(&["record", &file, "rows", "--mirror", &mirror], b"v\n1\n"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the file");
}

#[test]
fn a_mirror_that_fails_does_not_end_the_recording_and_the_summary_says_how_far_it_is() {
    let (folder, file, mirror) = places();
    let options = ["--mirror-every", "0.01", "--mirror-wait", "0.01", "--json", "--types", "v=i64"];
    let mut writer = start(&[&["record", &file, "rows", "--mirror", &mirror], options.as_slice()].concat());
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n").unwrap();
    write_rows(&mut input, 0..10);
    until("rows in the mirror", || rows(&mirror) == Some(10));
    // A file is where its objects should be.
    let (objects, away) = (folder.path().join("mirror/db"), folder.path().join("away"));
    std::fs::rename(&objects, &away).unwrap();
    std::fs::write(&objects, "").unwrap();
    write_rows(&mut input, 10..20);
    drop(input);
    let output = writer.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let mirrored = &summary(&output.stdout)["mirror"];
    assert_eq!((&mirrored["rows"], &mirrored["complete"]), (&10.into(), &false.into()), "{mirrored}");
    assert!(mirrored["failures"].as_u64() > Some(0) && mirrored["error"].is_string(), "{mirrored}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("mirror: incomplete, with 10 rows: "), "{said}");
    assert_eq!(rows(&file), Some(20));
    std::fs::remove_file(&objects).unwrap();
    std::fs::rename(&away, &objects).unwrap();
    assert_eq!(rows(&mirror), Some(10));
}

#[cfg(feature = "remote-tests")]
#[test]
fn a_mirror_on_a_server_that_fails_has_all_rows_in_the_end() {
    use h5live_objects::testing::{FaultyProxy, ProxyFaults, S3Server};
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    let (folder, file, _) = places();
    let faults = ProxyFaults { per_mille: 60, seed: 9, ..ProxyFaults::default() };
    let proxy = FaultyProxy::start(server.address(), faults).unwrap();
    let at = |endpoint: String, more: &str| {
        format!("hsds+s3://bucket/home/run?endpoint={endpoint}&region=us-east-1&allow_http=yes{more}")
    };
    // So few attempts that the mirror itself sees failures.
    let (mirror, direct) = (at(proxy.endpoint(), "&attempts=2&lease=2s"), at(server.endpoint(), ""));
    let options = ["--mirror-every", "0.01", "--mirror-wait", "60", "--json", "--chunk", "32", "--types", "v=i64"];
    let mut writer = start(&[&["record", &file, "rows", "--mirror", &mirror], options.as_slice()].concat());
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n").unwrap();
    let mut seen = 0;
    for step in 1..=20 {
        write_rows(&mut input, (step - 1) * 100..step * 100);
        until("the rows in the mirror", || {
            let found = rows(&direct).unwrap_or_default();
            assert!(found >= seen, "{found} rows after {seen}");
            seen = found;
            seen == step * 100
        });
    }
    drop(input);
    let output = writer.wait_with_output().unwrap();
    let mirrored = &summary(&output.stdout)["mirror"];
    println!("{} of {} requests failed: {mirrored}", proxy.injected_failure_count(), proxy.request_count());
    assert_eq!((&mirrored["rows"], &mirrored["complete"]), (&2000.into(), &true.into()), "{mirrored}");
    check_equal(folder.path(), &file, &direct);
}
