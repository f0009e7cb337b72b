//! A file system that has no room for a while. Every store says so, keeps what it has confirmed, also if its writer dies
//! then, and goes on as soon as there is room again.
#![cfg(all(target_os = "linux", feature = "kv"))]

use std::process::Output;

use h5live::{Dataset, Error, File, Map, Mode, StoreErrorKind};

use crate::common::on_small_disk;

/// Prints `confirmed`, and the numbers of rows and steps, after each flush.
const WRITER: &str = "small_disk::writes_until_the_disk_is_full_and_on";
/// Reads everything again.
const READER: &str = "small_disk::reads_what_was_confirmed";
const VARIABLE: &str = "H5LIVE_SMALL_DISK_WRITER";

/// A map that has each row.
const INDEX: &str = "index";

/// Elements of a row.
const ROW: u64 = 512;
/// Bytes of memory that make a writer store elements before their chunks are full.
const LITTLE_MEMORY: u64 = 1 << 20;

/// How one writer works.
#[derive(Debug, Clone, Copy)]
struct Way<'a> {
    store: &'a str,
    is_live: bool,
    is_durable: bool,
    has_little_memory: bool,
    /// Whether it is killed as soon as the disk is full.
    dies: bool,
}

impl<'a> Way<'a> {
    /// Every way: five stores, and three things that each is so or so.
    fn all() -> Vec<Way<'static>> {
        let stores = [("", false), ("", true), ("log:", false), ("kv:", false), ("hsds:", false)];
        let ways = stores.into_iter().flat_map(|store| (0..8).map(move |bits| (store, bits)));
        ways.map(|((store, is_live), bits)| {
            let [is_durable, has_little_memory, dies] = [1, 2, 4].map(|bit| bits & bit != 0);
            Way { store, is_live, is_durable, has_little_memory, dies }
        })
        .collect()
    }

    fn to_text(self) -> String {
        let bits = [self.is_live, self.is_durable, self.has_little_memory, self.dies].map(u8::from);
        format!("{}{}{}{}{}", bits[0], bits[1], bits[2], bits[3], self.store)
    }

    fn of(text: &'a str) -> Self {
        let (bits, store) = text.split_at(4);
        let bits: Vec<bool> = bits.chars().map(|bit| bit == '1').collect();
        Way { store, is_live: bits[0], is_durable: bits[1], has_little_memory: bits[2], dies: bits[3] }
    }

    /// Whether there is a map beside the rows: these stores hold maps, and none is made in a live file.
    fn has_index(&self) -> bool {
        !self.is_live && ["", "kv:"].contains(&self.store)
    }

    fn location(&self) -> String {
        format!("{}run", self.store)
    }

    fn create(&self) -> h5live::Result<(File, Dataset)> {
        let options = File::options().mode(Mode::CreateNew);
        let options = if self.has_little_memory { options.memory(LITTLE_MEMORY) } else { options };
        let file = options.open(&*self.location())?;
        let rows = file.new_dataset::<u64>().unlimited_rows(&[ROW]).chunk_shape(&[8, ROW]).create("rows")?;
        if self.is_live {
            file.start_swmr()?;
        }
        if self.has_index() {
            file.new_map::<u64, u64>().create(INDEX)?;
        }
        Ok((file, rows))
    }

    fn flush(&self, file: &File) -> h5live::Result<()> {
        if self.is_durable { file.flush_durable() } else { file.flush() }
    }
}

fn row_count(rows: &Dataset) -> u64 {
    rows.shape().unwrap()[0]
}

/// What the map has for a row.
fn indexed(row: u64) -> u64 {
    row * 3 + 1
}

/// One step of a writer: some rows, their pairs before them, and now and then an attribute and another object.
fn step(way: &Way<'_>, number: u64, file: &File, rows: &Dataset) -> h5live::Result<()> {
    let (first, count) = (row_count(rows), 1 + number * 7 % 16);
    let values: Vec<u64> = (first * ROW..(first + count) * ROW).collect();
    if way.has_index() {
        let pairs: Vec<_> = (first..first + count).map(|row| (row, indexed(row))).collect();
        file.map::<u64, u64>(INDEX)?.put_many(&pairs)?;
    }
    rows.append(&values)?;
    if number.is_multiple_of(5) && !way.is_live {
        file.set_attribute("step", &number)?;
        file.create_group(&format!("step {number}"))?;
    }
    way.flush(file)
}

