//! `record`: times, widths of texts, arrays, and new keys.

use std::io::Write;

use crate::common::{error, h5py, new_file, python, run, run_with, start, text, until};

fn dumped(name: &str, path: &str) -> String {
    text(&run(&["dump", "--json", name, path]))
}

#[test]
fn times_become_nanoseconds_with_their_units_and_are_still_times_in_the_next_recording() {
    let (_folder, path, name) = new_file();
    let csv = b"t,v\n2026-11-24T12:00:00Z,1\n2026-11-24 13:00:00.000000001+01:00,2\n,3\n";
    text(&run_with(&["record", &name, "x"], csv));
    let rows = "{\"t\":1795521600000000000,\"v\":1}\n{\"t\":1795521600000000001,\"v\":2}\n\
                {\"t\":-9223372036854775808,\"v\":3}\n";
    assert_eq!(dumped(&name, "x"), rows);
    assert_eq!(text(&run(&["dump", &name, "x@t.units"])), "\"nanoseconds since 1970-01-01T00:00:00Z\"\n");
    let line = b"{\"v\": 4, \"t\": \"1970-01-01T00:00:01\"}\n{\"v\": 5, \"t\": \"yesterday\"}\n";
    let output = run_with(&["record", "--on-error=skip", &name, "x"], line);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("column \"t\": \"yesterday\" is not a value of type time")
    );
    assert_eq!(dumped(&name, "x"), format!("{rows}{{\"t\":1000000000,\"v\":4}}\n"));
    if let Some(python) = python() {
        let program = "f = h5py.File(path); print(f['x']['t'].view('M8[ns]')[:3], f['x'].attrs['t.units'])";
        let said = h5py(&python, program, &path);
        assert!(said.contains("'2026-11-24T12:00:00.000000001'") && said.contains("NaT"), "{said}");
    }
    // A type that is given makes them texts.
    text(&run_with(&["record", "--types=t:str20", &name, "y"], b"t\n2026-11-24\n"));
    assert_eq!(dumped(&name, "y"), "{\"t\":\"2026-11-24\"}\n");
    text(&run_with(&["record", "--types=t:time", "--infer-rows=1", &name, "z"], b"t\n2026-11-24\n"));
    assert_eq!(dumped(&name, "z"), "{\"t\":1795478400000000000}\n");
}

#[test]
fn texts_have_any_length_unless_a_width_is_asked_for() {
    let (_folder, path, name) = new_file();
    let long = "b".repeat(100_000);
    let csv = format!("s,n\na,1\n{},2\n,3\n{long},4\n", "b".repeat(40));
    text(&run_with(&["record", "--infer-rows=1", &name, "x"], csv.as_bytes()));
    assert!(text(&run(&["ls", &name, "x"])).contains("s@0:vstr(nullterm,utf8)"));
    let lines = dumped(&name, "x");
    assert!(lines.ends_with(&format!("{{\"s\":\"\",\"n\":3}}\n{{\"s\":\"{long}\",\"n\":4}}\n")), "{}", lines.len());
    // The next recording goes on.
    text(&run_with(&["record", &name, "x"], b"n,s\n5,\xC3\xA4\n"));
    assert!(dumped(&name, "x").ends_with("{\"s\":\"ä\",\"n\":5}\n"));
    if let Some(python) = python() {
        let program = "d = h5py.File(path)['x'][...]; print([len(s) for s in d['s']], d['s'][4].decode())";
        assert_eq!(h5py(&python, program, &path), "[1, 40, 0, 100000, 2] ä\n");
    }
    let output = run_with(&["record", "--str-width=8", &name, "w"], csv.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(
            "too long for str8 (--lossy cuts it; --str-width makes a new dataset wider, after `h5live rm` of this one)"
        ),
        "{said}"
    );
    let csv = format!("s,n\na,1\n{},2\n", "b".repeat(40));
    text(&run_with(&["record", "--infer-rows=1", "--str-width=40", &name, "y"], csv.as_bytes()));
    assert!(text(&run(&["ls", &name, "y"])).contains("s@0:str(40,nullpad,utf8)"));
    assert_eq!(dumped(&name, "y").lines().count(), 2);
}

