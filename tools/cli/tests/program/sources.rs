//! Virtual datasets: sources that are being written, that cannot be read, and that are not there.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{run, shared, start, text};
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

/// Makes a virtual dataset over two sources, `a.h5` and `b.h5`, of a thousand elements each.
fn make_sources(folder: &Path) -> String {
    let mut sources = Vec::new();
    for (n, name) in ["a.h5", "b.h5"].into_iter().enumerate() {
        let file = File::create(folder.join(name)).unwrap();
        let values: Vec<i64> = (0..1000).map(|i| i + 1000 * n as i64).collect();
        file.new_dataset::<i64>().create_with_data("rows", &values).unwrap();
        file.close().unwrap();
        let target = Selection::block(&[1000 * n as u64], &[1000]);
        sources.push(VirtualSource {
            file: name.into(),
            dataset: "/rows".into(),
            source: Selection::block(&[0], &[1000]),
            target,
        });
    }
    let path = folder.join("whole.h5");
    let whole = File::create(&path).unwrap();
    whole.new_dataset::<i64>().shape(&[2000]).fill(-1).virtual_sources(sources).create("whole").unwrap();
    whole.close().unwrap();
    path.to_str().unwrap().to_owned()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The commands that read all elements of a virtual dataset.
fn reading_commands(folder: &Path, whole: &str) -> Vec<Vec<String>> {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut commands = vec![
        words(&["dump", whole, "whole"]),
        words(&["dump", "--raw", whole, "whole"]),
        words(&["dump", "--json", whole, "whole"]),
        words(&["dump", "--csv", whole, "whole"]),
        words(&["manifest", whole]),
        words(&["check", "--data", whole]),
        words(&["diff", whole, &at("sound.h5")]),
        words(&["copy", "-q", "--force", "--inline", whole, &at("copy.h5")]),
        words(&["copy", "-q", "--force", "--inline", whole, &format!("log:{}", at("copy-log.h5"))]),
    ];
    if cfg!(feature = "kv") {
        commands.push(words(&["copy", "-q", "--force", "--inline", whole, &format!("kv:{}", at("copy-kv"))]));
    }
    if cfg!(feature = "hsds") {
        commands.push(words(&["copy", "-q", "--force", "--inline", whole, &format!("hsds:{}", at("copy-hsds"))]));
    }
    commands
}

#[test]
fn a_source_that_is_there_and_cannot_be_read_is_an_error_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let whole = make_sources(folder.path());
    text(&run(&["copy", "-q", "--inline", &whole, folder.path().join("sound.h5").to_str().unwrap()]));
    let b = folder.path().join("b.h5");
    let sound = fs::read(&b).unwrap();
    let fails = |what: &str| {
        for command in reading_commands(folder.path(), &whole) {
            let output = run(&command.iter().map(String::as_str).collect::<Vec<_>>());
            // These go on, and list what they could not read.
            let expected = if matches!(&*command[0], "manifest" | "diff" | "check") { 1 } else { 2 };
            assert_eq!(output.status.code(), Some(expected), "{what}: {command:?}: {}", errors(&output));
            let said = errors(&output) + &String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("b.h5"), "{what}: {command:?}: {said}");
        }
    };
    for len in (0..sound.len()).step_by(1500) {
        fs::write(&b, &sound[..len]).unwrap();
        fails(&format!("cut to {len} bytes"));
    }
    fs::write(&b, [7; 9000]).unwrap();
    fails("damaged");
    fs::remove_file(&b).unwrap();
    fs::create_dir(&b).unwrap();
    fails("a folder");
    fs::remove_dir(&b).unwrap();
    fs::write(&b, &sound).unwrap();
    let writer = File::options().write().open(&b).unwrap();
    fails("held by a writer that nobody can follow");
    writer.close().unwrap();
    for command in reading_commands(folder.path(), &whole) {
        let output = run(&command.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", errors(&output));
    }
    // Elements that are not asked for may be in it.
    fs::write(&b, [7; 9000]).unwrap();
    assert_eq!(text(&run(&["dump", &whole, "whole", "--slice", "998:1000"])), "998: 998\n999: 999\n");
}

