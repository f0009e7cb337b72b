//! `record`, and what the other commands and h5py say of what it wrote.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{error, failed_recording, h5py, new_file, python, run, run_with, start, text, until};

#[test]
fn csv_becomes_rows_of_inferred_types() {
    let (_folder, path, name) = new_file();
    let csv = b"t,value,ok,label\n1,0.5,true,a\n2,,false,\"b,c\"\n3,-1e9,true,\n";
    text(&run_with(&["record", &name, "log/rows"], csv));
    let listed = text(&run(&["ls", &name]));
    assert_eq!(listed.lines().nth(1).unwrap().trim_end(), "/log       group");
    assert!(
        listed.contains("compound(33){t@0:i64le,value@8:f64le,ok@16:enum<i8>{FALSE=0,TRUE=1},label@17:vstr(nullterm,utf8)}  [3]/[inf]  chunked["),
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
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", &name, "x"], b"v\n1\n2\n"));
    let said = text(&run_with(&["record", "--json", &name, "x"], b"v\n3\n"));
    assert!(said.ends_with("\"rows\":1}\n"), "{said}");
    assert_eq!(text(&run(&["dump", &name, "x", "--rows=1.."])), "1: {v: 2}\n2: {v: 3}\n");
}

#[test]
fn ndjson_and_types_that_are_given() {
    let (_folder, _, name) = new_file();
    let lines = b"{\"a\": 1, \"s\": \"x\"}\n{\"s\": \"y\", \"a\": 2}\n";
    text(&run_with(&["record", "--format=ndjson", "--types=a=u16be,s=str3", &name, "x"], lines));
    assert!(text(&run(&["ls", &name])).contains("compound(5){a@0:u16be,s@2:str(3,nullpad,utf8)}"));
    assert_eq!(text(&run(&["dump", "--json", &name, "x"])), "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":\"y\"}\n");
}

#[test]
fn raw_frames_are_compressed_on_demand() {
    let (_folder, path, name) = new_file();
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

/// What the program said on standard error when it stopped at a row: exit code 1.
#[track_caller]
fn stopped(output: &std::process::Output) -> String {
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    errors
}

#[test]
fn a_short_row_is_named_and_all_rows_before_it_are_kept() {
    let (_folder, _, name) = new_file();
    let mut csv = b"a,b\n".to_vec();
    for i in 0..500 {
        writeln!(csv, "{i},{i}").unwrap();
    }
    csv.extend(b"7\n8,8\n");
    let output = run_with(&["record", "--json", &name, "x"], &csv);
    assert_eq!(
        stopped(&output),
        format!(
            "h5live: standard input: row 501: 1 field instead of 2\nh5live: {name}: 500 rows stored, stopped at row 501\n"
        )
    );
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\"rows\":500,\"stopped_at\":501}\n"));
    assert_eq!(text(&run(&["dump", &name, "x", "--rows=-1"])), "499: {a: 499, b: 499}\n");
}

#[test]
fn a_short_row_among_the_first_keeps_those_before_it() {
    let (_folder, _, name) = new_file();
    let said = stopped(&run_with(&["record", &name, "x"], b"a,b\n1,1\n2\n3,3\n"));
    assert!(said.starts_with("h5live: standard input: row 2: 1 field instead of 2\n"), "{said}");
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {a: 1, b: 1}\n");
}

#[test]
fn half_a_frame_is_named_and_all_frames_before_it_are_kept() {
    let (_folder, _, name) = new_file();
    let said = stopped(&run_with(&["record", "--format=raw", "--dtype=u8", "--shape=4", &name, "x"], b"abcdefg"));
    assert!(said.starts_with("h5live: standard input: row 2: a frame of 3 bytes instead of 4\n"), "{said}");
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: [97, 98, 99, 100]\n");
}

