//! A writer is killed after each of its system calls in turn: the file opens at once, with everything that was flushed,
//! in h5live and in libhdf5, and another writer goes on.
//!
//! The process that is killed is this test program, with a library preloaded into it (`checker/tools/record.c`, which
//! needs a C compiler). libhdf5 looks at the files through the Python that `H5LIVE_PYTHON` names.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use h5live::{File, Mode};

/// Set for the process that writes: the file.
const WRITER: &str = "H5LIVE_TEST_WRITER";

const DATASETS: [&str; 3] = ["extensible", "fixed", "btree"];

/// Rows of each dataset.
const ROWS: u64 = 5;

const SIGKILL: i32 = 9;

fn value(row: u64) -> u64 {
    (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn write(path: &Path) -> h5live::Result<()> {
    let mut marks = std::fs::File::create(format!("{}.marks", path.display())).unwrap();
    let mut mark = |text: String| marks.write_all(format!("{text}\n").as_bytes()).unwrap();
    let file = File::options().mode(Mode::Create).open(path)?;
    file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[2]).create(DATASETS[0])?;
    file.new_dataset::<u64>().shape(&[0]).max_shape(&[20]).chunk_shape(&[2]).create(DATASETS[1])?;
    file.new_dataset::<u64>().shape(&[0, 1]).resizable().chunk_shape(&[2, 1]).create(DATASETS[2])?;
    file.start_swmr()?;
    mark("begin".into());
    for row in 0..ROWS {
        mark(format!("issued {}", row + 1));
        for name in DATASETS {
            file.dataset(name)?.append(&[value(row)])?;
        }
        file.dataset(DATASETS[0])?.set_attribute(&format!("a{row}"), &row)?;
        file.create_group(&format!("g{row}"))?;
        file.flush()?;
        mark(format!("flushed {}", row + 1));
    }
    file.close()?;
    Ok(())
}

/// The process that is killed.
#[test]
fn writer() {
    if let Some(path) = std::env::var_os(WRITER) {
        write(Path::new(&path)).unwrap();
    }
}

fn recorder(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("record.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checker/tools/record.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    compiler.status().is_ok_and(|status| status.success()).then_some(library)
}

/// Runs the writer; it is killed after so many operations.
fn run(recorder: &Path, path: &Path, last: usize) -> std::process::ExitStatus {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    writer
        .args(["--exact", "killed_after_each_call::writer", "--test-threads", "1"])
        .env(WRITER, path)
        .env("LD_PRELOAD", recorder);
    writer.env("H5TRACE_FILE", path.file_name().unwrap()).env("H5TRACE_LOG", path.with_extension("h5trace"));
    writer.env("H5TRACE_KILL", last.to_string()).output().unwrap().status
}

/// Looks whether every dataset has between `min_count` and `max_count` rows, and the first has `named` attributes and there are
/// as many groups.
fn check(path: &Path, mode: Mode, (min_count, max_count): (u64, u64), named: u64) -> Result<(), String> {
    let error_text = |error: h5live::Error| format!("{mode:?}: {error}");
    let file = File::options().mode(mode).open(path).map_err(error_text)?;
    for name in DATASETS {
        let rows: Vec<u64> = file.dataset(name).and_then(|dataset| dataset.read()).map_err(error_text)?;
        let count = rows.len() as u64;
        if !(min_count..=max_count).contains(&count) {
            return Err(format!(
                "{mode:?}: {name} has {count} rows, of {min_count} that were flushed and {max_count} written"
            ));
        }
        if let Some(row) = (0..count).find(|row| rows[*row as usize] != value(*row)) {
            return Err(format!("{mode:?}: row {row} of {name} is {:#x}", rows[row as usize]));
        }
    }
    for row in 0..named {
        let attribute = file.dataset(DATASETS[0]).and_then(|dataset| dataset.attribute(&format!("a{row}")));
        let found: u64 = attribute.and_then(|attribute| attribute.read_scalar()).map_err(error_text)?;
        if found != row {
            return Err(format!("{mode:?}: the attribute a{row} is {found}"));
        }
        file.group(&format!("g{row}")).map_err(error_text)?;
    }
    Ok(())
}

/// Another writer goes on: one more row each.
fn go_on(path: &Path) -> h5live::Result<u64> {
    let file = File::options().mode(Mode::SwmrWrite).open(path)?;
    let mut last = 0;
    for name in DATASETS {
        let dataset = file.dataset(name)?;
        let rows = dataset.shape()?[0];
        dataset.append(&[value(rows)])?;
        last = last.max(rows + 1);
    }
    file.close()?;
    Ok(last)
}

#[test]
fn a_writer_that_is_killed_after_any_system_call_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path()) else {
        return println!("skipped: there is no C compiler");
    };
    let mut python = String::new();
    let mut kills = 0;
    for last in 1.. {
        let path = folder.path().join(format!("{last}.h5"));
        let ended = run(&recorder, &path, last);
        if ended.success() {
            break;
        }
        assert_eq!(ended.signal(), Some(SIGKILL), "after operation {last}");
        let marks = std::fs::read_to_string(format!("{}.marks", path.display())).unwrap();
        if !marks.contains("begin") {
            continue;
        }
        kills += 1;
        let count = |what| marks.lines().filter_map(|line| line.strip_prefix(what)?.parse::<u64>().ok()).next_back();
        let (min_count, max_count) = (count("flushed ").unwrap_or(0), count("issued ").unwrap_or(0));
        let copy = folder.path().join(format!("{last}-as-it-was.h5"));
        std::fs::copy(&path, &copy).unwrap();
        python += &format!("{} swmr {min_count} {max_count}\n", copy.display());
        let recovered = check(&path, Mode::SwmrRead, (min_count, max_count), min_count)
            .and_then(|()| check(&path, Mode::Read, (min_count, max_count), min_count))
            .and_then(|()| go_on(&path).map_err(|error| format!("to go on: {error}")))
            .and_then(|rows| check(&path, Mode::Read, ((min_count + 1).min(rows), max_count + 1), min_count));
        if let Err(fault) = recovered {
            panic!("killed after operation {last}, row {max_count}: {fault}");
        }
        python += &format!("{} closed {min_count} {}\n", path.display(), max_count + 1);
    }
    println!("killed {kills} times");
    assert!(kills > 50);
    let Some(interpreter) = h5live_test_support::python() else { return };
    let list = folder.path().join("list");
    std::fs::write(&list, python).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/killed.py");
    let done = Command::new(interpreter).arg(script).arg(list).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
