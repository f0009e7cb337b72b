//! Commands that start several processes on one live store, in stores of every kind.

use crate::run;
use h5live_test_support::program::{error, text};

/// Stores that processes can follow while another writes.
const STORES: [&str; 4] = ["native", "log", "kv", "hsds"];

#[test]
fn stress_runs_on_every_store() {
    for store in STORES {
        for kill in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let location = format!("{store}:{}/run", folder.path().display());
            let mut words = vec!["stress", &location, "--seconds", "1.5", "--readers", "2", "--rate", "50", "--json"];
            words.extend(kill.then_some("--kill"));
            let output = run(&words);
            let report = text(&output);
            let report: serde_json::Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
            assert_eq!(report["violations"], serde_json::json!([]), "{location}: {report}");
            let made: Vec<_> =
                std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(made.iter().all(|name| name.to_str().unwrap().starts_with("run")), "{store}: {made:?}");
            assert!(!text(&run(&["ls", &location])).is_empty(), "{store}");
        }
    }
}

#[test]
fn scenarios_and_latency_run_on_every_store() {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{store}:{}/{name}", folder.path().display());
        for name in ["generator", "start-write", "append-multi", "refresh"] {
            let said = text(&run(&["scenario", name, &at(name), "--seconds", "0.7", "--readers", "1"]));
            assert!(said.contains("0 violations"), "{store}: {said}");
        }
        let said = text(&run(&["latency", &at("latency"), "--seconds", "0.5", "--rate", "50"]));
        assert!(said.contains("25 of 25 rows"), "{store}: {said}");
    }
}

#[test]
fn a_store_that_others_cannot_follow_is_refused() {
    for words in [&["stress", "mem:x"][..], &["scenario", "generator", "mem:x"], &["latency", "mem:x"]] {
        let said = error(&run(words));
        assert!(said.contains("mem:x: ") && said.contains("other processes cannot follow"), "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let location = format!("kv:{}/run", folder.path().display());
    for words in [
        &["stress", &location, "--matrix"][..],
        &["stress", &location, "--names"],
        &["scenario", "virtual", &location],
        &["scenario", "sparse", &location],
        &["latency", &location, "--h5py", "python3"],
    ] {
        let said = error(&run(words));
        assert!(said.contains("needs a native file"), "{words:?}: {said}");
    }
}

#[test]
fn a_store_that_is_there_is_replaced_only_by_force() {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let location = format!("{store}:{}/run", folder.path().display());
        let words = ["latency", &location, "--seconds", "0.2", "--rate", "50"];
        text(&run(&words));
        let refused = run(&words);
        assert_eq!(refused.status.code(), Some(2), "{store}: {refused:?}");
        text(&run(&[&words[..], &["--force"]].concat()));
    }
}
