//! Threads of one session append and read the same dataset, in each store and for each kind of element.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use h5live::model::ReferenceKind;
use h5live::{Dataset, File, FixedStr, H5Type, H5Write, Object, Reference, ReferenceTarget};

/// The stores, by what their locations begin with.
const STORES: [&str; 5] = ["", "log:", "kv:", "hsds:", "mem:"];
const THREADS: u64 = 4;
const ROWS: u64 = 80;
/// So many rows are appended between two flushes of a thread.
const ROWS_PER_FLUSH: u64 = 9;

/// What is written in a row: the thread and its number.
fn row(thread: u64, number: u64) -> u64 {
    thread << 32 | number
}

/// Appends rows and looks at the last one of the dataset, whoever has written it.
fn append_and_read<T: H5Write>(
    (file, data): (&File, &Dataset),
    thread: u64,
    make: &impl Fn(u64) -> T,
    is_row: &impl Fn(&Dataset, u64) -> bool,
    reads: &AtomicU64,
) {
    for number in 0..ROWS {
        data.append(&[make(row(thread, number))]).unwrap();
        let last = data.shape().unwrap()[0] - 1;
        assert!(is_row(data, last), "row {last} of {} is none that was written", file.name());
        reads.fetch_add(1, Ordering::Relaxed);
        if number % ROWS_PER_FLUSH == 3 {
            file.flush().unwrap();
        }
    }
}

/// Runs the threads on a dataset, and says what it holds when the file was closed and opened again.
fn run<T: H5Type + H5Write + Sync>(
    location: &str,
    make: impl Fn(u64) -> T + Sync,
    read_rows: impl Fn(&Dataset, std::ops::Range<u64>) -> Vec<u64> + Sync,
) {
    let file = File::create(location).unwrap();
    let data = file.new_dataset::<T>().unlimited_rows(&[]).chunk_shape(&[64]).create("data").unwrap();
    let is_written = |value: u64| value >> 32 < THREADS && (value & 0xffff_ffff) < ROWS;
    let is_row = |data: &Dataset, at: u64| is_written(read_rows(data, at..at + 1)[0]);
    let reads = AtomicU64::new(0);
    thread::scope(|threads| {
        for thread in 0..THREADS {
            let (file, data, make, is_row, reads) = (&file, &data, &make, &is_row, &reads);
            threads.spawn(move || append_and_read((file, data), thread, make, is_row, reads));
        }
    });
    assert_eq!(reads.into_inner(), THREADS * ROWS);
    let check = |data: &Dataset| {
        let rows = read_rows(data, 0..THREADS * ROWS);
        for thread in 0..THREADS {
            let own: Vec<u64> =
                rows.iter().filter(|value| **value >> 32 == thread).map(|value| value & 0xffff_ffff).collect();
            assert!(own.into_iter().eq(0..ROWS), "the rows of a thread are there, in their order");
        }
    };
    check(&data);
    if location.starts_with("mem:") {
        return;
    }
    file.close().unwrap();
    drop((data, file));
    check(&File::open(location).unwrap().dataset("data").unwrap());
}

fn for_each_store(name: &str, run: impl Fn(&str)) {
    for_each_of(&STORES, name, run);
}

fn for_each_of(stores: &[&str], name: &str, run: impl Fn(&str)) {
    let folder = tempfile::tempdir().unwrap();
    for store in stores {
        let location = match *store {
            "mem:" => format!("mem:{name}-{}", folder.path().file_name().unwrap().display()),
            _ => format!("{store}{}", folder.path().join(format!("{}{name}", store.replace(':', "_"))).display()),
        };
        println!("{location}");
        run(&location);
    }
}

/// The number that a text is; an empty one is none.
fn number_of(text: &str) -> u64 {
    text.trim_start_matches("row ").parse().unwrap_or(u64::MAX)
}

#[test]
fn texts_are_read_beside_appends() {
    for_each_store("texts", |location| {
        run(
            location,
            |value| format!("row {value}"),
            |data, rows| data.read_slice::<String>(rows).unwrap().iter().map(|text| number_of(text)).collect(),
        );
    });
}

#[test]
fn sequences_are_read_beside_appends() {
    for_each_store("sequences", |location| {
        run(
            location,
            |value| vec![value; 1 + value as usize % 5],
            |data, rows| {
                let found = data.read_slice::<Vec<u64>>(rows).unwrap();
                found.iter().map(|row| row.first().copied().unwrap_or(u64::MAX)).collect()
            },
        );
    });
}

#[test]
fn numbers_are_read_beside_appends() {
    for_each_store("numbers", |location| {
        // Zero is what nobody has written.
        run(
            location,
            |value| value + 1,
            |data, rows| data.read_slice::<u64>(rows).unwrap().iter().map(|value| value.wrapping_sub(1)).collect(),
        );
    });
}

#[derive(H5Type, Clone)]
struct Compound {
    number: u64,
    name: FixedStr<24>,
    text: String,
    sequence: Vec<u64>,
}

impl Compound {
    fn new(number: u64) -> Self {
        let text = format!("row {number}");
        Compound { number, name: FixedStr::new(&text).unwrap(), text, sequence: vec![number; 1 + number as usize % 3] }
    }

