//! `record`: what the first rows say of columns, their names and their units.

use std::io::Write;
use std::process::Output;
use std::time::Duration;

use crate::common::{h5py, new_file, python, run, run_with, start, text, until};

fn dumped(name: &str, path: &str) -> String {
    text(&run(&["dump", name, path]))
}

/// What was said on standard error by a command that ended with this exit code.
#[track_caller]
fn said(output: &Output, code: i32) -> String {
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    errors
}

#[test]
fn a_row_of_units_becomes_attributes() {
    let (_folder, path, name) = new_file();
    let csv = "time;temp;pressure\ns;°C;hPa\n0,0;20,5;1013,25\n1,0;20,6;1013,20\n".as_bytes();
    let wanted = "h5live: b: row 1 has the units of the columns (--no-units makes it a row); attributes: \"time.units\", \
                  \"temp.units\", \"pressure.units\"\n";
    assert_eq!(said(&run_with(&["record", &name, "b"], csv), 0), wanted);
    let rows = "0: {time: 0.0, temp: 20.5, pressure: 1013.25}\n1: {time: 1.0, temp: 20.6, pressure: 1013.2}\n";
    assert_eq!(dumped(&name, "b"), rows);
    assert_eq!(text(&run(&["dump", &name, "b@temp.units"])).trim_end(), "\"°C\"");
    if let Some(python) = python() {
        assert_eq!(h5py(&python, "print(h5py.File(path)['b'].attrs['temp.units'])", &path), "°C\n");
    }
    let scope = b"Model;X\n\nt;v\ns;K\n0;1\n1;2\n";
    let errors = said(&run_with(&["record", &name, "scope"], scope), 0);
    assert!(errors.contains("attributes: \"t.units\", \"v.units\"\n"), "{errors}");
    assert_eq!(dumped(&name, "scope"), "0: {t: 0, v: 1}\n1: {t: 1, v: 2}\n");
    // The next recording has the same line, and then another one.
    assert_eq!(said(&run_with(&["record", &name, "b"], csv), 0), wanted);
    let other = b"time,temp,pressure\ns,K,hPa\n2,293,1013\n3,294,1013\n";
    let left = said(&run_with(&["record", &name, "b"], other), 0);
    assert!(left.ends_with("; left out: those of \"temp\"\n"), "{left}");
    assert_eq!(dumped(&name, "b").lines().count(), 6);
}

#[test]
fn units_are_a_row_on_demand_and_if_too_few_rows_follow() {
    let (_folder, _, name) = new_file();
    let csv = b"t,v\ns,V\n0,1\n1,2\n";
    let errors = said(&run_with(&["record", "--no-units", &name, "a"], csv), 0);
    assert!(
        errors.starts_with("h5live: a: column \"t\" has texts, not numbers, because of \"s\" in row 1\n"),
        "{errors}"
    );
    assert_eq!(dumped(&name, "a").lines().next(), Some("0: {t: \"s\", v: \"V\"}"));
    said(&run_with(&["record", &name, "few"], b"t,v\ns,V\n0,1\n"), 0);
    assert_eq!(dumped(&name, "few"), "0: {t: \"s\", v: \"V\"}\n1: {t: \"0\", v: \"1\"}\n");
    let output = run_with(&["record", &name, "none"], b"t,v\n0,n/a\n1,2\n2,3\n");
    assert_eq!(said(&output, 0), "h5live: none: column \"v\" has texts, not numbers, because of \"n/a\" in row 1\n");
}

