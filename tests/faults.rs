//! Each single write of an operation fails in turn: the file then holds what it held before, or what it was to hold.

use std::fmt::Write;
use std::sync::Arc;

use h5live::model::LinkTarget;
use h5live::{Attribute, Dataset, File, Group, Object, Options};
use h5live_cache::{Failure, FaultyStorage};
use h5live_swmr::{MemoryStorage, Mode, NativeFile, OpenOptions, Storage};

type Faulty = FaultyStorage<MemoryStorage>;

fn open(storage: impl Storage + 'static, mode: Mode) -> h5live::model::Result<File> {
    let store = NativeFile::on(Arc::new(storage), &OpenOptions { mode, ..OpenOptions::default() })
        .map_err(h5live::model::Error::from)?;
    Ok(File::with_store(Arc::new(store), "file", Options::default()))
}

fn image(storage: &MemoryStorage) -> Vec<u8> {
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    let len = storage.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(len);
    bytes
}

fn storage(image: &[u8]) -> MemoryStorage {
    let storage = MemoryStorage::new();
    storage.write_at(image, 0).unwrap();
    storage
}

fn add_attributes(text: &mut String, attributes: Vec<Attribute>) {
    let mut attributes = attributes;
    attributes.sort_by(|a, b| a.name().cmp(b.name()));
    for attribute in attributes {
        writeln!(text, "  @{} {:?}", attribute.name(), attribute.values().unwrap()).unwrap();
    }
}

fn add_group(text: &mut String, path: &str, group: &Group) {
    let mut links = group.links().unwrap();
    links.sort_by(|a, b| a.name.cmp(&b.name));
    for link in links {
        let below = format!("{path}/{}", link.name);
        writeln!(text, "{below}").unwrap();
        let LinkTarget::Hard(id) = link.target else { continue };
        match group.object_by_id(id, &link.name.to_string()).unwrap() {
            Object::Group(group) => {
                add_attributes(text, group.attributes().unwrap());
                add_group(text, &below, &group);
            }
            Object::Dataset(dataset) => {
                add_attributes(text, dataset.attributes().unwrap());
                writeln!(text, "  {:?} {:?}", dataset.shape().unwrap(), dataset.read_values(..).unwrap()).unwrap();
            }
            _ => {}
        }
    }
}

/// Everything that a file holds.
fn contents(image: &[u8]) -> String {
    let file = open(storage(image), Mode::Read).expect("the file can be read");
    let mut text = String::new();
    add_attributes(&mut text, file.root().attributes().unwrap());
    add_group(&mut text, "", &file.root());
    text
}

/// A file with some of everything.
fn base() -> Vec<u8> {
    let storage = MemoryStorage::new();
    let file = open(storage.clone(), Mode::Create).unwrap();
    let rows = file.new_dataset::<i32>().growing(&[3]).chunk(&[2, 3]).create("rows").unwrap();
    rows.append(&(0..30).collect::<Vec<i32>>()).unwrap();
    let plane = file.new_dataset::<i16>().shape(&[4, 4]).resizable().chunk(&[2, 2]).create("plane").unwrap();
    plane.write(&(0..16).collect::<Vec<i16>>()).unwrap();
    file.new_dataset::<String>().shape(&[3]).create("texts").unwrap();
    let group = file.create_group("group").unwrap();
    for i in 0..8 {
        group.create_group(&format!("link {i}")).unwrap();
        rows.set_attribute(&format!("attribute {i}"), &i).unwrap();
    }
    let many = file.create_group("many").unwrap();
    for i in 0..40 {
        many.link_soft(&format!("soft {i}"), "/rows").unwrap();
        many.set_attribute(&format!("attribute {i}"), &i).unwrap();
    }
    file.close().unwrap();
    image(&storage)
}

type Change = fn(&File) -> h5live::Result<()>;

fn rows(file: &File) -> h5live::Result<Dataset> {
    file.dataset("rows")
}

