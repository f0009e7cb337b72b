//! h5live and libhdf5 (through h5py) on the same file, at the same time, in both roles.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it each test says that it is skipped.

mod changes;
mod old_files;
mod races;
mod script;
mod sources;
mod split;

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, Instant};

use h5live::model::{ByteOrder, Datatype, Sign};
use h5live::{Dataset, File, FixedStr, H5Type, Mode};

use script::Script;

/// What the tests of the two roles append: row `number`, from 1 on, to each dataset, so that 0 is never right.
#[derive(Debug, Clone, Copy, PartialEq, H5Type)]
struct Row {
    number: u64,
    time: f64,
}

const DATASETS: [&str; 6] = ["frames", "times", "rows", "counts", "labels", "grid"];

/// How many rows, and how many of them in a second (0: as fast as it goes). `make live` asks for a minute of them.
fn rows_and_rate() -> (u64, f64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<f64>().ok());
    (number("H5LIVE_ROWS").unwrap_or(3000.0) as u64, number("H5LIVE_RATE").unwrap_or(0.0))
}

fn time(number: u64) -> f64 {
    number as f64 / 1000.0
}

fn label(number: u64) -> FixedStr<12> {
    FixedStr::new(&format!("row {number}")).unwrap()
}

fn create(path: &Path) -> File {
    let file = File::create(path).unwrap();
    file.new_dataset::<u16>()
        .unlimited_rows(&[8, 16])
        .chunk_shape(&[4, 8, 16])
        .deflate(4)
        .shuffle()
        .create("frames")
        .unwrap();
    file.new_dataset::<f64>().unlimited_rows(&[]).chunk_shape(&[64]).create("times").unwrap();
    file.new_dataset::<Row>().unlimited_rows(&[]).chunk_shape(&[32]).create("rows").unwrap();
    let big_endian = Datatype::integer(4, ByteOrder::Big, Sign::Signed);
    file.root()
        .new_dataset_with_type(big_endian)
        .unlimited_rows(&[3])
        .chunk_shape(&[16, 3])
        .deflate(1)
        .create("counts")
        .unwrap();
    file.new_dataset::<FixedStr<12>>().unlimited_rows(&[]).chunk_shape(&[10]).create("labels").unwrap();
    file.new_dataset::<u32>().shape(&[0, 6]).resizable().chunk_shape(&[2, 3]).create("grid").unwrap();
    file
}

fn append(datasets: &[Dataset; 6], number: u64) {
    let [frames, times, rows, counts, labels, grid] = datasets;
    frames.append(&[number as u16; 8 * 16]).unwrap();
    times.append(&[time(number)]).unwrap();
    rows.append(&[Row { number, time: time(number) }]).unwrap();
    counts.append(&[number as i32; 3]).unwrap();
    labels.append(&[label(number)]).unwrap();
    grid.append(&[number as u32; 6]).unwrap();
}

/// Compares the rows `first..end` of dataset `which` with the rule.
fn check(dataset: &Dataset, which: usize, first: u64, end: u64) {
    let numbers = first + 1..=end;
    let right = match which {
        0 => {
            let values: Vec<u16> = dataset.read_slice((first..end, .., ..)).unwrap();
            numbers.flat_map(|number| [number as u16; 8 * 16]).eq(values)
        }
        1 => numbers.map(time).eq(dataset.read_slice::<f64>((first..end,)).unwrap()),
        2 => {
            let values: Vec<Row> = dataset.read_slice((first..end,)).unwrap();
            numbers.map(|number| Row { number, time: time(number) }).eq(values)
        }
        3 => {
            let values: Vec<i32> = dataset.read_slice((first..end, ..)).unwrap();
            numbers.flat_map(|number| [number as i32; 3]).eq(values)
        }
        5 => {
            let values: Vec<u32> = dataset.read_slice((first..end, ..)).unwrap();
            numbers.flat_map(|number| [number as u32; 6]).eq(values)
        }
        _ => numbers.map(label).eq(dataset.read_slice::<FixedStr<12>>((first..end,)).unwrap()),
    };
    assert!(right, "{}: rows {first} to {end} are not those that were written", dataset.path());
}

