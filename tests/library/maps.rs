//! Maps in HDF5 files: other programs, readers beside a writer, and the death of the writer after each system call.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py, for what other programs see; and for deaths a C compiler
//! (`checker/tools/record.c` is preloaded into this test program, which is the process that is killed).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use h5live::{File, Map, Mode, Result};

#[path = "../../examples/map.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod example;

type Pairs = BTreeMap<String, u64>;

fn pairs(map: &Map<String, u64>) -> Result<Pairs> {
    map.iter().collect()
}

/// The map after so many batches.
fn expected(batches: u64) -> Pairs {
    let mut pairs = Pairs::new();
    for batch in 0..batches {
        pairs.extend((0..3).map(|n| (format!("{batch}/{n}"), batch)));
        pairs.insert("newest".to_owned(), batch);
        pairs.remove(&format!("{}/1", batch.wrapping_sub(1)));
    }
    pairs
}

/// Changes the map by one batch, which is published as a whole.
fn put_batch(map: &Map<String, u64>, batch: u64) -> Result<()> {
    let mut all: Vec<_> = (0..3).map(|n| (format!("{batch}/{n}"), batch)).collect();
    all.push(("newest".to_owned(), batch));
    map.put_many(&all)?;
    map.remove(&format!("{}/1", batch.wrapping_sub(1)))?;
    map.flush()
}

#[test]
fn the_example_of_the_document_finds_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ids.h5").display().to_string();
    for place in [path, format!("kv:{}", folder.path().join("ids").display())] {
        assert_eq!(example::create_and_look_up(&place).unwrap(), Some(25_385_486), "{place}");
        let map = File::open(&*place).unwrap().map::<String, u32>("map").unwrap();
        assert_eq!(map.get("Bob").unwrap(), Some(34_873_275), "{place}");
    }
}

#[test]
fn readers_see_whole_batches_while_a_writer_goes_on() {
    const BATCHES: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = File::create(&path).unwrap();
    let map = file.new_map::<String, u64>().create("map").unwrap();
    file.start_swmr().unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let live = File::options().swmr_read().open(&path).unwrap();
                    let seen = live.map::<String, u64>("map").unwrap();
                    let mut before = 0;
                    for change in seen.follow() {
                        change.unwrap();
                        let found = pairs(&seen).unwrap();
                        let batches = found.get("newest").map_or(0, |newest| newest + 1);
                        assert!(batches >= before, "{batches} after {before}");
                        assert_eq!(found, expected(batches));
                        before = batches;
                    }
                    before
                })
            })
            .collect();
        (0..BATCHES).for_each(|batch| put_batch(&map, batch).unwrap());
        file.close().unwrap();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), BATCHES);
        }
    });
}

/// How `docs/maps.md` reads a map in Python.
const READ_IN_PYTHON: &str = "
import sys, h5py
with h5py.File(sys.argv[1]) as f:
    ids = {}
    for key, value, change in f['map/changes']:
        if change == 1:
            ids[key] = value
        elif change == 0:
            ids.pop(key, None)
    for key in sorted(ids):
        print(key.decode(), ids[key])
    print(f['map'].attrs['H5LIVE_MAP'], f['map/changes'].dtype.names)
";

