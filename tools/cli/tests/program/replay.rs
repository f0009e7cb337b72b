//! Counterexamples of the model checker, told by the command.

use crate::common::{error, run, text};
use h5live_checker::schedule::{Counterexample, QueryAtPosition, ReaderQuery, WriterPosition};
use h5live_checker::trace::{StorageOp, Trace};

fn kept(folder: &std::path::Path) -> String {
    let operations = vec![StorageOp::Write { at: 0, bytes: vec![1; 8] }, StorageOp::Mark("d.flushed 1".into())];
    let trace = Trace::new(vec![0; 16], operations);
    let seen = |prefix| QueryAtPosition {
        query: ReaderQuery::Bytes { at: 0, len: 8 },
        position: WriterPosition::after(prefix),
    };
    let found = Counterexample { fault: "it went back".into(), queries: vec![seen(0), seen(2)] };
    let path = folder.join("found.h5trace");
    found.save(&trace, std::fs::File::create(&path).unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_counterexample_is_told_for_people_and_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = kept(folder.path());
    let answer = run(&["check", "replay", &path]);
    for part in ["bytes at 0x0, 8 bytes", "(d.flushed 1)", "| reads 8 bytes at 0x0", "| it went back"] {
        assert!(text(&answer).contains(part), "{part}\n{}", text(&answer));
    }
    let lines = text(&run(&["check", "replay", "--json", &path]));
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["operations"], 0);
    assert_eq!(lines.last().unwrap()["what"], "it went back");
}

#[test]
fn what_is_no_counterexample_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = kept(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let refused = run(&["check", "replay", &path]);
    assert!(error(&refused).contains("found.h5trace"), "{}", error(&refused));
}

#[test]
fn a_drawing_replaces_a_file_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = kept(folder.path());
    let drawing = folder.path().join("story.svg");
    let draw = |more: &[&str]| run(&[&["check", "replay", &path, "--svg", drawing.to_str().unwrap()], more].concat());
    text(&draw(&[]));
    let drawn = std::fs::read(&drawing).unwrap();
    assert!(drawn.starts_with(b"<svg"), "{}", String::from_utf8_lossy(&drawn));
    std::fs::write(&drawing, "of somebody else").unwrap();
    assert!(error(&draw(&[])).ends_with("the file exists; --force replaces it"));
    assert_eq!(std::fs::read(&drawing).unwrap(), b"of somebody else");
    text(&draw(&["--force"]));
    assert_eq!(std::fs::read(&drawing).unwrap(), drawn);
}
