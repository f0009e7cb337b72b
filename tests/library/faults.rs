//! Each single write of an operation fails in turn: the file then holds what it held before, or what it was to hold.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use h5live::model::{CreationOrder, FileSpaceSettings, FileSpaceStrategy, LinkOrAttributeStorageSpec, LinkTarget};
use h5live::{Attribute, Dataset, Datatype, File, Group, H5Type, NamedType, Object, Options};
use h5live_cache::{FaultyStorage, InjectedFailure};
use h5live_native::{LibVer, MemoryStorage, Mode, NativeFile, OpenOptions, Storage};

type Faulty = FaultyStorage<MemoryStorage>;

fn open_with(storage: impl Storage + 'static, options: &OpenOptions) -> h5live::model::Result<File> {
    let store = NativeFile::open_storage(Arc::new(storage), options).map_err(h5live::model::Error::from)?;
    Ok(File::with_store(Arc::new(store), "file", Options::default()).unwrap())
}

fn open(storage: impl Storage + 'static, mode: Mode) -> h5live::model::Result<File> {
    open_with(storage, &OpenOptions { mode, ..OpenOptions::default() })
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

fn add_attributes(text: &mut String, mut attributes: Vec<Attribute>) -> h5live::Result<()> {
    attributes.sort_by(|a, b| a.name().cmp(b.name()));
    for attribute in attributes {
        writeln!(text, "  @{} {:?}", attribute.name(), attribute.values()?).unwrap();
    }
    Ok(())
}

fn add_group(text: &mut String, path: &str, group: &Group) -> h5live::Result<()> {
    let mut links = group.links()?;
    links.sort_by(|a, b| a.name.cmp(&b.name));
    for link in links {
        let below = format!("{path}/{}", link.name);
        writeln!(text, "{below} {:?}", link.creation_order).unwrap();
        if let LinkTarget::Soft(path) = &link.target {
            writeln!(text, "  to {path}").unwrap();
        }
        let LinkTarget::Hard(id) = link.target else { continue };
        match group.object_by_id(id, &link.name.to_string())? {
            Object::Group(group) => {
                writeln!(text, "  {} links", group.info()?.hard_link_count).unwrap();
                add_attributes(text, group.attributes()?)?;
                add_group(text, &below, &group)?;
            }
            Object::Dataset(dataset) => {
                add_attributes(text, dataset.attributes()?)?;
                writeln!(text, "  {:?} {:?}", dataset.shape()?, dataset.read_values(..)?).unwrap();
            }
            Object::Datatype(datatype) => {
                writeln!(text, "  {} uses of {:?}", datatype.info()?.hard_link_count, datatype.datatype()).unwrap();
            }
            _ => {}
        }
    }
    Ok(())
}

/// Everything that a file holds, or why it cannot be read.
fn contents(image: &[u8]) -> String {
    let mut text = String::new();
    let add = |text: &mut String| {
        let file = open(storage(image), Mode::Read).map_err(|error| error.to_string())?;
        let shown = |error: h5live::Error| error.to_string();
        add_attributes(text, file.root().attributes().map_err(shown)?).map_err(shown)?;
        add_group(text, "", &file.root()).map_err(shown)
    };
    let done: Result<(), String> = add(&mut text);
    done.map_or_else(|error| format!("{text}\n{error}"), |()| text.clone())
}

/// The kinds of files that are changed.
fn kinds() -> [(&'static str, LibVer, FileSpaceSettings); 7] {
    let (aggregators, pages, free) =
        (FileSpaceSettings::default(), FileSpaceStrategy::Paged, FileSpaceStrategy::FreeSpace);
    let kept = |strategy| FileSpaceSettings { strategy, persist: true, page_size: 512, ..aggregators };
    [
        ("earliest", LibVer::Earliest, aggregators),
        ("v18", LibVer::V18, aggregators),
        ("v110", LibVer::V110, aggregators),
        ("latest", LibVer::V200, aggregators),
        ("in pages", LibVer::V110, FileSpaceSettings { persist: false, ..kept(pages) }),
        ("in pages, free space kept", LibVer::V110, kept(pages)),
        ("free space kept", LibVer::V110, kept(free)),
    ]
}

/// A file with some of everything.
fn base(profile: LibVer, space: FileSpaceSettings) -> h5live::Result<Vec<u8>> {
    let storage = MemoryStorage::new();
    let options = OpenOptions { mode: Mode::Create, profile, space, ..OpenOptions::default() };
    let file = open_with(storage.clone(), &options).unwrap();
    let root = file.root();
    let rows = file.new_dataset::<i32>().unlimited_rows(&[3]).chunk_shape(&[2, 3]).create("rows")?;
    rows.append(&(0..30).collect::<Vec<i32>>())?;
    let plane = file.new_dataset::<i16>().shape(&[4, 4]).resizable().chunk_shape(&[2, 2]).create("plane")?;
    plane.write(&(0..16).collect::<Vec<i16>>())?;
    let packed =
        file.new_dataset::<i16>().shape(&[6, 6]).resizable().chunk_shape(&[4, 4]).deflate(1).create("packed")?;
    packed.write(&(0..36).collect::<Vec<i16>>())?;
    file.new_dataset::<i64>().create_with_data("line", &(0..40).collect::<Vec<i64>>())?;
    file.new_dataset::<i64>().compact().shape(&[4]).create("compact")?.write(&[1i64, 2, 3, 4])?;
    file.new_dataset::<String>().shape(&[3]).create("texts")?;
    file.new_dataset::<String>().create_with_data("names", &["one".to_owned(), "two".to_owned()])?;
    let named = root.commit_datatype("type", &Datatype::fixed_string(5, h5live::model::CharacterSet::Ascii))?;
    root.new_dataset_with_type(named.datatype().clone()).committed_datatype(&named).shape(&[2]).create("typed")?;
    let twin = file.create_group("twins/first")?;
    file.group("twins")?.link_hard("second", twin.id())?;
    let group = file.create_group("group")?;
    for i in 0..8 {
        group.create_group(&format!("link {i}"))?;
        rows.set_attribute(&format!("attribute {i}"), &i)?;
    }
    let many = file.create_group("many")?;
    for i in 0..40 {
        many.link_soft(&format!("soft {i}"), "/rows")?;
        many.set_attribute(&format!("attribute {i}"), &i)?;
    }
    let indexed = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let ordered = root.new_group().link_storage(indexed).attribute_storage(indexed).create("ordered")?;
    // As few as there can be before they move into the header.
    let few = root.new_group().link_storage(indexed).attribute_storage(indexed).create("few")?;
    for (group, count, kept) in [(&ordered, 40, 40), (&few, 9, 6)] {
        (0..count).try_for_each(|i| {
            group.link_soft(&format!("soft {i}"), "/rows")?;
            group.set_attribute(&format!("attribute {i}"), &i)
        })?;
        (kept..count).try_for_each(|i| {
            group.unlink(&format!("soft {i}"))?;
            group.remove_attribute(&format!("attribute {i}"))
        })?;
    }
    file.close()?;
    Ok(image(&storage))
}

type Change = fn(&File) -> h5live::Result<()>;

fn rows(file: &File) -> h5live::Result<Dataset> {
    file.dataset("rows")
}

/// Each of these shows at once, or not at all.
const CHANGES: [(&str, Change); 50] = [
    ("rows are appended", |file| rows(file)?.append(&[1i32; 60])),
    ("part of a chunk is appended", |file| rows(file)?.append(&[1i32; 3])),
    ("rows are overwritten", |file| rows(file)?.write_slice((1..7, 0..2), &[9i32; 12])),
    ("elements of one run are overwritten", |file| file.dataset("line")?.write(&[7i64; 40])),
    ("some elements of one run are overwritten", |file| file.dataset("line")?.write_slice(3..11, &[7i64; 8])),
    ("compressed chunks are overwritten", |file| file.dataset("packed")?.write_slice((1..5, 1..6), &[7i16; 20])),
    ("elements in the header are overwritten", |file| file.dataset("compact")?.write(&[5i64; 4])),
    ("text is overwritten", |file| file.dataset("names")?.write(&["a longer one".to_owned(), "three".to_owned()])),
    ("a dataset of two dimensions grows", |file| file.dataset("plane")?.resize(&[9, 9])),
    ("a dataset of two dimensions shrinks", |file| file.dataset("plane")?.resize(&[2, 2])),
    ("a dataset shrinks to parts of chunks", |file| file.dataset("plane")?.resize(&[3, 3])),
    ("a compressed dataset shrinks to parts of chunks", |file| file.dataset("packed")?.resize(&[5, 3])),
    ("a compressed dataset grows", |file| file.dataset("packed")?.resize(&[7, 13])),
    ("a dataset shrinks to nothing", |file| rows(file)?.resize(&[0, 3])),
    ("a group is made", |file| file.create_group("new").map(drop)),
    ("groups are made within each other", |file| file.create_group("new/below/it").map(drop)),
    ("a dataset is made", |file| file.new_dataset::<f64>().create_with_data("new", &[1.5; 100]).map(drop)),
    ("a dataset is made below new groups", |file| {
        file.new_dataset::<i8>().create_with_data("new/deep/one", &[1]).map(drop)
    }),
    ("a dataset in chunks is made", |file| {
        file.new_dataset::<i32>().shape(&[50]).chunk_shape(&[10]).deflate(1).create_with_data("new", &[5; 50]).map(drop)
    }),
    ("text is written", |file| file.dataset("texts")?.write(&["a".to_owned(), "bb".to_owned(), "ccc".to_owned()])),
    ("a type is committed", |file| file.root().commit_datatype("new", &f64::datatype()).map(drop)),
    ("a dataset of a committed type is made", |file| {
        let named = named(file)?;
        file.root()
            .new_dataset_with_type(named.datatype().clone())
            .committed_datatype(&named)
            .shape(&[9])
            .create("new")
            .map(drop)
    }),
    ("a dataset of a committed type is removed", |file| file.root().unlink("typed")),
    ("an attribute of a committed type is set", |file| {
        let named = named(file)?;
        file.group("many")?
            .new_attribute("new")
            .datatype(named.datatype().clone())
            .committed_datatype(&named)
            .write_raw(b"12345")
    }),
    ("links become dense", |file| file.group("group")?.link_soft("one more", "/rows")),
    ("links become compact", |file| file.group("few")?.unlink("soft 2")),
    ("a dense link is added", |file| file.group("many")?.link_soft("one more", "/rows")),
    ("a dense link is removed", |file| file.group("many")?.unlink("soft 17")),
    ("an ordered link is added", |file| file.group("ordered")?.link_soft("one more", "/rows")),
    ("an ordered link is removed", |file| file.group("ordered")?.unlink("soft 17")),
    ("an ordered link is renamed", |file| file.group("ordered")?.rename("soft 17", "other")),
    ("an attribute is set", |file| file.group("group")?.set_attribute("new", &1)),
    ("an attribute is replaced by a longer one", |file| {
        rows(file)?.set_attribute_array("attribute 3", &[5i64; 90], &[90])
    }),
    ("attributes become dense", |file| rows(file)?.set_attribute("one more", &9)),
    ("attributes become compact", |file| file.group("few")?.remove_attribute("attribute 2")),
    ("a dense attribute is set", |file| file.group("many")?.set_attribute("one more", &9)),
    ("a dense attribute is removed", |file| file.group("many")?.remove_attribute("attribute 17")),
    ("an ordered attribute is set", |file| file.group("ordered")?.set_attribute("one more", &9)),
    ("an ordered attribute is replaced", |file| file.group("ordered")?.set_attribute("attribute 3", &[9, 9])),
    ("an ordered attribute is removed", |file| file.group("ordered")?.remove_attribute("attribute 17")),
    ("a group is copied with what is below it", |file| file.copy_object("group", "copy").map(drop)),
    ("a dataset is copied into new groups", |file| file.copy_object("rows", "new/deep/copy").map(drop)),
    ("a dataset is renamed", |file| file.root().rename("rows", "lines")),
    ("a dataset moves to another group", |file| file.root().rename("rows", "twins/rows")),
    ("a dataset moves into new groups", |file| file.root().rename("rows", "new/deep/rows")),
    ("a link moves from a dense group to one that becomes dense", |file| {
        file.root().rename("many/soft 3", "group/soft")
    }),
    ("an object gets another name", |file| file.root().link_hard("third", file.group("twins/first")?.id())),
    ("one of two names goes", |file| file.root().unlink("twins/second")),
    ("a dataset is removed", |file| file.root().unlink("rows")),
    ("a group is removed with what is below it", |file| file.root().unlink("group")),
];

fn named(file: &File) -> h5live::Result<NamedType> {
    match file.object("type")? {
        Object::Datatype(named) => Ok(named),
        other => panic!("{other:?}"),
    }
}

/// The ways in which a write fails, and whether everything after it fails too.
///
/// A part of a page is written and nothing ever after it only when the system itself fails within a page, which is the
/// model checker's matter: here whoever is told of such a failure can still close the file.
const FAILURES: [(InjectedFailure, bool); 5] = [
    (InjectedFailure::StorageFull, true),
    (InjectedFailure::PartialWrite(100), false),
    (InjectedFailure::Broken, true),
    (InjectedFailure::PartialWrite(4096), true),
    (InjectedFailure::PartialWrite(1), false),
];

/// All of them for one kind of file, the first for the others; with `H5LIVE_FAULTS=full` all for all.
fn failures(kind: &str) -> &'static [(InjectedFailure, bool)] {
    let all = kind == "v110" || std::env::var("H5LIVE_FAULTS").is_ok_and(|which| which == "full");
    &FAILURES[..if all { FAILURES.len() } else { 1 }]
}

/// Makes the change on a storage that fails as told, and closes the file; whether that went well, and the file after
/// it.
fn attempt(base: &[u8], options: &OpenOptions, change: Change, fault: Option<(u64, InjectedFailure, bool)>) -> Attempt {
    let faulty = Faulty::new(storage(base));
    let file = open_with(faulty.clone(), options).unwrap();
    let before = faulty.attempted_change_count();
    if let Some((at, failure, lasting)) = fault {
        faulty.fail_after(at, failure, lasting);
    }
    let flushed = change(&file).and_then(|()| file.flush()).is_ok();
    let flushes = faulty.attempted_change_count() - before;
    let closed = file.close().is_ok();
    let changes = faulty.attempted_change_count() - before;
    // Who was told that closing failed may try again, and whoever does not, does so by dropping it.
    drop(file);
    Attempt { flushed, closed, flushes, changes, after: image(faulty.inner()) }
}

struct Attempt {
    flushed: bool,
    closed: bool,
    /// Writes until the change was flushed, and until the file was closed.
    flushes: u64,
    changes: u64,
    after: Vec<u8>,
}

/// What a file holds after its next writer has opened and closed it, which is sound then.
fn recovered(after: &[u8]) -> String {
    let storage = storage(after);
    match open(storage.clone(), Mode::Write).map(|file| file.close()) {
        Ok(Ok(())) => sound(&storage),
        failed => format!("{failed:?}"),
    }
}

fn sound(storage: &MemoryStorage) -> String {
    let report = h5live_checker::file::check_storage(storage);
    match report.findings.first() {
        Some(finding) => finding.to_string(),
        None => contents(&image(storage)),
    }
}

/// What is not so, by the kind of the file and the change: the first case of each.
type Wrong = BTreeMap<(&'static str, &'static str), String>;

fn nothing_is_wrong(wrong: &Wrong) {
    wrong.iter().for_each(|((kind, name), text)| println!("{kind}: {name}: {text}"));
    assert!(wrong.is_empty(), "{} changes", wrong.len());
}

/// The first line in which two texts differ.
fn difference(found: &str, wanted: &str) -> String {
    let mut lines = found.lines().zip(wanted.lines());
    let (found, wanted) = lines.find(|(a, b)| a != b).unwrap_or((found.lines().last().unwrap_or_default(), "the end"));
    format!("{found:?} is not {wanted:?}")
}

#[test]
fn what_fails_leaves_the_old_state_or_the_new_one() {
    let (mut failed, mut wrong) = (0, Wrong::new());
    for (kind, profile, space) in kinds() {
        let base = base(profile, space).unwrap();
        let old = contents(&base);
        let options = OpenOptions { mode: Mode::Write, profile, ..OpenOptions::default() };
        for (name, change) in CHANGES {
            let Attempt { flushed, closed, flushes, changes, after } = attempt(&base, &options, change, None);
            assert!(flushed && closed && flushes > 0, "{kind}: {name}");
            let new = contents(&after);
            assert_ne!(old, new, "{kind}: {name}: something changes");
            let cases = (0..changes).flat_map(|at| failures(kind).iter().map(move |failure| (at, *failure)));
            for (at, (failure, lasting)) in cases {
                let done = attempt(&base, &options, change, Some((at, failure, lasting)));
                let found = contents(&done.after);
                let recovered = recovered(&done.after);
                let fault = match () {
                    () if done.flushed && done.closed => "nobody is told".to_owned(),
                    () if done.flushed != (at >= flushes) => "what was flushed is not known".to_owned(),
                    () if found != new && (found != old || done.flushed) => {
                        format!("neither: {}; {}", difference(&found, &old), difference(&found, &new))
                    }
                    () if recovered != found => format!("the next writer: {}", difference(&recovered, &found)),
                    () => String::new(),
                };
                if !fault.is_empty() {
                    let place = format!("write {at} of {changes}, the first {flushes} to flush, fails ({failure:?})");
                    wrong.entry((kind, name)).or_insert(format!("{place}: {fault}"));
                }
                failed += 1;
            }
        }
    }
    println!("{failed} failures of writes, in {} operations on {} kinds of files", CHANGES.len(), kinds().len());
    nothing_is_wrong(&wrong);
}

#[test]
fn what_failed_is_written_once_there_is_room_again() {
    let mut wrong = Wrong::new();
    for (kind, profile, space) in kinds() {
        let base = base(profile, space).unwrap();
        let old = contents(&base);
        let options = OpenOptions { mode: Mode::Write, profile, ..OpenOptions::default() };
        for (name, change) in CHANGES {
            let Attempt { flushes, after, .. } = attempt(&base, &options, change, None);
            let new = contents(&after);
            for at in 0..flushes {
                let faulty = Faulty::new(storage(&base));
                let file = open_with(faulty.clone(), &options).unwrap();
                faulty.fail_after(at, InjectedFailure::StorageFull, true);
                let changed = change(&file).is_ok();
                let flushed = file.flush().is_ok();
                faulty.clear_fault();
                let closed = file.close().and_then(|()| file.close());
                let found = sound(faulty.inner());
                let fault = match () {
                    () if changed && flushed => "nobody is told".to_owned(),
                    () if closed.is_err() => format!("{closed:?}"),
                    () if found != new && (found != old || changed) => {
                        format!("neither: {}; {}", difference(&found, &old), difference(&found, &new))
                    }
                    () => continue,
                };
                wrong.entry((kind, name)).or_insert(format!("write {at} of {flushes}: {fault}"));
            }
        }
    }
    nothing_is_wrong(&wrong);
}