#[test]
fn a_type_of_frames_is_refused_for_rows_of_text() {
    let (_folder, path, name) = new_file();
    for format in ["csv", "ndjson", "lines"] {
        let failed = run_with(&["record", "--dtype=f32", "--format", format, &name, "x"], b"a,b\n1,1\n");
        let said = String::from_utf8_lossy(&failed.stderr);
        let expected = format!(
            "h5live: --dtype is the type of an element of a raw frame, and the format of the input is {format}\n"
        );
        assert_eq!((failed.status.code(), &*said), (Some(2), &*expected));
        assert!(!path.exists());
    }
}

#[test]
fn an_odd_row_is_skipped_on_demand_and_the_rest_is_recorded() {
    let (_folder, _, name) = new_file();
    let mut csv = b"a,b\n".to_vec();
    for i in 0..300 {
        let row = if i % 100 == 99 { "odd".to_owned() } else { format!("{i},{i}") };
        writeln!(csv, "{row}").unwrap();
    }
    let output = run_with(&["record", "--json", "--on-error", "skip", &name, "x"], &csv);
    assert!(text(&output).ends_with("\"rows\":297,\"skipped\":3}\n"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("h5live: standard input: row 100: 1 field instead of 2\n"), "{said}");
    assert!(said.ends_with(": 297 rows stored, 3 rows skipped\n"), "{said}");
    assert_eq!(text(&run(&["dump", &name, "x", "--rows=-1"])), "296: {a: 298, b: 298}\n");
}

#[test]
fn odd_rows_are_rejected_to_a_file_that_can_be_recorded_when_it_is_mended() {
    let (folder, _, name) = new_file();
    let rejected = folder.path().join("rejected.csv");
    let to = rejected.to_str().unwrap();
    let csv = b"a;b\n1;1\n2;\"x;\ny\";3\n4;4\n\xFF;5\n6;6\n";
    let output = run_with(&["record", "--on-error", "reject-to", to, "--json", &name, "x"], csv);
    assert!(text(&output).ends_with("\"rows\":3,\"rejected\":2}\n"));
    assert_eq!(std::fs::read(&rejected).unwrap(), b"a;b\n2;\"x;\ny\";3\n\xFF;5\n");
    assert_eq!(
        text(&run(&["dump", "--json", &name, "x"])),
        "{\"a\":1,\"b\":1}\n{\"a\":4,\"b\":4}\n{\"a\":6,\"b\":6}\n"
    );
    // Nothing that is there is replaced.
    text(&run_with(&["record", &format!("--on-error=reject-to={to}"), &name, "x"], b"a;b\n7\n"));
    assert!(std::fs::read(&rejected).unwrap().ends_with(b"\xFF;5\n7\n"));
}

#[test]
fn json_lines_that_cannot_be_stored_are_skipped_on_demand() {
    let (_folder, _, name) = new_file();
    let lines = b"{\"v\"\n{\"v\": 1}\n{\"v\": \n7\n{\"v\": \"x\"}\n{\"v\": 300}\n{\"v\": 2}\n";
    let output = run_with(&["record", "--json", "--types=v:u8", "--on-error=skip", &name, "x"], lines);
    assert!(text(&output).contains("\"rows\":2,\"skipped\":5}"), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text(&run(&["dump", "--json", &name, "x"])), "{\"v\":1}\n{\"v\":2}\n");
}

#[test]
fn an_array_of_rows_is_recorded_as_lines_are() {
    let (_folder, path, name) = new_file();
    let rows = b"[\n  {\"t\": 9007199254740993, \"u\": 18446744073709551615, \"p\": {\"x\": 0.5}},\n  {\"t\": -1, \"u\": 0, \"p\": {\"x\": -1}}\n]\n";
    text(&run_with(&["record", &name, "x"], rows));
    assert!(text(&run(&["ls", &name])).contains("compound(24){t@0:i64le,u@8:u64le,p.x@16:f64le}  [2]"));
    assert_eq!(
        text(&run(&["dump", "--json", &name, "x"])),
        "{\"t\":9007199254740993,\"u\":18446744073709551615,\"p.x\":0.5}\n{\"t\":-1,\"u\":0,\"p.x\":-1.0}\n"
    );
    text(&run_with(&["record", &name, "y"], b"[1, \"a\"]\n[2, \"b\"]\n"));
    assert_eq!(text(&run(&["dump", "--json", &name, "y"])), "{\"c0\":1,\"c1\":\"a\"}\n{\"c0\":2,\"c1\":\"b\"}\n");
    if let Some(python) = python() {
        let program = "d = h5py.File(path)['x'][...]; print(d['t'].tolist(), d['u'].tolist(), d['p.x'].tolist())";
        assert_eq!(h5py(&python, program, &path), "[9007199254740993, -1] [18446744073709551615, 0] [0.5, -1.0]\n");
    }
}

#[test]
fn no_value_changes_without_a_word() {
    let (_folder, _, name) = new_file();
    let refused = |types: &str, csv: &str| {
        let said = stopped(&run_with(&["record", types, &name, "x"], csv.as_bytes()));
        said.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        refused("--types=v:u16", "v\n1\n1.5\n"),
        "h5live: standard input: row 2: column \"v\": 1.5 does not fit u16 (it would become 1; --lossy stores that)"
    );
    assert!(refused("--types=v:u16", "v\n-1\n").contains("row 1: column \"v\": -1 does not fit u16"));
    assert!(refused("--types=v:u16", "v\n65536\n").contains("65536 does not fit u16 (it would become 65535;"));
    text(&run_with(&["record", "--lossy", "--types=v:u16", &name, "x"], b"v\n1.5\n-1\n65536\n"));
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {v: 1}\n1: {v: 1}\n2: {v: 0}\n3: {v: 65535}\n");
    let said = stopped(&run_with(&["record", "--types=v:f64", &name, "f"], b"v\n9007199254740993\n"));
    assert!(said.contains("9007199254740993 does not fit f64 (it would become 9007199254740992.0;"), "{said}");
    // An integer that no float has is kept as a text beside fractions.
    text(&run_with(&["record", &name, "t"], b"v\n0.5\n9007199254740993\n"));
    assert_eq!(text(&run(&["dump", &name, "t"])), "0: {v: \"0.5\"}\n1: {v: \"9007199254740993\"}\n");
}

#[test]
fn csv_as_people_have_it() {
    let (_folder, _, name) = new_file();
    let mut datasets = 0;
    let mut recorded = |arguments: &[&str], csv: &str| {
        datasets += 1;
        let path = format!("d{datasets}");
        text(&run_with(&[&["record"], arguments, &[&name, &path]].concat(), csv.as_bytes()));
        text(&run(&["dump", "--json", &name, &path]))
    };
    assert_eq!(recorded(&[], "t\tv\n1\t2\n"), "{\"t\":1,\"v\":2}\n");
    assert_eq!(recorded(&[], "t;note\n1;a,b\n"), "{\"t\":1,\"note\":\"a,b\"}\n");
    assert_eq!(recorded(&["--no-header"], "1,2\n3,4\n"), "{\"c0\":1,\"c1\":2}\n{\"c0\":3,\"c1\":4}\n");
    assert_eq!(recorded(&[], ",v,v\n1,2,345\n"), "{\"c0\":1,\"v\":2,\"v_2\":345}\n");
    assert_eq!(recorded(&["--skip-lines=2"], "Scope 7\n\n[s],[V]\n1,2\n"), "{\"[s]\":1,\"[V]\":2}\n");
    assert_eq!(
        recorded(&[], "t;v;s\n1;2,5;a,b\n2;3;1,5\n"),
        "{\"t\":1,\"v\":2.5,\"s\":\"a,b\"}\n{\"t\":2,\"v\":3.0,\"s\":\"1,5\"}\n"
    );
    assert_eq!(recorded(&["--decimal-comma"], "t\tv\n1\t-2,5e3\n"), "{\"t\":1,\"v\":-2500.0}\n");
    assert_eq!(recorded(&["--empty=-1"], "a,b\n1,\n,2.5\n"), "{\"a\":1,\"b\":null}\n{\"a\":-1,\"b\":2.5}\n");
    assert_eq!(recorded(&["--on-new-key=ignore"], "{\"a\": 1}\n{\"a\": 2, \"b\": [3]}\n"), "{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(recorded(&["--infer-rows=1"], "a,b\n1,\"x\ny\"\n"), "{\"a\":1,\"b\":\"x\\ny\"}\n");
}