#[test]
fn a_source_that_is_not_there_is_told_of_by_every_command_that_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let whole = make_sources(folder.path());
    text(&run(&["copy", "-q", "--inline", &whole, folder.path().join("sound.h5").to_str().unwrap()]));
    let b = folder.path().join("b.h5");
    fs::remove_file(&b).unwrap();
    let missing = r#"whole.h5: /whole: the source "/rows" in "b.h5" is not there"#;
    for command in reading_commands(folder.path(), &whole) {
        let mut words: Vec<_> = command.iter().map(String::as_str).collect();
        let output = run(&words);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {}", errors(&output));
        if command[0] == "check" {
            // What it could not verify is in its lines.
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("not verified: /whole: ") && said.contains(r#""b.h5""#), "{said}");
            assert!(said.contains("whole.h5: nothing wrong found; not verified: 1 dataset, "), "{said}");
        } else {
            assert!(errors(&output).contains(missing), "{command:?}: {}", errors(&output));
        }
        words.push("--missing-sources=error");
        let output = run(&words);
        let expected = if matches!(&*command[0], "manifest" | "diff" | "check") { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(expected), "{command:?}: {}", errors(&output));
    }
    let dumped = run(&["dump", &whole, "whole", "--slice", "999:1001"]);
    assert_eq!((dumped.stdout.as_slice(), dumped.status.code()), (&b"999: 999\n1000: -1\n"[..], Some(1)));
    // What is not read is not missed, and `ls` says it in its line.
    assert_eq!(text(&run(&["dump", &whole, "whole", "--slice", "999:1000"])), "999: 999\n");
    assert!(text(&run(&["ls", &whole])).contains("1 of 2 sources missing"));
    text(&run(&["copy", "-q", &whole, folder.path().join("plain.h5").to_str().unwrap()]));
    // The dataset is not there, but its file is.
    File::create(&b).unwrap().close().unwrap();
    assert_eq!(run(&["dump", &whole, "whole"]).status.code(), Some(1));
}

#[test]
fn a_source_without_limit_that_is_not_there_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Hyperslab::block(&[0], &[1]);
    all.block[0] = UNLIMITED;
    let all = Selection::Hyperslab(all);
    let piece = VirtualSource { file: "rows.h5".into(), dataset: "/rows".into(), source: all.clone(), target: all };
    let path = folder.path().join("whole.h5");
    let whole = File::create(&path).unwrap();
    let builder = whole.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).virtual_sources(vec![piece]);
    builder.create("whole").unwrap();
    whole.close().unwrap();
    let path = path.to_str().unwrap();
    let dumped = run(&["dump", path, "whole"]);
    assert_eq!(dumped.status.code(), Some(1), "{}", errors(&dumped));
    assert!(errors(&dumped).contains("is not there"), "{}", errors(&dumped));
    // Its rows would be lost without a word.
    let rows = folder.path().join("rows.h5");
    fs::write(&rows, [7; 4096]).unwrap();
    for command in [&["dump", path, "whole"][..], &["copy", "-q", "--inline", path, &format!("{path}.copy")]] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", errors(&output));
        assert!(errors(&output).contains("rows.h5"), "{}", errors(&output));
    }
}

#[test]
fn the_reported_virtual_dataset_is_read_whole_or_not_at_all() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["master.h5", "data_000000.h5", "data_000001.h5", "data_000002.h5"] {
        let bytes = fs::read(shared.join("samples/reported/vds").join(name)).unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let master = folder.path().join("master.h5").to_str().unwrap().to_owned();
    let listed = text(&run(&["ls", &master]));
    let path = listed.lines().find(|line| line.contains("virtual")).unwrap().split_whitespace().next().unwrap();
    text(&run(&["dump", &master, path]));
    let source = folder.path().join("data_000001.h5");
    let bytes = fs::read(&source).unwrap();
    fs::write(&source, &bytes[..bytes.len() / 2]).unwrap();
    let output = run(&["dump", &master, path]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("data_000001.h5"), "{}", errors(&output));
}

#[test]
fn check_of_data_takes_virtual_datasets_without_elements_and_counts_one_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let source = File::create(folder.path().join("source.h5")).unwrap();
    let path = folder.path().join("whole.h5");
    let whole = File::create(&path).unwrap();
    for (name, shape, max) in [("rows", &[0][..], &[UNLIMITED][..]), ("columns", &[3, 0], &[3, UNLIMITED])] {
        source.new_dataset::<i64>().shape(shape).max_shape(max).create(name).unwrap();
        let mut all = Hyperslab::block(&vec![0; max.len()], &vec![1; max.len()]);
        all.block = max.into();
        let all = Selection::Hyperslab(all);
        let piece = VirtualSource { file: "source.h5".into(), dataset: name.into(), source: all.clone(), target: all };
        whole.new_dataset::<i64>().shape(shape).max_shape(max).virtual_sources(vec![piece]).create(name).unwrap();
    }
    source.new_dataset::<i64>().create_with_data("one", &[1]).unwrap();
    source.close().unwrap();
    whole.close().unwrap();
    let check = || run(&["check", "--data", path.to_str().unwrap()]);
    assert!(text(&check()).contains("whole.h5: sound; "));
    let whole = File::options().write().open(&path).unwrap();
    let one = Selection::block(&[0], &[1]);
    let piece = VirtualSource { file: "source.h5".into(), dataset: "one".into(), source: one.clone(), target: one };
    whole.new_dataset::<i64>().shape(&[1 << 40]).virtual_sources(vec![piece]).create("endless").unwrap();
    whole.close().unwrap();
    let output = check();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("not verified: /endless: its elements lie in other files"), "{said}");
    assert!(said.contains("not verified: 1 dataset, "), "{said}");
}