#[test]
fn arrays_of_json_become_arrays_of_the_type_of_their_elements() {
    let (_folder, path, name) = new_file();
    let rows = b"{\"t\": 1, \"p\": [1, 2.5, 3], \"m\": [[1, 2], [3, 4]]}\n{\"t\": 2, \"p\": [4, 5, null], \"m\": [[5, 6], [7, 8]]}\n";
    text(&run_with(&["record", &name, "x"], rows));
    let listed = text(&run(&["ls", &name, "x"]));
    assert!(listed.contains("{t@0:i64le,p@8:array[3]<f64le>,m@32:array[2,2]<i64le>}"), "{listed}");
    assert_eq!(
        dumped(&name, "x"),
        "{\"t\":1,\"p\":[1.0,2.5,3.0],\"m\":[[1,2],[3,4]]}\n{\"t\":2,\"p\":[4.0,5.0,null],\"m\":[[5,6],[7,8]]}\n"
    );
    // An array of another shape is an odd row, and so is a single value.
    let odd = b"{\"t\": 3, \"p\": [1, 2], \"m\": [[1, 2], [3, 4]]}\n{\"t\": 4, \"p\": [1, 2, 3], \"m\": 7}\n{\"t\": 5, \"p\": null, \"m\": [[0, 0], [0, 0]]}\n";
    let output = run_with(&["record", "--on-error=skip", &name, "x"], odd);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("row 1: column \"p\": an array of shape [2] is not an array of f64 of shape [3]"), "{said}");
    assert!(said.contains("row 2: column \"m\": a single value is not an array of i64 of shape [2, 2]"), "{said}");
    assert!(dumped(&name, "x").ends_with("{\"t\":5,\"p\":[null,null,null],\"m\":[[0,0],[0,0]]}\n"));
    text(&run_with(&["record", "--types=p:u8,m:f32[2x2]", &name, "y"], b"{\"p\": [1, 2], \"m\": [[1, 2], [3, 4]]}\n"));
    assert!(text(&run(&["ls", &name, "y"])).contains("{p@0:array[2]<u8>,m@2:array[2,2]<f32le>}"));
    let objects = b"{\"p\": [{\"a\": 1}]}\n";
    let said = run_with(&["record", "--types=p:u8", &name, "z"], objects);
    assert!(String::from_utf8_lossy(&said.stderr).contains("an array has numbers, texts or truth values"));
    let said = run_with(&["record", &name, "json"], objects);
    assert!(
        String::from_utf8_lossy(&said.stderr).contains("column \"p\" has texts of JSON: row 1 does not have an array")
    );
    assert_eq!(dumped(&name, "json"), "{\"p\":\"[{\\\"a\\\":1}]\"}\n");
    if let Some(python) = python() {
        let program = "f = h5py.File(path); print(f['x']['m'][1].tolist(), f['x']['p'][0].tolist())";
        assert_eq!(h5py(&python, program, &path), "[[5, 6], [7, 8]] [1.0, 2.5, 3.0]\n");
    }
}

#[test]
fn a_new_key_gets_a_dataset_of_its_own() {
    let (_folder, _, name) = new_file();
    let first = b"{\"a\": 1}\n{\"a\": 2, \"err\": \"hot\", \"w\": 1}\n{\"a\": 3, \"w\": 0.5}\n";
    text(&run_with(&["record", "--on-new-key=dataset", &name, "x"], first));
    assert_eq!(dumped(&name, "x"), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
    assert_eq!(dumped(&name, "x.err"), "{\"row\":1,\"value\":\"hot\"}\n");
    // The type is that of all first rows.
    assert_eq!(dumped(&name, "x.w"), "{\"row\":1,\"value\":1.0}\n{\"row\":2,\"value\":0.5}\n");
    // A value that does not fit keeps the whole row out.
    let second =
        b"{\"a\": 4}\n{\"a\": 5, \"w\": \"x\"}\n{\"a\": 6, \"w\": 2, \"b/c\": 1}\n{\"a\": 7, \"w\": 3, \"n\": 1}\n";
    let output = run_with(&["record", "--on-new-key=dataset", "--on-error=skip", &name, "x"], second);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("row 2: column \"w\": \"x\" is not a value of type f64"), "{said}");
    assert!(said.contains("row 3: \"b/c\" is not in the first row, and cannot be the name of a dataset"), "{said}");
    assert_eq!(dumped(&name, "x"), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":7}\n");
    assert!(dumped(&name, "x.w").ends_with("{\"row\":4,\"value\":3.0}\n"));
    assert_eq!(dumped(&name, "x.n"), "{\"row\":4,\"value\":1}\n");
}