#[test]
fn rows_of_another_type_are_refused_and_change_nothing() {
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", &name, "x"], b"v\n1\n"));
    let said = stopped(&run_with(&["record", &name, "x"], b"v\n0.5\n"));
    assert!(said.contains("row 1: column \"v\": 0.5 does not fit i64 (it would become 0;"), "{said}");
    let said = error(&run_with(&["record", "--types=v:f64", &name, "x"], b"v\n0.5\n"));
    assert!(said.ends_with("the column \"v\" of /x is of type i64le, that of the input is to be f64le"), "{said}");
    let said = error(&run_with(&["record", &name, "x"], b"w\n1\n"));
    assert!(said.ends_with("/x has no column \"w\"; its columns are \"v\""), "{said}");
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {v: 1}\n");
}

#[test]
fn columns_in_another_order_are_matched_by_their_names() {
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", "--types=n:u8", &name, "x"], b"t,n,s\n0.5,1,a\n"));
    text(&run_with(&["record", &name, "x"], b"s,t,n\nb,2,3\n"));
    text(&run_with(&["record", &name, "x"], b"{\"n\": 4, \"s\": \"c\"}\n"));
    assert_eq!(
        text(&run(&["dump", &name, "x"])),
        "0: {t: 0.5, n: 1, s: \"a\"}\n1: {t: 2.0, n: 3, s: \"b\"}\n2: {t: NaN, n: 4, s: \"c\"}\n"
    );
}

