//! `h5live map`, and maps in the other commands.

use std::io::Write;

use crate::common;
use crate::common::{error, run, run_with, start, text, until};
use h5live::{File, Value};

/// A file with a map of numbers by names, and one of lists by numbers.
fn make(path: &std::path::Path) {
    let file = File::create(path).unwrap();
    let ids = file.new_map::<String, u64>().create("a/ids").unwrap();
    ids.put_many(&[("Alice", 125u64), ("Bob", 216)]).unwrap();
    ids.as_untyped()
        .put_pairs(&[(Value::Null, Value::Integer(7)), (Value::Text(String::new()), Value::Integer(8))])
        .unwrap();
    ids.as_untyped().set_attribute("unit", "none").unwrap();
    let lists = file.new_map::<i16, Vec<String>>().create("lists").unwrap();
    lists.put(&-3, &vec!["x".to_owned(), "y".to_owned()]).unwrap();
    file.close().unwrap();
}

#[test]
fn pairs_are_put_looked_up_listed_and_removed() {
    let (_folder, path, name) = common::new_file();
    make(&path);
    let map = |arguments: &[&str]| run(&[&["map", arguments[0], &name, "a/ids"], &arguments[1..]].concat());
    assert_eq!(text(&map(&["get", "Alice", "Bob"])), "125\n216\n");
    assert_eq!(text(&map(&["count"])), "4\n");
    assert_eq!(text(&map(&["ls"])), "null: 7\n\"\": 8\n\"Alice\": 125\n\"Bob\": 216\n");
    assert_eq!(text(&map(&["ls", "--from", "Alice", "--to", "Bob"])), "\"Alice\": 125\n");
    assert_eq!(text(&map(&["ls", "--limit", "1", "--json"])), "{\"key\":null,\"value\":7}\n");
    text(&map(&["put", "Carol", "1", "Alice", "2"]));
    assert_eq!(text(&map(&["get", "Alice", "--json"])), "{\"key\":\"Alice\",\"value\":2}\n");
    let missing = map(&["get", "Dave", "Carol"]);
    assert_eq!((missing.status.code(), &missing.stdout[..]), (Some(1), &b"1\n"[..]));
    text(&map(&["del", "Carol"]));
    assert_eq!(map(&["del", "Carol"]).status.code(), Some(1));
    assert_eq!(text(&map(&["count"])), "4\n");
    assert!(error(&map(&["put", "Alice", "-1"])).contains("-1"));
    assert!(error(&map(&["put", "Alice"])).contains("a/ids"));
    assert!(error(&run(&["map", "count", &name, "none"])).contains("none"));
    assert!(error(&run(&["map", "count", &name, "a"])).contains("this is not a map"));
    let lists = run(&["map", "get", &name, "lists", "-3"]);
    assert_eq!(text(&lists), "[\"x\", \"y\"]\n");
}

#[test]
fn maps_are_made_by_put_and_filled_from_standard_input() {
    let (_folder, path, name) = common::new_file();
    make(&path);
    let types = ["--key-type", "string", "--value-type", "f64le"];
    text(&run(&[&["map", "put", &name, "new", "a", "0.5"], &types[..]].concat()));
    assert_eq!(text(&run(&["map", "ls", &name, "new"])), "\"a\": 0.5\n");
    let listed = text(&run(&["map", "ls", &name, "a/ids", "--json"]));
    let put =
        [&["map", "put", &name, "copy", "--json"], &["--key-type", "string", "--value-type", "u64le"][..]].concat();
    text(&run_with(&put, listed.as_bytes()));
    assert_eq!(text(&run(&["map", "ls", &name, "copy", "--json"])), listed);
    assert!(error(&run_with(&["map", "put", &name, "copy", "--json"], b"{\"key\":\"a\"}\n")).contains("value"));
}

