//! `stress`, for a short time.

use crate::{run, start};
use h5live_test_support::program::{child_with, text, until};

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&text(&run(arguments))).unwrap()
}

#[test]
fn stress_finds_no_violation() {
    let report = json(&["stress", "--readers=2", "--seconds=2", "--json", "--seed=7"]);
    assert_eq!(report["violations"], serde_json::json!([]), "{report:#}");
    assert!(report["flushes"].as_u64().unwrap() > 10, "{report:#}");
    for reader in report["readers"].as_array().unwrap() {
        assert_eq!(reader["rows"], report["rows"], "{report:#}");
    }
}

#[test]
fn stress_finds_no_violation_while_the_writer_is_killed() {
    let report = json(&["stress", "--readers=2", "--seconds=4", "--kill", "--json", "--seed=8"]);
    assert_eq!(report["violations"], serde_json::json!([]), "{report:#}");
    assert!(report["kills"].as_u64().unwrap() >= 2, "{report:#}");
}

#[test]
fn stress_finds_no_violation_while_writers_come_back_under_readers_that_stay() {
    let report = json(&["stress", "--readers=2", "--seconds=4", "--restart", "--json", "--seed=9"]);
    assert_eq!(report["violations"], serde_json::json!([]), "{report:#}");
    assert!(report["restarts"].as_u64().unwrap() >= 2, "{report:#}");
}

#[test]
fn a_reader_that_expects_other_values_reports_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stress.h5");
    let file = file.to_str().unwrap();
    text(&run(&["stress", "--readers=1", "--seconds=1", "--seed=7", file]));
    let said = text(&run(&["stress", "--role=reader", "--seed=7", file]));
    assert!(!said.contains("violation"), "{said}");
    let said = text(&run(&["stress", "--role=reader", "--seed=8", file]));
    for series in ["scalars", "big_endian", "floats", "rows", "frames"] {
        assert!(said.contains(&format!("violation I2 /{series}: row 0 has another value at byte ")), "{said}");
    }
}

#[test]
fn a_writer_that_dies_by_itself_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stress.h5");
    let run = start(&["stress", "--readers=1", "--seconds=20", "--json", file.to_str().unwrap()]);
    let writer = child_with(run.id(), "--role=writer");
    // What has not begun cannot end too early. A reader that comes before the writer would keep it out, so the status
    // flags of the superblock are looked at first.
    let is_live = || std::fs::read(&file).is_ok_and(|bytes| bytes.get(11).is_some_and(|flags| flags & 4 != 0));
    until("rows are visible", || {
        let open = || is_live().then(|| h5live::File::options().swmr_read().open(&file).ok()).flatten();
        let rows = || open()?.dataset("/scalars").ok()?.shape().ok();
        rows().is_some_and(|shape| shape[0] > 0)
    });
    assert!(std::process::Command::new("kill").args(["-KILL", &writer.to_string()]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let details = report["violations"].to_string();
    assert!(details.contains("the writer has ended too early"), "{details}");
    assert!(!details.contains("I1") && !details.contains("I5"), "{details}");
}
