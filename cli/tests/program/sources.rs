//! Virtual datasets in closed files, whose sources are being written.

use crate::common::{run, start, text};
use h5live::model::{Hyperslab, Selection, VirtualSource};
use h5live::{File, UNLIMITED};

#[test]
fn ls_and_watch_know_that_sources_are_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Hyperslab::block(&[0], &[1]);
    all.block[0] = UNLIMITED;
    let all = Selection::Hyperslab(all);
    let piece = VirtualSource { file: "source.h5".into(), dataset: "/rows".into(), source: all.clone(), target: all };
    let path = folder.path().join("whole.h5");
    let whole = File::create(&path).unwrap();
    whole
        .new_dataset::<u64>()
        .shape(&[0])
        .max_shape(&[UNLIMITED])
        .virtual_sources(vec![piece])
        .create("whole")
        .unwrap();
    whole.close().unwrap();
    let path = path.to_str().unwrap();
    let ls = || text(&run(&["ls", path]));
    let counts = || {
        let line = text(&run(&["ls", "--json", path, "/whole"]));
        let line: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
        (line["shape"].clone(), line["sources"].clone())
    };
    let expected = |shape: u64, state: &str| {
        let names = ["closed", "being_written", "in_use", "missing", "unreadable"];
        let counts: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), u64::from(*name == state).into())).collect();
        (serde_json::json!([shape]), serde_json::Value::from(counts))
    };
    assert!(ls().contains("u64le  [0]/[inf]  virtual  1 of 1 source missing"), "{}", ls());
    assert_eq!(counts(), expected(0, "missing"));
    let source = File::create(folder.path().join("source.h5")).unwrap();
    let rows = source.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).create("rows").unwrap();
    assert!(ls().contains("[0]/[inf]  virtual  1 of 1 source in use"), "{}", ls());
    assert_eq!(counts(), expected(0, "in_use"));
    source.start_swmr().unwrap();
    rows.append(&[1, 2, 3]).unwrap();
    rows.flush().unwrap();
    assert!(ls().contains("[3]/[inf]  virtual  1 of 1 source being written"), "{}", ls());
    assert_eq!(counts(), expected(3, "being_written"));
    let watch = start(&["watch", "--json", path, "/whole"]);
    rows.append(&[4]).unwrap();
    drop(rows);
    source.close().unwrap();
    assert_eq!(text(&watch.wait_with_output().unwrap()), "1\n2\n3\n4\n");
    assert!(ls().ends_with("[4]/[inf]  virtual\n"), "{}", ls());
    assert_eq!(counts(), expected(4, "closed"));
}
