//! `latency`, and `watch --stats` of a file that is not written any more.

use crate::run;
use h5live_test_support::program::text;
use h5live_test_support::python;

#[test]
fn every_row_is_seen_by_each_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.h5");
    let path = path.to_str().unwrap();
    let python = python();
    let mut arguments = vec!["latency", "--rate", "500", "--seconds", "0.4", "--json", path];
    if let Some(python) = &python {
        arguments.extend(["--h5py", python.to_str().unwrap()]);
    }
    let reports: Vec<serde_json::Value> =
        text(&run(&arguments)).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reports.len(), 1 + usize::from(python.is_some()));
    for report in reports {
        assert_eq!((report["rows"].as_u64(), report["expected"].as_u64()), (Some(200), Some(200)), "{report}");
        assert!(report["latency_us"]["median"].as_f64().unwrap() > 0.0);
    }
    let output = run(&["watch", "--json", "--stats", path, "times"]);
    assert_eq!(text(&output).lines().count(), 200);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.lines().any(|line| line.starts_with("bytes read")), "{said}");
}
