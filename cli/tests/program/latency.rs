//! `h5live latency`, and `h5live watch --stats` of a file that is not written any more.

use std::path::PathBuf;
use std::process::{Command, Output};

fn h5live(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_h5live")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_row_is_seen_by_each_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.h5");
    let path = path.to_str().unwrap();
    let python = std::env::var_os("H5LIVE_PYTHON").map(PathBuf::from).filter(|path| path.exists());
    let mut arguments = vec!["latency", "--rate", "500", "--seconds", "0.4", "--json", path];
    if let Some(python) = &python {
        arguments.extend(["--h5py", python.to_str().unwrap()]);
    }
    let output = h5live(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let reports: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reports.len(), 1 + usize::from(python.is_some()));
    for report in reports {
        assert_eq!((report["rows"].as_u64(), report["expected"].as_u64()), (Some(200), Some(200)), "{report}");
        assert!(report["latency_us"]["median"].as_f64().unwrap() > 0.0);
    }
    let output = h5live(&["watch", "--json", "--stats", path, "times"]);
    assert_eq!(text(&output.stdout).lines().count(), 200);
    let said = text(&output.stderr);
    assert!(said.lines().any(|line| line.starts_with("bytes read")), "{said}");
}