#[test]
fn the_dataset_of_a_new_key_can_be_followed() {
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", "--on-new-key=dataset", "--infer-rows=1", "--every=1", &name, "x"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"{\"a\": 1}\n").unwrap();
    until("a row", || path.exists() && run(&["dump", &name, "x"]).stdout == b"0: {a: 1}\n");
    let follower = start(&["dump", "--follow", "--wait", "--json", &name, "x.k"]);
    input.write_all(b"{\"a\": 2, \"k\": 7}\n").unwrap();
    until("its row", || run(&["dump", &name, "x.k"]).stdout == b"0: {row: 1, value: 7}\n");
    input.write_all(b"{\"a\": 3, \"k\": 8}\n").unwrap();
    drop(input);
    text(&writer.wait_with_output().unwrap());
    let followed = text(&follower.wait_with_output().unwrap());
    assert_eq!(followed, "{\"row\":1,\"value\":7}\n{\"row\":2,\"value\":8}\n");
    assert!(error(&run(&["dump", &name, "x.j"])).contains("x.j"));
}

#[test]
fn times_are_shown_as_times_and_stay_numbers_for_programs() {
    let (_folder, _, name) = new_file();
    let csv = "t,v\n2026-11-24T12:00:00.5Z,1\n,2\n";
    text(&run_with(&["record", &name, "x"], csv.as_bytes()));
    let rows = "0: {t: \"2026-11-24T12:00:00.5Z\", v: 1}\n1: {t: \"\", v: 2}\n";
    assert_eq!(text(&run(&["dump", &name, "x"])), rows);
    assert_eq!(text(&run(&["dump", "--follow", &name, "x"])), rows);
    let recorded = text(&run(&["dump", "--csv", &name, "x"]));
    assert_eq!(recorded, csv);
    assert!(text(&run(&["dump", &name])).contains("[{t: \"2026-11-24T12:00:00.5Z\", v: 1}, {t: \"\", v: 2}]"));
    assert!(text(&run(&["watch", &name, "x"])).contains("2 rows  {t: \"\", v: 2}"));

    let stored = "0: {t: 1795521600500000000, v: 1}\n1: {t: -9223372036854775808, v: 2}\n";
    assert_eq!(text(&run(&["dump", "--raw-times", &name, "x"])), stored);
    assert!(text(&run(&["dump", "--raw-times", &name])).contains("[{t: 1795521600500000000, v: 1}"));
    assert!(text(&run(&["dump", "--raw-times", "--csv", &name, "x"])).contains("\n1795521600500000000,1\n"));
    assert!(text(&run(&["watch", "--raw-times", &name, "x"])).contains("-9223372036854775808"));
    assert!(dumped(&name, "x").starts_with("{\"t\":1795521600500000000,\"v\":1}\n"));
    // What was dumped can be recorded again.
    text(&run_with(&["record", &name, "y"], recorded.as_bytes()));
    assert_eq!(dumped(&name, "y"), dumped(&name, "x"));
}

#[test]
fn integers_with_the_units_of_times_are_times() {
    let (_folder, path, name) = new_file();
    let file = h5live::File::create(&path).unwrap();
    let times = file.new_dataset::<i64>().create_with_data("times", &[1_000_000_000, -1]).unwrap();
    times.set_attribute("units", "nanoseconds since 1970-01-01T00:00:00Z").unwrap();
    let counts = file.new_dataset::<i64>().create_with_data("counts", &[5]).unwrap();
    counts.set_attribute("units", "counts").unwrap();
    drop((times, counts));
    file.close().unwrap();
    let said = text(&run(&["dump", &name, "times"]));
    assert_eq!(said, "0: \"1970-01-01T00:00:01Z\"\n1: \"1969-12-31T23:59:59.999999999Z\"\n");
    assert_eq!(text(&run(&["dump", &name, "counts"])), "0: 5\n");
}
