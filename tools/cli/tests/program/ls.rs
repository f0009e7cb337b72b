//! `ls`: names of filters, depth, sizes, values of attributes, and who writes the file.

use std::path::Path;

use crate::common::{error, h5live, new_file, run, start, text, until};
use h5live::File;
use h5live::model::FilterSpec;

fn make(path: &Path) {
    let file = File::create(path).unwrap();
    let zstd = FilterSpec { id: 32_015, optional: false, name: None, params: vec![3] };
    let builder = file.new_dataset::<u32>().shape(&[1000]).chunk_shape(&[500]).shuffle().filter(zstd);
    builder.create("a/packed").unwrap().write(&[7; 1000]).unwrap();
    file.new_dataset::<f64>().shape(&[4]).create("a/b/plain").unwrap().write(&[0.5; 4]).unwrap();
    file.root().new_attribute("note").write(&["x".repeat(100)]).unwrap();
    file.close().unwrap();
}

#[test]
fn filters_have_names_and_datasets_sizes() {
    let (_folder, path, name) = new_file();
    make(&path);
    let listed = text(&run(&["ls", &name, "/a"]));
    assert!(listed.contains("/a/packed   u32le  [1000]  chunked[500] filters=shuffle,zstd(3)\n"), "{listed}");
    let long = text(&run(&["ls", "--long", &name, "/a"]));
    assert!(long.contains("filters=shuffle,zstd(3)  2 chunks, "), "{long}");
    assert!(long.contains(" of 4.0 KB\n"), "{long}");
    assert!(long.contains("[4]  contiguous  32 B of 32 B\n"), "{long}");
    let line: serde_json::Value = serde_json::from_str(&text(&run(&["ls", "--json", &name, "/a/packed"]))).unwrap();
    assert_eq!(line["size_bytes"], 4000);
    assert_eq!(line["filters"][1]["name"], "zstd");
    assert_eq!(line["filters"][1]["id"], 32_015);
}

#[test]
fn a_listing_goes_as_deep_and_says_as_much_of_attributes_as_is_asked_for() {
    let (_folder, path, name) = new_file();
    make(&path);
    let paths = |arguments: &[&str]| {
        let listed = text(&run(&[&["ls", &name], arguments].concat()));
        listed.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&[]), ["/", "/@note", "/a", "/a/b", "/a/b/plain", "/a/packed"]);
    assert_eq!(paths(&["--depth", "0"]), ["/", "/@note"]);
    assert_eq!(paths(&["--depth", "1"]), ["/", "/@note", "/a"]);
    assert_eq!(paths(&["-d2", "-anone"]), ["/", "/a", "/a/b", "/a/packed"]);
    assert_eq!(paths(&["/a", "-d1"]), ["/a", "/a/b", "/a/packed"]);
    let cut = "x".repeat(56) + "...";
    assert!(text(&run(&["ls", &name])).contains(&format!("\"{cut}\n")));
    assert!(text(&run(&["ls", &name, "--attributes", "full"])).contains(&"x".repeat(100)));
}

#[test]
fn a_live_file_says_who_writes_it_and_when_it_was_flushed() {
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", "--types=v=i64", &name, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"v\n1\n").unwrap();
    until("a row", || path.exists() && run(&["dump", &name, "rows"]).stdout == b"0: {v: 1}\n");
    // Somebody else keeps the file open.
    let reader = std::process::Command::new("sleep").arg("60").stdin(std::fs::File::open(&path).unwrap()).spawn();
    let mut reader = reader.unwrap();
    let waits = format!("freed space waits for process {} (sleep), who read it", reader.id());
    for command in [["ls", &name], ["check", &name]] {
        let said = text(&run(&command));
        assert!(cfg!(not(target_os = "linux")) || said.contains(&waits), "{command:?}: {said}");
    }
    reader.kill().unwrap();
    reader.wait().unwrap();
    let listed = text(&run(&["ls", &name]));
    let first = listed.lines().next().unwrap();
    assert!(first.starts_with("/      group  (being written by process "), "{listed}");
    assert!(first.contains("; last flush 2"), "{listed}");
    let lines = text(&run(&["ls", "--json", &name]));
    let line: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(line["live"]["writers"][0]["pid"], writer.id());
    assert_eq!(line["live"]["writers"][0]["name"], "h5live");
    if cfg!(target_os = "linux") {
        let started = line["live"]["writers"][0]["started"].as_str().unwrap();
        assert!(started <= line["live"]["last_flush"].as_str().unwrap(), "{line}");
    }
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&run(&["ls", &name, "-d0"])), "/  group\n");
}

#[test]
fn copy_refuses_filters_that_are_not_there_and_names_those_that_are() {
    let (_folder, path, name) = new_file();
    make(&path);
    let copy = format!("{name}.copy");
    for (filter, says) in [
        ("zfp", "zfp can be read but not written; to write, there are deflate (1), "),
        ("sz3", "sz3 is not built in; there are deflate (1), "),
        ("32024:1", "32024 is not built in; there are deflate (1), "),
        ("gzap", "no filter is called \"gzap\"; there are deflate (1), "),
    ] {
        let output = run(&["copy", "--filter", filter, &name, &copy]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(says), "{said}");
        assert!(!Path::new(&copy).exists());
    }
    text(&run(&["copy", "--quiet", "--filter", "blosc2", &name, &copy]));
    assert!(text(&run(&["ls", &copy])).contains("filters=blosc2\n"));
    assert_eq!(run(&["dump", "--raw", &copy, "a/packed"]).stdout, run(&["dump", "--raw", &name, "a/packed"]).stdout);
    assert!(error(&run(&["ls", &format!("{name}.none")])).contains("none"));
}

/// `script` gives the program a terminal, and passes on what it shows.
#[test]
fn names_and_values_of_a_file_do_not_control_a_terminal() {
    let (_folder, path, name) = new_file();
    let file = File::create(&path).unwrap();
    file.create_group("red\x1b[31m").unwrap().set_attribute("title", "\x1b]0;another\x07").unwrap();
    file.close().unwrap();
    let program = h5live().get_program().to_string_lossy().into_owned();
    let shown = |command: &str| {
        let command = format!("'{program}' {command}");
        std::process::Command::new("script").args(["-q", "-e", "-c", &command, "/dev/null"]).output()
    };
    let Ok(listed) = shown(&format!("ls '{name}'")) else { return println!("skipped: there is no `script`") };
    let listed = text(&listed);
    assert!(!listed.contains('\x1b') && !listed.contains('\x07'), "{listed:?}");
    assert!(listed.contains("/red\\x1B[31m") && listed.contains("another"), "{listed:?}");
    // The path that a terminal showed is one that can be typed.
    assert!(text(&run(&["ls", &name, "/red\\x1B[31m"])).starts_with("/red\x1b[31m"), "a pipe gets names as they are");
    let error = shown(&format!("dump '{name}' $(printf '/no\\033[31m')")).unwrap().stdout;
    assert!(!error.contains(&0x1b), "{}", String::from_utf8_lossy(&error));
}
