//! `guard`: a writer that dies leaves a file that every program opens, also one that does not follow.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::common;
use crate::common::{child_with, h5live, run, start, text, until};
use h5live::{File, FileOpenState, diagnose};

/// Kills of each kind of writer.
const KILLS: u64 = 20;

/// How h5py opens files: by name, the rows that it finds, or nothing.
fn opened(python: &Path, files: &[PathBuf]) -> BTreeMap<PathBuf, Option<u64>> {
    let program = "import sys, h5py\n\
                   for path in sys.argv[1:]:\n\
                   \x20   try:\n\
                   \x20       with h5py.File(path, 'r') as file: print(file['rows'].shape[0])\n\
                   \x20   except OSError: print('refused')\n";
    let output = Command::new(python).arg("-c").arg(program).args(files).output().unwrap();
    let lines = text(&output);
    files.iter().cloned().zip(lines.lines().map(|line| line.parse().ok())).collect()
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

fn is_live(path: &Path) -> bool {
    diagnose(path).is_ok_and(|found| matches!(found.open_state, FileOpenState::OpenForWriting { live: true, .. }))
}

/// A writer, the process to be killed, and the rows that are known to be flushed before that.
struct Killed {
    child: Child,
    path: PathBuf,
    flushed: u64,
}

/// Starts a recording, perhaps guarded, has it flush some rows, and kills it while it may be flushing others.
fn kill_recording(path: PathBuf, guarded: bool, number: u64) -> Killed {
    let name = path.to_str().unwrap();
    let record = ["record", name, "/rows", "--every", "3"];
    let program = env!("CARGO_BIN_EXE_h5live");
    let mut child = match guarded {
        true => start(&[&["guard", "--quiet", "--", program][..], &record].concat()),
        false => start(&record),
    };
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "number").unwrap();
    // Types are inferred from the first hundred rows.
    let flushed = 102 + 3 * (number % 7);
    (0..flushed).for_each(|row| writeln!(input, "{row}").unwrap());
    let rows = || File::options().swmr_read().open(&path).ok()?.dataset("rows").ok()?.shape().ok();
    until("rows are visible", || {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{}: {status}: {said}", path.display());
        }
        rows().is_some_and(|shape| shape[0] >= flushed)
    });
    let writer = if guarded { child_with(child.id(), "record") } else { child.id() };
    let more = number * 7919 % 600;
    (0..more).for_each(|row| writeln!(input, "{row}").unwrap());
    kill(writer);
    Killed { child, path, flushed }
}

/// The same with a program of libhdf5.
fn kill_libhdf5(python: &Path, path: PathBuf, guarded: bool, number: u64) -> Killed {
    let program = "import sys, h5py\nfile = h5py.File(sys.argv[1], 'w', libver='latest')\n\
                   rows = file.create_dataset('rows', (0,), maxshape=(None,), chunks=(4,), dtype='u8')\n\
                   file.swmr_mode = True\n\
                   for n in range(1, 100000):\n\
                   \x20   rows.resize((n,)); rows[n - 1] = n; rows.flush(); print(n, flush=True)\n";
    let mut command = if guarded { h5live() } else { Command::new(python) };
    if guarded {
        command.args(["guard", "--quiet", "--"]).arg(python);
    }
    command.arg("-c").arg(program).arg(&path).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let min_number = 1 + number * 31 % 200;
    // Open until the end: a program that cannot print comes to its own.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut numbers = lines.by_ref().map_while(Result::ok).filter_map(|line| line.parse().ok());
    let flushed = numbers.find(|number: &u64| *number >= min_number).unwrap();
    let writer = if guarded { child_with(child.id(), "-c") } else { child.id() };
    kill(writer);
    Killed { child, path, flushed }
}