    /// The number that all members have.
    fn number(&self) -> u64 {
        let numbers = [number_of(self.name.as_str().unwrap()), number_of(&self.text), self.sequence[0]];
        assert_eq!(numbers, [self.number; 3], "the members of a row are of one row");
        self.number
    }
}

#[test]
fn compounds_are_read_beside_appends() {
    for_each_store("compounds", |location| {
        run(location, Compound::new, |data, rows| {
            data.read_slice::<Compound>(rows).unwrap().iter().map(Compound::number).collect()
        });
    });
}

#[test]
fn pairs_of_a_map_are_read_beside_their_changes() {
    // Logs and object stores hold no maps.
    for_each_of(&["", "kv:", "mem:"], "map", |location| {
        let file = File::create(location).unwrap();
        let map = file.new_map::<String, String>().create("map").unwrap();
        thread::scope(|threads| {
            for thread in 0..THREADS {
                let (file, map) = (&file, &map);
                threads.spawn(move || {
                    for number in 0..ROWS {
                        map.put(&format!("thread {thread}"), &format!("row {number}")).unwrap();
                        map.put("last", &format!("row {number}")).unwrap();
                        let last = map.get("last").unwrap().unwrap();
                        assert!(number_of(&last) < ROWS, "{last:?} was never written");
                        if number % ROWS_PER_FLUSH == 3 {
                            file.flush().unwrap();
                        }
                    }
                });
            }
        });
        for thread in 0..THREADS {
            let own = map.get(&format!("thread {thread}")).unwrap().unwrap();
            assert_eq!(number_of(&own), ROWS - 1);
        }
    });
}

#[test]
fn texts_of_attributes_are_read_beside_their_changes() {
    for_each_store("attributes", |location| {
        let file = File::create(location).unwrap();
        file.root().set_attribute("text", "row 0").unwrap();
        thread::scope(|threads| {
            for thread in 0..THREADS {
                let file = &file;
                threads.spawn(move || {
                    for number in 0..ROWS {
                        match thread {
                            0 => file.root().set_attribute("text", &*format!("row {number}")).unwrap(),
                            _ => {
                                let text: String = file.root().attribute("text").unwrap().read_scalar().unwrap();
                                assert!(number_of(&text) < ROWS, "{text:?} was never written");
                            }
                        }
                    }
                });
            }
        });
        let last: String = file.root().attribute("text").unwrap().read_scalar().unwrap();
        assert_eq!(number_of(&last), ROWS - 1);
    });
}

/// What a reference of one kind is made of, and what it leads to.
struct References {
    kind: ReferenceKind,
    make: fn(&File, u64) -> Reference,
    number: fn(ReferenceTarget) -> u64,
}

const REFERENCES: [References; 2] = [
    References {
        kind: ReferenceKind::Object1,
        make: |file, number| file.root().object(&format!("target {number}")).unwrap().reference().unwrap(),
        number: |target| match target {
            ReferenceTarget::Object(Object::Dataset(data)) => data.read::<u64>().unwrap()[0],
            other => panic!("{other:?} is no dataset"),
        },
    },
    References {
        kind: ReferenceKind::Region1,
        make: |file, number| file.dataset("grid").unwrap().region_reference(number..number + 1).unwrap(),
        number: |target| match target {
            ReferenceTarget::Region(data, selection) => data.read_slice::<u64>(selection).unwrap()[0],
            other => panic!("{other:?} is no region"),
        },
    },
];

#[test]
fn references_are_read_beside_appends() {
    let count = THREADS * ROWS;
    for (number, references) in REFERENCES.iter().enumerate() {
        // In an object store, a reference to a region leads through the chunk that has it, as long as nobody stores that chunk
        // anew (docs/stores.md); then it is an error.
        let stores: Vec<&str> =
            STORES.into_iter().filter(|store| *store != "hsds:" || references.kind == ReferenceKind::Object1).collect();
        for_each_of(&stores, &format!("references-{number}"), |location| {
            let file = File::create(location).unwrap();
            let numbers: Vec<u64> = (0..count).collect();
            file.new_dataset::<u64>().create_with_data("grid", &numbers).unwrap();
            for number in numbers {
                file.new_dataset::<u64>().create_with_data(&format!("target {number}"), &[number]).unwrap();
            }
            let datatype = Reference::datatype_of(references.kind);
            let data =
                file.new_dataset_with_type(datatype).unlimited_rows(&[]).chunk_shape(&[64]).create("data").unwrap();
            let target = |data: &Dataset, row: u64| {
                let found = data.read_slice::<Reference>(row..row + 1).unwrap();
                (references.number)(
                    data.file().reference_target(&found[0]).unwrap().expect("the reference leads to something"),
                )
            };
            thread::scope(|threads| {
                for thread in 0..THREADS {
                    let (file, data, target) = (&file, &data, &target);
                    threads.spawn(move || {
                        for number in (0..ROWS).map(|row| thread * ROWS + row) {
                            data.append(&[(references.make)(file, number)]).unwrap();
                            let last = data.shape().unwrap()[0] - 1;
                            assert!(target(data, last) < count);
                            if number % ROWS_PER_FLUSH == 3 {
                                file.flush().unwrap();
                            }
                        }
                    });
                }
            });
            let mut found: Vec<u64> = (0..count).map(|row| target(&data, row)).collect();
            found.sort_unstable();
            assert_eq!(found, (0..count).collect::<Vec<_>>());
            file.close().unwrap();
        });
    }
}