#[test]
fn put_makes_the_file_and_finds_the_types_of_a_new_map() {
    let (folder, path, name) = common::new_file();
    text(&run(&["map", "put", &name, "ids", "Alice", "25385486", "7", "-1"]));
    assert_eq!(text(&run(&["map", "ls", &name, "ids"])), "\"7\": -1\n\"Alice\": 25385486\n");
    text(&run(&["map", "put", &name, "squares", "3", "9", "-1", "0.5"]));
    assert_eq!(
        text(&run(&["map", "ls", &name, "squares", "--json"])),
        "{\"key\":-1,\"value\":0.5}\n{\"key\":3,\"value\":9.0}\n"
    );
    // The types are those of the map.
    assert!(error(&run(&["map", "put", &name, "ids", "Bob", "0.5"])).contains("0.5"));
    let listed = text(&run(&["map", "ls", &name, "ids", "--json"]));
    let new = folder.path().join("new.h5");
    let new_name = new.to_str().unwrap();
    text(&run_with(&["map", "put", new_name, "ids", "--json"], listed.as_bytes()));
    assert_eq!(text(&run(&["map", "ls", new_name, "ids", "--json"])), listed);
    // What is wrong leaves no new file, and in one that is there what was before.
    std::fs::remove_file(&new).unwrap();
    let wrong = format!("{listed}{{\"key\":\"x\",\"value\":[1]}}\n");
    let said = error(&run_with(&["map", "put", new_name, "ids", "--json"], wrong.as_bytes()));
    assert!(
        said.contains("the map is not there, and its types are not clear: --key-type and --value-type say them"),
        "{said}"
    );
    assert!(!new.exists());
    assert!(!error(&run_with(&["map", "put", new_name, "ids", "--json"], b"")).is_empty() && !new.exists());
    let more = "{\"key\":\"Bob\",\"value\":1}\n{\"key\":\"Carol\",\"value\":\"x\"}\n";
    error(&run_with(&["map", "put", &name, "ids", "--json"], more.as_bytes()));
    assert_eq!(text(&run(&["map", "get", &name, "ids", "Bob"])), "1\n");
    assert_eq!(text(&run(&["map", "count", &name, "ids"])), "3\n");
    // In a key-value store, too.
    let store = format!("kv:{}", path.with_extension("kv").display());
    text(&run(&["map", "put", &store, "ids", "a", "1"]));
    assert_eq!(text(&run(&["map", "get", &store, "ids", "a"])), "1\n");
}

#[test]
fn a_store_without_maps_names_those_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("log:{}", folder.path().join("run.h5").display());
    let file = File::create(&*name).unwrap();
    file.close().unwrap();
    let said = error(&run(&["map", "put", &name, "ids", "a", "1", "--key-type", "string", "--value-type", "u8"]));
    assert!(said.contains("a store of the kind log holds no maps; these do: native, mem"), "{said}");
    let stores = text(&run(&["stores", "--json"]));
    let native: serde_json::Value = serde_json::from_str(stores.lines().next().unwrap()).unwrap();
    assert!(native["capabilities"]["features"].as_str().unwrap().contains("maps"), "{native}");
}

#[test]
fn other_commands_know_maps() {
    let (folder, path, name) = common::new_file();
    make(&path);
    let listed = text(&run(&["ls", &name, "/lists"]));
    assert!(listed.starts_with("/lists  map i16le -> vlen<vstr(nullterm,utf8)>  1 pair"), "{listed}");
    let tree = text(&run(&["dump", &name]));
    assert!(tree.contains("{null: 7, \"\": 8, \"Alice\": 125, \"Bob\": 216}"), "{tree}");
    assert_eq!(text(&run(&["dump", &name, "lists"])), "-3: [\"x\", \"y\"]\n");
    assert!(text(&run(&["dump", &name, "a/ids@unit"])).contains("none"));
    text(&run(&["set", &name, "a/ids@unit", "counts"]));
    text(&run(&["check", &name]));

    let other = folder.path().join("other.h5");
    let other = other.to_str().unwrap();
    let described = text(&run(&["dump", "--json", &name]));
    text(&run_with(&["new", other], described.as_bytes()));
    assert_eq!(text(&run(&["dump", "--json", other])), described);
    assert_eq!(text(&run(&["diff", &name, other])), "");
    assert_eq!(text(&run(&["manifest", other])), text(&run(&["manifest", &name])));
    text(&run(&["copy", "--force", &name, other]));
    assert_eq!(text(&run(&["manifest", other])), text(&run(&["manifest", &name])));

    text(&run(&["map", "put", other, "a/ids", "Alice", "1", "Carol", "2"]));
    text(&run(&["map", "del", other, "a/ids", "Bob"]));
    let found = run(&["diff", &name, other]);
    let found = String::from_utf8(found.stdout).unwrap();
    let expected = "/a/ids[\"Alice\"]: 125 and 1\n/a/ids[\"Bob\"]: in A only\n/a/ids[\"Carol\"]: in B only\n";
    assert_eq!(found, expected);
    assert_ne!(text(&run(&["manifest", other])), text(&run(&["manifest", &name])));
}