/// Kills so many writers, all at once: each waits most of its time.
fn kill_each(kill: impl Fn(u64) -> Killed + Sync) -> Vec<Killed> {
    thread::scope(|threads| {
        let kill = &kill;
        let killing: Vec<_> = (0..KILLS).map(|number| threads.spawn(move || kill(number))).collect();
        killing.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// Of how many files h5py has all that was flushed.
fn count(python: &Path, killed: Vec<Killed>, what: &str) -> usize {
    let files: Vec<_> = killed.iter().map(|killed| killed.path.clone()).collect();
    let mut flushed = BTreeMap::new();
    for mut killed in killed {
        let code = killed.child.wait().unwrap().code();
        assert!(matches!(code, None | Some(137)), "{what}: {code:?}");
        flushed.insert(killed.path, killed.flushed);
    }
    let found = opened(python, &files);
    for (path, rows) in &found {
        assert!(rows.is_none_or(|rows| rows >= flushed[path]), "{what}: {rows:?} of {}", flushed[path]);
    }
    let count = found.values().flatten().count();
    println!("{what}: h5py opens {count} of {} with 'r'", files.len());
    count
}

#[test]
fn every_file_of_a_killed_recording_opens_in_h5py_if_it_was_guarded() {
    let Some(python) = common::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let kill_all = |guarded: bool| {
        let path = |n| folder.path().join(format!("recording-{guarded}-{n}.h5"));
        kill_each(|number| kill_recording(path(number), guarded, number))
    };
    let without = count(&python, kill_all(false), "recordings killed without guard");
    assert_eq!(count(&python, kill_all(true), "recordings killed with guard"), KILLS as usize);
    assert_eq!(without, 0, "the mark of a writer keeps them out");
}

#[test]
fn every_file_of_a_killed_program_of_libhdf5_opens_in_h5py_if_it_was_guarded() {
    let Some(python) = common::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let kill_all = |guarded: bool| {
        let path = |n| folder.path().join(format!("libhdf5-{guarded}-{n}.h5"));
        kill_each(|number| kill_libhdf5(&python, path(number), guarded, number))
    };
    let without = count(&python, kill_all(false), "writers of libhdf5 killed without guard");
    assert_eq!(count(&python, kill_all(true), "writers of libhdf5 killed with guard"), KILLS as usize);
    assert_eq!(without, 0, "the mark of a writer keeps them out");
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let code = |arguments: &[&str]| run(&[&["guard", "--"], arguments].concat()).status.code();
    assert_eq!(code(&["sh", "-c", "exit 0"]), Some(0));
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -TERM $$"]), Some(128 + 15));
    assert_eq!(code(&["sh", "-c", "kill -KILL $$"]), Some(128 + 9));
    assert_eq!(code(&["/nowhere/program"]), Some(127));
    assert_eq!(code(&["/dev/null"]), Some(126));
}

#[test]
fn signals_are_passed_on_to_the_program() {
    let script = "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let mut guard = start(&["guard", "--", "sh", "-c", script]);
    let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    assert!(Command::new("kill").args(["-TERM", &guard.id().to_string()]).status().unwrap().success());
    assert_eq!(lines.next().unwrap().unwrap(), "told");
    assert_eq!(guard.wait().unwrap().code(), Some(5));
}

#[test]
fn a_file_that_another_process_goes_on_writing_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let mut writer = start(&["record", path.to_str().unwrap(), "/rows"]);
    writeln!(writer.stdin.as_mut().unwrap(), "number").unwrap();
    (0..1000).for_each(|row| writeln!(writer.stdin.as_mut().unwrap(), "{row}").unwrap());
    until("the writer has begun", || is_live(&path));
    let output = run(&["guard", "--file", path.to_str().unwrap(), "--", "sh", "-c", "exit 3"]);
    assert_eq!((output.status.code(), output.stderr), (Some(3), Vec::new()));
    assert!(is_live(&path));
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_follower_that_may_brings_the_file_into_order_when_the_writer_dies() {
    let folder = tempfile::tempdir().unwrap();
    for recovers in [false, true] {
        let path = folder.path().join(format!("followed-{recovers}.h5"));
        let mut writer = start(&["record", path.to_str().unwrap(), "/rows", "--every", "1"]);
        let input = writer.stdin.as_mut().unwrap();
        writeln!(input, "number").unwrap();
        (0..150).for_each(|row| writeln!(input, "{row}").unwrap());
        until("the writer has begun", || is_live(&path));
        let mut command = h5live();
        command.arg("watch").arg("--wait").arg(&path).args(["/rows", "--json"]).args(recovers.then_some("--recover"));
        let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut rows = BufReader::new(watch.stdout.take().unwrap()).lines();
        assert!(rows.next().unwrap().unwrap().contains('0'));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let rest = rows.map_while(Result::ok).count();
        // It says that the writer has died, unless it has mended that.
        assert_eq!(watch.wait().unwrap().success(), recovers);
        assert_eq!(rest, 149, "all rows are seen");
        let condition = diagnose(&path).unwrap().open_state;
        let expected = if recovers { FileOpenState::Closed } else { FileOpenState::Abandoned { live: true } };
        assert_eq!(condition, expected);
    }
}