/// Each of these shows at once, or not at all.
const CHANGES: [(&str, Change); 19] = [
    ("rows are appended", |file| rows(file)?.append(&[1i32; 60])),
    ("a dataset of two dimensions grows", |file| file.dataset("plane")?.resize(&[9, 9])),
    ("a dataset of two dimensions shrinks", |file| file.dataset("plane")?.resize(&[2, 2])),
    ("a dataset shrinks to nothing", |file| rows(file)?.resize(&[0, 3])),
    ("a group is made", |file| file.create_group("new").map(drop)),
    ("a dataset is made", |file| file.new_dataset::<f64>().create_with("new", &[1.5; 100]).map(drop)),
    ("text is written", |file| file.dataset("texts")?.write(&["a".to_owned(), "bb".to_owned(), "ccc".to_owned()])),
    ("links become dense", |file| file.group("group")?.link_soft("one more", "/rows")),
    ("a dense link is added", |file| file.group("many")?.link_soft("one more", "/rows")),
    ("a dense link is removed", |file| file.group("many")?.remove("soft 17")),
    ("an attribute is set", |file| file.group("group")?.set_attribute("new", &1)),
    ("an attribute is replaced by a longer one", |file| {
        rows(file)?.set_attribute_array("attribute 3", &[5i64; 90], &[90])
    }),
    ("attributes become dense", |file| rows(file)?.set_attribute("one more", &9)),
    ("a dense attribute is set", |file| file.group("many")?.set_attribute("one more", &9)),
    ("a dense attribute is removed", |file| file.group("many")?.remove_attribute("attribute 17")),
    ("a group is copied with what is below it", |file| file.copy_object("group", "copy")),
    ("a dataset is renamed", |file| file.root().rename("rows", "lines")),
    ("a dataset is removed", |file| file.root().remove("rows")),
    ("a group is removed with what is below it", |file| file.root().remove("group")),
];

/// The ways in which a write fails, and whether everything after it fails too.
///
/// A part of a page is written and nothing ever after it only when the system itself fails within a page, which is the
/// model checker's matter: here whoever is told of such a failure can still close the file.
const FAILURES: [(Failure, bool); 5] = [
    (Failure::Full, true),
    (Failure::Broken, true),
    (Failure::Short(4096), true),
    (Failure::Short(1), false),
    (Failure::Short(100), false),
];

/// Makes the change on a storage that fails as told; whether that went well, and the file after it.
fn attempt(base: &[u8], change: Change, fault: Option<(u64, Failure, bool)>) -> (bool, u64, Vec<u8>) {
    let faulty = Faulty::new(storage(base));
    let file = open(faulty.clone(), Mode::Write).unwrap();
    let before = faulty.changes();
    if let Some((at, failure, lasting)) = fault {
        faulty.fail_after(at, failure, lasting);
    }
    let done = change(&file).and_then(|()| file.flush());
    let changes = faulty.changes() - before;
    if fault.is_none_or(|(.., lasting)| lasting) {
        // Nothing of what is still to be written comes through.
        faulty.fail_after(0, Failure::Broken, true);
    }
    drop(file);
    (done.is_ok(), changes, image(faulty.inner()))
}

#[test]
fn what_fails_leaves_the_old_state_or_the_new_one() {
    let base = base();
    let old = contents(&base);
    let mut failures = 0;
    for (name, change) in CHANGES {
        let (done, changes, after) = attempt(&base, change, None);
        assert!(done && changes > 0, "{name}");
        let new = contents(&after);
        assert_ne!(old, new, "{name}: something changes");
        for at in 0..changes {
            for (failure, lasting) in FAILURES {
                let (done, _, after) = attempt(&base, change, Some((at, failure, lasting)));
                assert!(!done, "{name}: who asks is told that write {at} of {changes} failed ({failure:?})");
                let found = contents(&after);
                assert!(found == old || found == new, "{name}: write {at} of {changes} fails ({failure:?}):\n{found}");
                failures += 1;
            }
        }
    }
    println!("{failures} failures of single writes, in {} operations", CHANGES.len());
}

#[test]
fn what_failed_is_written_once_there_is_room_again() {
    let base = base();
    for (name, change) in CHANGES {
        let (_, changes, after) = attempt(&base, change, None);
        let new = contents(&after);
        for at in 0..changes {
            let faulty = Faulty::new(storage(&base));
            let file = open(faulty.clone(), Mode::Write).unwrap();
            faulty.fail_after(at, Failure::Full, true);
            let done = change(&file);
            let failed_late = done.is_ok();
            assert!(file.flush().is_err() || !failed_late, "{name}: write {at}");
            faulty.mend();
            if failed_late {
                file.close().unwrap();
                assert_eq!(contents(&image(faulty.inner())), new, "{name}: write {at} of {changes}");
            }
        }
    }
}
