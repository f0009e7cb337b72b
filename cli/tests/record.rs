//! `record`, and what the other commands and h5py say of what it wrote.

mod common;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::{error, h5py, python, run, run_with, start, text, until};
use tempfile::TempDir;

fn file() -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let name = path.to_str().unwrap().to_owned();
    (folder, path, name)
}

#[test]
fn csv_becomes_rows_of_inferred_types() {
    let (_folder, path, name) = file();
    let csv = b"t,value,ok,label\n1,0.5,true,a\n2,,false,\"b,c\"\n3,-1e9,true,\n";
    text(&run_with(&["record", &name, "log/rows"], csv));
    let listed = text(&run(&["ls", &name]));
    assert_eq!(listed.lines().nth(1).unwrap().trim_end(), "/log       group");
    assert!(
        listed.contains("compound(25){t@0:i64le,value@8:f64le,ok@16:enum<i8>{FALSE=0,TRUE=1},label@17:str(8,nullpad,utf8)}  [3]/[inf]  chunked["),
        "{listed}"
    );
    let rows = text(&run(&["dump", &name, "log/rows"]));
    assert_eq!(
        rows,
        "0: {t: 1, value: 0.5, ok: true, label: \"a\"}\n1: {t: 2, value: NaN, ok: false, label: \"b,c\"}\n\
         2: {t: 3, value: -1000000000.0, ok: true, label: \"\"}\n"
    );
    if let Some(python) = python() {
        let program = "f = h5py.File(path); d = f['log/rows'][...]; print(d['t'].tolist(), d['ok'].tolist(), d['label'].tolist())";
        assert_eq!(h5py(&python, program, &path), "[1, 2, 3] [True, False, True] [b'a', b'b,c', b'']\n");
    }
}

#[test]
fn a_second_recording_goes_on_where_the_first_ended() {
    let (_folder, _, name) = file();
    text(&run_with(&["record", &name, "x"], b"v\n1\n2\n"));
    let said = text(&run_with(&["record", "--json", &name, "x"], b"v\n3\n"));
    assert!(said.ends_with("\"rows\":1}\n"), "{said}");
    assert_eq!(text(&run(&["dump", &name, "x", "--rows=1.."])), "1: {v: 2}\n2: {v: 3}\n");
}

#[test]
fn ndjson_and_types_that_are_given() {
    let (_folder, _, name) = file();
    let lines = b"{\"a\": 1, \"s\": \"x\"}\n{\"s\": \"y\", \"a\": 2}\n";
    text(&run_with(&["record", "--format=ndjson", "--types=a=u16be,s=str3", &name, "x"], lines));
    assert!(text(&run(&["ls", &name])).contains("compound(5){a@0:u16be,s@2:str(3,nullpad,utf8)}"));
    assert_eq!(text(&run(&["dump", "--json", &name, "x"])), "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":\"y\"}\n");
}

#[test]
fn raw_frames_are_compressed_on_demand() {
    let (_folder, path, name) = file();
    let frames: Vec<u8> = (0u16..24).flat_map(u16::to_le_bytes).collect();
    let arguments = ["record", "--format=raw", "--dtype=u16", "--shape=2,3", "--deflate=4", &name, "frames"];
    text(&run_with(&arguments, &frames));
    assert!(text(&run(&["ls", "--long", &name])).contains("u16le  [4,2,3]/[inf,2,3]  chunked["));
    assert_eq!(text(&run(&["dump", &name, "frames", "--rows=-1"])), "3: [[18, 19, 20], [21, 22, 23]]\n");
    if let Some(python) = python() {
        let program =
            "d = h5py.File(path)['frames']; print(d.compression, d.shuffle, (d[...].ravel() == np.arange(24)).all())";
        assert_eq!(h5py(&python, program, &path), "gzip True True\n");
    }
}

#[test]
fn a_short_row_is_named_and_all_rows_before_it_are_kept() {
    let (_folder, _, name) = file();
    let mut csv = b"a,b\n".to_vec();
    for i in 0..500 {
        writeln!(csv, "{i},{i}").unwrap();
    }
    csv.extend(b"7\n8,8\n");
    let said = error(&run_with(&["record", &name, "x"], &csv));
    assert_eq!(said, "h5live: standard input: row 501: 1 fields instead of 2");
    assert_eq!(text(&run(&["dump", &name, "x", "--rows=-1"])), "499: {a: 499, b: 499}\n");
}