#[test]
fn units_are_found_if_the_rows_come_slowly() {
    let (_folder, _, name) = new_file();
    let mut writer = start(&["record", &name, "x"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"t,v\ns,V\n0.5,1\n").unwrap();
    // The first second ends before there are two rows of numbers.
    std::thread::sleep(Duration::from_millis(1200));
    input.write_all(b"1.5,2.5\n").unwrap();
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(dumped(&name, "x"), "0: {t: 0.5, v: 1.0}\n1: {t: 1.5, v: 2.5}\n");
}

#[test]
fn json_that_becomes_text_is_told_and_truth_values_may_be_missing() {
    let (_folder, path, name) = new_file();
    assert_eq!(said(&run_with(&["record", &name, "a"], b"{\"ok\":true}\n{\"ok\":null}\n{\"ok\":false}\n"), 0), "");
    text(&run_with(&["record", &name, "a"], b"{\"ok\":null}\n"));
    assert_eq!(dumped(&name, "a"), "0: {ok: \"TRUE\"}\n1: {ok: \"NONE\"}\n2: {ok: \"FALSE\"}\n3: {ok: \"NONE\"}\n");
    if let Some(python) = python() {
        assert_eq!(h5py(&python, "print(h5py.File(path)['a']['ok'].tolist())", &path), "[1, -1, 0, -1]\n");
    }
    text(&run_with(&["record", "--types=ok=bool3", &name, "b"], b"ok\ntrue\n\n\"\"\n"));
    assert_eq!(dumped(&name, "b"), "0: {ok: \"TRUE\"}\n1: {ok: \"NONE\"}\n");
    let output = run_with(&["record", &name, "c"], b"{\"v\":1e400}\n{\"v\":2}\n");
    assert_eq!(said(&output, 0), "h5live: c: column \"v\" has texts, not numbers, because of \"1e+400\" in row 1\n");
    let output = run_with(&["record", &name, "d"], b"{\"v\":9007199254740993}\n{\"v\":null}\n");
    assert_eq!(said(&output, 0), "h5live: d: column \"v\" has texts, not numbers, because of an empty cell in row 2\n");
}

#[test]
fn integers_of_a_slow_source_are_floats() {
    let (_folder, _, name) = new_file();
    for (path, lines) in [("json", ["{\"t\":20}", "{\"t\":20.5}"]), ("csv", ["t\n20", "20.5"])] {
        let mut writer = start(&["record", &name, path]);
        let mut input = writer.stdin.take().unwrap();
        writeln!(input, "{}", lines[0]).unwrap();
        until("the types are chosen", || run(&["dump", &name, path]).stdout == b"0: {t: 20.0}\n");
        writeln!(input, "{}", lines[1]).unwrap();
        drop(input);
        let wanted = format!(
            "h5live: {path}: columns of integers are stored as f64, because 1 row came in the first second, and later ones may \
             have fractions: \"t\" (--types t=i64 stores integers)\n"
        );
        assert_eq!(said(&writer.wait_with_output().unwrap(), 0), wanted);
        assert_eq!(dumped(&name, path), "0: {t: 20.0}\n1: {t: 20.5}\n");
    }
    // A float would not be the same.
    let mut writer = start(&["record", &name, "large"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"t,n\n9007199254740993,1\n").unwrap();
    until("the types are chosen", || !run(&["dump", &name, "large"]).stdout.is_empty());
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(dumped(&name, "large"), "0: {t: 9007199254740993, n: 1.0}\n");
}

#[test]
fn a_device_goes_on_without_a_header() {
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", &name, "a"], b"t,v\n1,2.5\n"));
    let errors = said(&run_with(&["record", &name, "a"], b"2,3.5\n"), 0);
    let wanted = "h5live: a: the input has no names; its columns are those of the dataset in order: \"t\", \"v\"\n";
    assert_eq!(errors, wanted);
    assert_eq!(said(&run_with(&["record", "--no-header", &name, "a"], b"3,4.5\n"), 0), "");
    assert_eq!(dumped(&name, "a"), "0: {t: 1, v: 2.5}\n1: {t: 2, v: 3.5}\n2: {t: 3, v: 4.5}\n");
    let errors = said(&run_with(&["record", "--no-header", &name, "a"], b"3,4.5,6\n"), 2);
    assert!(
        errors.ends_with(&format!("h5live: {name}: a has 2 columns, the rows of the input have 3 fields\n")),
        "{errors}"
    );
    text(&run_with(&["record", &name, "s"], b"t,state\n1,on\n"));
    text(&run_with(&["record", "--no-header", &name, "s"], b"2,off\n"));
    assert_eq!(dumped(&name, "s"), "0: {t: 1, state: \"on\"}\n1: {t: 2, state: \"off\"}\n");
}

#[test]
fn a_row_that_was_taken_for_the_names_is_told() {
    let (_folder, _, name) = new_file();
    let told = |input: &str, path: &str| said(&run_with(&["record", &name, path], input.as_bytes()), 0);
    let begin =
        |path: &str| format!("h5live: {path}: the first line was taken for the names of the columns, although ");
    let nmea = "$GPGGA,123519,4807.038,N,M\n$GPGGA,123520,4807.039,N,M\n";
    assert!(told(nmea, "a").starts_with(&format!("{}\"123519\" is a number; --no-header", begin("a"))), "{nmea}");
    assert!(told("x,x\na,b\n", "b").starts_with(&format!("{}\"x\" is there twice; --no-header", begin("b"))));
    let log = "Nov 24 08:00:01 gateway sshd: ready\nkernel\n";
    let output = run_with(&["record", "--delimiter=,", &name, "c"], log.as_bytes());
    assert!(said(&output, 0).starts_with(&format!("{}it looks like a line of text; --format lines", begin("c"))));
    assert_eq!(told("t,v\n1,2\n", "d"), "");
    // Rows of another length say nothing of the columns.
    let output = run_with(&["record", "--no-header", &name, "e"], b"$A,N,1\n$B,5\n");
    let short = "h5live: standard input: row 2: 2 fields instead of 3\n";
    assert!(said(&output, 1).starts_with(short), "{output:?}");
}

#[test]
fn keys_of_all_first_rows_are_columns() {
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", &name, "x"], b"{\"t\":1}\n{\"t\":2,\"gps\":{\"fix\":3}}\n{\"t\":3,\"note\":\"a\"}\n"));
    let rows = "0: {t: 1, gps.fix: NaN, note: \"\"}\n1: {t: 2, gps.fix: 3.0, note: \"\"}\n2: {t: 3, gps.fix: NaN, note: \"a\"}\n";
    assert_eq!(dumped(&name, "x"), rows);
    let output = run_with(&["record", "--infer-rows=2", &name, "y"], b"{\"t\":1}\n{\"v\":2}\n{\"t\":3,\"w\":1}\n");
    let wanted = "row 3: \"w\" is not in the first rows (--on-new-key says what becomes of it)";
    assert!(said(&output, 1).contains(wanted), "{output:?}");
    assert_eq!(dumped(&name, "y"), "0: {t: 1.0, v: NaN}\n1: {t: NaN, v: 2.0}\n");
    let given = run_with(&["record", "--types=v=f32", &name, "z"], b"{\"t\":1}\n{\"t\":2,\"v\":2}\n");
    assert_eq!(said(&given, 0), "");
    assert_eq!(dumped(&name, "z"), "0: {t: 1, v: NaN}\n1: {t: 2, v: 2.0}\n");
}

#[test]
fn quotes_behind_a_backslash_are_part_of_the_field() {
    let (_folder, _, name) = new_file();
    let log = br#"192.0.2.1 - - [24/Nov/2026:08:00:01 +0100] "GET /\"a b\" HTTP/1.1" 200 31 "-" "x\x16\\"
192.0.2.1 - - [24/Nov/2026:08:00:02 +0100] "GET / HTTP/1.1" 304 - "-" "y"
"#;
    text(&run_with(&["record", "--no-header", "--delimiter= ", &name, "log"], log));
    let rows = text(&run(&["dump", "--json", &name, "log"]));
    let first: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&first["c5"], &first["c9"]), (&"GET /\"a b\" HTTP/1.1".into(), &r"x\x16\\".into()));
    assert_eq!(rows.lines().count(), 2);
    text(&run_with(&["record", "--escape=\\", &name, "csv"], b"a,b\n\"x\\\",y\",1\n"));
    assert_eq!(dumped(&name, "csv"), "0: {a: \"x\\\",y\", b: 1}\n");
    let none = run_with(&["record", "--escape=none", "--delimiter= ", &name, "paths"], b"a b\n\"C:\\dir\\\" 1\n");
    assert_eq!(said(&none, 0), "");
    assert_eq!(dumped(&name, "paths"), "0: {a: \"C:\\\\dir\\\\\", b: 1}\n");
}