#[test]
fn changes_are_shown_as_a_writer_makes_them() {
    let (_folder, path, name) = common::new_file();
    let file = File::create(&path).unwrap();
    let map = file.new_map::<String, u64>().create("ids").unwrap();
    map.put("a", &1).unwrap();
    file.start_swmr().unwrap();
    let watching = common::start(&["map", "watch", &name, "ids", "--json"]);
    // The reader may look before or after each change; at the end it has seen the last state.
    map.put("b", &2).unwrap();
    map.flush().unwrap();
    map.put("a", &3).unwrap();
    map.put("c", &4).unwrap();
    map.flush().unwrap();
    file.close().unwrap();
    let shown = text(&watching.wait_with_output().unwrap());
    let mut last = std::collections::BTreeMap::new();
    for line in shown.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        last.insert(line["key"].as_str().unwrap().to_owned(), line["value"].as_u64());
    }
    let expected = [("a", 3), ("b", 2), ("c", 4)].map(|(key, value)| (key.to_owned(), Some(value)));
    assert_eq!(last, expected.into());
}

#[test]
fn a_damaged_map_is_a_finding() {
    let (_folder, path, name) = common::new_file();
    make(&path);
    assert_eq!(text(&run(&["check", &name])).lines().count(), 1);
    // The kind of change of the first row.
    let file = File::options().write().open(&path).unwrap();
    let table = file.dataset("lists/changes").unwrap();
    let mut row = table.read_raw(&h5live::Selection::All).unwrap();
    *row.last_mut().unwrap() = 9;
    table.write_raw(&h5live::Selection::All, &row).unwrap();
    file.close().unwrap();
    let found = run(&["check", &name]);
    assert_eq!(found.status.code(), Some(1));
    let found = String::from_utf8(found.stdout).unwrap();
    let row = "/lists: the map is damaged: row 0 of its table has an unknown kind of change";
    assert_eq!(found.lines().next(), Some(row), "{found}");
    assert!(error(&run(&["map", "count", &name, "lists"])).contains("the map is damaged"));
    assert_eq!(text(&run(&["map", "count", &name, "a/ids"])), "4\n");
}

#[test]
fn processes_that_make_a_store_at_the_same_time_are_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (place, scheme) in
        [("m.h5", ""), ("k", "kv:")].iter().filter(|(_, scheme)| scheme.is_empty() || cfg!(feature = "kv"))
    {
        let location = format!("{scheme}{}", folder.path().join(place).display());
        let mut slow = start(&["map", "put", &location, "ids", "--json"]);
        let mut input = slow.stdin.take().unwrap();
        // So many are put at a time.
        (0..1000).for_each(|n| writeln!(input, "{{\"key\": \"a{n}\", \"value\": {n}}}").unwrap());
        let is_begun = |name: std::ffi::OsString| name.to_str().unwrap().ends_with(".unfinished");
        until("it has begun", || {
            std::fs::read_dir(folder.path()).unwrap().any(|entry| is_begun(entry.unwrap().file_name()))
        });
        text(&run(&["map", "put", &location, "ids", "b", "7"]));
        drop(input);
        let said = error(&slow.wait_with_output().unwrap());
        assert!(
            said.contains("another process has made the file meanwhile") && said.contains("put the pairs again"),
            "{said}"
        );
        assert_eq!(text(&run(&["map", "get", &location, "ids", "b"])).trim(), "7");
    }
}

#[test]
fn pairs_of_a_command_line_go_into_a_store_that_another_process_has_made_just_now() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..8 {
        let location = folder.path().join(format!("{round}.h5")).display().to_string();
        let put = |n: usize| start(&["map", "put", &location, "ids", &format!("k{n}"), &n.to_string()]);
        let all: Vec<_> = (0..4).map(put).collect();
        for child in all {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            // Another one may have it open.
            assert!(output.status.success() || !said.contains("--force"), "{said}");
        }
    }
}
