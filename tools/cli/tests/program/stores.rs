//! Locations on the command line: `h5live stores`, URLs, their options, and names that only look like URLs.

use std::path::Path;
use std::process::Output;

use crate::common::{error, h5live, text};
use h5live::File;
use h5live::model::{Selection, VirtualSource};

/// Runs the program in a folder, so that names without a folder are files there.
fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    h5live().current_dir(folder).args(arguments).output().unwrap()
}

fn make(folder: &Path, name: &str) {
    let file = File::create(folder.join(name)).unwrap();
    file.new_dataset::<i32>().shape(&[4]).chunk_shape(&[2]).deflate(1).create_with_data("data", &[1, 2, 3, 4]).unwrap();
    file.close().unwrap();
}

#[test]
fn stores_are_listed_with_schemes_options_and_capabilities() {
    let folder = tempfile::tempdir().unwrap();
    let listed = text(&run_in(folder.path(), &["stores"]));
    for expected in [
        "native\n  locations: native: file:, and paths\n",
        "\n    libver=earliest|v18|v110|v112|v114|v200|latest  (default: v110)\n",
        "\n    grace=TIME(ns|us|ms|s|min|h)|never  (default: 5s)\n        How long readers of h5live may use space",
        "mem\n  locations: mem:\n",
        "\n  outlasts a power failure: never\n",
        "\n  options: none\n",
        "\nevery store\n  options:\n    chunk_cache=BYTES[KiB|MiB|GiB|TiB]  (default: 32MiB)\n        Bytes of decoded chunks",
    ] {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
    let lines = text(&run_in(folder.path(), &["stores", "--json"]));
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["store"], &lines[1]["store"]), (&"native".into(), &"mem".into()));
    assert_eq!(lines[0]["options"][0]["name"], "locking");
    assert_eq!(lines[1]["options"], serde_json::json!([]));
    assert!(lines.iter().any(|line| line["option"]["name"] == "chunk_cache"), "{lines:?}");
}

#[test]
fn an_unknown_scheme_is_an_error_that_names_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    // The features of the build decide which others follow.
    let known = r#"no store has the scheme "ftp"; the schemes are native, file, mem, log, hsds, "#;
    for command in [
        &["ls", "ftp://bucket/a.h5"][..],
        &["copy", "ftp://bucket/a.h5", "b.h5"],
        &["check", "ftp://bucket/a.h5"],
        &["dump", "--bytes", "0", "ftp://bucket/a.h5"],
        &["set", "ftp://bucket/a.h5", "/@x", "1"],
        &["repair", "ftp://bucket/a.h5"],
        &["new", "ftp://bucket/a.h5", "/dev/null"],
    ] {
        let said = error(&run_in(folder.path(), command));
        assert!(said.contains("ftp://bucket/a.h5: ") || command[0] == "new", "{said}");
        assert!(said.contains(known) || command[0] == "new", "{command:?}: {said}");
        assert!(
            said.contains(", kv") && said.contains("; a file of this name is ./ftp:..") || command[0] == "new",
            "{said}"
        );
    }
}

#[test]
fn a_name_that_looks_like_a_url_is_a_file_unless_its_scheme_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make(folder, "run:1.h5");
    make(folder, "mem:x");
    make(folder, "100%.h5");
    assert!(text(&run_in(folder, &["ls", "run:1.h5"])).contains("/data"));
    assert!(text(&run_in(folder, &["ls", "./mem:x"])).contains("/data"));
    assert!(text(&run_in(folder, &["ls", "native:mem:x"])).contains("/data"));
    let said = error(&run_in(folder, &["ls", "mem:x"]));
    assert_eq!(said, "h5live: mem:x: a file of this name exists too: ./mem:x is the file, mem://x the store");
    let said = error(&run_in(folder, &["ls", "mem://x"]));
    assert_eq!(said, "h5live: mem://x: there is no file of this name in the memory of this process");
    let said = error(&run_in(folder, &["ls", "run:2.h5"]));
    assert!(said.starts_with("h5live: run:2.h5: cannot open the file"), "{said}");
    assert!(text(&run_in(folder, &["ls", "100%.h5"])).contains("/data"));
    assert!(text(&run_in(folder, &["ls", "native:100%25.h5"])).contains("/data"));
    let said = error(&run_in(folder, &["ls", "native:100%.h5"]));
    assert!(said.ends_with("is no escape: a percent sign is written %25"), "{said}");
    text(&run_in(folder, &["copy", "--quiet", "run:1.h5", "run:2.h5?x=1"]));
    assert!(folder.join("run:2.h5?x=1").exists());
}