#[test]
fn the_file_is_there_before_anything_comes_in() {
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", "--dtype=u8", "--shape=2", &name, "frames"]);
    until("the dataset is there", || path.exists() && run(&["dump", &name, "frames"]).status.success());
    assert!(text(&run(&["ls", &name])).contains("u8  [0,2]/[inf,2]"));
    drop(writer.stdin.take());
    text(&writer.wait_with_output().unwrap());
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", &name, "rows"]);
    until("the file is there", || path.exists() && run(&["ls", &name]).status.success());
    drop(writer.stdin.take());
    assert!(error(&writer.wait_with_output().unwrap()).ends_with("no header line"));
}

#[test]
fn what_is_no_input_at_all_is_an_error() {
    let (_folder, _, name) = new_file();
    assert_eq!(error(&run_with(&["record", &name, "x"], b"")), "h5live: standard input: no header line");
    let said = error(&run_with(&["record", "--types=z=i8", &name, "x"], b"a\n1\n"));
    assert_eq!(said, "h5live: standard input: there is no column \"z\"");
}

#[test]
fn other_processes_follow_what_comes_in() {
    let (_folder, path, name) = new_file();
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
fn rows_that_come_without_a_pause_are_seen_long_before_there_are_many() {
    let (_folder, _, name) = new_file();
    let mut writer = start(&["record", &name, "x", "--types=v=i64", "--every=1000000000"]);
    let mut input = writer.stdin.take().unwrap();
    let (is_seen, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            input.write_all(b"v\n").unwrap();
            for row in 0..60_000 {
                if is_seen.load(Ordering::Acquire) {
                    break;
                }
                input.write_all(format!("{row}\n").as_bytes()).unwrap();
                written.store(row, Ordering::Release);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        until("rows are seen", || run(&["dump", &name, "x", "--rows=..1"]).stdout == b"0: {v: 0}\n");
        is_seen.store(true, Ordering::Release);
    });
    let written = written.into_inner();
    assert!(written < 5000, "seen after {written} rows");
    drop(input);
    text(&writer.wait_with_output().unwrap());
}

/// Each line comes by itself, as from an instrument. The first row is there about a second after it came in.
#[test]
fn a_preamble_that_comes_slowly_is_one() {
    let (_folder, _, name) = new_file();
    let mut writer = start(&["record", &name, "x"]);
    let mut input = writer.stdin.take().unwrap();
    for line in ["Model,DPO4034\n", "Interval,4e-9,s\n", "\n", "TIME,CH1\n", "0.5,1.5\n", "1.5,2\n"] {
        input.write_all(line.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(80));
    }
    let last = Instant::now();
    until("two rows", || run(&["dump", &name, "x"]).stdout == b"0: {TIME: 0.5, CH1: 1.5}\n1: {TIME: 1.5, CH1: 2.0}\n");
    assert!(last.elapsed() < Duration::from_secs(3), "{:?}", last.elapsed());
    drop(input);
    let output = writer.wait_with_output().unwrap();
    let said = "h5live: x: 3 lines before the header are its attribute \"preamble\"\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
}

/// Rows that came in are kept, also if nothing was decided about them yet; a part of a row is not.
#[test]
fn an_interruption_loses_no_row_that_came_in() {
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", &name, "x"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n34").unwrap();
    until("the file is there", || path.exists());
    std::thread::sleep(Duration::from_millis(200));
    let killed = Command::new("kill").args(["-INT", &writer.id().to_string()]).status().unwrap();
    assert!(killed.success());
    text(&writer.wait_with_output().unwrap());
    drop(input);
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {v: 1}\n1: {v: 2}\n");
}

