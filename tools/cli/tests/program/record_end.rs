//! `record`: how recordings end, and what they leave when no row was stored.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::common::{error, new_file, run, run_with, start, text, until};

/// What was said on standard error by a command that ended with this exit code.
#[track_caller]
fn said(output: &Output, code: i32) -> String {
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    errors
}

/// A command that runs in a shell, which does something before.
fn in_shell(before: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{before}; exec \"$@\""), "bash", env!("CARGO_BIN_EXE_h5live")]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until a process has taken all of its input, and waits for more: one of its threads reads a pipe.
fn until_it_waits_for_input(process: u32) {
    until("all input is taken", || {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let waits_in = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("wchan")).unwrap_or_default();
        tasks.map(waits_in).any(|place| place.contains("pipe_read"))
    });
}

fn hang_up(process: u32) {
    assert!(Command::new("kill").args(["-HUP", &process.to_string()]).status().unwrap().success());
}

#[test]
fn a_terminal_that_is_closed_loses_no_row() {
    let (_folder, _, name) = new_file();
    let mut writer = start(&["record", &name, "x"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n34").unwrap();
    until_it_waits_for_input(writer.id());
    // Nobody hears any more what is said.
    drop((writer.stdout.take(), writer.stderr.take()));
    hang_up(writer.id());
    assert!(writer.wait().unwrap().success());
    drop(input);
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {v: 1}\n1: {v: 2}\n");
    assert_eq!(text(&run(&["repair", &name])), format!("{name}: nothing to repair\n"));
}

#[test]
fn a_new_file_without_rows_goes_with_the_terminal() {
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", &name, "x"]);
    let input = writer.stdin.take().unwrap();
    until_it_waits_for_input(writer.id());
    assert!(path.exists());
    hang_up(writer.id());
    text(&writer.wait_with_output().unwrap());
    drop(input);
    assert!(!path.exists());
}

#[test]
fn a_hangup_that_is_ignored_ends_nothing() {
    let (_folder, path, name) = new_file();
    let mut writer = in_shell("trap '' HUP", &["record", "--types=v=i64", &name, "x"]).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n").unwrap();
    until("the file is there", || path.exists());
    hang_up(writer.id());
    until("a row is there", || run(&["dump", &name, "x"]).stdout == b"0: {v: 1}\n");
    input.write_all(b"2\n").unwrap();
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&run(&["dump", &name, "x"])), "0: {v: 1}\n1: {v: 2}\n");
}

#[test]
fn a_limit_of_the_size_of_files_is_an_error_with_a_way_on() {
    let (_folder, path, name) = new_file();
    let arguments = ["record", "--dtype=u8", "--shape=65536", "--every=1000000", &name, "frames"];
    let mut writer = in_shell("ulimit -f 4096", &arguments).spawn().unwrap();
    let _ = writer.stdin.take().unwrap().write_all(&vec![7; 16 << 20]);
    let errors = said(&writer.wait_with_output().unwrap(), 2);
    let frames = text(&run(&["dump", "--json", &name, "frames"])).lines().count();
    assert!(frames >= 16, "{frames}: {errors}");
    let way = "when there is room again, record goes on there, and";
    let wanted = format!("{name}: {frames} rows stored; {way} `h5live repair {name}` closes it for other programs\n");
    assert!(errors.ends_with(&wanted), "{errors}");
    text(&run(&["repair", &name]));
    text(&run_with(&arguments, &vec![7; 65536]));
    assert!(path.exists());
    assert_eq!(text(&run(&["dump", "--json", &name, "frames"])).lines().count(), frames + 1);
}

#[test]
fn a_first_try_that_fails_does_not_spoil_the_second() {
    let (_folder, path, name) = new_file();
    let csv = b"a\nlonger than four\n";
    let errors = said(&run_with(&["record", "--str-width=4", &name, "g/b"], csv), 1);
    assert!(errors.contains("no rows were recorded; the new file, which would be empty, was removed"), "{errors}");
    assert!(!path.exists());
    text(&run_with(&["record", &name, "other"], b"v\n1\n"));
    let errors = said(&run_with(&["record", "--str-width=4", &name, "g/b"], csv), 1);
    assert!(errors.contains("no rows were recorded; the new dataset, which would be empty, was removed"), "{errors}");
    assert!(!text(&run(&["ls", &name])).contains("/g"));
    text(&run_with(&["record", "--str-width=40", &name, "g/b"], csv));
    assert_eq!(text(&run(&["dump", &name, "g/b"])), "0: {a: \"longer than four\"}\n");
    // A dataset that was there before stays.
    let errors = said(&run_with(&["record", &name, "g/b"], b"a,b\n"), 0);
    assert!(errors.contains("no rows were recorded; the file stays as it is"), "{errors}");
    let frames = ["record", "--dtype=u16", "--shape=2", &name, "frames"];
    let errors = said(&run_with(&frames, b""), 0);
    assert!(errors.contains("the new dataset, which would be empty, was removed"), "{errors}");
    text(&run_with(&["check", &name], b""));
}

#[test]
fn too_many_columns_are_an_error_that_names_another_way() {
    let (_folder, path, name) = new_file();
    for columns in [5000, 70_000] {
        let row = |text: &dyn Fn(usize) -> String| (0..columns).map(text).collect::<Vec<_>>().join(",");
        let csv = format!("{}\n{}\n", row(&|at| format!("column{at}")), row(&|at| format!("{at}.5")));
        let errors = said(&run_with(&["record", &name, "x"], csv.as_bytes()), 2);
        let (_, rest) =
            errors.split_once(&format!("x: a row has {columns} columns, and a dataset of a file can have ")).unwrap();
        assert!(rest.contains(&format!("`record --dtype f32 --shape {columns}`")), "{rest}");
        assert!(!path.exists());
        if cfg!(feature = "kv") && columns < 65_536 {
            let store = format!("kv:{}", path.with_extension("store").display());
            text(&run_with(&["record", &store, "x"], csv.as_bytes()));
        }
        let fit: usize = rest.split(' ').next().unwrap().parse().unwrap();
        let csv: Vec<_> = csv.lines().map(|line| line.split(',').take(fit).collect::<Vec<_>>().join(",")).collect();
        text_of_fit(&name, &csv.join("\n"));
        std::fs::remove_file(&path).unwrap();
    }
}

fn text_of_fit(name: &str, csv: &str) {
    text(&run_with(&["record", name, "x"], csv.as_bytes()));
    assert_eq!(text(&run(&["dump", "--json", name, "x"])).lines().count(), 1);
}

#[test]
fn a_layout_for_a_dataset_that_is_there_is_told() {
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", &name, "x"], b"v\n1\n"));
    let errors = said(&run_with(&["record", "--deflate=9", "--chunk=10", &name, "x"], b"v\n2\n"), 0);
    assert_eq!(errors, "h5live: x: it is there already and keeps its layout; --chunk, --deflate left out\n");
    assert_eq!(error(&run_with(&["record", "--types=z=i64", &name, "x"], b"v\n2\n")).lines().count(), 1);
}