#[test]
fn a_file_is_copied_to_memory_which_verifies_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make(folder, "a.h5");
    assert_eq!(text(&run_in(folder, &["copy", "a.h5", "mem:"])), "");
    assert_eq!(text(&run_in(folder, &["copy", "--filter", "none", "native:a.h5", "mem:scratch"])), "");
    let said = error(&run_in(folder, &["copy", "a.h5", "mem:", "--profile", "v18"]));
    assert_eq!(said, r#"h5live: mem:: the store "mem" has no option "libver"; its options are chunk_cache, memory"#);
    let file = File::options().write().open(folder.join("a.h5")).unwrap();
    let data = file.dataset("data").unwrap();
    data.write_chunk(&h5live::model::ChunkCoord::new(&[1]), 0, b"no compressed data").unwrap();
    file.close().unwrap();
    let output = run_in(folder, &["copy", "a.h5", "mem:"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("chunk [1]"));
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing is left");
}

#[test]
fn options_are_given_in_the_query_or_for_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make(folder, "a.h5");
    text(&run_in(folder, &["copy", "--quiet", "a.h5", "native:b.h5?offset_size=4&strategy=page&page_size=1KiB"]));
    let copy = File::open(folder.join("b.h5")).unwrap();
    assert_eq!((copy.offset_size(), copy.file_space().page_size), (4, 1024));
    text(&run_in(folder, &["copy", "--quiet", "--with", "offset_size=4", "a.h5", "c.h5"]));
    assert_eq!(File::open(folder.join("c.h5")).unwrap().offset_size(), 4);
    text(&run_in(folder, &["diff", "native:a.h5?mapped=no", "b.h5", "--with", "locking=never"]));
    let said = error(&run_in(folder, &["ls", "native:a.h5?speed=1"]));
    assert!(said.contains(r#"the store "native" has no option "speed"; its options are locking, libver"#), "{said}");
    let said = error(&run_in(folder, &["ls", "a.h5", "--with", "mapped=maybe"]));
    assert!(said.ends_with(r#"the option "mapped" of the store "native" is yes|no, and not "maybe""#), "{said}");
    let said = error(&run_in(folder, &["new", "native:new.h5?speed=1", "/dev/null"]));
    assert!(!folder.join("new.h5").exists(), "{said}");
}

#[test]
fn commands_that_need_a_file_refuse_another_store() {
    let folder = tempfile::tempdir().unwrap();
    for command in [&["check", "mem:x"][..], &["dump", "--bytes", "0", "mem:x"]] {
        let said = error(&run_in(folder.path(), command));
        assert_eq!(said, "h5live: mem:x: this command needs a native HDF5 file");
    }
    let said = error(&run_in(folder.path(), &["repair", "mem:x"]));
    assert_eq!(said, "h5live: mem:x: a diagnosis or repair of such a store is not supported");
}

#[test]
fn rows_are_recorded_at_a_location() {
    let folder = tempfile::tempdir().unwrap();
    let record = |location: &str| {
        let input = std::fs::File::open(folder.path().join("rows.csv")).unwrap();
        let mut command = h5live();
        command.current_dir(folder.path()).args(["record", location, "log", "--json"]).stdin(input);
        text(&command.output().unwrap())
    };
    std::fs::write(folder.path().join("rows.csv"), "t,v\n1,2.5\n2,3.5\n").unwrap();
    assert!(record("mem:log").contains(r#""rows":2"#));
    assert!(record("native:run%3A1.h5").contains(r#""rows":2"#));
    assert!(record("run:1.h5").contains(r#""rows":2"#));
    assert_eq!(File::open(folder.path().join("run:1.h5")).unwrap().dataset("log").unwrap().shape().unwrap(), [4]);
}

#[test]
fn links_lead_only_where_the_command_line_lets_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make(folder, "b.h5");
    let file = File::create(folder.join("a.h5")).unwrap();
    file.root().link_external("beside", "b.h5", "/data").unwrap();
    file.root().link_external("memory", "mem:b", "/data").unwrap();
    let piece = VirtualSource {
        file: "ftp://127.0.0.1:9/b.h5".into(),
        dataset: "data".into(),
        source: Selection::All,
        target: Selection::All,
    };
    file.new_dataset::<i32>().shape(&[4]).virtual_sources(vec![piece]).create("virtual").unwrap();
    file.close().unwrap();
    assert!(text(&run_in(folder, &["dump", "a.h5", "beside"])).contains('3'));
    let said = error(&run_in(folder, &["dump", "a.h5", "beside", "--links", "never"]));
    assert_eq!(said, "h5live: a.h5: /beside: a link leads to b.h5, and links to other files are not followed");
    let said = error(&run_in(folder, &["dump", "a.h5", "memory"]));
    assert!(said.ends_with(
        "a link leads to mem:b, and links of this file may not lead there: LinkedFilePolicy::Any allows it"
    ));
    let said = error(&run_in(folder, &["dump", "a.h5", "memory", "--links", "any"]));
    assert_eq!(said, r#"h5live: a.h5: /memory: there is no file "mem:b", to which a link leads"#);
    let said = error(&run_in(folder, &["dump", "a.h5", "virtual", "--links", "any"]));
    assert!(said.contains(r#"no store has the scheme "ftp""#), "{said}");
}