#[test]
fn h5py_reads_the_table_and_appends_rows() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = File::create(&path).unwrap();
    let map = file.new_map::<String, u64>().create("map").unwrap();
    (0..30).for_each(|batch| put_batch(&map, batch).unwrap());
    file.close().unwrap();
    let run = |program: &str| {
        let output = Command::new(&python).args(["-c", program]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let mut wanted: String = expected(30).iter().map(|(key, value)| format!("{key} {value}\n")).collect();
    wanted += "1 ('key', 'value', 'change')\n";
    assert_eq!(run(READ_IN_PYTHON), wanted);
    run("import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    table = f['map/changes']
    n = len(table)
    table.resize((n + 2,))
    table[n:] = np.array([('added', 5, 1), ('newest', 0, 0)], dtype=table.dtype)");
    let map = File::open(&path).unwrap().map::<String, u64>("map").unwrap();
    let mut wanted = expected(30);
    wanted.insert("added".to_owned(), 5);
    wanted.remove("newest");
    assert_eq!(pairs(&map).unwrap(), wanted);
}

#[cfg(target_os = "linux")]
mod deaths {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Set for the process that writes: the file.
    const WRITER: &str = "H5LIVE_TEST_MAP_WRITER";

    const BATCHES: u64 = 4;

    const SIGKILL: i32 = 9;

    /// The process that is killed.
    #[test]
    fn writer() {
        let Some(path) = std::env::var_os(WRITER).map(PathBuf::from) else { return };
        let mut marks = std::fs::File::create(format!("{}.marks", path.display())).unwrap();
        let mut mark = |text: String| marks.write_all(format!("{text}\n").as_bytes()).unwrap();
        let file = File::options().mode(Mode::Create).open(&path).unwrap();
        let map = file.new_map::<String, u64>().create("map").unwrap();
        file.start_swmr().unwrap();
        mark("begin".into());
        for batch in 0..BATCHES {
            mark(format!("issued {}", batch + 1));
            put_batch(&map, batch).unwrap();
            mark(format!("flushed {}", batch + 1));
        }
        file.close().unwrap();
    }

    /// How many batches a file holds, all of them whole.
    fn batches(path: &Path, mode: Mode) -> u64 {
        let map = File::options().mode(mode).open(path).unwrap().map::<String, u64>("map").unwrap();
        let found = pairs(&map).unwrap();
        let batches = found.get("newest").map_or(0, |newest| newest + 1);
        assert_eq!(found, expected(batches), "{mode:?}: {}", path.display());
        batches
    }

    #[test]
    fn a_writer_that_is_killed_after_any_system_call_leaves_whole_batches() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = folder.path().join("record.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checker/tools/record.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&recorder).arg(source).arg("-ldl");
        if !compiler.status().is_ok_and(|status| status.success()) {
            return println!("skipped: there is no C compiler");
        }
        let mut kills = 0;
        for last in 1.. {
            let path = folder.path().join(format!("{last}.h5"));
            let mut writer = Command::new(std::env::current_exe().unwrap());
            writer.args(["--exact", "maps::deaths::writer", "--test-threads", "1"]).env(WRITER, &path);
            writer.env("LD_PRELOAD", &recorder).env("H5TRACE_LOG", path.with_extension("h5trace"));
            writer.env("H5TRACE_FILE", path.file_name().unwrap()).env("H5TRACE_KILL", last.to_string());
            let ended = writer.output().unwrap().status;
            if ended.success() {
                break;
            }
            assert_eq!(ended.signal(), Some(SIGKILL), "after operation {last}");
            let marks = std::fs::read_to_string(format!("{}.marks", path.display())).unwrap();
            if !marks.contains("begin") {
                continue;
            }
            kills += 1;
            let count =
                |what| marks.lines().filter_map(|line| line.strip_prefix(what)?.parse::<u64>().ok()).next_back();
            let (flushed, issued) = (count("flushed ").unwrap_or(0), count("issued ").unwrap_or(0));
            for mode in [Mode::SwmrRead, Mode::Read] {
                let found = batches(&path, mode);
                assert!((flushed..=issued).contains(&found), "killed after {last}: {found}, {flushed} to {issued}");
            }
            // Another writer goes on.
            let file = File::options().mode(Mode::SwmrWrite).open(&path).unwrap();
            let map = file.map::<String, u64>("map").unwrap();
            let next = map.get("newest").unwrap().map_or(0, |newest| newest + 1);
            put_batch(&map, next).unwrap();
            file.close().unwrap();
            assert_eq!(batches(&path, Mode::Read), next + 1);
        }
        println!("killed {kills} times");
        assert!(kills > 10, "{kills}");
    }
}