#[test]
fn a_short_row_among_the_first_keeps_those_before_it() {
    let (_folder, _, name) = file();
    let said = error(&run_with(&["record", &name, "x"], b"a,b\n1,1\n2\n"));
    assert_eq!(said, "h5live: standard input: row 2: 1 fields instead of 2");
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {a: 1, b: 1}\n");
}

#[test]
fn half_a_frame_is_named_and_all_frames_before_it_are_kept() {
    let (_folder, _, name) = file();
    let said = error(&run_with(&["record", "--format=raw", "--dtype=u8", "--shape=4", &name, "x"], b"abcdefg"));
    assert_eq!(said, "h5live: standard input: frame 2: 3 bytes instead of 4");
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: [97, 98, 99, 100]\n");
}

#[test]
fn rows_of_another_type_are_refused_and_change_nothing() {
    let (_folder, _, name) = file();
    text(&run_with(&["record", &name, "x"], b"v\n1\n"));
    let said = error(&run_with(&["record", &name, "x"], b"v\n0.5\n"));
    assert!(
        said.ends_with("x holds rows [] of compound(8){v@0:i64le}, the input rows [] of compound(8){v@0:f64le}"),
        "{said}"
    );
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {v: 1}\n");
}

#[test]
fn what_is_no_input_at_all_is_an_error() {
    let (_folder, _, name) = file();
    assert_eq!(error(&run_with(&["record", &name, "x"], b"")), "h5live: standard input: no header line");
    let said = error(&run_with(&["record", "--types=z=i8", &name, "x"], b"a\n1\n"));
    assert_eq!(said, "h5live: standard input: there is no column \"z\"");
}

#[test]
fn other_processes_follow_what_comes_in() {
    let (_folder, path, name) = file();
    let mut writer = start(&["record", &name, "x", "--types=v=i64"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n").unwrap();
    until("the file is there", || path.exists() && run(&["dump", &name, "x"]).status.success());
    until("two rows", || text(&run(&["dump", &name, "x"])) == "0: {v: 1}\n1: {v: 2}\n");
    let follower = start(&["watch", "--json", &name, "x"]);
    input.write_all(b"3\n").unwrap();
    until("three rows", || text(&run(&["dump", &name, "x", "--rows=2.."])) == "2: {v: 3}\n");
    input.write_all(b"4\n").unwrap();
    drop(input);
    text(&writer.wait_with_output().unwrap());
    let followed = text(&follower.wait_with_output().unwrap());
    assert_eq!(followed, "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n{\"v\":4}\n");
}

#[test]
fn an_interrupted_recording_is_closed() {
    let (_folder, path, name) = file();
    let mut writer = start(&["record", &name, "x"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n").unwrap();
    until("two rows", || path.exists() && run(&["dump", &name, "x"]).stdout == b"0: {v: 1}\n1: {v: 2}\n");
    let killed = Command::new("kill").args(["-INT", &writer.id().to_string()]).status().unwrap();
    assert!(killed.success());
    text(&writer.wait_with_output().unwrap());
    drop(input);
    // Closed: open for an ordinary writer again.
    text(&run_with(&["record", &name, "x"], b"v\n3\n"));
    assert_eq!(text(&run(&["dump", &name, "x", "--rows=-1"])), "2: {v: 3}\n");
}

#[test]
fn what_was_flushed_before_the_disk_was_full_stays_readable() {
    let (_folder, path, name) = file();
    let mut csv = b"v,w\n".to_vec();
    for i in 0..200_000 {
        writeln!(csv, "{i},{i}").unwrap();
    }
    // A file of at most 1 MiB fails in the same way as a full disk.
    let limited = "trap '' XFSZ; ulimit -f 1024; exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", limited, "bash", env!("CARGO_BIN_EXE_h5live"), "record", "--every=100", &name, "x"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(&csv);
    let said = error(&child.wait_with_output().unwrap());
    assert!(said.starts_with(&format!("h5live: {name}: ")), "{said}");
    let rows = text(&run(&["dump", "--json", &name, "x"]));
    let kept = rows.lines().count();
    assert!(kept >= 10_000 && kept.is_multiple_of(100), "{kept}");
    for (i, row) in rows.lines().enumerate() {
        assert_eq!(row, format!("{{\"v\":{i},\"w\":{i}}}"));
    }
    if let Some(python) = python() {
        let program =
            "f = h5py.File(path, swmr=True); d = f['x']; print(d.shape[0], (d['v'] == np.arange(d.shape[0])).all())";
        assert_eq!(h5py(&python, program, &path), format!("{kept} True\n"));
    }
}
