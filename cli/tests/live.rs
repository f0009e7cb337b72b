//! `stress` and `demo`, for a short time.

mod common;

use common::{run, text};

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
fn the_demo_sums_up_what_it_saw() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.h5");
    let file = file.to_str().unwrap();
    let summary = json(&["demo", "--seconds=2", "--json", file]);
    assert_eq!(summary["violations"], serde_json::json!([]), "{summary:#}");
    let rows = summary["rows"].as_u64().unwrap();
    assert!(rows > 10 && summary["seen"] == serde_json::json!([rows, rows]), "{summary:#}");
    assert!(text(&run(&["ls", file])).contains("/machine/samples"));
}