fn is_full(error: &Error) -> bool {
    error.store_error_kind() == Some(&StoreErrorKind::StorageFull)
}

#[test]
#[ignore = "it runs on a file system of its own, for the tests below"]
fn writes_until_the_disk_is_full_and_on() {
    let text = std::env::var(VARIABLE).unwrap();
    let way = Way::of(&text);
    let (file, rows) = way.create().unwrap();
    let mut number = 0;
    let error = loop {
        match step(&way, number, &file, &rows) {
            Ok(()) => println!("confirmed {} {number}", row_count(&rows)),
            Err(error) => break error,
        }
        number += 1;
        assert!(number < 4000, "the disk is never full");
    };
    println!("full at step {number}: {error}");
    assert!(is_full(&error), "{error}: {error:?}");
    if way.dies {
        std::process::abort();
    }
    // It stays so.
    let again = way.flush(&file);
    println!("again: {again:?}");
    assert!(again.as_ref().err().is_none_or(is_full), "{again:?}");
    std::fs::remove_file("filler").unwrap();
    way.flush(&file).unwrap();
    println!("confirmed {} {}", row_count(&rows), number.saturating_sub(1));
    for number in number + 1..number + 20 {
        step(&way, number, &file, &rows).unwrap();
        println!("confirmed {} {number}", row_count(&rows));
    }
    drop(rows);
    file.close().unwrap();
}

#[test]
#[ignore = "it runs on a file system of its own, for the tests below"]
fn reads_what_was_confirmed() {
    let text = std::env::var(VARIABLE).unwrap();
    let (text, confirmed) = text.split_once(' ').unwrap();
    let (rows, last_step) = confirmed.split_once(' ').unwrap();
    let (rows, last_step): (u64, u64) = (rows.parse().unwrap(), last_step.parse().unwrap());
    let way = Way::of(text);
    let file = File::open(&*way.location()).unwrap();
    let data = file.dataset("rows").unwrap();
    let values: Vec<u64> = data.read().unwrap();
    let found = row_count(&data);
    assert!(if way.dies { found >= rows } else { found == rows }, "{found} rows of {rows}");
    assert!(values.iter().copied().eq(0..found * ROW), "values of {found} rows");
    if way.has_index() {
        let index: Map<u64, u64> = file.map(INDEX).unwrap();
        for row in 0..found {
            assert_eq!(index.get(&row).unwrap(), Some(indexed(row)), "pair of row {row} of {found}");
        }
        let pairs = index.iter().inspect(|pair| assert!(pair.as_ref().is_ok_and(|(row, to)| *to == indexed(*row))));
        assert_eq!(pairs.count() as u64, index.len().unwrap(), "the number of pairs");
    }
    for number in (0..=last_step).step_by(5).filter(|_| !way.is_live) {
        // The step that met the full disk may have it or not.
        assert!(file.group(&format!("step {number}")).is_ok(), "group of step {number} of {last_step}");
    }
    println!("found {found}");
}

/// Runs a writer of this kind until the disk is full, and a reader after it. `None` if there can be no such disk.
fn run_script(way: &Way<'_>) -> Option<Output> {
    let script = format!(
        r#"head -c 4M /dev/zero > filler
        {VARIABLE}="$1" "$2" {WRITER} --exact --ignored --nocapture > written 2>&1; echo "writer $?"; cat written
        rm -f filler
        confirmed=$(grep -o 'confirmed .*' written | tail -1 | cut -d' ' -f2-)
        {VARIABLE}="$1 $confirmed" "$2" {READER} --exact --ignored --nocapture 2>&1; echo "reader $?"
        "$0" repair "$3"; "$0" check --data "$3"; echo "check $?""#
    );
    let test = std::env::current_exe().unwrap();
    on_small_disk(8 << 20, &script, &[&way.to_text(), test.to_str().unwrap(), &way.location()])
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing_that_was_confirmed() {
    for way in Way::all() {
        let Some(output) = run_script(&way) else { return };
        let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let said = format!("{way:?}\n{}", printed.concat());
        assert_eq!(said.contains("writer 0"), !way.dies, "{said}");
        assert!(said.contains("full at step") && said.contains("reader 0") && said.contains("check 0"), "{said}");
    }
}
