//! `demo`, for a short time.

use crate::common::{error, run, text};

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&text(&run(arguments))).unwrap()
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

#[test]
fn the_demo_runs_on_every_store_that_others_can_follow() {
    for store in ["native", "log", "kv", "hsds"] {
        let folder = tempfile::tempdir().unwrap();
        let location = format!("{store}:{}/demo", folder.path().display());
        let said = text(&run(&["demo", &location, "--seconds", "0.7", "--rate", "50", "--json"]));
        assert!(said.contains(r#""violations":[]"#), "{store}: {said}");
    }
    let said = error(&run(&["demo", "mem:x"]));
    assert!(said.contains("mem:x: ") && said.contains("other processes cannot follow"), "{said}");
}