#[test]
fn an_interrupted_recording_is_closed() {
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", "--types=v=i64", &name, "x"]);
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
    let (_folder, path, name) = new_file();
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
    let (said, stored) = failed_recording(&child.wait_with_output().unwrap());
    assert!(said.starts_with(&format!("h5live: {name}: ")), "{said}");
    let rows = text(&run(&["dump", "--json", &name, "x"]));
    let kept = rows.lines().count();
    assert!(kept >= 10_000 && kept.is_multiple_of(100), "{kept}");
    assert!(stored.is_some_and(|stored| stored.starts_with(&format!("h5live: {name}: {kept} rows stored; when "))));
    for (i, row) in rows.lines().enumerate() {
        assert_eq!(row, format!("{{\"v\":{i},\"w\":{i}}}"));
    }
    if let Some(python) = python() {
        let program =
            "f = h5py.File(path, swmr=True); d = f['x']; print(d.shape[0], (d['v'] == np.arange(d.shape[0])).all())";
        assert_eq!(h5py(&python, program, &path), format!("{kept} True\n"));
    }
}

#[test]
fn a_file_that_cannot_be_begun_is_not_left_behind() {
    let (_folder, path, name) = new_file();
    // The disk has no room for the first byte.
    let limited = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", limited, "bash", env!("CARGO_BIN_EXE_h5live"), "record", &name, "x"]);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = error(&child.wait_with_output().unwrap());
    assert!(said.contains(" failed at 0x0, 48 bytes"), "{said}");
    assert!(!path.exists(), "what is no HDF5 file would be in the way of the next recording");
    text(&run_with(&["record", &name, "x"], b"v\n1\n"));
}

#[test]
fn numbers_that_become_texts_are_told() {
    let (_folder, _, name) = new_file();
    let output = run_with(&["record", &name, "x"], b"t,v,s\n1,0.5,a\n2,n/a,b\n3,0.7,c\n");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "h5live: x: column \"v\" has texts, not numbers, because of \"n/a\" in row 2\n"
    );
    let output = run_with(&["record", "--types=v=str", &name, "y"], b"v\n1\nn/a\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