#[test]
fn h5py_follows_our_writer() {
    let (rows, rate) = rows_and_rate();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let file = create(&path);
    file.start_swmr().unwrap();
    let args = [path.to_str().unwrap(), &rows.to_string()];
    let Some(mut early) = Script::start("follow.py", &args) else { return };
    assert_eq!(early.line(), "following");
    let datasets = DATASETS.map(|name| file.dataset(name).unwrap());
    let write = |numbers: RangeInclusive<u64>| {
        let begin = Instant::now();
        for (done, number) in (1..).zip(numbers) {
            append(&datasets, number);
            file.flush().unwrap();
            if rate > 0.0 {
                let due = begin + Duration::from_secs_f64(f64::from(done) / rate);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
        begin.elapsed()
    };
    let mut taken = write(1..=rows / 2);
    let mut late = Script::start("follow.py", &args).unwrap();
    assert_eq!(late.line(), "following");
    taken += write(rows / 2 + 1..=rows);
    println!("{rows} rows, each flushed, in {:.1} s", taken.as_secs_f64());
    for mut reader in [early, late] {
        println!("h5py: {}", reader.line());
        reader.end();
    }
    file.close().unwrap();
}

#[test]
fn our_reader_follows_h5py() {
    let (rows, rate) = rows_and_rate();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let args = [path.to_str().unwrap(), &rows.to_string(), &rate.to_string()];
    let Some(mut writer) = Script::start("write.py", &args) else { return };
    assert_eq!(writer.line(), "writing");
    let file = File::options().swmr_read().open(&path).unwrap();
    let datasets = DATASETS.map(|name| file.dataset(name).unwrap());
    writer.say("go");
    let (mut seen, mut rounds) = ([0; 6], 0u64);
    while seen.iter().any(|seen| *seen < rows) {
        for (which, (dataset, seen)) in datasets.iter().zip(&mut seen).enumerate() {
            dataset.refresh().unwrap();
            let extent = dataset.shape().unwrap()[0];
            assert!(extent >= *seen, "{}: from {seen} back to {extent}", dataset.path());
            check(dataset, which, seen.saturating_sub(5), extent);
            *seen = extent;
        }
        rounds += 1;
    }
    datasets.iter().enumerate().for_each(|(which, dataset)| check(dataset, which, 0, rows));
    println!("h5live: {rounds} rounds; h5py: {}", writer.line());
    writer.end();
}

/// The ways to open a file, in the order of the table.
const MODES: [(&str, Mode); 4] =
    [("read", Mode::Read), ("write", Mode::Write), ("swmr-read", Mode::SwmrRead), ("swmr-write", Mode::SwmrWrite)];

/// Whether the second may open (columns) what the first has open (rows).
const ALLOWED: [[bool; 4]; 4] =
    [[true, false, true, false], [false, false, false, false], [true, false, true, false], [false, false, true, false]];

enum Holder<'a> {
    Ours(File),
    Theirs(&'a RefCell<Script>),
}

impl<'a> Holder<'a> {
    fn ours(path: &Path, mode: Mode) -> Option<Holder<'a>> {
        File::options().mode(mode).open(path).ok().map(Holder::Ours)
    }

    fn theirs(script: &'a RefCell<Script>, mode: &str) -> Option<Holder<'a>> {
        script.borrow_mut().say(mode);
        let answer = script.borrow_mut().line();
        assert!(answer == "open" || answer == "refused", "{answer}");
        (answer == "open").then_some(Holder::Theirs(script))
    }

    fn release(self) {
        match self {
            Holder::Ours(file) => file.close().unwrap(),
            Holder::Theirs(script) => {
                script.borrow_mut().say("close");
                assert_eq!(script.borrow_mut().line(), "closed");
            }
        }
    }
}

#[test]
fn who_may_open_what_others_have_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked.h5");
    create(&path).close().unwrap();
    let start = || Script::start("hold.py", &[path.to_str().unwrap()]).map(RefCell::new);
    let (Some(first), Some(second)) = (start(), start()) else { return };
    type Open<'a> = &'a dyn Fn(usize) -> Option<Holder<'a>>;
    let ours: Open<'_> = &|mode| Holder::ours(&path, MODES[mode].1);
    let theirs_first: Open<'_> = &|mode| Holder::theirs(&first, MODES[mode].0);
    let theirs_second: Open<'_> = &|mode| Holder::theirs(&second, MODES[mode].0);
    for (pair, first, second) in [
        ("h5live, h5live", ours, ours),
        ("h5live, h5py", ours, theirs_second),
        ("h5py, h5live", theirs_first, ours),
        ("h5py, h5py", theirs_first, theirs_second),
    ] {
        for (held, row) in ALLOWED.iter().enumerate() {
            for (wanted, allowed) in row.iter().enumerate() {
                // A follower of h5live lets a SWMR writer of h5live through, where the system tells it of one.
                let yields = cfg!(target_os = "linux") && pair == "h5live, h5live";
                let is_swmr = MODES[held].0 == "swmr-read" && MODES[wanted].0 == "swmr-write";
                let allowed = *allowed || yields && is_swmr;
                let holder = first(held).unwrap_or_else(|| panic!("{pair}: {} opens a free file", MODES[held].0));
                let opened = second(wanted);
                let text = format!("{pair}: {} while {} is open", MODES[wanted].0, MODES[held].0);
                assert_eq!(opened.is_some(), allowed, "{text}");
                if let Some(opened) = opened {
                    opened.release();
                }
                holder.release();
            }
        }
    }
    [first, second].into_iter().for_each(|script| script.into_inner().end());
}

/// What a reader that was there before says of what came later.
fn seen_with_headroom(headroom: u64) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headroom.h5");
    let file = File::options().create().eof_headroom(headroom).open(&path).unwrap();
    let texts = file.new_dataset::<String>().unlimited_rows(&[]).create("texts").unwrap();
    let numbers = file.new_dataset::<i32>().unlimited_rows(&[]).create("numbers").unwrap();
    let group = file.create_group("group").unwrap();
    file.start_swmr().unwrap();
    let mut reader = Script::start("headroom.py", &[path.to_str().unwrap()])?;
    assert_eq!(reader.line(), "following");
    // More than what is announced ahead in any case.
    let bulk = file.new_dataset::<u8>().shape(&[4 << 20]).create("bulk").unwrap();
    bulk.write(&vec![1; 4 << 20]).unwrap();
    let lines: Vec<String> = (0..50).map(|n| format!("text {n} {}", "x".repeat(n))).collect();
    for line in &lines {
        texts.append(std::slice::from_ref(line)).unwrap();
        file.flush().unwrap();
    }
    numbers.set_attribute("later", &7).unwrap();
    for n in 0..20 {
        numbers.set_attribute(&format!("attribute {n}"), &n).unwrap();
        let new = group.new_dataset::<i32>().shape(&[3]).create(&format!("new {n}")).unwrap();
        new.write(&[n, n + 1, n + 2]).unwrap();
        file.flush().unwrap();
    }
    reader.say("look");
    let answer = reader.line();
    file.close().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 5 << 20, "the headroom goes with the session");
    Some(answer)
}

#[test]
fn h5py_follows_everything_with_headroom() {
    let Some(answer) = seen_with_headroom(1 << 30) else { return };
    assert_eq!(answer, "seen");
    assert_ne!(seen_with_headroom(0).unwrap(), "seen", "this is what the headroom is for");
}
