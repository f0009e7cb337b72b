//! h5live and libhdf5 (through h5py) on the same file, at the same time, in both roles.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it each test says that it is skipped.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use h5live::{File, H5Type, Mode};

/// A Python script of this folder that runs beside the test.
struct Script {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Script {
    /// Starts a script; `None`, with a line that says so, where there is no Python for it.
    fn start(name: &str, args: &[&str]) -> Option<Script> {
        let Some(python) = std::env::var_os("H5LIVE_PYTHON").map(PathBuf::from).filter(|path| path.exists()) else {
            println!("skipped: H5LIVE_PYTHON names no Python with h5py");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name);
        let mut command = Command::new(python);
        command.arg(script).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.env_remove("HDF5_USE_FILE_LOCKING").spawn().expect("Python starts");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("piped")));
        Some(Script { child, input, output })
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the script writes text");
        line.trim().to_owned()
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("the script listens");
    }

    /// Ends the script's input, and waits until it has ended; it must have succeeded.
    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("the script ends").success());
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, H5Type)]
struct Row {
    number: u64,
    time: f64,
}

const ROWS: u64 = 3000;

fn create(path: &Path) -> File {
    let file = File::create(path).unwrap();
    file.new_dataset::<u16>().growing(&[8, 16]).chunk(&[4, 8, 16]).deflate(4).shuffle().create("frames").unwrap();
    file.new_dataset::<f64>().growing(&[]).chunk(&[64]).create("times").unwrap();
    file.new_dataset::<Row>().growing(&[]).chunk(&[32]).create("rows").unwrap();
    file
}

fn append(file: &File, number: u64) {
    let time = number as f64 / 1000.0;
    file.dataset("/frames").unwrap().append(&[number as u16; 8 * 16]).unwrap();
    file.dataset("/times").unwrap().append(&[time]).unwrap();
    file.dataset("/rows").unwrap().append(&[Row { number, time }]).unwrap();
    file.flush().unwrap();
}

#[test]
fn h5py_follows_our_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let file = create(&path);
    file.start_swmr().unwrap();
    let args = [path.to_str().unwrap(), &ROWS.to_string()];
    let Some(mut early) = Script::start("follow.py", &args) else { return };
    assert_eq!(early.line(), "following");
    (1..=ROWS / 2).for_each(|number| append(&file, number));
    let mut late = Script::start("follow.py", &args).unwrap();
    assert_eq!(late.line(), "following");
    (ROWS / 2 + 1..=ROWS).for_each(|number| append(&file, number));
    for mut reader in [early, late] {
        println!("h5py: {}", reader.line());
        reader.end();
    }
    file.close().unwrap();
}

#[test]
fn our_reader_follows_h5py() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let Some(mut writer) = Script::start("write.py", &[path.to_str().unwrap(), &ROWS.to_string()]) else { return };
    assert_eq!(writer.line(), "writing");
    let file = File::options().swmr_read().open(&path).unwrap();
    let frames = file.dataset("/frames").unwrap();
    let times = file.dataset("/times").unwrap();
    let rows = file.dataset("/rows").unwrap();
    writer.say("go");
    let mut seen = [0; 3];
    while seen.iter().any(|seen| *seen < ROWS) {
        for (dataset, seen) in [&frames, &times, &rows].into_iter().zip(&mut seen) {
            dataset.refresh().unwrap();
            let extent = dataset.shape().unwrap()[0];
            assert!(extent >= *seen, "{}: from {seen} back to {extent}", dataset.path());
            *seen = extent;
        }
        let extent = seen[0];
        let first = extent.saturating_sub(5);
        let values: Vec<u16> = frames.read_slice((first..extent, .., ..)).unwrap();
        for (number, frame) in (first + 1..).zip(values.chunks(8 * 16)) {
            assert!(frame.iter().all(|value| u64::from(*value) == number), "frame {number}: {frame:?}");
        }
        let extent = seen[1];
        let first = extent.saturating_sub(50);
        let values: Vec<f64> = times.read_slice((first..extent,)).unwrap();
        assert!((first + 1..).zip(&values).all(|(number, time)| *time == number as f64 / 1000.0));
        let extent = seen[2];
        let first = extent.saturating_sub(50);
        let values: Vec<Row> = rows.read_slice((first..extent,)).unwrap();
        assert!((first + 1..).zip(&values).all(|(number, row)| row.number == number));
    }
    writer.end();
}

/// The ways to open a file, in the order of the table.
const MODES: [(&str, Mode); 4] =
    [("read", Mode::Read), ("write", Mode::Write), ("swmr-read", Mode::SwmrRead), ("swmr-write", Mode::SwmrWrite)];

/// Whether the second may open (columns) what the first has open (rows).
const ALLOWED: [[bool; 4]; 4] =
    [[true, false, true, false], [false, false, false, false], [true, false, true, false], [false, false, true, false]];

enum Holder {
    Ours(File),
    Theirs(Script),
}

impl Holder {
    fn ours(path: &Path, mode: Mode) -> Option<Holder> {
        File::options().mode(mode).open(path).ok().map(Holder::Ours)
    }

    fn theirs(path: &Path, mode: &str) -> Option<Holder> {
        let mut script = Script::start("hold.py", &[mode, path.to_str().unwrap()]).unwrap();
        let answer = script.line();
        assert!(answer == "open" || answer == "refused", "{answer}");
        (answer == "open").then_some(Holder::Theirs(script))
    }

    fn release(self) {
        match self {
            Holder::Ours(file) => file.close().unwrap(),
            Holder::Theirs(script) => script.end(),
        }
    }
}

#[test]
fn who_may_open_what_others_have_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked.h5");
    create(&path).close().unwrap();
    let Some(probe) = Script::start("hold.py", &["read", path.to_str().unwrap()]) else { return };
    probe.end();
    type Open<'a> = &'a dyn Fn(usize) -> Option<Holder>;
    let ours: Open<'_> = &|mode| Holder::ours(&path, MODES[mode].1);
    let theirs: Open<'_> = &|mode| Holder::theirs(&path, MODES[mode].0);
    for (pair, first, second) in [
        ("h5live, h5live", ours, ours),
        ("h5live, h5py", ours, theirs),
        ("h5py, h5live", theirs, ours),
        ("h5py, h5py", theirs, theirs),
    ] {
        for (held, row) in ALLOWED.iter().enumerate() {
            for (wanted, allowed) in row.iter().enumerate() {
                let holder = first(held).unwrap_or_else(|| panic!("{pair}: {} opens a free file", MODES[held].0));
                let opened = second(wanted);
                let text = format!("{pair}: {} while {} is open", MODES[wanted].0, MODES[held].0);
                assert_eq!(opened.is_some(), *allowed, "{text}");
                if let Some(opened) = opened {
                    opened.release();
                }
                holder.release();
            }
        }
    }
}
